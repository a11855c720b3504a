import { PatchbayError, type McpClient, type ToolCallOptions } from '@patchbay/protocols';

import { providerSuite } from '../src/index.ts';
import { HANGS, prove } from './prove.ts';
import { smallProvider, type Faults } from './small-provider.ts';

const broken = (faults: Faults) => () => smallProvider(faults);

/** Its calls, through a function. */
const calling = (
  call: (client: McpClient, name: string, options: ToolCallOptions) => Promise<unknown>,
) =>
  broken({
    client: (client) => ({
      callTool: async (name, _args, options = {}) => (await call(client, name, options)) as never,
    }),
  });

const unique = () => {
  let made = 0;
  return (key: string) => `${key} ${++made}`;
};

prove(providerSuite, () => smallProvider(), {
  'connects, lists and calls': {
    subject: broken({ client: () => ({ listTools: async () => ({ items: [], problems: [] }) }) }),
    says: /Its tools/,
  },
  'shares one connection among a hundred first uses at once': {
    subject: () => {
      let made = 0;
      return smallProvider({ key: (key) => `${key} ${++made % 2}` });
    },
    says: /expected 1, got 2/,
  },
  'never uses one connection for two identities': {
    subject: broken({ key: () => 'one for all' }),
    says: /expected 3, got 1/,
  },
  'shares among everyone, or per session, where the configuration says so': {
    subject: () => smallProvider({ key: unique() }),
    says: /everyone shares/,
  },
  'takes a lease back twice without harm, and leaves the others theirs': {
    subject: broken({
      close: async (times) => {
        if (times > 1) throw new Error('closed already');
      },
    }),
    says: /closed already/,
  },
  'ends a call that is aborted with `aborted` and the reason, and keeps the connection': {
    subject: calling(async (client, name, { signal }) => {
      try {
        return await client.callTool(name, {}, signal === undefined ? {} : { signal });
      } catch {
        throw new PatchbayError('aborted', 'The call was aborted.');
      }
    }),
    says: /The cause of the error/,
  },
  'ends a call without an answer with `timeout`, and keeps the connection': {
    subject: calling((client, name) => client.callTool(name, {})),
    says: HANGS,
  },
  'stops waiting for a connection when that is aborted': {
    subject: broken({ acquire: (acquire, config) => acquire(config) }),
    says: /expected a rejection/,
  },
  'says `outcome-unknown` once when the server dies in a call, runs it once, and goes on': {
    subject: calling((client, name) => client.callTool(name, {}, { repeatable: true })),
    says: /expected 1, got 2/,
  },
  'settles every call that is under way when its server dies': {
    subject: calling(async (client, name) => {
      try {
        return await client.callTool(name, {});
      } catch {
        return await new Promise(() => undefined);
      }
    }),
    says: HANGS,
  },
  'sends a call again that may be repeated': {
    subject: calling((client, name) => client.callTool(name, {})),
    says: /It may have run/,
  },
  'goes on after its server died between two calls': {
    subject: () => {
      let calls = 0;
      return calling(async (client, name) => {
        if (++calls > 1) throw new PatchbayError('connection-lost', 'The server is gone.');
        return await client.callTool(name, {});
      })();
    },
    says: /The server is gone/,
  },
  'gives what a tool calls an error as a result, and what the server refuses as `protocol-error`': {
    subject: calling(async (client, name) => {
      const { isError, ...result } = await client.callTool(name, {});
      if (isError === true) throw new PatchbayError('source-failed', 'It failed.');
      return result;
    }),
    says: /It failed/,
  },
  'takes the first of two answers, and none that is for nobody': {
    subject: calling(async (client, name) => {
      const result = await client.callTool(name, {});
      return name === 'twice' ? { content: [{ type: 'text', text: 'second' }] } : result;
    }),
    says: /The content of the result/,
  },
  'hands on what a server says, also after it died': {
    subject: broken({ client: () => ({ onNotification: () => () => undefined }) }),
    says: HANGS,
  },
  'lives with lines that are no messages': {
    subject: calling(async (client, name) => {
      const result = await client.callTool(name, {});
      if (name === 'babbles') throw new SyntaxError('Unexpected token');
      return result;
    }),
    says: /Unexpected token/,
  },
  'says how a connection stands without making it': {
    subject: () => {
      const { provider, ...rest } = smallProvider();
      return {
        ...rest,
        provider: {
          acquire: (...args) => provider.acquire(...args),
          status: () => ({ state: 'ready', since: '2026-01-01T00:00:00Z' }),
        },
      };
    },
    says: /It says/,
  },
  'shows no secret of the configuration, whatever the server says': {
    subject: calling(async (client, name) => {
      await client.callTool(name, {}).catch((cause: unknown) => {
        const careless = new Error('Refused to the-secret-of-ann.');
        throw new PatchbayError('protocol-error', 'Refused.', { cause: [cause, careless] });
      });
    }),
    says: /It shows/,
  },
  'refuses an address that is not one of HTTP': {
    subject: broken({
      acquire: (acquire, config) =>
        acquire('url' in config ? { command: process.execPath, args: ['-e', ''] } : config),
    }),
    says: /invalid-config/,
  },
  'rejects what cannot be connected to': {
    subject: broken({
      acquire: async (acquire, ...args) => {
        try {
          return await acquire(...args);
        } catch {
          throw new PatchbayError('internal', 'Something went wrong.');
        }
      },
    }),
    says: /connect-failed or unavailable/,
  },
});
