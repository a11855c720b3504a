import { spawn } from 'node:child_process';
import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { AIMessage, HumanMessage } from '@langchain/core/messages';
import { Command, MemorySaver } from '@langchain/langgraph';
import { ExtensionRegistry } from '@patchbay/registry';
import { scriptedServer } from '@patchbay/testkit';
import { ToolLoopAgent } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { build } from 'esbuild';
import { createAgent, fakeModel } from 'langchain';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

import { BuildJobs } from '../programs/05-own-capability.ts';
import { installServers } from './installed-servers.ts';

const docs = fileURLToPath(new URL('..', import.meta.url));

/** The example programs as their readers run them: in a project folder that has the server and a skill. */
describe('the programs of the documentation', () => {
  const before = process.cwd();
  let project: string;

  beforeEach(async () => {
    project = await realpath(await mkdtemp(join(tmpdir(), 'patchbay-programs-')));
    await installServers(project, ['@modelcontextprotocol/server-filesystem']);
    await mkdir(join(project, '.agents/skills/greet'), { recursive: true });
    await writeFile(
      join(project, '.agents/skills/greet/SKILL.md'),
      '---\nname: greet\ndescription: Greets.\n---\nSay hello.\n',
    );
    await writeFile(join(project, 'README.md'), '# A project\n');
    await writeFile(
      join(project, 'patchbay.yaml'),
      'mcp_servers:\n  files:\n    command: node\n    args: [node_modules/@modelcontextprotocol/server-filesystem/dist/index.js, .]\n',
    );
    vi.stubEnv('HOME', join(project, 'home'));
    process.chdir(project);
    vi.resetModules();
  });

  afterEach(async () => {
    process.chdir(before);
    vi.unstubAllEnvs();
    vi.unstubAllGlobals();
    vi.restoreAllMocks();
    await rm(project, { recursive: true, force: true });
  });

  it('01: an agent of the Vercel AI SDK', async () => {
    const seen: { readonly tools: readonly string[]; readonly system: string }[] = [];
    vi.stubGlobal('AI_SDK_DEFAULT_PROVIDER', {
      languageModel: () => answering(seen),
      specificationVersion: 'v4',
    });
    const said = vi.spyOn(console, 'log').mockImplementation(() => undefined);
    await import('../programs/01-ai-sdk.ts');
    expect(said).toHaveBeenCalledWith('All quiet.');
    expect(seen[0]?.tools).toEqual(
      expect.arrayContaining(['activate_skill', 'files__read_text_file']),
    );
    expect(seen[0]?.system).toMatch(/^You help with this repository\.[\s\S]*greet/);
  });

  it('02: an agent of LangChain', async () => {
    const bodies: {
      readonly tools: readonly { readonly name: string }[];
      readonly system: unknown;
    }[] = [];
    vi.stubEnv('ANTHROPIC_API_KEY', 'none');
    vi.stubGlobal('fetch', async (_url: unknown, init?: { readonly body?: unknown }) => {
      bodies.push(JSON.parse(String(init?.body)) as (typeof bodies)[number]);
      return Response.json({
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        model: 'claude-sonnet-4-5',
        content: [{ type: 'text', text: 'All quiet.' }],
        stop_reason: 'end_turn',
        usage: { input_tokens: 1, output_tokens: 1 },
      });
    });
    const said = vi.spyOn(console, 'log').mockImplementation(() => undefined);
    await import('../programs/02-langchain.ts');
    expect(said).toHaveBeenCalledWith('All quiet.');
    expect(bodies[0]?.tools.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['activate_skill', 'files__read_text_file']),
    );
    expect(JSON.stringify(bodies[0]?.system)).toMatch(
      /You help with this repository\.[\s\S]*greet/,
    );
  });

  it('03: by hand, with only the packages that are needed', async () => {
    const said = vi.spyOn(console, 'log').mockImplementation(() => undefined);
    await import('../programs/03-by-hand.ts');
    const [[tools, problems], [content]] = said.mock.calls as unknown as [
      [readonly string[], readonly unknown[]],
      [unknown],
    ];
    expect(tools).toEqual(expect.arrayContaining(['list_skills', 'files__read_text_file']));
    expect(problems).toEqual([]);
    expect(content).toEqual({ type: 'text', text: '# A project\n' });
  });

  it('06: a server that fails', async () => {
    await writeFile(
      join(project, 'patchbay.yaml'),
      'mcp_servers:\n  github:\n    command: gh-mcp\n',
    );
    const { output } = await runProgram('06-trouble.ts', project, {
      until: (said) => said.includes('index'),
    });
    expect(output).toMatch(
      /github connect-failed gh-mcp: command not found\. Install it.* It is configured in patchbay\.yaml:2\. \d{4}-/,
    );
  });

  it('07: slash commands from every source', async () => {
    await mkdir(join(project, '.claude/commands'), { recursive: true });
    await writeFile(join(project, '.claude/commands/review.md'), 'Review $1.');
    await rm(join(project, 'patchbay.yaml'));
    const { output, code } = await runProgram('07-commands.ts', project, {
      input: '/review this\n/reveiw\nhello\n',
    });
    expect(output).toContain("text: 'Review this.'");
    expect(output).toContain('Unknown command: /reveiw. Did you mean /review?');
    expect(output).toContain('a plain message: hello');
    expect(code).toBe(0);
  });

  it('08: destructive tools ask first, in both frameworks', async () => {
    await using server = await scriptedServer({
      tools: [{ name: 'pay' }, { name: 'balance', annotations: { readOnlyHint: true } }],
    });
    await writeFile(
      join(project, 'patchbay.yaml'),
      JSON.stringify({ mcp_servers: { payments: server.config } }),
    );
    const { host, forAiSdk, forLangchain } = await import('../programs/08-approval.ts');
    try {
      const calls = [
        { name: 'payments__pay', args: { amount: 5 } },
        { name: 'payments__balance', args: {} },
      ];
      const model = new MockLanguageModelV4({
        doGenerate: async () => ({
          ...SAID,
          content: calls.map(({ name, args }, i) => ({
            type: 'tool-call' as const,
            toolCallId: String(i),
            toolName: name,
            input: JSON.stringify(args),
          })),
          finishReason: { unified: 'tool-calls' as const, raw: undefined },
        }),
      });
      const { content } = await new ToolLoopAgent({ model, ...forAiSdk }).generate({
        prompt: 'go',
      });
      expect(content.filter(({ type }) => type === 'tool-approval-request')).toMatchObject([
        { toolCall: { toolName: 'payments__pay' } },
      ]);
      expect(server.executions('pay')).toBe(0);

      const agent = createAgent({
        model: fakeModel()
          .respondWithTools(calls.map((call, i) => ({ ...call, id: String(i) })))
          .respond(new AIMessage('Paid.')),
        ...forLangchain,
        checkpointer: new MemorySaver(),
      });
      const thread = { configurable: { thread_id: 't' } };
      const waiting = await agent.invoke({ messages: [new HumanMessage('go')] }, thread);
      expect(waiting.__interrupt__?.[0]?.value).toMatchObject({
        actionRequests: [{ name: 'payments__pay', description: expect.stringContaining('Pay 5?') }],
      });
      const answer = new Command({ resume: { decisions: [{ type: 'approve' }] } });
      await agent.invoke(answer, thread);
      expect([server.executions('pay'), server.executions('balance')]).toEqual([1, 2]);
    } finally {
      await host.close();
    }
  });

  it('05: a capability of one’s own', async () => {
    const jobs = new Set(['nightly', 'docs']);
    const listeners = new Set<() => void>();
    const service = {
      jobs: async () => [...jobs].map((name) => ({ name })),
      stop: async (name: string) => void jobs.delete(name),
      onChange: (listener: () => void) => {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    };
    await using registry = new ExtensionRegistry();
    registry.register(new BuildJobs(service));
    const view = registry.view();
    const { callTool, tools } = await view.compile();
    expect(tools.map(({ definition }) => definition.name)).toEqual([
      'builds__stop_docs',
      'builds__stop_nightly',
    ]);
    const stop = new AbortController();
    const changes = view.changes({ signal: stop.signal })[Symbol.asyncIterator]();
    const change = changes.next();
    expect(await callTool('builds__stop_docs', {})).toEqual({
      content: [{ type: 'text', text: 'stopped' }],
    });
    for (const listener of listeners) listener();
    expect((await change).value).toEqual({ capability: 'builds', kind: 'tools_changed' });
    expect((await view.compile()).tools).toHaveLength(1);
    stop.abort();
    expect(listeners.size).toBe(0);
  });
});

/** A program as its readers run it: in a process of its own. `until` may end it: some never end by themselves. */
async function runProgram(
  name: string,
  cwd: string,
  options: { readonly input?: string; readonly until?: (output: string) => boolean } = {},
): Promise<{ readonly output: string; readonly code: number | null }> {
  const folder = await mkdtemp(join(docs, '.test-'));
  try {
    const program = join(folder, 'program.mjs');
    await build({
      entryPoints: [join(docs, 'programs', name)],
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
    const child = spawn(process.execPath, [program], {
      cwd,
      env: { PATH: process.env['PATH'], HOME: join(cwd, 'home') },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk: Buffer) => {
        output += chunk.toString();
        if (options.until?.(output) === true) child.kill();
      });
    }
    child.stdin.end(options.input ?? '');
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
    return { output, code };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

const SAID = {
  usage: {
    inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
    outputTokens: { total: 1, text: 1, reasoning: undefined },
  },
  warnings: [],
};

function answering(
  seen: { readonly tools: readonly string[]; readonly system: string }[],
): MockLanguageModelV4 {
  return new MockLanguageModelV4({
    doGenerate: async ({ tools = [], prompt }) => {
      seen.push({
        tools: tools.map(({ name }) => name),
        system: prompt
          .flatMap((message) => (message.role === 'system' ? [message.content] : []))
          .join('\n'),
      });
      return {
        ...SAID,
        content: [{ type: 'text', text: 'All quiet.' }],
        finishReason: { unified: 'stop', raw: undefined },
      };
    },
  });
}
