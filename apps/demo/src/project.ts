import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, realpath, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { createHost, type Host } from '@patchbay/host';
import type { Problem } from '@patchbay/protocols';

/** A copy of the demo's project in a temporary folder, with a host on it, and a server over HTTP beside. */
export interface Project {
  /** The only folder that the file servers may touch. */
  readonly folder: string;
  /** Skills of the customers, by customer. */
  readonly tenants: string;
  readonly host: Host;
  readonly problems: readonly Problem[];
  /** Every process that was seen to run for it. */
  readonly pids: ReadonlySet<number>;
  /** Notes the processes that run now. */
  look(): void;
  /** Ends everything; twice is harmless. */
  close(): Promise<void>;
}

const app = join(dirname(fileURLToPath(import.meta.url)), '..');

export async function openProject(): Promise<Project> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), 'patchbay-demo-')));
  const pids = new Set<number>();
  const problems: Problem[] = [];
  let remote: RemoteServer | undefined;
  let host: Host | undefined;
  const look = () => {
    for (const { pid } of host?.inspect().connections ?? []) if (pid !== undefined) pids.add(pid);
  };
  let closing: Promise<void> | undefined;
  const end = async () => {
    look();
    await host?.close();
    await remote?.close();
    await rm(folder, { recursive: true, force: true });
  };
  const close = () => (closing ??= end());
  try {
    await cp(join(app, 'project'), folder, { recursive: true });
    remote = await startRemote();
    if (remote.pid !== undefined) pids.add(remote.pid);
    host = await createHost({
      cwd: folder,
      home: false,
      // A program that people use would ask them; this one has brought the project itself.
      trust: ({ kind, origin }) => kind === 'server' && origin.startsWith('.mcp.json:'),
      env: {
        NODE: process.execPath,
        FILE_SERVER: join(
          packageFolder('@modelcontextprotocol/server-filesystem'),
          'dist/index.js',
        ),
        EVERYTHING_SERVER: EVERYTHING,
        TRICKS_SERVER: join(app, 'servers/tricks.mjs'),
        REMOTE_URL: remote.url,
        SKILLS_X: join(packageFolder('@ant-design/x-skill'), 'skills'),
        SKILLS_INTENT: join(packageFolder('@tanstack/intent'), 'meta'),
        SKILLS_DB: join(packageFolder('@tanstack/db'), 'skills'),
      },
      onProblem: (problem) => void problems.push(problem),
    });
    return { folder, tenants: join(app, 'tenants'), host, problems, pids, look, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Where npm put a package: nothing is downloaded. */
function packageFolder(name: string): string {
  const folders = createRequire(import.meta.url).resolve.paths(name) ?? [];
  const found = folders.map((folder) => join(folder, name)).find((folder) => existsSync(folder));
  if (found === undefined) throw new Error(`${name} is not installed.`);
  return found;
}

const EVERYTHING = join(packageFolder('@modelcontextprotocol/server-everything'), 'dist/index.js');

const LOOPBACK = pathToFileURL(join(app, 'servers/loopback.mjs')).href;

interface RemoteServer {
  readonly url: string;
  readonly pid: number | undefined;
  close(): Promise<void>;
}

/** The reference server over Streamable HTTP, on a port that the system chose. */
async function startRemote(): Promise<RemoteServer> {
  const port = await freePort();
  const child = spawn(process.execPath, ['--import', LOOPBACK, EVERYTHING, 'streamableHttp'], {
    env: { PATH: process.env['PATH'], PORT: String(port) },
    stdio: ['pipe', 'ignore', 'pipe'],
  });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await listening(child);
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    pid: child.pid,
    close: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

async function listening(child: ChildProcess): Promise<void> {
  let said = '';
  await new Promise<void>((resolve, reject) => {
    child.stderr?.on('data', (chunk: Buffer) => {
      said += chunk.toString();
      if (said.includes('listening')) resolve();
    });
    child.once('error', reject);
    child.once('exit', (code) =>
      reject(new Error(`The HTTP server ended with code ${code}: ${said}`)),
    );
  });
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise<void>((resolve) => server.close(() => resolve()));
  return port;
}
