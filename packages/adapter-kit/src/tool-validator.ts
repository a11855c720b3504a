import type { ArgumentValidator, JsonSchema, Tool } from '@patchbay/protocols';

import { createArgumentValidator } from './argument-validator.ts';
import type { ProblemReport } from './problem-report.ts';

/** A validator that knows whose arguments a schema describes. */
export interface ToolValidator extends ArgumentValidator {
  /** Before its arguments are checked. */
  learn(tool: Tool): void;
}

/** {@link createArgumentValidator}, whose problems name the tool that a schema belongs to, and its capability. */
export function createToolValidator(report: ProblemReport): ToolValidator {
  const owners = new WeakMap<JsonSchema, Tool>();
  const validator = createArgumentValidator({
    onProblem: (problem, schema) => {
      const tool = owners.get(schema);
      if (tool === undefined) return report(problem);
      const { id, definition } = tool;
      const message = `"${definition.name}": ${problem.message}`;
      report({ ...problem, source: id.capability, message });
    },
  });
  return {
    validate: (schema, args) => validator.validate(schema, args),
    learn: (tool) => void owners.set(tool.definition.inputSchema, tool),
  };
}
