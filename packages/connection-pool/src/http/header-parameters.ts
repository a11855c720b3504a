const KEY = 'x-mcp-header';
/** `token` of RFC 9110, section 5.6.2. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const TYPES: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean']);
/** Values in a schema that are data, whatever they look like. */
const DATA: ReadonlySet<string> = new Set(['default', 'const', 'enum', 'examples']);

/**
 * Which arguments of a tool are also sent as headers, or what is wrong with the declaration of one: such a tool must be
 * left out. (MCP 2026-07-28, Streamable HTTP, "Schema Extension"; SEP-2243)
 */
export function headerParameters(
  inputSchema: unknown,
): readonly string[] | { readonly fault: string } {
  const names = new Set<string>();
  let fault: string | undefined;
  const visit = (node: unknown, path: string, reachable: boolean): void => {
    if (typeof node !== 'object' || node === null || fault !== undefined) return;
    if (Array.isArray(node)) {
      for (const [i, item] of node.entries()) visit(item, `${path}[${i}]`, false);
      return;
    }
    const schema = node as Readonly<Record<string, unknown>>;
    if (KEY in schema) fault = faultOf(schema, path, reachable, names);
    for (const [key, value] of Object.entries(schema)) {
      if (DATA.has(key) || key === KEY || typeof value !== 'object' || value === null) continue;
      if (key !== 'properties') visit(value, `${path}.${key}`, false);
      else
        for (const [name, one] of Object.entries(value)) visit(one, `${path}.${name}`, reachable);
    }
  };
  visit(inputSchema, 'inputSchema', true);
  return fault === undefined ? [...names] : { fault };
}

function faultOf(
  schema: Readonly<Record<string, unknown>>,
  path: string,
  reachable: boolean,
  names: Set<string>,
): string | undefined {
  const { [KEY]: name, type } = schema;
  if (!reachable || path === 'inputSchema') return `${path} must not have \`${KEY}\``;
  if (typeof name !== 'string' || !TOKEN.test(name))
    return `\`${KEY}\` of ${path} is no header name`;
  if (!TYPES.has(type)) return `${path} with \`${KEY}\` must be a string, an integer or a boolean`;
  if (names.has(name.toLowerCase())) return `\`${KEY}\` ${JSON.stringify(name)} is used twice`;
  names.add(name.toLowerCase());
  return undefined;
}
