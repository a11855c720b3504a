import { Server } from 'node:net';

/**
 * Loaded before a server that listens everywhere and has no option for it: it listens on this machine only. It ends when its
 * input does, so that it never outlives the program that started it.
 */
const { listen } = Server.prototype;
Server.prototype.listen = function (...args) {
  const [port, ...rest] = args;
  return /^\d+$/.test(String(port))
    ? listen.call(this, Number(port), '127.0.0.1', ...rest)
    : listen.apply(this, args);
};

process.stdin.on('close', () => process.exit(0)).resume();
