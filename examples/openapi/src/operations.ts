import type { JsonSchema, ToolDefinition } from '@patchbay/protocols';
import { dereference } from '@readme/openapi-parser';

const METHODS = ['get', 'head', 'post', 'put', 'patch', 'delete'] as const;

/** One operation of a document, and the tool that it becomes. */
export interface Operation {
  readonly definition: ToolDefinition;
  readonly method: string;
  /** With its parameters in braces. */
  readonly path: string;
  readonly parameters: readonly Parameter[];
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema?: JsonSchema;
}

/** What is read of a document once its references are resolved. Nothing in it is trusted to be there. */
interface Described {
  readonly operationId?: string;
  readonly summary?: string;
  readonly description?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly required?: boolean;
    readonly content?: Readonly<Record<string, { readonly schema?: JsonSchema }>>;
  };
}
type PathItem = Readonly<Record<string, unknown>> & { readonly parameters?: readonly Parameter[] };

/** Every operation of an OpenAPI 3 document, by the name of its tool; `report` hears of what is left out. */
export async function readOperations(
  document: object,
  report: (code: string, message: string) => void,
): Promise<ReadonlyMap<string, Operation>> {
  // The parser writes into what it is given. References to other files and hosts are not followed.
  const { paths = {} } = (await dereference(structuredClone(document) as never, {
    resolve: { external: false },
    dereference: { circular: 'ignore' },
  })) as { readonly paths?: Readonly<Record<string, PathItem>> };
  const found = new Map<string, Operation>();
  for (const [path, item] of Object.entries(paths)) {
    for (const method of METHODS) {
      const described = item[method] as Described | undefined;
      if (described === undefined) continue;
      const operation = toOperation(method, path, described, item.parameters ?? []);
      const { name } = operation.definition;
      if (found.has(name)) report('tool-name', `${method} ${path} is a second ${name}: left out.`);
      else found.set(name, operation);
    }
  }
  return found;
}

function toOperation(
  method: string,
  path: string,
  described: Described,
  shared: readonly Parameter[],
): Operation {
  const own = described.parameters ?? [];
  const isOwn = (one: Parameter) =>
    own.some(({ name, in: at }) => name === one.name && at === one.in);
  const parameters = [...shared.filter((one) => !isOwn(one)), ...own];
  const properties: Record<string, JsonSchema> = {};
  const required = new Set<string>();
  for (const { name, schema = {}, description, ...parameter } of parameters) {
    properties[name] = description === undefined ? schema : { description, ...schema };
    if (parameter.required === true || parameter.in === 'path') required.add(name);
  }
  const body = described.requestBody?.content?.['application/json'];
  if (body !== undefined) {
    properties['body'] = body.schema ?? {};
    if (described.requestBody?.required === true) required.add('body');
  }
  const safe = method === 'get' || method === 'head';
  const definition: ToolDefinition = {
    name: described.operationId ?? `${method}${path.replaceAll(/\W+/gu, '_')}`,
    description: described.description ?? described.summary ?? `${method.toUpperCase()} ${path}`,
    inputSchema: {
      type: 'object',
      properties,
      required: [...required],
      additionalProperties: false,
    },
    annotations: {
      readOnlyHint: safe,
      idempotentHint: safe || method === 'put' || method === 'delete',
      destructiveHint: method === 'delete',
    },
  };
  return { definition, method, path, parameters };
}
