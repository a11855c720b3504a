import { createArgumentValidator } from '@patchbay/adapter-kit';
import type { Problem } from '@patchbay/protocols';

import type { ExecSettings } from './exec-tool.ts';
import type { Report } from './problem-report.ts';
import type { CallOfMessage } from './tool-message.ts';

/** Characters; about 25,000 tokens. */
const MAX_RESULT_CHARS = 100_000;

/** One validator per adapter: each schema is compiled once. */
export function makeExecSettings(
  report: Report,
  maxResultChars: number = MAX_RESULT_CHARS,
): ExecSettings {
  return {
    validator: createArgumentValidator({ onProblem: report }),
    maxResultChars,
    onUnusablePart: (call, what) => report(unusablePart(call, what)),
  };
}

function unusablePart({ name, source = name }: CallOfMessage, what: string): Problem {
  return {
    source,
    code: 'protocol-error',
    severity: 'warning',
    message: `A part of a result of "${name}" is not shown to the model. ${what}.`,
  };
}
