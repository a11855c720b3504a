import type { Problem } from '@patchbay/protocols';

export type ProblemReport = (problem: Problem) => void;

/** Tells each problem once; where nobody listens, the first one of each source as a warning of the process. */
export function createProblemReport(onProblem?: ProblemReport): ProblemReport {
  const told = new Set<string>();
  return (problem) => {
    const { source, code, message } = problem;
    const key = onProblem === undefined ? source : JSON.stringify([source, code, message]);
    if (told.has(key)) return;
    told.add(key);
    (onProblem ?? warn)(problem);
  };
}

/** Where there is a Node-like process. */
function warn({ source, code, message }: Problem): void {
  const { process } = globalThis as {
    readonly process?: { emitWarning?(text: string, options: object): void };
  };
  process?.emitWarning?.(`${source}: ${message}`, {
    type: 'PatchbayWarning',
    code: `patchbay:${code}`,
  });
}
