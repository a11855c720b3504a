import type { Problem } from '@patchbay/protocols';

/** Where there is a Node-like `process`, its warning; elsewhere nothing. Used when the program gave no `onProblem`. */
export function emitWarning({ source, code, message }: Problem): void {
  const { process } = globalThis as {
    process?: { emitWarning?(text: string, options: { type: string; code: string }): void };
  };
  process?.emitWarning?.(`${source}: ${message}`, {
    type: 'PatchbayWarning',
    code: `patchbay:${code}`,
  });
}
