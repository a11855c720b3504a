import { createArgumentValidator, type ProblemReport } from '@patchbay/adapter-kit';
import type { JsonSchema, Problem, Tool } from '@patchbay/protocols';

import type { ExecSettings } from './exec-tool.ts';
import type { CallOfMessage } from './tool-message.ts';

/** One validator per adapter: each schema is compiled once. */
export function makeExecSettings(report: ProblemReport, maxResultChars?: number): ExecSettings {
  const owners = new WeakMap<JsonSchema, Tool>();
  return {
    owners,
    validator: createArgumentValidator({
      onProblem: (problem, schema) => report(ofTool(problem, owners.get(schema))),
    }),
    maxResultChars,
    onUnusablePart: (call, what) => report(unusablePart(call, what)),
  };
}

/** The validator knows schemas only. */
function ofTool(problem: Problem, tool: Tool | undefined): Problem {
  if (tool === undefined) return problem;
  const { id, definition } = tool;
  return {
    ...problem,
    source: id.capability,
    message: `"${definition.name}": ${problem.message}`,
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
