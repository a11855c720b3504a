import { createServer, type Socket } from 'node:net';

import type { StdioServerConfig } from '@patchbay/protocols';

import {
  ScriptedSession,
  type Message,
  type ScriptedState,
  type Wire,
} from './scripted-session.ts';

/** A way to reach a scripted server. */
export interface Listener<Config> {
  readonly config: Config;
  /** Sends it to every client that listens; over HTTP, if nobody does yet, to the next one. */
  broadcast(message: object): void;
  /** Ends all processes, or cuts all sockets. New ones are welcome. */
  cut(): void;
  close(): Promise<void>;
}

/**
 * What runs as the child process: its standard streams lead to a socket of the test. So the script, its counters and its
 * functions live in the test, and survive the process; the process ends when its socket or its input does.
 */
const RELAY = `
const socket = require('node:net').connect(Number(process.argv[1]), '127.0.0.1');
process.stdin.pipe(socket, { end: false });
process.stdin.on('end', () => process.exit(0));
socket.pipe(process.stdout, { end: false });
socket.on('error', () => {});
socket.on('close', () => process.exit(3));
`;

/** Serves it to child processes, one session each. */
export async function listenStdio(state: ScriptedState): Promise<Listener<StdioServerConfig>> {
  const wires = new Map<Socket, Wire>();
  const server = createServer((socket) => {
    const session = new ScriptedSession(state);
    const wire: Wire = {
      send: (message) =>
        void socket.write(`${typeof message === 'string' ? message : JSON.stringify(message)}\n`),
      die: () => void socket.destroy(),
    };
    wires.set(socket, wire);
    onLine(socket, (line) => void session.handle(JSON.parse(line) as Message, wire));
    socket.on('error', () => undefined);
    socket.on('close', () => {
      wires.delete(socket);
      session.end();
    });
  });
  const port = await listening(server);
  return {
    config: { command: process.execPath, args: ['--eval', RELAY, String(port)] },
    broadcast: (message) => {
      for (const wire of wires.values()) wire.send(message);
    },
    cut: () => {
      for (const socket of wires.keys()) socket.destroy();
    },
    close: async () => {
      for (const socket of wires.keys()) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Listens where only this machine can reach it, on a port that the system picks. */
export async function listening(server: ReturnType<typeof createServer>): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('The server has no port.');
  return address.port;
}

function onLine(socket: Socket, take: (line: string) => void): void {
  let rest = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line.trim() !== '') take(line);
  });
}
