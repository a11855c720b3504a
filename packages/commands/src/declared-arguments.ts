import {
  booleanField,
  textField,
  type FrontmatterData,
  type FrontmatterValue,
} from '@patchbay/files';
import type { CommandArgument } from '@patchbay/protocols';

/**
 * `arguments` of the frontmatter: names in a list or in a text, or maps with `name`, `description` and `required`. A name
 * that comes twice counts once.
 */
export function declaredArguments(value: FrontmatterValue | undefined): readonly CommandArgument[] {
  const items = typeof value === 'string' ? value.replaceAll(/[[\],]/g, ' ').split(/\s+/) : value;
  if (!Array.isArray(items)) return [];
  const found = new Map<string, CommandArgument>();
  for (const item of items) {
    const argument = typeof item === 'string' ? { name: item.trim() } : fromMap(item);
    if (argument !== undefined && argument.name !== '' && !found.has(argument.name))
      found.set(argument.name, argument);
  }
  return [...found.values()];
}

function fromMap(item: FrontmatterValue): CommandArgument | undefined {
  if (typeof item === 'string' || Array.isArray(item)) return undefined;
  const data: FrontmatterData = item;
  const name = textField(data, 'name');
  if (name === undefined) return undefined;
  const description = textField(data, 'description');
  const required = booleanField(data, 'required');
  return {
    name,
    ...(description === undefined ? {} : { description }),
    ...(required === undefined ? {} : { required }),
  };
}
