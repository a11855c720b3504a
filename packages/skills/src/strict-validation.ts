import { field, textField, type FrontmatterFile } from '@patchbay/files';

const KNOWN: ReadonlySet<string> = new Set([
  'name',
  'description',
  'license',
  'compatibility',
  'metadata',
  'allowed-tools',
]);
/** Letters and digits of any script, single hyphens inside. */
const NAME = /^(?!.*--)[\p{L}\p{N}](?:[\p{L}\p{N}-]*[\p{L}\p{N}])?$/u;

/**
 * What the reference validator of the specification would refuse a SKILL.md for (skills-ref 0.1.0); empty for a valid one.
 * It does not see flow mappings (`metadata: {a: b}`), which that validator refuses too.
 */
export function strictFaults(file: FrontmatterFile, folder: string): readonly string[] {
  const { data, problems } = file;
  const faults: string[] = problems.map(({ code }) => code);
  for (const key of Object.keys(data)) if (!KNOWN.has(key)) faults.push(`unknown field "${key}"`);
  const name = textField(data, 'name')?.normalize('NFKC');
  if (name === undefined) faults.push('no name');
  else {
    if (name !== name.toLowerCase() || !NAME.test(name))
      faults.push('a name that is not lower-case letters, digits and single hyphens');
    if (folder !== '' && name !== folder.normalize('NFKC'))
      faults.push('a name that is not that of its folder');
    if (lengthOf(name) > 64) faults.push('a name of more than 64 characters');
  }
  const description = field(data, 'description');
  if (typeof description !== 'string' || description.trim() === '') faults.push('no description');
  else if (lengthOf(description) > 1024) faults.push('a description of more than 1024 characters');
  const compatibility = field(data, 'compatibility');
  if (
    compatibility !== undefined &&
    (typeof compatibility !== 'string' || lengthOf(compatibility) > 500)
  )
    faults.push('`compatibility` that is not text of at most 500 characters');
  return faults;
}

/** In code points, as the validator counts. */
const lengthOf = (text: string): number => Array.from(text).length;
