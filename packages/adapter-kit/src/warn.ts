import type { Problem } from '@patchbay/protocols';

/** What happens to a problem that nobody asked for: a warning of the process, or of the console where there is none. */
export function warn(problem: Problem): void {
  const text = `${problem.source}: ${problem.message}`;
  const { process } = globalThis as {
    readonly process?: { readonly emitWarning?: (text: string, options: object) => void };
  };
  if (typeof process?.emitWarning === 'function')
    process.emitWarning(text, { type: 'PatchbayWarning', code: `patchbay:${problem.code}` });
  else console.warn(text);
}
