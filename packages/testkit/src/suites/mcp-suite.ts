import type { Capability, McpResource, ResourceEntry, ToolDefinition } from '@patchbay/protocols';

import { testContext } from '../compile-context.ts';
import {
  ensure,
  ensureEqual,
  ensureRejects,
  ensureSettles,
  isText,
  show,
  within,
} from '../expectation.ts';
import type { Ended, Suite } from '../requirement.ts';

/** What {@link mcpSuite} looks at: a source with at least one tool and one resource. */
export interface McpSubject extends Ended {
  readonly capability: Pick<Capability, 'id'> & McpResource;
  /** A tool that can be called with these arguments and succeeds. */
  readonly works: ToolCall;
  /** A tool that runs and says that it failed. */
  readonly fails: ToolCall;
  /** A tool that does not answer. */
  readonly hangs: ToolCall;
}

/** A tool by its own name, and arguments. */
export interface ToolCall {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

const UNKNOWN_TOOL = 'patchbay_suite_knows_no_such_tool';
const CALL = { scope: { session: 'suite' }, callId: 'suite-1' };

/** What everything does that is as an MCP server is. (RFC-0051 "McpResource", `ToolSource`, `ResourceProvider`) */
export const mcpSuite: Suite<McpSubject> = {
  contract: 'McpResource',
  requirements: [
    {
      name: 'lists its tools, each once, with its own name and a schema of an object',
      check: async ({ capability, works }) => {
        const tools = await listed(capability);
        const names = tools.map(({ name }) => name);
        ensureEqual(names, [...new Set(names)], 'The names of its tools');
        ensure(names.includes(works.name), `${works.name} is not among ${show(names)}`);
        for (const { name, inputSchema } of tools) {
          ensure(isText(name), `${show(name)} is no name`);
          ensureEqual(inputSchema['type'], 'object', `The top of the schema of ${name}`);
        }
      },
    },
    {
      name: 'keeps the definition of an unchanged tool from one listing to the next',
      check: async ({ capability }) => {
        const before = await listed(capability);
        const kept = (await listed(capability)).filter((tool, at) => tool === before[at]);
        ensureEqual(kept.length, before.length, 'How many definitions are the same object');
      },
    },
    {
      name: 'calls a tool, with a context and without',
      check: async ({ capability, works }) => {
        for (const context of [CALL, undefined]) {
          const result = await within(
            capability.callTool(works.name, works.args, context),
            `Calling ${works.name}`,
          );
          ensure(Array.isArray(result.content), `The result is ${show(result)}`);
          ensure(result.isError !== true, `The result is an error: ${show(result)}`);
        }
      },
    },
    {
      name: 'gives what a tool calls an error as a result, not as a rejection',
      check: async ({ capability, fails }) => {
        const result = await within(capability.callTool(fails.name, fails.args, CALL), 'A call');
        ensure(result.isError === true, `The result is no error: ${show(result)}`);
        ensure(result.content.length > 0, 'The error has no content that a model could read');
      },
    },
    {
      name: 'refuses a tool that it does not have',
      check: async ({ capability }) => {
        const call = capability.callTool(UNKNOWN_TOOL, {}, CALL);
        const result = await within(call, 'Calling a tool that is not there').catch(
          () => undefined,
        );
        if (result === undefined) await ensureRejects(call, 'Calling a tool that is not there');
        else ensure(result.isError === true, `It answered: ${show(result)}`);
      },
    },
    {
      name: 'ends a call that is aborted, with `aborted` and the reason, and goes on',
      check: async ({ capability, hangs, works }) => {
        const controller = new AbortController();
        const call = capability.callTool(hangs.name, hangs.args, {
          ...CALL,
          signal: controller.signal,
        });
        const reason = new Error('The user left.');
        setImmediate(() => controller.abort(reason));
        const error = await ensureRejects(call, 'A call that is aborted', 'aborted');
        ensureEqual(error.cause, reason, 'The cause of the error');
        await within(capability.callTool(works.name, works.args, CALL), 'The next call');
      },
    },
    {
      name: 'lists its resources, each once, by URIs that it answers for',
      check: async ({ capability }) => {
        const uris = (await resources(capability)).map(({ uri }) => uri);
        ensureEqual(uris, [...new Set(uris)], 'The URIs of its resources');
        const mine = capability.uriSchemes ?? [];
        const strangers = uris.filter(
          (uri) =>
            !mine.some((scheme) => uri.startsWith(`${scheme}:`)) &&
            !uri.startsWith(`mcp://${capability.id}/`),
        );
        ensureEqual(strangers, [], 'URIs that it lists, but does not answer for');
      },
    },
    {
      name: 'reads each resource that it lists, and says that it exists',
      check: async ({ capability }) => {
        for (const { uri } of await resources(capability)) {
          ensureEqual(await capability.resourceExists(uri, testContext()), true, `${uri} exists`);
          const parts = await within(capability.readResource(uri, testContext()), `Reading ${uri}`);
          ensure(parts.length > 0, `${uri} has no content`);
        }
      },
    },
    {
      name: 'knows no resource that it does not have',
      check: async ({ capability }) => {
        const uri = `${(await resources(capability))[0]?.uri}-patchbay-suite`;
        ensureEqual(await capability.resourceExists(uri, testContext()), false, `${uri} exists`);
        const reading = capability.readResource(uri, testContext());
        await ensureRejects(reading, `Reading ${uri}`);
      },
    },
    {
      name: 'ends when nobody waits any more',
      check: async ({ capability }) => {
        const context = testContext({ signal: AbortSignal.abort() });
        await ensureSettles(capability.listTools(context), 'Listing tools for nobody');
        await ensureSettles(capability.listResources(context), 'Listing resources for nobody');
      },
    },
  ],
};

async function listed(capability: McpResource): Promise<readonly ToolDefinition[]> {
  const tools = await within(capability.listTools(testContext()), 'Listing its tools');
  ensure(tools.length > 0, 'It lists no tool: make one with at least one for this suite.');
  return tools;
}

async function resources(capability: McpResource): Promise<readonly ResourceEntry[]> {
  const entries = await within(capability.listResources(testContext()), 'Listing its resources');
  ensure(entries.length > 0, 'It lists no resource: make one with at least one for this suite.');
  return entries;
}
