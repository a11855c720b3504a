import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** Stands before a server and sees with what each call of a tool came in. */
export interface Gate extends AsyncDisposable {
  readonly url: string;
  readonly calls: readonly (string | undefined)[];
}

export async function gateTo(url: string): Promise<Gate> {
  const calls: (string | undefined)[] = [];
  const gate = createServer(async (asked, answer) => {
    const { method = 'GET', headers } = asked;
    const body = await text(asked);
    if (body.includes('"tools/call"')) calls.push(headers.authorization);
    const onward = request(url, { method, headers }, (came) => {
      answer.writeHead(came.statusCode ?? 502, came.headers);
      came.pipe(answer);
    });
    onward.on('error', () => answer.destroy());
    answer.on('close', () => onward.destroy());
    onward.end(body);
  }).listen(0, '127.0.0.1');
  await once(gate, 'listening');
  return {
    url: `http://127.0.0.1:${(gate.address() as AddressInfo).port}/mcp`,
    calls,
    [Symbol.asyncDispose]: async () => {
      gate.closeAllConnections();
      gate.close();
      await once(gate, 'close');
    },
  };
}
