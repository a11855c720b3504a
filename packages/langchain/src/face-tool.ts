import { DynamicStructuredTool } from '@langchain/core/tools';
import { providerSchema } from '@patchbay/adapter-kit';
import type { ToolDefinition } from '@patchbay/protocols';

/**
 * What a model sees of a tool: name, description, and a schema that its provider takes. One object per definition and
 * kind of schema, so that an unchanged tool costs nothing at the next model call.
 */
export type FaceOf = (definition: ToolDefinition, providerKind: string) => DynamicStructuredTool;

export function makeFaces(): FaceOf {
  const made = new WeakMap<ToolDefinition, Map<string, DynamicStructuredTool>>();
  return (definition, providerKind) => {
    let faces = made.get(definition);
    if (faces === undefined) made.set(definition, (faces = new Map()));
    let face = faces.get(providerKind);
    if (face === undefined) faces.set(providerKind, (face = makeFace(definition, providerKind)));
    return face;
  };
}

function makeFace(definition: ToolDefinition, providerKind: string): DynamicStructuredTool {
  const { name, description = '', inputSchema } = definition;
  return new DynamicStructuredTool({
    name,
    description,
    schema: providerSchema(inputSchema, providerKind),
    func: () => Promise.reject(new Error(`"${name}" is only shown to the model; it is run by the middleware.`)),
  });
}
