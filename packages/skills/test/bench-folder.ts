import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import type { ExtensionView } from '@patchbay/protocols';

/** A folder of its own for a test, and what writes skills into it. */
export interface BenchFolder {
  readonly root: string;
  /** Text under a path below the folder. */
  write(path: string, text: string): Promise<void>;
  /** `<name>/SKILL.md`. */
  skill(path: string, more?: string, body?: string): Promise<void>;
  remove(): Promise<void>;
}

export async function benchFolder(): Promise<BenchFolder> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'patchbay-skills-')));
  const write = async (path: string, text: string): Promise<void> => {
    await mkdir(join(root, path, '..'), { recursive: true });
    await writeFile(join(root, path), text);
  };
  return {
    root,
    write,
    skill: (path, more = '', body) => {
      const name = path.split('/').at(-1)!;
      const text = `---\nname: ${name}\ndescription: Does ${name}.\n${more}---\n${body ?? `Do ${name}.`}\n`;
      return write(`${path}/SKILL.md`, text);
    },
    remove: () => rm(root, { recursive: true, force: true }),
  };
}

/** Calls a tool of a view; its text, and whether it is an error. */
export async function callTool(
  view: ExtensionView,
  name: string,
  args: object,
): Promise<{ readonly text: string; readonly isError: boolean }> {
  const { content, isError } = await (await view.compile()).callTool(name, args);
  const text = content.map((part) => ('text' in part ? part.text : part.type)).join('\n');
  return { text, isError: isError === true };
}

/** Names in the catalogue, and what follows each. */
export async function catalogue(view: ExtensionView): Promise<ReadonlyMap<string, string>> {
  const { instructions } = await view.compile();
  const text = instructions.find(({ kind }) => kind === 'static')?.text ?? '';
  return new Map(
    [...text.matchAll(/<skill><name>(.*?)<\/name>(?:<description>(.*?)<\/description>)?/g)].map(
      ([, name, description]) => [name!, description ?? ''],
    ),
  );
}

export const fixture = (key: string): string =>
  fileURLToPath(new URL(`fixtures/${key}`, import.meta.url));

export { loneContext } from './lone-context.ts';
