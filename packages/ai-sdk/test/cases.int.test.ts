import { fileURLToPath } from 'node:url';

import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import type {
  Capability,
  CommandResource,
  Problem,
  SkillResource,
  ToolResult,
} from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { describe, expect, it, onTestFinished } from 'vitest';

import { aiSdk, type AiSdkOptions, type ToolCallError } from '../src/index.ts';
import { call, MAJORS, outputs, scripted, text, toolNames, type Major } from './majors.ts';

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

/** A registry with one real process per id, of the server that shows a public bug report. */
function board(key: string, ...ids: string[]) {
  const connections = new ConnectionPool();
  const registry = new ExtensionRegistry();
  const server = fileURLToPath(new URL(`./fixtures/${key}/server.mjs`, import.meta.url));
  const start = (id: string) =>
    registry.register(
      new McpServerCapability({
        id,
        connections,
        server: { command: process.execPath, args: [server], env: { FIXTURE_ID: id } },
      }),
    );
  const handles = ids.map(start);
  onTestFinished(async () => {
    await registry.close();
    await connections.close();
  });
  return { registry, handles, start };
}

type Call = readonly [name: string, args?: unknown];

/** Calls these tools of a server in one step; gives what the model reads and what the program gets, by the tool's name. */
async function run(major: Major, key: string, calls: readonly Call[], options: AiSdkOptions = {}) {
  const { registry } = board(key, 's');
  const view = registry.view();
  const answers = [
    calls.map(([name, args], index) => call(String(index), `s__${name}`, args)),
    [text('done')],
  ];
  const { model, seen } = scripted(major, answers);
  const agent = new major.ai.ToolLoopAgent({ model, ...aiSdk(view, options) });
  const { steps, text: said } = await agent.generate({ prompt: 'go' });
  expect(said).toBe('done');
  const read = outputs(seen[1]);
  const parts = (steps[0]?.content ?? []) as readonly {
    readonly type: string;
    readonly toolName?: string;
    readonly output?: ToolResult;
    readonly error?: unknown;
  }[];
  return {
    view,
    seen,
    read: (name: string) => read[`s__${name}`]!,
    part: (name: string) =>
      parts.find(({ type, toolName }) => type !== 'tool-call' && toolName === `s__${name}`)!,
  };
}

const named = (...names: string[]): readonly Call[] => names.map((name) => [name]);

describe.each(MAJORS)('public reports, on ai $major', (major) => {
  it('langchain-mcp-adapters-283: structured content reaches the model once, its metadata never', async () => {
    const { read, part, seen } = await run(
      major,
      'langchain-mcp-adapters-283',
      named('only', 'no-content', 'both', 'meta'),
    );
    expect(read('only').value).toBe('{"rows":[1,2]}');
    expect(read('no-content').value).toBe('{"rows":[1,2]}');
    expect(read('both').value).toBe('2 rows');
    expect(read('meta').value).toBe('ok');
    for (const name of ['only', 'no-content', 'both'])
      expect(part(name).output?.structuredContent).toEqual({ rows: [1, 2] });
    expect(part('meta').output?.structuredContent).toEqual({ a: 1 });
    expect(JSON.stringify(seen[1])).not.toContain('secret-trace');
  });

  it('llm-agent-231: an error result is a tool error, a failed call another one, and the run goes on', async () => {
    const { read, part } = await run(
      major,
      'llm-agent-231',
      named('tool-error', 'tool-error-empty', 'rpc-error', 'rpc-invalid', 'ok'),
    );
    expect(part('tool-error')).toMatchObject({
      type: 'tool-error',
      error: { result: { isError: true } },
    });
    expect(read('tool-error')).toEqual({
      type: 'error-text',
      value: 'Error: quota exceeded: retry in 30 s',
    });
    expect(read('tool-error-empty')).toMatchObject({
      type: 'error-text',
      value: expect.stringMatching(/^Error: ./u),
    });
    for (const name of ['rpc-error', 'rpc-invalid']) {
      const error = part(name).error as ToolCallError;
      expect(part(name).type).toBe('tool-error');
      expect(error.result).toBeUndefined();
      expect(error.cause).toMatchObject({ code: expect.any(String) });
      expect(error.source).toBe('s');
    }
    expect(part('ok').type).toBe('tool-result');
    expect(read('ok')).toEqual({ type: 'text', value: 'fine' });
  });

  it('vercel-ai-15285: every kind of part becomes text or a file, and what cannot a note and a diagnostic', async () => {
    const png =
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
    const wav = Buffer.from('RIFF....WAVEfmt ').toString('base64');
    const bad = ['unknown', 'bad-base64', 'no-mime'];
    const problems: Problem[] = [];
    const options = { onProblem: (problem: Problem) => void problems.push(problem) };
    const { read, seen } = await run(
      major,
      'vercel-ai-15285',
      named(
        'text',
        'image',
        'audio',
        'resource-text',
        'resource-blob',
        'resource_link',
        'mixed',
        'empty',
        ...bad,
      ),
      options,
    );
    for (const [name, mediaType, data] of [
      ['image', 'image/png', png],
      ['audio', 'audio/wav', wav],
      ['resource-blob', 'image/png', png],
    ] as const) {
      const [note, media, ...more] = read(name).value as readonly Readonly<
        Record<string, unknown>
      >[];
      expect(note?.['type']).toBe('text');
      expect(JSON.stringify(note)).not.toContain(data);
      expect(media).toMatchObject({
        mediaType,
        data: major.major === 7 ? { type: 'data', data } : data,
      });
      expect(more).toEqual([]);
    }
    expect(JSON.stringify(seen[1]).split(png)).toHaveLength(5);
    expect(read('resource-text').value).toBe('[resource fix://note.md]\n# note');
    for (const fact of ['fix://big.csv', 'big.csv', 'text/csv'])
      expect(read('resource_link').value).toContain(fact);
    expect(read('empty')).toEqual({ type: 'text', value: '(no output)' });
    for (const name of bad)
      expect(read(name)).toMatchObject({
        type: 'text',
        value: expect.stringContaining('cannot be shown'),
      });
    expect(problems.map(({ source, message }) => [source, message])).toEqual(
      bad.map((name) => ['s', expect.stringContaining(`s__${name}`)]),
    );
  });

  it('qwen-code-2439: a huge result is cut for the model, whole characters only, and kept whole', async () => {
    const options = { maxResultChars: 10_000 };
    const { read, part, seen } = await run(
      major,
      'qwen-code-2439',
      named('big', 'bigerror', 'many', 'bigimage'),
      options,
    );
    for (const name of ['big', 'bigerror', 'many']) {
      const value = read(name).value as string;
      expect(value.length).toBeLessThan(10_000 + 200);
      expect(value).toMatch(/\d+ of \d+ characters are left out here; the whole result is kept/u);
      // A lone surrogate is the only thing that does not survive.
      expect(Buffer.from(value, 'utf8').toString('utf8') === value).toBe(true);
    }
    expect(JSON.stringify(seen[1]).length).toBeLessThan(100_000);
    expect(part('big').output?.content).toMatchObject([
      { text: expect.objectContaining({ length: 20e6 }) },
    ]);
    expect(part('bigimage').output?.content).toMatchObject([
      { data: expect.objectContaining({ length: 20e6 }) },
    ]);
    expect(
      (part('bigerror').error as { readonly result: ToolResult }).result.content[0],
    ).toMatchObject({ text: expect.objectContaining({ length: 20e6 }) });
  });

  it.each([0, Infinity])('qwen-code-2439: a limit of %d turns that off', async (maxResultChars) => {
    const { read } = await run(major, 'qwen-code-2439', [['big', { n: 300_000 }]], {
      maxResultChars,
    });
    expect(read('big').value).toHaveLength(300_000);
  });

  it('copilot-cli-1879, mastra-6302: every name fits every provider, in any order, and calls the right tool', async () => {
    const servers = ['github.com/acme/linear-mcp', 's'.repeat(70)];
    const offered = async (order: readonly string[]) => {
      const view = board('copilot-cli-1879', ...order).registry.view();
      const { tools } = await view.compile();
      const calls = tools.map(({ definition }, index) => call(String(index), definition.name));
      const { model, seen } = scripted(major, [calls, [text('done')]]);
      await new major.ai.ToolLoopAgent({ model, ...aiSdk(view) }).generate({ prompt: 'go' });
      return { tools, names: toolNames(seen[0]), read: outputs(seen[1]) };
    };
    const { tools, names, read } = await offered(servers);
    expect(names).toHaveLength(22);
    expect(new Set(names).size).toBe(22);
    for (const name of names) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/u);
    // The view's table leads back from each name to its source; the server answers with the original name.
    for (const { id, definition } of tools) expect(read[definition.name]?.value).toBe(id.name);
    expect((await offered(servers.toReversed())).names).toEqual(names);
  });

  it('mcphub-139: one name on two servers is two tools, and a call never reaches the other server', async () => {
    const { registry, handles, start } = board('mcphub-139', 'db1', 'db2');
    const calls = ['db1__execute_sql', 'db2__execute_sql', 'execute_sql'];
    const answers = async () => {
      const { model, seen } = scripted(major, [
        calls.map((name, index) => call(String(index), name)),
        [text('done')],
      ]);
      await new major.ai.ToolLoopAgent({ model, ...aiSdk(registry.view()) }).generate({
        prompt: 'go',
      });
      const read = outputs(seen[1]);
      return calls.map((name) =>
        read[name]?.type === 'text' ? read[name].value : read[name]?.type,
      );
    };
    const both = ['db1:execute_sql', 'db2:execute_sql', 'error-text'];
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
    expect(await answers()).toEqual(['error-text', both[1], 'error-text']);
    start('db1');
    expect(await answers()).toEqual(both);
  });

  it('typescript-sdk-1943: the server’s error comes through whatever its shape, and is what a direct call gives', async () => {
    for (const mode of ['error-structured', 'error-text', 'mismatch', 'missing', 'extra', 'ok']) {
      const { read, part, view } = await run(major, 'typescript-sdk-1943', [['weather', { mode }]]);
      const compiled = await view.compile();
      const direct = await compiled
        .callTool('s__weather', { mode })
        .catch((error: unknown) => ({ thrown: error }));
      if ('thrown' in direct) {
        const { code } = direct.thrown as { readonly code: string };
        expect((part('weather').error as ToolCallError).cause).toMatchObject({ code });
      } else if (mode.startsWith('error')) {
        expect(read('weather')).toEqual({ type: 'error-text', value: 'Error: station offline' });
        expect(part('weather')).toMatchObject({ error: { result: direct } });
      } else {
        // Who checks says what does not fit, where programs read it; the content stays.
        const fits = mode === 'extra' || mode === 'ok';
        const where = mode === 'mismatch' ? /temp/ : /structured content/;
        const invalidOutput = {
          code: 'invalid-output',
          tool: 's__weather',
          violations: [expect.stringMatching(where)],
        };
        const meta = fits ? {} : { meta: { 'patchbay/invalid-output': invalidOutput } };
        expect(part('weather').output).toEqual({ ...direct, ...meta });
      }
      if (mode === 'extra' || mode === 'ok')
        expect(part('weather').output?.structuredContent).toMatchObject({ temp: 21 });
    }
  });
});
