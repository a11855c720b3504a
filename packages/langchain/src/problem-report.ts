import { warn } from '@patchbay/adapter-kit';
import type { Problem } from '@patchbay/protocols';

export type Report = (problem: Problem) => void;

/** Tells each problem once; where nobody listens, the first one of each source as a process warning. */
export function makeReport(onProblem: Report | undefined): Report {
  const told = new Set<string>();
  return (problem) => {
    const { source, code, message } = problem;
    const key = onProblem === undefined ? source : JSON.stringify([source, code, message]);
    if (told.has(key)) return;
    told.add(key);
    (onProblem ?? warn)(problem);
  };
}
