import { DynamicStructuredTool } from '@langchain/core/tools';
import {
  type ProblemReport,
  providerSchema,
  type ProviderSchemaOptions,
} from '@patchbay/adapter-kit';
import type { Tool, ToolDefinition } from '@patchbay/protocols';

/** What a model sees of a tool: name, description, and a schema that its provider takes. */
export type FaceOf = (
  tool: Tool,
  providerKind: string,
  /** The provider's own tool search shows it when it is wanted. */
  isDeferred?: boolean,
) => DynamicStructuredTool;

/** What every known provider takes: no references, and no `const`, which Google's package drops. */
export const PORTABLE: ProviderSchemaOptions = { references: 'inline', constAsEnum: true };

/**
 * One face per definition and kind of schema, so that an unchanged tool costs nothing at the next model call. Google's
 * package refuses a whole request for one reference; the others send schemas as they are.
 */
export function makeFaces(report: ProblemReport): FaceOf {
  const makeCaches = () => ({ asWritten: new Faces(), portable: new Faces() });
  const [shown, deferred] = [makeCaches(), makeCaches()];
  return (tool, kind, isDeferred = false) => {
    const caches = isDeferred ? deferred : shown;
    const isGoogle = kind === 'google' || kind === 'googlegenerativeai';
    const cache = isGoogle ? caches.portable : caches.asWritten;
    const known = cache.get(tool.definition);
    if (known !== undefined) return known;
    const face = makeFace(tool, isGoogle ? PORTABLE : {}, isDeferred, report);
    cache.set(tool.definition, face);
    return face;
  };
}

class Faces extends WeakMap<ToolDefinition, DynamicStructuredTool> {}

function makeFace(
  tool: Tool,
  options: ProviderSchemaOptions,
  isDeferred: boolean,
  report: ProblemReport,
): DynamicStructuredTool {
  const { name, description = '' } = tool.definition;
  return new DynamicStructuredTool({
    name,
    description,
    schema: shownSchema(tool, options, report),
    ...(isDeferred ? { extras: { defer_loading: true } } : {}),
    func: () => Promise.reject(new Error(`"${name}" is run by the middleware, not by its face.`)),
  });
}

/** The schema of a tool as a model is shown it; what had to be left out is reported. */
export function shownSchema(
  { id, definition }: Tool,
  options: ProviderSchemaOptions,
  report: ProblemReport,
): Record<string, unknown> {
  const { schema, notes } = providerSchema(definition.inputSchema, options);
  for (const note of notes) {
    report({
      source: id.capability,
      code: 'schema-unusable',
      severity: 'warning',
      message: `The schema of "${definition.name}" is not shown to the model as it was written. ${note}`,
    });
  }
  return { ...schema };
}
