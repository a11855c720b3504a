import { cp, mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';

import { blocksOf, readmes } from '../../scripts/readme-blocks.mjs';
import { installServers } from './installed-servers.ts';
import { messagesApi, provider } from './offline-models.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const folder = await mkdtemp(join(root, 'docs/.test-'));
const programs = readmes(root)
  .flatMap((file) => blocksOf(root, file))
  .filter(({ run }) => run)
  .map((block, at) => ({ ...block, program: join(folder, `program-${at}.ts`) }));
for (const { program, code } of programs) await writeFile(program, code);

/** Programs on the pages, as they are printed, in a folder that has what their reader may have. */
describe('the programs of the pages', () => {
  const before = process.cwd();
  let project: string;

  beforeAll(async () => {
    project = await realpath(await mkdtemp(join(tmpdir(), 'patchbay-pages-')));
    await cp(join(root, 'docs/test/fixtures/project'), project, { recursive: true });
    await installServers(project, [
      '@modelcontextprotocol/server-everything',
      '@modelcontextprotocol/server-filesystem',
    ]);
    // What npx does with a package that is installed, without the second that npm takes. `release:dry` has the real one.
    await mkdir(join(project, 'bin'));
    const npx =
      '#!/bin/sh\nshift; name=$1; shift; exec node "node_modules/$name/dist/index.js" "$@"\n';
    await writeFile(join(project, 'bin/npx'), npx, { mode: 0o755 });
  });
  beforeEach(() => {
    process.chdir(project);
    vi.stubEnv('PATH', join(project, 'bin') + delimiter + process.env['PATH']);
    vi.stubEnv('HOME', join(project, 'home'));
    vi.stubEnv('ANTHROPIC_API_KEY', 'none');
    vi.stubGlobal('AI_SDK_DEFAULT_PROVIDER', provider);
    vi.stubGlobal('fetch', messagesApi);
    for (const method of ['log', 'table', 'error', 'warn'] as const)
      vi.spyOn(console, method).mockImplementation(() => undefined);
  });
  afterEach(() => {
    process.chdir(before);
    vi.restoreAllMocks();
    vi.unstubAllGlobals();
    vi.unstubAllEnvs();
  });
  afterAll(async () => {
    await rm(folder, { recursive: true, force: true });
    await rm(project, { recursive: true, force: true });
  });

  for (const { file, line, program, test } of programs) {
    if (test) {
      describe(`the tests at ${file}:${line} pass`, async () => {
        await import(program);
      });
    } else {
      it(`the program at ${file}:${line} runs`, async () => {
        await expect(import(program)).resolves.toBeDefined(); // it throws where it is wrong
      });
    }
  }
});
