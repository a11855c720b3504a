// @ts-check
// What a release would publish, used as a reader of the documentation does: every program on a page that is marked as one
// (```ts run), the quickstart of each README among them, as it is printed, with the tarballs, on each Node that is found.
// Models that are named are played by docs/test/offline-models.ts. Part of `pnpm release:dry`.
// Other versions of Node are named by PATCHBAY_NODES, a list of programs as in PATH.
import { cpSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';

import { transform } from 'esbuild';

import { install, readManifest, root, testedVersion } from './consumer-project.mjs';
import { blocksOf, readmes } from './readme-blocks.mjs';
import { run } from './run.mjs';
import { packAll } from './tarball.mjs';

const WANTED = ['20', '22', '24', '26'];

const work = realpathSync(mkdtempSync(join(tmpdir(), 'patchbay-release-')));
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
// What a reader may have in the folder, and a model where a program names one.
cpSync(join(root, 'docs/test/fixtures/project'), project, { recursive: true });
await write('offline-models.mjs', readFileSync(join(root, 'docs/test/offline-models.ts'), 'utf8'));
await write(
  'offline.mjs',
  "import { messagesApi, provider } from './offline-models.mjs';\n" +
    'globalThis.AI_SDK_DEFAULT_PROVIDER = provider;\n' +
    'globalThis.fetch = messagesApi;\n',
);

const pages = readmes(root).flatMap((file) => blocksOf(root, file));
/** How each program is started. */
const programs = [];
for (const [at, { file, line, code, test }] of pages.filter(({ run: is }) => is).entries()) {
  const name = test ? `program-${at}.test.mjs` : `program-${at}.mjs`;
  await write(name, code);
  const args = test
    ? ['node_modules/vitest/vitest.mjs', 'run', name]
    : ['--import', './offline.mjs', name];
  programs.push({ title: `${file}:${line}`, args });
}

/**
 * A file of the project, in JavaScript: Node 20 and 22 know neither types nor `await using`.
 * @param {string} name
 * @param {string} code
 */
async function write(name, code) {
  const { code: plain } = await transform(code, { loader: 'ts', target: 'node20', format: 'esm' });
  writeFileSync(join(project, name), plain);
}

const nodes = new Map();
for (const node of [process.execPath, ...(process.env['PATCHBAY_NODES'] ?? '').split(delimiter)]) {
  if (node === '') continue;
  const version = (await run(node, ['-p', 'process.versions.node'])).trim();
  nodes.set(version.split('.')[0], { node, version });
}
for (const major of WANTED) {
  const found = nodes.get(major);
  if (found === undefined) {
    console.log(`skip Node ${major}: not found; name it in PATCHBAY_NODES`);
    continue;
  }
  const env = {
    ...process.env,
    HOME: join(project, 'home'),
    PATH: `${dirname(found.node)}${delimiter}${process.env['PATH']}`, // npx with this Node too
    ANTHROPIC_API_KEY: 'none',
  };
  for (const { title, args } of programs) {
    try {
      await run(found.node, args, { cwd: project, env, timeout: 60_000 });
      console.log(`ok   Node ${found.version} ${title}`);
    } catch (error) {
      console.log(`FAIL Node ${found.version} ${title}\n${String(error)}`);
      process.exitCode = 1;
    }
  }
}
if (programs.length === 0) {
  console.log('FAIL no page has a program');
  process.exitCode = 1;
}
