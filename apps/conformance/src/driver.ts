import { ConnectionPool, eraMemory, type EraStore } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import { isTextPart, type CompiledView, type JsonSchema, type Tool } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { SkillManagerCapability } from '@patchbay/skills';

import { authOf, login, type AuthorizationContext } from './authorization.ts';

/**
 * The client under test: the referee starts a server for each scenario, and this program with its URL as last argument. It
 * does what an agent does, over pool, capability and view.
 */
const url = process.argv.at(-1)!;
const scenario = process.env['MCP_CONFORMANCE_SCENARIO'] ?? '';
const context = JSON.parse(process.env['MCP_CONFORMANCE_CONTEXT'] ?? '{}') as {
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: unknown }[];
} & AuthorizationContext;

/** These servers know nothing but tools: what an earlier connect found out stands in for the question what they are. */
const KNOWN_AS_MODERN: ReadonlySet<string> = new Set([
  'http-custom-headers',
  'http-invalid-tool-headers',
  'sep-2322-client-request-state',
]);

function eras(): EraStore {
  const memory = eraMemory();
  if (!KNOWN_AS_MODERN.has(scenario)) return memory;
  const discover = {
    resultType: 'complete',
    supportedVersions: ['2026-07-28'],
    capabilities: { tools: {} },
    ttlMs: 60_000,
    cacheScope: 'private',
  };
  return { ...memory, get: () => ({ era: 'modern', at: Date.now(), discover }) };
}

await using connections = new ConnectionPool({
  clientInfo: { name: 'patchbay-conformance', version: '0.0.0' },
  eras: eras(),
  authorization: {
    login,
    clientMetadataUrl: 'https://conformance-test.local/client-metadata.json',
  },
  handlers: {
    elicitation: async () => ({ action: 'accept', content: {} }),
    roots: async () => [],
    sampling: async () => ({
      role: 'assistant',
      model: 'none',
      content: { type: 'text', text: 'ok' },
    }),
  },
});
await using registry = new ExtensionRegistry({
  onProblem: ({ code, message }) => console.error(code, message),
});
const auth = await authOf(scenario, url, context);
const server = new McpServerCapability({
  id: 'referee',
  server: { type: 'http', url, ...(auth === undefined ? {} : { auth }) },
  connections,
});
registry.register(server);
registry.register(new SkillManagerCapability());
const view = registry.view();
const compiled = await view.compile();

/** What fails is told, and does not keep the rest from being tried. */
async function call(name: string, args: unknown): Promise<void> {
  const tool = compiled.tools.find(({ id }) => id.name === name);
  if (tool === undefined) return;
  try {
    await compiled.callTool(tool.definition.name, args);
  } catch (error) {
    console.error(name, error);
  }
}

/** Something for every argument that a schema names. */
function someArguments({ properties = {} }: JsonSchema): Readonly<Record<string, unknown>> {
  const some: Readonly<Record<string, unknown>> = {
    number: 1,
    integer: 1,
    boolean: true,
    array: [],
    object: {},
  };
  return Object.fromEntries(
    Object.entries(properties as Readonly<Record<string, { readonly type?: string }>>).map(
      ([name, { type = 'string' }]) => [name, some[type] ?? 'x'],
    ),
  );
}

const callAll = (tools: readonly Tool[], args: (tool: Tool) => unknown) =>
  Promise.all(tools.map((tool) => call(tool.id.name, args(tool))));

/** As a model does: its text first, then each file that the text names. What is refused ends the skill. */
async function useSkill(name: string): Promise<void> {
  const { content, isError } = await compiled.callTool('activate_skill', { name });
  const text = content.filter(isTextPart).map((part) => part.text);
  if (isError === true) throw new Error(text.join('\n'));
  const files = /^Files \([^)]*\): (.+)$/m.exec(text.join('\n'))?.[1]?.split(', ') ?? [];
  for (const path of files) {
    const file = await compiled.callTool('read_skill_file', { name, path });
    if (file.isError === true) return;
  }
}

async function run({ tools, skills }: CompiledView): Promise<void> {
  if (context.toolCalls !== undefined) {
    for (const { name, arguments: args } of context.toolCalls) await call(name, args);
  } else if (scenario === 'json-schema-2020-12-preservation') {
    const subject = tools.find(({ id }) => id.name !== 'json_schema_echo')?.definition;
    const { inputSchema, outputSchema } = subject ?? {};
    await call('json_schema_echo', { schema: inputSchema, inputSchema, outputSchema });
  } else if (scenario === 'sep-2322-client-request-state') {
    await callAll(tools, () => ({}));
    await callAll(tools, () => ({}));
  } else if (scenario.startsWith('sep-2640')) {
    if (scenario.endsWith('no-prefetch')) return;
    for (const { name } of skills)
      await useSkill(name).catch((error: unknown) => console.error(name, error));
  } else {
    for (const tool of tools) await call(tool.id.name, someArguments(tool.definition.inputSchema));
  }
}

await run(compiled);
