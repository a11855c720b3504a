import { langchain, type LangchainOptions } from '@patchbay/langchain';
import {
  PatchbayError,
  type ContentPart,
  type Problem,
  type ToolResult,
} from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { createAgent, createMiddleware, type ToolMessage } from 'langchain';
import { describe, expect, it, onTestFinished } from 'vitest';

import { ask, capability, outcomes, script, toolMessages } from './script.ts';
import { sent } from './wire.ts';

/** Runs one tool per result in one step of an agent, and gives its message by the name of the tool. */
async function run(
  results: Readonly<Record<string, ToolResult | Error>>,
  options: LangchainOptions = {},
) {
  const registry = new ExtensionRegistry();
  onTestFinished(() => registry.close());
  const tools = Object.entries(results).map(([name, result]) => [
    name,
    () => {
      if (result instanceof Error) throw result;
      return result;
    },
  ]);
  registry.register(capability('s', Object.fromEntries(tools) as Record<string, () => ToolResult>));
  const lc = langchain(registry.view(), options);
  const model = script(Object.keys(results).map((name) => ({ name: `s__${name}` })));
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

const text = (said: string): ContentPart => ({ type: 'text', text: said });

describe('langchain-mcp-adapters-283', () => {
  it('structured content reaches the model once, its metadata never', async () => {
    const rows = { rows: [1, 2] };
    const { of } = await run({
      only: { content: [], structuredContent: rows },
      both: { content: [text('2 rows')], structuredContent: rows },
      meta: { content: [text('ok')], structuredContent: { a: 1 }, meta: { trace: 'x' } },
    });
    expect(of('only').content).toBe('{"rows":[1,2]}');
    expect(of('both').content).toBe('2 rows');
    expect(of('meta').content).toBe('ok');
    for (const name of ['only', 'both']) {
      expect(of(name).artifact.patchbay.structuredContent).toEqual(rows);
    }
    expect(of('meta').artifact.patchbay.meta).toEqual({ trace: 'x' });
  });
});

describe('llm-agent-231', () => {
  it('an error result is an error message, a failed call tells its code and its source, and the run goes on', async () => {
    const failed = (code: number, said: string) =>
      new PatchbayError('protocol-error', said, { source: 's', details: { rpcCode: code } });
    const { of, done } = await run({
      'tool-error': { content: [text('quota exceeded: retry in 30 s')], isError: true },
      'tool-error-empty': { content: [], isError: true },
      'rpc-error': failed(-32_000, 'backend down'),
      'rpc-invalid': failed(-32_602, 'bad params'),
      ok: { content: [text('fine')] },
    });
    expect(done).toBe('done');
    expect(of('tool-error')).toMatchObject({
      status: 'error',
      content: 'Error: quota exceeded: retry in 30 s',
    });
    expect(of('tool-error').artifact.patchbay.error).toBeUndefined();
    expect(of('tool-error-empty').status).toBe('error');
    expect(of('tool-error-empty').content).toMatch(/^Error: ./);
    for (const [name, rpcCode] of [
      ['rpc-error', -32_000],
      ['rpc-invalid', -32_602],
    ] as const) {
      expect(of(name).status).toBe('error');
      expect(of(name).artifact.patchbay.error).toEqual({
        code: 'protocol-error',
        source: 's',
        details: { rpcCode },
      });
    }
    expect(of('ok')).toMatchObject({ status: 'success', content: 'fine' });
  });
});

describe('vercel-ai-15285', () => {
  const PNG =
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  const WAV = Buffer.from('RIFF....WAVEfmt ').toString('base64');
  const parts = {
    image: { type: 'image', data: PNG, mimeType: 'image/png' },
    audio: { type: 'audio', data: WAV, mimeType: 'audio/wav' },
    'resource-text': {
      type: 'resource',
      uri: 'fix://note.md',
      mimeType: 'text/markdown',
      text: '# note',
    },
    'resource-blob': { type: 'resource', uri: 'fix://p.png', mimeType: 'image/png', data: PNG },
    resource_link: {
      type: 'resource_link',
      uri: 'fix://big.csv',
      name: 'big.csv',
      mimeType: 'text/csv',
      description: 'rows',
      size: 123_456,
    },
  } satisfies Record<string, ContentPart>;
  const results = {
    ...Object.fromEntries(Object.entries(parts).map(([name, part]) => [name, { content: [part] }])),
    mixed: { content: [text('plain'), ...Object.values(parts)] },
    empty: { content: [] },
    unknown: { content: [{ type: 'hologram', raw: { type: 'hologram', beam: 1 } }] },
    'bad-base64': { content: [{ type: 'image', data: '***not base64***', mimeType: 'image/png' }] },
    'no-mime': {
      content: [{ type: 'image', data: PNG, mimeType: undefined as unknown as string }],
    },
  } satisfies Record<string, ToolResult>;

  it('every kind of part becomes text or media, and what cannot becomes a note and a diagnostic', async () => {
    const problems: Problem[] = [];
    const { of, history, middleware, done } = await run(results, {
      onProblem: (problem) => problems.push(problem),
    });
    expect(done).toBe('done');
    for (const name of Object.keys(results)) {
      expect(of(name).status).toBe('success');
      expect(typeof of(name).content).toBe('string');
      expect(of(name).content).not.toBe('');
      expect(of(name).content).not.toContain(PNG);
    }
    expect(of('resource-text').content).toContain('# note');
    expect(of('resource-text').content).toContain('fix://note.md');
    for (const fact of ['fix://big.csv', 'big.csv', 'text/csv']) {
      expect(of('resource_link').content).toContain(fact);
    }
    expect(problems.map(({ source, message }) => [source, message])).toEqual(
      ['unknown', 'bad-base64', 'no-mime'].map((name) => [
        's',
        expect.stringContaining(`s__${name}`),
      ]),
    );
    // image, the blob, and both of "mixed": each once, and typed; audio has no form that Anthropic takes.
    const body = JSON.stringify(await sent('anthropic', middleware, history));
    expect(body.split(PNG)).toHaveLength(5);
    expect(body.split('"media_type":"image/png"')).toHaveLength(5);
    expect(body).not.toContain(WAV);
  });
});

describe('qwen-code-2439', () => {
  const big = '\u{1F600}a'.repeat(Math.ceil(20e6 / 3)).slice(0, 20e6);

  it('a huge result is cut for the model, whole characters only, and is kept whole without a copy', async () => {
    const results = {
      big: { content: [text(big)] },
      bigerror: { content: [text(big)], isError: true },
      many: { content: Array.from({ length: 50_000 }, (_, line) => text(`line ${line}`)) },
      bigimage: {
        content: [{ type: 'image', mimeType: 'image/png', data: 'A'.repeat(20e6) }],
      },
    } satisfies Record<string, ToolResult>;
    const { of, history, middleware } = await run(results, { maxResultChars: 10_000 });
    for (const name of ['big', 'bigerror', 'many']) {
      const content = of(name).text;
      expect(content.length).toBeLessThan(10_000 + 300);
      expect(content).toMatch(/\d+ of \d+ characters/);
      // A lone surrogate is the only thing that does not survive.
      expect(Buffer.from(content, 'utf8').toString('utf8') === content).toBe(true);
    }
    for (const name of Object.keys(results)) {
      expect(of(name).artifact.patchbay).toBe(results[name as keyof typeof results]);
    }
    const body = await sent('anthropic', middleware, history);
    expect(JSON.stringify(body).length).toBeLessThan(100_000);
  });

  it.each([0, Infinity])('a limit of %d turns that off', async (maxResultChars) => {
    const said = 'x'.repeat(300_000);
    const { of } = await run({ big: { content: [text(said)] } }, { maxResultChars });
    expect(of('big').content).toBe(said);
  });
});

describe('copilot-cli-1879', () => {
  const names = [
    'admin.tools.list',
    'admin/tools/list',
    'admin_tools_list',
    'a b',
    'x'.repeat(100),
    `${'y'.repeat(79)}1`,
    `${'y'.repeat(79)}2`,
    '-lead',
    '9digit',
  ];
  const servers = ['github.com/acme/linear-mcp', 's'.repeat(70)];

  it('every name fits every provider, is the same in any order, and calls the right tool', async () => {
    const offered = async (order: readonly string[]) => {
      const registry = new ExtensionRegistry();
      for (const id of order) {
        registry.register(
          capability(id, Object.fromEntries(names.map((name) => [name, () => `${id} ${name}`]))),
        );
      }
      const view = registry.view();
      const lc = langchain(view);
      const seen: string[] = [];
      const { tools } = await view.compile();
      const calls = tools.map(({ definition }) => ({ name: definition.name }));
      const spy = createMiddleware({
        name: 'spy',
        wrapModelCall: (request, handler) => {
          seen.splice(0, seen.length, ...request.tools.map(({ name }) => String(name)));
          return handler(request);
        },
      });
      const result = await createAgent({
        model: script(
          ...servers.map((_, step) => calls.slice(step * names.length, (step + 1) * names.length)),
        ),
        middleware: [...lc.middleware, spy],
      }).invoke(ask());
      await registry.close();
      return { seen, ids: tools.map(({ id }) => id), answers: outcomes(result) };
    };
    const { seen, ids, answers } = await offered(servers);
    expect(seen).toHaveLength(names.length * servers.length);
    expect(new Set(seen).size).toBe(seen.length);
    for (const name of seen) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/);
    // The view's table leads back from the n-th name to its source.
    expect(answers).toEqual(ids.map(({ capability: id, name }) => `success:${id} ${name}`));
    expect((await offered(servers.toReversed())).seen).toEqual(seen);
  });
});

describe('mcphub-139', () => {
  it('one name on two servers is two tools, and a call never reaches the other server', async () => {
    await using registry = new ExtensionRegistry();
    const server = (id: string) =>
      registry.register(
        capability(id, { execute_sql: () => `${id}:execute_sql`, search: () => `${id}:search` }),
      );
    const db1 = server('db1');
    server('db2');
    const calls = ['db1__execute_sql', 'db2__execute_sql', 'execute_sql'].map((name) => ({ name }));
    const answers = async () =>
      outcomes(
        await createAgent({ model: script(calls), ...langchain(registry.view()) }).invoke(ask()),
      );
    const unknown = expect.stringMatching(/^error:.*execute_sql is not a valid tool/);
    expect(await answers()).toEqual([
      'success:db1:execute_sql',
      'success:db2:execute_sql',
      unknown,
    ]);
    await db1.close();
    expect(await answers()).toEqual([
      expect.stringMatching(/^error:/),
      'success:db2:execute_sql',
      unknown,
    ]);
    server('db1');
    expect(await answers()).toEqual([
      'success:db1:execute_sql',
      'success:db2:execute_sql',
      unknown,
    ]);
  });
});
