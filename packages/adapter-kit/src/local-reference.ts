/** A schema, or anything else that stands where one is expected. */
export type SchemaNode = unknown;

export type SchemaObject = Readonly<Record<string, unknown>>;

export function isSchemaObject(node: SchemaNode): node is SchemaObject {
  return typeof node === 'object' && node !== null && !Array.isArray(node);
}

/** The steps of a JSON Pointer in a URI fragment (RFC 6901 section 6); `undefined` for any other kind of reference. */
export function pointerSteps(reference: string): readonly string[] | undefined {
  if (reference === '#' || reference === '') return [];
  if (!reference.startsWith('#/')) return undefined;
  try {
    return reference
      .slice(2)
      .split('/')
      .map((step) => decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~'));
  } catch {
    return undefined;
  }
}

/** What a local `$ref` points to; `undefined` if it is not local or leads nowhere. Nothing is ever fetched. */
export function resolveLocal(root: SchemaNode, reference: unknown): SchemaNode {
  const steps = typeof reference === 'string' ? pointerSteps(reference) : undefined;
  return steps?.reduce<SchemaNode>(child, root);
}

/** One step down; own keys only. */
export function child(node: SchemaNode, step: string): SchemaNode {
  if (typeof node !== 'object' || node === null || !Object.hasOwn(node, step)) return undefined;
  return (node as SchemaObject)[step];
}
