import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import type { CompileContext } from '@patchbay/protocols';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

import { plugged } from './plugged.ts';

const SERVER = fileURLToPath(
  new URL(
    '../node_modules/@llmindset/hf-mcp-server/dist/server/streamableHttp.js',
    import.meta.url,
  ),
);
/** The server has no option for where it listens: it is kept on this machine. */
const LOOPBACK = new URL('../../../apps/demo/servers/loopback.mjs', import.meta.url).href;
const MANIFEST = '---\nname: memo\ndescription: Writes memos.\n---\nWrite it.\n';
const uri = 'skill://memo/SKILL.md';

let folder: string;
let url: string;
let end: () => Promise<void>;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'patchbay-hf-'));
  await mkdir(join(folder, 'memo'));
  await writeFile(join(folder, 'memo/SKILL.md'), MANIFEST);
  const digest = `sha256:${createHash('sha256').update(MANIFEST).digest('hex')}`;
  const frontmatter = { name: 'memo', description: 'Writes memos.' };
  const skills = [{ uri, frontmatter, resources: [{ uri, digest }] }];
  await writeFile(join(folder, 'skills.json'), JSON.stringify({ skills }));
  const port = await freePort();
  const child = spawn(process.execPath, ['--import', LOOPBACK, SERVER, '--port', String(port)], {
    env: { PATH: process.env['PATH'], HF_SKILLS_DIR: folder, HF_TOKEN: '', NODE_ENV: 'production' },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  let said = '';
  await new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (chunk: Buffer) => {
      said += chunk.toString();
      if (said.includes('initialized')) resolve();
    });
    child.once('exit', () => reject(new Error(`The server ended: ${said}`)));
  });
  url = `http://127.0.0.1:${port}/mcp`;
  end = async () => {
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  };
}, 60_000);

afterAll(async () => {
  await end();
  await rm(folder, { recursive: true, force: true });
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}

/** It serves skills by a draft of the extension, without sizes: they cannot be verified. */
describe('hf-mcp-server', () => {
  it('works as a server, and none of its skills is offered or opened; the problem says why', async () => {
    await using board = plugged({ id: 'hf', server: { url } });
    const { tools, problems } = await board.view.compile();
    expect(tools.length).toBeGreaterThan(0);
    const said: string[] = problems.map(({ message }) => message);
    const context = {
      scope: {},
      signal: new AbortController().signal,
      report: ({ message }) => void said.push(message),
    } as CompileContext;
    expect(await board.capability.listSkills(context)).toEqual([]);
    expect(said.join('\n')).toMatch(/skill:\/\/memo\/SKILL\.md.* is left out: .*older draft/);
    await expect(board.capability.openSkill(uri, context)).rejects.toMatchObject({
      code: 'skill-changed',
    });
  });

  it('gives the same text as a plain resource, which makes it no skill', async () => {
    await using board = plugged({ id: 'hf', server: { url } });
    const [part] = await board.view.resources.read(`mcp://hf/${encodeURIComponent(uri)}`);
    expect(part).toMatchObject({ text: MANIFEST });
    expect((await board.view.compile()).skills).toEqual([]);
  });
});
