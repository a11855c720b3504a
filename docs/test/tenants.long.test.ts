import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { scriptedServer } from '@patchbay/testkit';
import { build } from 'esbuild';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

const docs = fileURLToPath(new URL('..', import.meta.url));

describe('program 04: a service for two tenants', () => {
  let project: string;
  let bundle: string;
  let service: ChildProcess;

  beforeEach(async () => {
    project = await mkdtemp(join(tmpdir(), 'patchbay-tenants-'));
    bundle = await mkdtemp(join(docs, '.test-'));
  });
  afterEach(async () => {
    service.kill('SIGKILL');
    await rm(project, { recursive: true, force: true });
    await rm(bundle, { recursive: true, force: true });
  });

  async function write(path: string, content: string): Promise<void> {
    await mkdir(dirname(join(project, path)), { recursive: true });
    await writeFile(join(project, path), content);
  }

  async function start(): Promise<string> {
    const program = join(bundle, 'service.mjs');
    await build({
      entryPoints: [join(docs, 'test/tenants-service.ts')],
      outfile: program,
      bundle: true,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      mainFields: ['module', 'main'],
      conditions: ['@patchbay/source'],
      external: ['@modelcontextprotocol/client'],
      banner: {
        js: "import { createRequire as makeRequire } from 'node:module'; const require = makeRequire(import.meta.url);",
      },
    });
    service = spawn(process.execPath, [program], {
      cwd: project,
      env: { PATH: process.env['PATH'], HOME: join(project, 'home') },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [chunk] = (await once(service.stdout!, 'data')) as [Buffer];
    return `http://127.0.0.1:${/listening on (\d+)/.exec(chunk.toString())?.[1]}`;
  }

  it('streams, aborts, goes on by session id, refuses another identity, leaves nothing', async () => {
    await using crm = await scriptedServer({
      tools: [{ name: 'note' }, { name: 'wait', onCall: 'never' }],
    });
    await using admin = await scriptedServer({ tools: [{ name: 'drop' }] });
    await write(
      'patchbay.yaml',
      JSON.stringify({ mcp_servers: { crm: crm.config, admin: admin.config } }),
    );
    for (const tenant of ['acme', 'globex']) {
      await write(
        `tenants/${tenant}/skills/${tenant}-refunds/SKILL.md`,
        `---\nname: ${tenant}-refunds\ndescription: Refunds at ${tenant}.\n---\nAsk ${tenant} first.\n`,
      );
    }
    const url = await start();
    const post = (user: string, id: string, text: string, signal?: AbortSignal) =>
      fetch(url, {
        method: 'POST',
        headers: { authorization: user },
        body: JSON.stringify({
          id,
          messages: [{ id: 'm', role: 'user', parts: [{ type: 'text', text }] }],
        }),
        ...(signal === undefined ? {} : { signal }),
      });
    const said = async (response: Promise<Response>) => (await response).text();

    // Two tenants at once: each sees its own skills and tools, and has connections of its own.
    const [ann, bob] = await Promise.all([
      said(post('ann@acme', 'chat-1', 'call crm__note with {"for":"ann"}')),
      said(post('bob@globex', 'chat-2', 'call crm__note with {"for":"bob"}')),
    ]);
    expect(ann).toMatch(/acme-refunds/);
    expect(ann).not.toMatch(/globex|admin__drop/);
    expect(bob).toMatch(/globex-refunds/);
    expect(bob).not.toMatch(/acme|admin__drop/);
    expect(ann).toContain('ann');
    expect(crm.executions('note')).toBe(2);
    expect(crm.connections).toBe(2);

    // The session goes on by its id, for whom it belongs to.
    const activate = 'call activate_skill with {"name":"acme-refunds"}';
    expect(await said(post('ann@acme', 'chat-1', activate))).toContain('Ask acme first.');
    expect(await said(post('ann@acme', 'chat-1', activate))).toContain('already active');
    const refused = await post('bob@globex', 'chat-1', 'hello');
    expect([refused.status, await refused.text()]).toEqual([
      403,
      expect.stringContaining('belongs to another identity'),
    ]);

    // Whoever hangs up cancels the call, and nothing else.
    const hangUp = new AbortController();
    const waiting = said(post('ann@acme', 'chat-1', 'call crm__wait', hangUp.signal));
    await expect.poll(() => crm.executions('wait'), { timeout: 5_000 }).toBe(1);
    hangUp.abort();
    await expect(waiting).rejects.toThrow(/abort/i);
    await expect.poll(() => crm.cancellations, { timeout: 5_000 }).toBe(1);
    expect(await said(post('ann@acme', 'chat-1', 'call crm__note'))).toContain('tools:');
    expect(crm.connections).toBe(2);

    // Asked to end, it ends by itself, and its servers with it.
    const ended = once(service, 'exit');
    service.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
  });
});
