import { createToolValidator, type ProblemReport } from '@patchbay/adapter-kit';
import type { Problem } from '@patchbay/protocols';

import type { ExecSettings } from './exec-tool.ts';
import type { CallOfMessage } from './tool-message.ts';

/** One validator per adapter: each schema is compiled once. */
export function makeExecSettings(report: ProblemReport, maxResultChars?: number): ExecSettings {
  return {
    validator: createToolValidator(report),
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
