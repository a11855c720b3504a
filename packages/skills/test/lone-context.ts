import type { CompileContext } from '@patchbay/protocols';

/** For a source that is asked directly: nobody else is there, and what it reports is kept. */
export function loneContext(): CompileContext & { readonly codes: string[] } {
  const codes: string[] = [];
  return {
    codes,
    scope: {},
    signal: new AbortController().signal,
    peers: { skills: async () => [], commands: async () => [] },
    state: {
      get: () => undefined,
      set: () => undefined,
      snapshot: () => ({}),
      restore: () => undefined,
    },
    report: ({ code }) => void codes.push(code),
  };
}
