// The least server there can be, so that what is measured is the client: over stdio, or over HTTP with answers in JSON.
// node plain.mjs --tools=N [--output] [--starts=FILE] [--id=NAME] [--wait=MS] [--http]
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { setTimeout } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    tools: { type: 'string', default: '1' },
    output: { type: 'boolean', default: false },
    starts: { type: 'string' },
    id: { type: 'string', default: 'plain' },
    /** Milliseconds before it listens: what is fetched from a registry and asks its service first waits too. */
    wait: { type: 'string', default: '0' },
    /** Listens on a free port of this machine, and says it on standard output. */
    http: { type: 'boolean', default: false },
  },
});
// Every start is counted, also that of a process which lives for a moment only.
if (values.starts !== undefined) appendFileSync(values.starts, `${process.pid}\n`);
await setTimeout(Number(values.wait));

const object = (properties) => ({ type: 'object', properties });
const echo = {
  name: 'echo',
  description: 'Says it again.',
  inputSchema: object({ message: { type: 'string' } }),
};
const large = {
  name: 'large',
  description: 'So many characters of text.',
  inputSchema: object({ characters: { type: 'integer' } }),
};
const relist = {
  name: 'relist',
  description: 'Says that the list of tools is another one.',
  inputSchema: object({}),
};
const tools = [
  echo,
  large,
  relist,
  ...Array.from({ length: Number(values.tools) }, (_, i) => ({
    name: `tool${i}`,
    description: `Does what number ${i} does, with a title, a limit and some tags.`,
    inputSchema: object({
      title: { type: 'string', description: `The title of ${i}.` },
      limit: { type: 'integer', minimum: 1 },
      tags: { type: 'array', items: { type: 'string' } },
    }),
    ...(values.output
      ? {
          outputSchema: object({
            found: { type: 'array', items: object({ id: { type: 'string' } }) },
            [`of${i}`]: { type: 'integer' },
          }),
        }
      : {}),
  })),
];

const say = (message) =>
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
const text = (said) => ({ content: [{ type: 'text', text: said }] });

const METHODS = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: { listChanged: true } },
    serverInfo: { name: values.id, version: '1' },
  }),
  'tools/list': () => ({ tools }),
  'tools/call': ({ name, arguments: args }) => {
    if (name === 'large') return text('x'.repeat(args.characters));
    if (name !== 'relist') return text(`Echo: ${args?.message}`);
    say({ method: 'notifications/tools/list_changed' });
    return text('');
  },
  ping: () => ({}),
};

function answerTo({ id, method, params }) {
  const answer = METHODS[method];
  return answer === undefined
    ? { id, error: { code: -32601, message: `No ${method} here.` } }
    : { id, result: answer(params ?? {}) };
}

if (values.http) listen();
else readLines();
process.stdin.on('end', () => process.exit());

function readLines() {
  let rest = '';
  process.stdin.setEncoding('utf8').on('data', (chunk) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      if (line.trim() === '') continue;
      const message = JSON.parse(line);
      if (message.id !== undefined && message.method !== undefined) say(answerTo(message));
    }
  });
}

/** It begins no messages of its own, and so has no stream for them. */
function listen() {
  const server = createServer(async (request, response) => {
    if (request.method !== 'POST') {
      response.writeHead(request.method === 'DELETE' ? 200 : 405).end();
      return;
    }
    const message = await json(request);
    if (message.id === undefined) {
      response.writeHead(202).end();
      return;
    }
    const headers = { 'content-type': 'application/json', 'mcp-session-id': 'plain' };
    response.writeHead(200, headers);
    response.end(JSON.stringify({ jsonrpc: '2.0', ...answerTo(message) }));
  });
  server.listen(0, '127.0.0.1', () => console.log(server.address().port));
  process.stdin.resume();
}
