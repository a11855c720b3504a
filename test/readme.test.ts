import { execFile } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';

import { afterAll, beforeAll, expect, it } from 'vitest';

import { blocksOf, readmes } from '../scripts/readme-blocks.mjs';
import { filesBelow, published, readJson, root } from './workspace.ts';

/** Beside the example programs, because that is where every package can be imported. Git ignores it. */
const folder = 'docs/.readme-blocks';
const pages = readmes(root).map((file) => ({ file, blocks: blocksOf(root, file) }));
const blocks = pages.flatMap((page) => page.blocks);

/** Programs are whole files: what a user would write after reading one README. */
const programs = filesBelow('docs/programs', (name) => name.endsWith('.ts'));

/** What `tsc` says about each page and program, as `README.md:12:3 - error TS2322: …`. */
const faults = new Map<string, string[]>();

const remove = () => rmSync(join(root, folder), { recursive: true, force: true });

/** Runs the compiler. TypeScript 7 has no other interface than its command line. */
async function tsc(project: string): Promise<string> {
  const bin = join(root, 'node_modules/typescript', binOf('typescript', 'tsc'));
  const args = [bin, '-p', project, '--pretty', 'false'];
  try {
    await promisify(execFile)(process.execPath, args, { cwd: root, maxBuffer: 1 << 26 });
    return '';
  } catch (thrown) {
    const { stdout = '', stderr = '' } = thrown as { stdout?: string; stderr?: string };
    if (stdout === '') throw new Error(`tsc did not run: ${stderr}`, { cause: thrown });
    return stdout;
  }
}

const binOf = (name: string, command: string): string =>
  (readJson(`node_modules/${name}/package.json`) as { bin: Record<string, string> }).bin[command]!;

beforeAll(async () => {
  remove();
  mkdirSync(join(root, folder));
  for (const [index, { code }] of blocks.entries())
    writeFileSync(join(root, folder, `block-${index}.ts`), code);
  const config = { extends: '../../tsconfig.json', include: ['*.ts', '../programs/*.ts'] };
  writeFileSync(join(root, folder, 'tsconfig.json'), JSON.stringify({ ...config, exclude: [] }));
  if (blocks.length + programs.length === 0) return;

  // Lines that begin with a space continue the one before.
  for (const line of (await tsc(folder)).split('\n').filter((text) => /^\S/.test(text))) {
    const [, path, row, column, text] = /^(\S+?)\((\d+),(\d+)\): (.*)$/.exec(line) ?? [];
    if (path === undefined) throw new Error(`tsc checked nothing: ${line}`);
    const index = /\.readme-blocks\/block-(\d+)\.ts$/.exec(path)?.[1];
    const block = index === undefined ? undefined : blocks[Number(index)];
    const file = block?.file ?? path;
    const at = `${file}:${(block?.line ?? 1) + Number(row) - 1}:${column}`;
    faults.set(file, [...(faults.get(file) ?? []), `${at} - ${text}`]);
  }
}, 60_000);

afterAll(remove);

const files = [
  ...pages.filter((page) => page.blocks.length > 0).map(({ file }) => file),
  ...programs,
];
if (files.length > 0) {
  it.each(files)('the code in %s compiles', (file) => {
    expect(faults.get(file) ?? []).toEqual([]);
  });
}

it('every README of a package begins with a program, which is run', () => {
  const silent = ['.', ...published.map((pkg) => pkg.folder)]
    .map((where) => (where === '.' ? 'README.md' : `${where}/README.md`))
    .filter((file) => !blocks.find((block) => block.file === file)?.run);
  expect(silent).toEqual([]);
});
