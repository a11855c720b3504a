// @ts-check
// The tests of the example programs, in an empty project that has what would be published: the nine programs run as they do
// for a reader who installed the packages. Part of `pnpm release:dry`; `turbo run build` comes first.
import { cpSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { install, readManifest, root, testedVersion } from './consumer-project.mjs';
import { run } from './run.mjs';
import { packAll } from './tarball.mjs';

const TESTS = [
  'installed-servers.ts',
  'programs.int.test.ts',
  'tenants.long.test.ts',
  'tenants-service.ts',
  'own-capability.int.test.ts',
];

const work = realpathSync(mkdtempSync(join(tmpdir(), 'patchbay-programs-')));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));

const paths = new Map([...(await packAll(work))].map(([name, { path }]) => [name, path]));
const project = join(work, 'project');
const { dependencies = {}, devDependencies = {} } = readManifest(join(root, 'docs'));
await install(
  project,
  Object.fromEntries(
    Object.keys({ ...dependencies, ...devDependencies }).map((name) => [
      name,
      paths.has(name) ? `file:${paths.get(name)}` : testedVersion('docs', name),
    ]),
  ),
  paths,
);
cpSync(join(root, 'docs/programs'), join(project, 'programs'), { recursive: true });
for (const file of TESTS) cpSync(join(root, 'docs/test', file), join(project, 'test', file));
writeFileSync(
  join(project, 'vitest.config.mjs'),
  "export default { test: { include: ['test/*.test.ts'], testTimeout: 60_000 } };\n",
);
console.log(
  await run(process.execPath, ['node_modules/vitest/vitest.mjs', 'run'], {
    cwd: project,
    timeout: 300_000,
  }),
);
