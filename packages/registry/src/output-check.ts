import type { ArgumentValidator, ToolDefinition, ToolResult } from '@patchbay/protocols';

/**
 * A result that is not what its tool promised says so in its `meta`; its content stays as it is, for the tool has run. What
 * the tool itself calls an error was never promised.
 */
export function checkOutput(
  { name, outputSchema }: ToolDefinition,
  result: ToolResult,
  validator: ArgumentValidator | undefined,
): ToolResult {
  if (validator === undefined || outputSchema === undefined || result.isError === true)
    return result;
  const check =
    result.structuredContent === undefined
      ? { ok: false as const, violations: ['there is no structured content'] }
      : validator.validate(outputSchema, result.structuredContent);
  if (check.ok) return result;
  const { violations } = check;
  const invalidOutput = { code: 'invalid-output', tool: name, violations };
  return { ...result, meta: { ...result.meta, [INVALID_OUTPUT]: invalidOutput } };
}

const INVALID_OUTPUT = 'patchbay/invalid-output';
