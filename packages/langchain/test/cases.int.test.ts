import { fileURLToPath } from 'node:url';

import { ConnectionPool } from '@patchbay/connection-pool';
import { langchain, type LangchainOptions } from '@patchbay/langchain';
import { McpServerCapability } from '@patchbay/mcp';
import type { Capability, CommandResource, Problem, SkillResource } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { createAgent, createMiddleware, type ToolMessage } from 'langchain';
import { describe, expect, it, onTestFinished } from 'vitest';

import { ask, outcomes, script, toolMessages, type ScriptedCall } from './script.ts';
import { sent } from './wire.ts';

/** Public bug reports, with the servers that show them. */
const fixture = (key: string) =>
  fileURLToPath(new URL(`./fixtures/${key}/server.mjs`, import.meta.url));

/** A skill and a slash command, both called "search". */
const alsoSearch: Capability & CommandResource & SkillResource = {
  id: 'also',
  listCommands: async () => [{ name: 'search', description: 'S.', origin: 'here', kind: 'file' }],
  getCommand: async () => ({
    messages: [{ role: 'user', content: [{ type: 'text', text: 'Search.' }] }],
  }),
  listSkills: async () => [
    { name: 'search', description: 'S.', uri: 'skill://also/search/SKILL.md', origin: 'here' },
  ],
  openSkill: async () => undefined,
  skillExists: async () => true,
};

/** A registry with one real server process per id. */
function board(key: string, ...ids: string[]) {
  const connections = new ConnectionPool();
  const registry = new ExtensionRegistry();
  const start = (id: string) =>
    registry.register(
      new McpServerCapability({
        id,
        connections,
        server: { command: process.execPath, args: [fixture(key)], env: { FIXTURE_ID: id } },
      }),
    );
  const handles = ids.map(start);
  onTestFinished(async () => {
    await registry.close();
    await connections.close();
  });
  return { registry, handles, start };
}

/** Calls these tools of a server in one step of an agent, and gives each one's message by the name of the tool. */
async function run(key: string, calls: readonly ScriptedCall[], options: LangchainOptions = {}) {
  const { registry } = board(key, 's');
  const lc = langchain(registry.view(), options);
  const model = script(calls.map((call) => ({ ...call, name: `s__${call.name}` })));
  const { messages } = await createAgent({ model, ...lc }).invoke(ask());
  const byName = new Map(
    toolMessages({ messages }).map((message) => [message.name?.slice('s__'.length), message]),
  );
  const of = (name: string): ToolMessage => byName.get(name)!;
  return {
    of,
    history: messages.slice(0, -1),
    done: messages.at(-1)?.text,
    middleware: lc.middleware,
  };
}

const named = (...names: string[]) => names.map((name) => ({ name }));

describe('langchain-mcp-adapters-283', () => {
  it('structured content reaches the model once, its metadata never', async () => {
    const { of } = await run(
      'langchain-mcp-adapters-283',
      named('only', 'no-content', 'both', 'meta'),
    );
    expect(of('only').content).toBe('{"rows":[1,2]}');
    expect(of('no-content').content).toBe('{"rows":[1,2]}');
    expect(of('both').content).toBe('2 rows');
    expect(of('meta').content).toBe('ok');
    for (const name of ['only', 'no-content', 'both']) {
      expect(of(name).artifact.patchbay.structuredContent).toEqual({ rows: [1, 2] });
    }
    expect(of('meta').artifact.patchbay.structuredContent).toEqual({ a: 1 });
  });
});

describe('llm-agent-231', () => {
  it('an error result is an error message, a failed call tells its code and its source, and the run goes on', async () => {
    const { of, done } = await run(
      'llm-agent-231',
      named('tool-error', 'tool-error-empty', 'rpc-error', 'rpc-invalid', 'ok'),
    );
    expect(done).toBe('done');
    expect(of('tool-error')).toMatchObject({
      status: 'error',
      content: 'Error: quota exceeded: retry in 30 s',
    });
    expect(of('tool-error').artifact.patchbay.error).toBeUndefined();
    expect(of('tool-error-empty').status).toBe('error');
    expect(of('tool-error-empty').content).toMatch(/^Error: ./);
    for (const [name, code] of [
      ['rpc-error', -32_000],
      ['rpc-invalid', -32_602],
    ] as const) {
      expect(of(name).status).toBe('error');
      expect(of(name).content).toMatch(/^Error: /);
      const { error } = of(name).artifact.patchbay;
      expect(error).toMatchObject({ code: expect.any(String), source: 's' });
      expect(JSON.stringify(error)).toContain(String(code));
    }
    expect(of('ok')).toMatchObject({ status: 'success' });
  });
});

describe('vercel-ai-15285', () => {
  const PNG =
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  const WAV = Buffer.from('RIFF....WAVEfmt ').toString('base64');

  it('every kind of part becomes text or media, and what cannot becomes a note and a diagnostic', async () => {
    const problems: Problem[] = [];
    const bad = ['unknown', 'bad-base64', 'no-mime'];
    const good = ['text', 'image', 'audio', 'resource-text', 'resource-blob', 'resource_link'];
    const all = [...good, ...bad, 'mixed', 'empty'];
    const onProblem = (problem: Problem) => void problems.push(problem);
    const ran = await run('vercel-ai-15285', named(...all.slice(0, 6)), { onProblem });
    const more = await run('vercel-ai-15285', named(...all.slice(6)), { onProblem });
    for (const { of, done, history } of [ran, more]) {
      expect(done).toBe('done');
      for (const { name, status, content } of toolMessages({ messages: history })) {
        expect(status, name).toBe('success');
        expect(of(name!.slice('s__'.length)).content).not.toBe('');
        expect(content).toBeTypeOf('string');
        expect(content).not.toContain(PNG);
      }
    }
    expect(ran.of('resource-text').content).toContain('# note');
    expect(ran.of('resource-text').content).toContain('fix://note.md');
    for (const fact of ['fix://big.csv', 'big.csv', 'text/csv']) {
      expect(ran.of('resource_link').content).toContain(fact);
    }
    expect(problems.map(({ source, message }) => [source, message])).toEqual(
      bad.map((name) => ['s', expect.stringContaining(`s__${name}`)]),
    );
    // The image and the blob, alone and in "mixed": each once, and typed. Audio has no form that Anthropic takes.
    for (const { history, middleware } of [ran, more]) {
      const body = JSON.stringify(await sent('anthropic', middleware, history));
      expect(body.split(PNG)).toHaveLength(3);
      expect(body.split('"media_type":"image/png"')).toHaveLength(3);
      expect(body).not.toContain(WAV);
    }
  });
});

describe('qwen-code-2439', () => {
  it('a huge result is cut for the model, whole characters only, and is kept whole', async () => {
    const calls = named('big', 'bigerror', 'many', 'bigimage');
    const { of, history, middleware } = await run('qwen-code-2439', calls, {
      maxResultChars: 10_000,
    });
    for (const name of ['big', 'bigerror', 'many']) {
      const content = of(name).text;
      expect(content.length).toBeLessThan(10_000 + 300);
      expect(content).toMatch(/\d+ of \d+ characters/);
      // A lone surrogate is the only thing that does not survive.
      expect(Buffer.from(content, 'utf8').toString('utf8') === content).toBe(true);
    }
    expect(of('bigerror').status).toBe('error');
    expect(of('big').artifact.patchbay.content[0].text).toHaveLength(20e6);
    expect(of('many').artifact.patchbay.content).toHaveLength(50_000);
    expect(of('bigimage').artifact.patchbay.content[0].data).toHaveLength(20e6);
    const body = await sent('anthropic', middleware, history);
    expect(JSON.stringify(body).length).toBeLessThan(100_000);
  });

  it.each([0, Infinity])('a limit of %d turns that off', async (maxResultChars) => {
    const calls = [{ name: 'big', args: { n: 300_000 } }];
    const { of } = await run('qwen-code-2439', calls, { maxResultChars });
    expect(of('big').content).toHaveLength(300_000);
  });
});

describe('copilot-cli-1879', () => {
  const servers = ['github.com/acme/linear-mcp', 's'.repeat(70)];

  it('every name fits every provider, is the same in any order, and calls the right tool', async () => {
    const offered = async (order: readonly string[]) => {
      const { registry } = board('copilot-cli-1879', ...order);
      const view = registry.view();
      const lc = langchain(view);
      const seen: string[] = [];
      const { tools } = await view.compile();
      const spy = createMiddleware({
        name: 'spy',
        wrapModelCall: (request, handler) => {
          seen.splice(0, seen.length, ...request.tools.map(({ name }) => String(name)));
          return handler(request);
        },
      });
      const calls = tools.map(({ definition }) => ({ name: definition.name }));
      const steps = [0, 1, 2, 3].map((step) => calls.slice(step * 6, step * 6 + 6));
      const result = await createAgent({
        model: script(...steps.filter((step) => step.length > 0)),
        middleware: [...lc.middleware, spy],
      }).invoke(ask());
      return { seen, ids: tools.map(({ id }) => id), answers: outcomes(result) };
    };
    const { seen, ids, answers } = await offered(servers);
    expect(seen).toHaveLength(11 * servers.length);
    expect(new Set(seen).size).toBe(seen.length);
    for (const name of seen) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    // The view's table leads back from each name to its source; the server answers with the original name.
    expect(answers).toEqual(ids.map(({ name }) => `success:${name}`));
    expect((await offered(servers.toReversed())).seen).toEqual(seen);
  });
});

describe('typescript-sdk-1943', () => {
  it.each([
    ['error-structured', 'error', 'Error: station offline'],
    ['error-text', 'error', 'Error: station offline'],
    ['mismatch', 'success', '{"temp":"hot"}', /temp/],
    ['missing', 'success', expect.any(String), /structured content/],
    ['extra', 'success', expect.stringContaining('21')],
    ['ok', 'success', expect.stringContaining('21')],
  ] as const)(
    '%s comes as the server said it; what does not fit is told to programs',
    async (mode, status, content, violation?: RegExp) => {
      const { of, done } = await run('typescript-sdk-1943', [{ name: 'weather', args: { mode } }]);
      expect(done).toBe('done');
      expect(of('weather')).toMatchObject({ status, content });
      const { meta = {} } = of('weather').artifact.patchbay as { readonly meta?: object };
      expect(meta).toEqual(
        violation === undefined
          ? {}
          : {
              'patchbay/invalid-output': {
                code: 'invalid-output',
                tool: 's__weather',
                violations: [expect.stringMatching(violation)],
              },
            },
      );
    },
  );
});

describe('mcphub-139', () => {
  it('one name on two servers is two tools, and a call never reaches the other server', async () => {
    const { registry, handles, start } = board('mcphub-139', 'db1', 'db2');
    const calls = named('db1__execute_sql', 'db2__execute_sql', 'execute_sql');
    const answers = async () =>
      outcomes(
        await createAgent({ model: script(calls), ...langchain(registry.view()) }).invoke(ask()),
      );
    // Nobody's: LangChain says so.
    const unqualified = expect.stringMatching(/^error:.*execute_sql is not a valid tool/);
    const both = ['success:db1:execute_sql', 'success:db2:execute_sql', unqualified];
    expect(await answers()).toEqual(both);
    // A skill and a command of that name too: none of them takes another one's place.
    registry.register(alsoSearch);
    expect(await answers()).toEqual(both);
    const view = registry.view();
    const { tools, skills } = await view.compile();
    const searching = tools.filter(({ id }) => id.name === 'search');
    expect(searching.map(({ id }) => id.capability)).toEqual(['db1', 'db2']);
    expect(skills.map(({ name }) => name)).toEqual(['search']);
    expect(await view.commands.resolve('/search it')).toMatchObject({ ok: true, source: 'also' });
    await handles[0]?.close();
    expect(await answers()).toEqual([expect.stringMatching(/^error:/), both[1], unqualified]);
    start('db1');
    expect(await answers()).toEqual(both);
  });
});
