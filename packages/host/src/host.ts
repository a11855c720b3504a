import { homedir } from 'node:os';
import { resolve } from 'node:path';

import { markdownCommands } from '@patchbay/commands';
import {
  ConnectionPool,
  type InspectedConnection,
  type PoolOptions,
} from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import { PatchbayError, problemFrom, type ApprovalPolicy, type Problem } from '@patchbay/protocols';
import { ExtensionRegistry, type InspectedCapability } from '@patchbay/registry';
import { SkillManagerCapability, type SkillMatcher } from '@patchbay/skills';
import { localSkills } from '@patchbay/skills/node';

import { loadConfig, type HostConfig, type LoadedConfig } from './config.ts';
import { defaultFolders, type CommandFolder, type DefaultFolders } from './default-folders.ts';
import type { ServerEntry } from './server-entry.ts';
import {
  Sessions,
  type InspectedSession,
  type OpenSessionOptions,
  type Session,
} from './session.ts';

export interface HostOptions {
  /** Where configuration and folders are looked for. Default: the working directory. */
  readonly cwd?: string;
  /** A file, or a configuration itself. Default: `patchbay.yaml`. Server files (`.mcp.json`, `.vscode/mcp.json`) are read too. */
  readonly config?: string | HostConfig;
  /** The user's folder, for the user's skills and commands; `false` leaves them out. Default: the home folder. */
  readonly home?: string | false;
  /** Stands behind `${VAR}`. Default: the program's environment. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Stands behind `${input:id}`. Without it such a server is left out. */
  readonly inputs?: Readonly<Record<string, string>>;
  /** Asked before every call. Default: everything may run. */
  readonly approval?: ApprovalPolicy;
  /** Chooses skills before each model request. Default: the model chooses from the catalogue. */
  readonly matcher?: SkillMatcher;
  /** A session that nobody claimed or used for so long is closed, in milliseconds. Default 1,800,000. */
  readonly sessionIdleMs?: number;
  /** Limits of the connections. */
  readonly pool?: Omit<PoolOptions, 'onProblem'>;
  /** Told of every problem once. Default: the first one of each source is a process warning. */
  readonly onProblem?: (problem: Problem) => void;
}

/** Everything there is, as plain data without secrets. */
export interface HostInspection {
  /** Every registration, with scope and status. */
  readonly capabilities: readonly InspectedCapability[];
  /** Servers of the configuration that are off, or broken. */
  readonly servers: readonly {
    readonly id: string;
    readonly origin: string;
    readonly state: 'on' | 'disabled' | 'broken';
  }[];
  readonly connections: readonly InspectedConnection[];
  readonly sessions: readonly InspectedSession[];
  /** Configuration files that were read. */
  readonly files: readonly string[];
  /** Of the configuration; those of sources are in the views. */
  readonly problems: readonly Problem[];
}

/** A folder with the files that people already have, as a running system. Nothing is started before it is needed. */
export class Host implements AsyncDisposable {
  readonly registry: ExtensionRegistry;
  readonly #pool: ConnectionPool;
  readonly #sessions: Sessions;
  readonly #loaded: LoadedConfig;
  readonly #cwd: string;
  #closing: Promise<void> | undefined;

  /** Use {@link createHost}. */
  constructor(loaded: LoadedConfig, folders: DefaultFolders, options: HostOptions) {
    this.#cwd = resolve(options.cwd ?? '.');
    this.#loaded = loaded;
    const problems = options.onProblem === undefined ? {} : { onProblem: options.onProblem };
    const { approval, matcher } = options;
    this.registry = new ExtensionRegistry({
      ...problems,
      ...(approval === undefined ? {} : { approval }),
    });
    this.#pool = new ConnectionPool({ ...options.pool, ...problems });
    this.#sessions = new Sessions({
      registry: this.registry,
      idleMs: options.sessionIdleMs ?? 1_800_000,
      setUp: (id, opening) => this.#setUpSession(id, opening),
      failed: (id, error) => options.onProblem?.(problemFrom(`session ${id}`, error)),
    });
    for (const entry of loaded.servers) this.#registerServer(entry);
    this.#registerFolders(folders);
    this.registry.register(new SkillManagerCapability(matcher === undefined ? {} : { matcher }));
  }

  /**
   * Get or create. A session belongs to the identity that opened it first.
   * @throws PatchbayError `identity-mismatch`, `invalid-scope`, `closed`
   */
  async openSession(id: string, options: OpenSessionOptions = {}): Promise<Session> {
    if (this.#closing !== undefined)
      throw new PatchbayError('closed', 'The host was closed; make another one.');
    return this.#sessions.open(id, options);
  }

  /** Plain data about everything. */
  inspect(): HostInspection {
    const { servers, files, problems } = this.#loaded;
    return {
      capabilities: this.registry.inspect(),
      servers: servers.map(({ name, origin, disabled, config }) => ({
        id: name,
        origin,
        state: disabled ? 'disabled' : config === undefined ? 'broken' : 'on',
      })),
      connections: this.#pool.inspect(),
      sessions: this.#sessions.list(),
      files,
      problems,
    };
  }

  /**
   * Starts what is there, for programs that want to fail at their start. Without this everything starts at its first use.
   * @throws PatchbayError `unavailable` that names the servers marked `required` which did not start
   */
  async ready(options: { readonly timeoutMs?: number } = {}): Promise<void> {
    const { timeoutMs } = options;
    const { problems } = await this.registry
      .view()
      .compile(timeoutMs === undefined ? {} : { deadlineMs: timeoutMs });
    const failed = this.#loaded.servers
      .filter(({ required }) => required)
      .flatMap(({ name }) =>
        problems.filter(({ source, severity }) => source === name && severity === 'error'),
      );
    if (failed.length === 0) return;
    const list = failed.map(({ source, message }) => `${source}: ${message}`).join(' ');
    throw new PatchbayError('unavailable', `Servers that are required did not start. ${list}`, {
      cause: failed[0]?.cause,
      details: { servers: failed.map(({ source }) => source) },
    });
  }

  /** Ends sessions, capabilities, and last the connections, with every process. */
  close(): Promise<void> {
    this.#closing ??= this.#end();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #end(): Promise<void> {
    try {
      await this.#sessions.close();
      await this.registry.close();
    } finally {
      await this.#pool.close();
    }
  }

  #registerServer({ name, origin, config, lazy, tools, include, exclude }: ServerEntry): void {
    if (config === undefined) return;
    this.registry.register(
      new McpServerCapability({
        id: name,
        server: config,
        connections: this.#pool,
        origin,
        lazy,
        ...(tools === undefined ? {} : { tools }),
        ...(include === undefined ? {} : { include }),
        ...(exclude === undefined ? {} : { exclude }),
      }),
    );
  }

  #registerFolders(found: DefaultFolders): void {
    const { skills, commands } = this.#loaded;
    const addSkills = (
      id: string,
      folder: readonly string[],
      precedence: number,
      optional: boolean,
    ) => {
      if (folder.length > 0)
        this.registry.register(localSkills({ id, folder, precedence, optional }));
    };
    addSkills('configured-skills', skills.folders, 35, false);
    if (skills.defaults) {
      addSkills('project-skills', found.skills.project, 30, true);
      addSkills('user-skills', found.skills.user, 20, true);
    }
    for (const [i, folder] of commands.folders.entries()) {
      this.registry.register(
        markdownCommands({ id: `configured-commands-${i + 1}`, folder, precedence: 35 }),
      );
    }
    const addCommands = (id: string, folders: readonly CommandFolder[], precedence: number) => {
      for (const [i, { folder, dialect }] of folders.entries()) {
        this.registry.register(
          markdownCommands({ id: `${id}-${i + 1}`, folder, dialect, precedence, optional: true }),
        );
      }
    };
    if (!commands.defaults) return;
    addCommands('project-commands', found.commands.project, 30);
    addCommands('user-commands', found.commands.user, 20);
  }

  #setUpSession(id: string, { skills = [] }: OpenSessionOptions): void {
    if (skills.length === 0) return;
    const folder = skills.map((path) => resolve(this.#cwd, path));
    this.registry.register(localSkills({ id: 'session-skills', folder, precedence: 40 }), {
      session: id,
    });
  }
}

/**
 * Reads the configuration of a folder and wires it. Nothing is started: servers start at the first compile that sees them.
 * @throws PatchbayError `not-found` if `config` names a file that is not there. What is wrong inside files is a problem.
 */
export async function createHost(options: HostOptions = {}): Promise<Host> {
  const cwd = resolve(options.cwd ?? '.');
  const inputs = options.inputs ?? {};
  const loaded = await loadConfig(cwd, options.config, {
    env: options.env ?? process.env,
    input: (id) => (Object.hasOwn(inputs, id) ? inputs[id] : undefined),
  });
  const folders = await defaultFolders(cwd, options.home ?? homedir());
  const host = new Host(loaded, folders, { ...options, cwd });
  for (const problem of loaded.problems) tell(problem, options);
  return host;
}

function tell(problem: Problem, { onProblem }: HostOptions): void {
  if (onProblem !== undefined) onProblem(problem);
  else
    process.emitWarning(`${problem.source}: ${problem.message}`, {
      type: 'PatchbayWarning',
      code: `patchbay:${problem.code}`,
    });
}
