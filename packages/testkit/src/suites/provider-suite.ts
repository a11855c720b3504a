import { inspect } from 'node:util';

import type { ConnectionProvider } from '@patchbay/protocols';

import { ensure, ensureEqual, ensureRejects, show, until, within } from '../expectation.ts';
import type { Ended, Requirement, Suite } from '../requirement.ts';
import { scriptedServer, type ScriptedServer } from '../scripted-server.ts';
import type { ScriptedTool } from '../scripted-tool.ts';

/** What {@link providerSuite} looks at. The suite brings the servers. */
export interface ProviderSubject extends Ended {
  /** Should rebuild a lost connection quickly: a suite does not wait for long back-offs. */
  readonly provider: ConnectionProvider;
  /** The kind of server that it is asked to connect to. Default: `stdio`, `legacy`. */
  readonly server?: {
    readonly transport?: 'stdio' | 'http';
    readonly era?: 'legacy' | 'modern';
  };
}

/** Configured, and said by the server. */
const SECRET = 'the-secret-of-ann';

const TOOLS: readonly ScriptedTool[] = [
  { name: 'works' },
  { name: 'pay', onCall: 'die-after-execution' },
  { name: 'once', onCall: 'die-once' },
  { name: 'never', onCall: 'never' },
  { name: 'refuses', onCall: 'rpc-error' },
  { name: 'fails', onCall: 'tool-error' },
  { name: 'babbles', onCall: 'garbage' },
  { name: 'twice', onCall: 'answer-twice' },
  { name: 'stray', onCall: 'wrong-id' },
  {
    name: 'betrays',
    onCall: () => {
      throw new Error(`Refused to ${SECRET}.`);
    },
  },
];

const FIRST_USES = 100;
const CALLS = 10;
/** How often a server says again what was not heard yet, in milliseconds. */
const NOTIFY_MS = 20;
const ANN = { id: 'ann' };
const BOB = { id: 'bob' };

/** What everything does that gives connections to MCP servers. (DESIGN "Connections are shared by what they are", "One call, one execution", "Every call ends") */
export const providerSuite: Suite<ProviderSubject> = {
  contract: 'ConnectionProvider',
  requirements: [
    requires('connects, lists and calls', async ({ provider }, server) => {
      const { value: client } = await provider.acquire(server.config);
      const { items } = await within(client.listTools(), 'Listing tools');
      ensureEqual(
        items.map(({ name }) => name),
        TOOLS.map(({ name }) => name),
        'Its tools',
      );
      const { content } = await within(client.callTool('works', { a: 1 }), 'A call');
      ensureEqual(
        content.map(({ type }) => type),
        ['text'],
        'The content of the result',
      );
    }),
    requires(
      'shares one connection among a hundred first uses at once',
      async ({ provider }, server) => {
        await within(
          Promise.all(
            Array.from({ length: FIRST_USES }, async () => {
              const lease = await provider.acquire(server.config);
              await lease.value.callTool('works', {});
              await lease.close();
            }),
          ),
          'A hundred first uses',
        );
        ensureEqual(server.connections, 1, 'Connections that were made');
        ensureEqual(server.executions('works'), FIRST_USES, 'Calls that ran');
      },
    ),
    requires('never uses one connection for two identities', async ({ provider }, server) => {
      for (const identity of [ANN, BOB, ANN, undefined]) {
        const lease = await provider.acquire(server.config, { identity });
        await lease.value.callTool('works', {});
      }
      ensureEqual(server.connections, 3, 'Connections for Ann, Bob, and nobody in particular');
    }),
    requires(
      'shares among everyone, or per session, where the configuration says so',
      async ({ provider }, server) => {
        const everyone = { ...server.config, sharing: 'everyone' } as const;
        for (const identity of [ANN, BOB]) {
          const lease = await provider.acquire(everyone, { identity });
          await lease.value.callTool('works', {});
        }
        ensureEqual(server.connections, 1, 'Connections that everyone shares');
        const session = { ...server.config, sharing: 'session' } as const;
        for (const id of ['1', '2', '1']) {
          const lease = await provider.acquire(session, { scope: { session: id } });
          await lease.value.callTool('works', {});
        }
        ensureEqual(server.connections, 3, 'Connections, with those of two sessions');
      },
    ),
    requires(
      'takes a lease back twice without harm, and leaves the others theirs',
      async ({ provider }, server) => {
        const [one, two] = [
          await provider.acquire(server.config),
          await provider.acquire(server.config),
        ];
        await one.close();
        await one.close();
        await within(two.value.callTool('works', {}), 'A call over the other lease');
        await two[Symbol.asyncDispose]();
      },
    ),
    requires(
      'ends a call that is aborted with `aborted` and the reason, and keeps the connection',
      async ({ provider }, server) => {
        const { value: client } = await provider.acquire(server.config);
        const controller = new AbortController();
        const call = client.callTool('never', {}, { signal: controller.signal });
        call.catch(() => undefined);
        await until(() => server.executions('never') > 0, 'Reaching the server');
        const reason = new Error('The user left.');
        controller.abort(reason);
        const error = await ensureRejects(call, 'A call that is aborted', 'aborted');
        ensureEqual(error.cause, reason, 'The cause of the error');
        await within(client.callTool('works', {}), 'The next call');
        ensureEqual(server.connections, 1, 'Connections that were made');
      },
    ),
    requires(
      'ends a call without an answer with `timeout`, and keeps the connection',
      async ({ provider }, server) => {
        const { value: client } = await provider.acquire(server.config);
        await client.callTool('works', {});
        await ensureRejects(
          client.callTool('never', {}, { timeoutMs: 50 }),
          'A call without an answer',
          'timeout',
        );
        await within(client.callTool('works', {}), 'The next call');
        ensureEqual(server.connections, 1, 'Connections that were made');
      },
    ),
    requires(
      'stops waiting for a connection when that is aborted',
      async ({ provider }, server) => {
        const signal = AbortSignal.abort(new Error('The user left.'));
        await ensureRejects(provider.acquire(server.config, { signal }), 'Acquiring', 'aborted');
      },
    ),
    requires(
      'says `outcome-unknown` once when the server dies in a call, runs it once, and goes on',
      async ({ provider }, server) => {
        const { value: client } = await provider.acquire(server.config);
        const before = client.generation;
        await ensureRejects(client.callTool('pay', {}), 'A call that kills', 'outcome-unknown');
        ensureEqual(server.executions('pay'), 1, 'How often the call ran');
        await within(client.callTool('works', {}), 'The next call');
        if (!isProcess(server)) return;
        ensureEqual(server.connections, 2, 'Connections that were made');
        ensure(client.generation > before, `The generation is still ${show(before)}`);
      },
    ),
    requires(
      'settles every call that is under way when its server dies',
      async ({ provider }, server) => {
        const { value: client } = await provider.acquire(server.config);
        const calls = Array.from({ length: CALLS }, () => client.callTool('never', {}));
        for (const call of calls) call.catch(() => undefined);
        await until(() => server.executions('never') === CALLS, 'Reaching the server');
        server.die();
        for (const call of calls) await ensureRejects(call, 'A call', 'outcome-unknown');
        ensureEqual(server.executions('never'), CALLS, 'How often the calls ran');
      },
    ),
    requires('sends a call again that may be repeated', async ({ provider }, server) => {
      const { value: client } = await provider.acquire(server.config);
      await within(client.callTool('once', {}, { repeatable: true }), 'A call that kills once');
      ensureEqual(server.executions('once'), 2, 'How often the call ran');
    }),
    requires('goes on after its server died between two calls', async ({ provider }, server) => {
      const { value: client } = await provider.acquire(server.config);
      await client.callTool('works', {});
      const told = new Promise<void>((resolve) => {
        client.onNotification((method) => {
          if (method === 'patchbay/connection') resolve();
        });
      });
      server.die();
      if (isProcess(server)) {
        await within(told, 'Hearing that the connection was lost');
      } else {
        // A request may be on its way over a socket of which nobody knows yet that it is cut.
        await client.callTool('works', {}).catch(() => undefined);
      }
      await within(client.callTool('works', {}), 'The next call');
    }),
    requires(
      'gives what a tool calls an error as a result, and what the server refuses as `protocol-error`',
      async ({ provider }, server) => {
        const { value: client } = await provider.acquire(server.config);
        const failed = await client.callTool('fails', {});
        ensureEqual(failed.isError, true, 'That the result is an error');
        const error = await ensureRejects(
          client.callTool('refuses', {}),
          'A call that is refused',
          'protocol-error',
        );
        ensureEqual(error.details?.['rpcCode'], -32602, 'The code of the JSON-RPC error');
      },
    ),
    requires(
      'takes the first of two answers, and none that is for nobody',
      async ({ provider }, server) => {
        const { value: client } = await provider.acquire(server.config);
        for (const [tool, text] of [
          ['twice', 'first'],
          ['stray', 'right'],
        ] as const) {
          const { content } = await within(client.callTool(tool, {}), `A call of ${tool}`);
          ensureEqual(content, [{ type: 'text', text }], 'The content of the result');
        }
        await within(client.callTool('works', {}), 'The next call');
      },
    ),
    requires('hands on what a server says, also after it died', async ({ provider }, server) => {
      const { value: client } = await provider.acquire(server.config);
      const heard: string[] = [];
      const stop = client.onNotification((method) => heard.push(method));
      const hears = async (method: string) => {
        const isHeard = () => heard.includes(method);
        const told = setInterval(() => isHeard() || server.notify(method), NOTIFY_MS);
        await until(isHeard, `Hearing ${method}`).finally(() => clearInterval(told));
      };
      await hears('notifications/tools/list_changed');
      server.die();
      await client.callTool('works', {}).catch(() => undefined);
      await within(client.callTool('works', {}), 'The next call');
      await hears('notifications/prompts/list_changed');
      stop();
    }),
    requires('lives with lines that are no messages', async ({ provider }, server) => {
      const { value: client } = await provider.acquire(server.config);
      await within(client.callTool('babbles', {}), 'A call with garbage before its answer');
      await within(client.callTool('works', {}), 'The next call');
      ensureEqual(server.connections, 1, 'Connections that were made');
    }),
    requires('says how a connection stands without making it', async ({ provider }, server) => {
      const status = provider.status?.(server.config);
      ensure(status === undefined || status.state === 'idle', `It says ${show(status)}`);
      ensureEqual(server.connections, 0, 'Connections that were made');
    }),
    requires(
      'shows no secret of the configuration, whatever the server says',
      async ({ provider }, server) => {
        const { config } = server;
        const secret =
          'command' in config
            ? { ...config, env: { ...config.env, KEY: SECRET } }
            : { ...config, headers: { authorization: `Bearer ${SECRET}` } };
        const { value: client } = await provider.acquire(secret);
        const error = await ensureRejects(client.callTool('betrays', {}), 'A call');
        const shown = inspect([error, provider.status?.(secret)], { depth: 10 });
        ensure(!shown.includes(SECRET), `It shows ${shown}`);
      },
    ),
    requires('refuses an address that is not one of HTTP', async ({ provider }) => {
      for (const url of ['file:///etc/passwd', 'ftp://example.test/', 'nowhere'])
        await ensureRejects(provider.acquire({ url }), `Connecting to ${url}`, 'invalid-config');
    }),
    requires('rejects what cannot be connected to', async ({ provider }) => {
      const nobody = { command: process.execPath, args: ['--eval', 'process.exit(3)'] };
      await ensureRejects(
        provider.acquire(nobody).then(({ value }) => value.listTools()),
        'Connecting to what ends at once',
        'connect-failed',
        'unavailable',
      );
    }),
  ],
};

const isProcess = ({ config }: ScriptedServer): boolean => 'command' in config;

/** A requirement that gets a server of its own. */
function requires(
  name: string,
  check: (subject: ProviderSubject, server: ScriptedServer) => Promise<void>,
): Requirement<ProviderSubject> {
  return {
    name,
    check: async (subject) => {
      const server = await scriptedServer({ ...subject.server, tools: TOOLS });
      try {
        await check(subject, server);
      } finally {
        await server.close();
      }
    },
  };
}
