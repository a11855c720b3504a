import { Server } from 'node:net';

/** Loaded before a server that listens everywhere and has no option for it: it listens on this machine only. */
const { listen } = Server.prototype;
Server.prototype.listen = function (...args) {
  const [port, ...rest] = args;
  return /^\d+$/.test(String(port))
    ? listen.call(this, Number(port), '127.0.0.1', ...rest)
    : listen.apply(this, args);
};
