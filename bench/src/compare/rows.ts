import { setTimeout as delay } from 'node:timers/promises';

import type { HttpServerConfig } from '@patchbay/protocols';
import { scriptedServer, type ScriptedServer, type ScriptedTool } from '@patchbay/testkit';

import { gateTo } from './gate.ts';
import { headersOf, type Plugged, type Side } from './side.ts';

/** One thing that users run into, tried on one side: what came of it, in a few words. */
export interface Row {
  readonly what: string;
  readonly outcome: (side: Side) => Promise<string>;
}

/** Longer nobody waits for anything here. */
const PATIENCE_MS = 5_000;
const LONG_NAME = 'x'.repeat(90);
const IMAGE =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

async function withServer(
  side: Side,
  tools: readonly ScriptedTool[],
  look: (
    plugged: Plugged,
    server: ScriptedServer,
    name: (tool: string) => string,
  ) => Promise<string>,
): Promise<string> {
  await using server = await scriptedServer({ tools });
  const plugged = await side.open({ shop: server.config });
  try {
    const offered = await plugged.tools();
    return await look(plugged, server, (tool) => nameOf(offered, tool));
  } finally {
    await plugged.close();
  }
}

/** The name by which a model sees a tool. */
const nameOf = (offered: readonly string[], tool: string): string =>
  offered.find((name) => name === tool || name.endsWith(`__${tool}`)) ?? tool;

/** What settles in time, and what was thrown. */
async function settled(work: Promise<readonly string[]>): Promise<string> {
  const late = new AbortController();
  try {
    return await Promise.race([
      work.then(
        (given) => given.at(-1) ?? 'nothing',
        (error: unknown) => `run ended: ${error instanceof Error ? error.message : String(error)}`,
      ),
      delay(PATIENCE_MS, 'did not settle in 5 s', { signal: late.signal }),
    ]);
  } finally {
    late.abort();
  }
}

const isFailure = (said: string): boolean =>
  /^error|error-text|"isError":true|^run ended|^did not settle/.test(said);

export const ROWS: readonly Row[] = [
  {
    what: 'The server dies between two calls',
    outcome: (side) =>
      withServer(
        side,
        [{ name: 'echo' }, { name: 'last', onCall: 'die-once' }],
        async (plugged, _, name) => {
          await settled(plugged.run([{ name: name('last') }]));
          const said = await settled(plugged.run([{ name: name('echo'), args: { x: 1 } }]));
          return isFailure(said) ? 'the next call fails' : 'the next call is answered';
        },
      ),
  },
  {
    what: 'The server dies after it did what was asked, before it answers',
    outcome: (side) =>
      withServer(
        side,
        [{ name: 'pay', onCall: 'die-after-execution' }],
        async (plugged, server, name) => {
          const said = await settled(plugged.run([{ name: name('pay') }]));
          const told = /may or may not have run/.test(said)
            ? 'the model is told that it may have run'
            : said.startsWith('did not settle')
              ? 'the call never ends'
              : said.startsWith('run ended')
                ? 'the run ends with an error'
                : 'the model is told of a failure';
          return `ran ${server.executions('pay')}×; ${told}`;
        },
      ),
  },
  {
    what: 'One of three servers cannot be started',
    outcome: async (side) => {
      await using one = await scriptedServer({ tools: [{ name: 'one' }] });
      await using two = await scriptedServer({ tools: [{ name: 'two' }] });
      try {
        const plugged = await side.open({
          one: one.config,
          broken: { command: 'no-such-program-anywhere' },
          two: two.config,
        });
        const offered = await plugged.tools();
        await plugged.close();
        return `${offered.length} of 2 tools are there`;
      } catch {
        return 'nothing is there: an error';
      }
    },
  },
  {
    what: 'A tool joins during a run',
    outcome: (side) => {
      let late: () => void = () => undefined;
      const grow: ScriptedTool = { name: 'grow', onCall: () => (late(), 'grown') };
      return withServer(side, [grow], async (plugged, server, name) => {
        late = () => server.setTools([grow, { name: 'late' }]);
        const first = name('grow');
        await settled(plugged.run([{ name: first }, { name: first.replace('grow', 'late') }]));
        return server.executions('late') === 1
          ? 'the next step can call it'
          : 'this run never sees it';
      });
    },
  },
  {
    what: 'A call is aborted',
    outcome: (side) => {
      let called: () => void = () => undefined;
      let over: Promise<unknown> = Promise.resolve();
      const started = new Promise<void>((resolve) => {
        called = resolve;
      });
      const wait: ScriptedTool = {
        name: 'wait',
        onCall: (_, { signal }) => {
          over = new Promise((resolve) =>
            signal.addEventListener('abort', resolve, { once: true }),
          );
          called();
          return over.then(() => 'late');
        },
      };
      return withServer(side, [wait], async (plugged, server, name) => {
        const stop = new AbortController();
        const run = settled(plugged.run([{ name: name('wait') }], stop.signal));
        await started;
        stop.abort();
        await run;
        await Promise.race([over, delay(1_000)]);
        return server.cancellations > 0 ? 'the server is told' : 'the server goes on';
      });
    },
  },
  {
    what: 'Two servers have a tool of one name',
    outcome: async (side) => {
      await using one = await scriptedServer({ tools: [{ name: 'search' }] });
      await using two = await scriptedServer({ tools: [{ name: 'search' }] });
      const plugged = await side.open({ one: one.config, two: two.config });
      try {
        const offered = await plugged.tools();
        for (const name of new Set(offered)) await settled(plugged.run([{ name }]));
        const reached = one.executions('search') + two.executions('search') === 2;
        return reached && new Set(offered).size === 2
          ? 'both can be called'
          : 'one of them is lost';
      } finally {
        await plugged.close();
      }
    },
  },
  {
    what: 'A tool has a name of 90 characters (providers take 64)',
    outcome: (side) =>
      withServer(side, [{ name: LONG_NAME }], async (plugged) => {
        const [name = ''] = await plugged.tools();
        return name.length <= 64
          ? 'it is shortened, and can be told apart'
          : `${name.length} characters are sent`;
      }),
  },
  {
    what: 'A result has 300,000 characters',
    outcome: (side) =>
      withServer(
        side,
        [{ name: 'dump', onCall: () => 'x'.repeat(300_000) }],
        async (plugged, _, name) => {
          const said = await settled(plugged.run([{ name: name('dump') }]));
          return said.length < 150_000
            ? 'the model gets a part, and is told so'
            : 'the model gets all of it';
        },
      ),
  },
  {
    what: 'Two users take turns: alice, bob, alice',
    outcome: async (side) => {
      await using server = await scriptedServer({ transport: 'http', tools: [{ name: 'who' }] });
      await using gate = await gateTo((server.config as HttpServerConfig).url);
      const shared = await side.openShared(gate.url);
      const users = ['alice', 'bob', 'alice'];
      try {
        for (const user of users) await shared.callAs(user, 'who');
      } finally {
        await shared.close();
      }
      const came = users.map((user) => headersOf(user).authorization);
      return gate.calls.join() === came.join()
        ? 'each call has its own user’s token'
        : `the calls had: ${gate.calls.map((token) => token?.replace('Bearer ', '') ?? 'none').join(', ')}`;
    },
  },
  {
    what: 'A result has an image',
    outcome: (side) => {
      const content = [{ type: 'image', data: IMAGE, mimeType: 'image/png' }];
      return withServer(
        side,
        [{ name: 'draw', onCall: () => ({ content }) }],
        async (plugged, _, name) => {
          const said = await settled(plugged.run([{ name: name('draw') }]));
          const isText =
            said.includes(`\\"${IMAGE.slice(0, 20)}`) || !said.includes(IMAGE.slice(0, 20));
          return isText ? 'the model does not see it as an image' : 'the model sees it as an image';
        },
      );
    },
  },
];
