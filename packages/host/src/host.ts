import { homedir } from 'node:os';
import { resolve } from 'node:path';

import type { CommandHandlers } from '@patchbay/commands';
import {
  ConnectionPool,
  type InspectedConnection,
  type PoolOptions,
} from '@patchbay/connection-pool';
import {
  describeScope,
  PatchbayError,
  problemFrom,
  scopeCovers,
  type ApprovalPolicy,
  type Problem,
  type RegistrationScope,
  type TrustPolicy,
} from '@patchbay/protocols';
import {
  ExtensionRegistry,
  type InspectedCapability,
  type NameFilter,
  type RegistrationHandle,
  type RegistryOptions,
} from '@patchbay/registry';
import { McpServerCapability } from '@patchbay/mcp';
import { SkillManagerCapability, type SkillMatcher } from '@patchbay/skills';

import { ConfigLoader, type LoadedConfig } from './config.ts';
import { ConfigWatch } from './config-watch.ts';
import type { HostConfig, NamePatterns } from './config-schema.ts';
import { defaultFolders, type DefaultFolders } from './default-folders.ts';
import type { InputHandler } from './inputs.ts';
import { filledConnections } from './filled-connections.ts';
import { Insight, type Logger } from './insight.ts';
import { Trust, type InspectedTrust } from './trust.ts';
import { trustRequestOf, wantedOf, wantedServers, wantedSkills, type Wanted } from './wiring.ts';
import {
  Sessions,
  type InspectedSession,
  type OpenSessionOptions,
  type Session,
} from './session.ts';
import type { AgentFilters } from './sub-agent.ts';

export interface HostOptions {
  /** Where configuration and folders are looked for. Default: the working directory. */
  readonly cwd?: string;
  /**
   * A file, or a configuration itself. Default: `patchbay.yaml`. The files of other clients (`.mcp.json`,
   * `.vscode/mcp.json`, `opencode.json`) are read too.
   */
  readonly config?: string | HostConfig;
  /** The user's folder, for the user's skills and commands; `false` leaves them out. Default: the home folder. */
  readonly home?: string | false;
  /** Stands behind `${VAR}`. Default: the program's environment. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Answers `${input:id}`, once for each id. Without it such a server is left out. */
  readonly inputs?: InputHandler;
  /** Asked before every call. Default: everything may run. */
  readonly approval?: ApprovalPolicy;
  /** Tools that run what they are given, and what becomes of tools that change: as in the registry. */
  readonly executing?: RegistryOptions['executing'];
  readonly pinTools?: boolean;
  /**
   * Asked, when it is wanted for the first time, whether something that comes with a project or from a server may do what it
   * wants: servers of `.mcp.json` and the files of other clients start; servers that project skills bring; skills that want to
   * be active always; commands that run something. Once for each content; a later edit is another question. What
   * `patchbay.yaml`, code and the user's own folder say needs no answer. Default: none of it is allowed, and problems say so.
   */
  readonly trust?: TrustPolicy;
  /** Chooses skills before each model request. Default: the model chooses from the catalogue. */
  readonly matcher?: SkillMatcher;
  /** Who does what command files ask for: shell commands and files. Default: nobody, and a problem says so. */
  readonly commands?: CommandHandlers;
  /** A session that nobody claimed or used for so long is closed, in milliseconds. Default 1,800,000. */
  readonly sessionIdleMs?: number;
  /** Limits of the connections. */
  readonly pool?: Omit<PoolOptions, 'onProblem' | 'onTrace'>;
  /** Applies edits of configuration files while it runs. Default true. */
  readonly watch?: boolean;
  /**
   * Told of problems (`warn`, `error`) and of what happens (`debug`), without arguments, results or secrets. Default: with
   * `PATCHBAY_DEBUG` in the environment the standard error output, otherwise nothing.
   */
  readonly logger?: Logger;
  /** Told of every problem once. Default: the first one of each source is a process warning, unless there is a logger. */
  readonly onProblem?: (problem: Problem) => void;
}

/** Everything there is, as plain data without secrets. */
export interface HostInspection {
  /** Every registration, with scope, status, problems, what it offers, and where it is configured. */
  readonly capabilities: readonly (InspectedCapability & { readonly origin?: string })[];
  /** Servers of the configuration that are off, or broken. */
  readonly servers: readonly {
    readonly id: string;
    readonly origin: string;
    readonly state: 'on' | 'disabled' | 'broken';
    /** Of one that came with the project: what was said to it, and what that is about. Absent where nobody has to be asked. */
    readonly trust?: InspectedTrust['decision'] | 'unasked';
    readonly hash?: string | undefined;
  }[];
  readonly connections: readonly InspectedConnection[];
  readonly sessions: readonly InspectedSession[];
  /** What `trust` was asked, and what it said. */
  readonly trust: readonly InspectedTrust[];
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
  readonly #loader: ConfigLoader;
  readonly #folders: DefaultFolders;
  readonly #watch: ConfigWatch;
  readonly #insight: Insight;
  readonly #trust: Trust;
  readonly #options: HostOptions;
  readonly #cwd: string;
  /** What the configuration has registered, by scope and id. */
  readonly #plugged = new Map<string, Plugged>();
  #loaded: LoadedConfig;
  #reloading: Promise<void> = Promise.resolve();
  #closing: Promise<void> | undefined;

  /** Use {@link createHost}. */
  constructor({ loader, loaded, folders, watch }: HostParts, options: HostOptions) {
    this.#cwd = resolve(options.cwd ?? '.');
    this.#loader = loader;
    this.#loaded = loaded;
    this.#folders = folders;
    this.#watch = watch;
    this.#options = options;
    this.#insight = new Insight({
      logger: options.logger,
      onProblem: options.onProblem,
      debug: isSet((options.env ?? process.env)['PATCHBAY_DEBUG']),
    });
    this.#trust = new Trust(options.trust);
    const { isHeard } = this.#insight;
    // Unheard, the registry warns of the first problem of each source.
    const heard = {
      onTrace: this.#insight.trace,
      ...(isHeard ? { onProblem: this.#insight.problem } : {}),
    };
    const { approval, executing, pinTools, matcher } = options;
    const { maxCompositionDepth } = loaded;
    this.registry = new ExtensionRegistry({
      ...heard,
      ...(approval === undefined ? {} : { approval }),
      ...(executing === undefined ? {} : { executing }),
      ...(pinTools === undefined ? {} : { pinTools }),
      ...(maxCompositionDepth === undefined ? {} : { maxCompositionDepth }),
    });
    this.#pool = new ConnectionPool({ ...options.pool, ...heard });
    this.#sessions = new Sessions({
      registry: this.registry,
      idleMs: options.sessionIdleMs ?? 1_800_000,
      setUp: (scope, own) => this.#setUp(scope, own),
      filtersOf: (agent) => this.#filtersOf(agent),
      failed: (what, error) => this.#insight.problem(problemFrom(what, error)),
    });
    const connections = filledConnections(this.#pool, loader.values);
    this.registry.register(
      new SkillManagerCapability({
        ...(matcher === undefined ? {} : { matcher }),
        trust: this.#trust.policy,
        maxCompositionDepth,
        servers: (id, server) => new McpServerCapability({ id, server, connections }),
      }),
    );
    void this.#apply(loaded);
    for (const problem of loaded.problems) this.#insight.problem(problem);
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
      capabilities: this.registry.inspect().map((row) => {
        const origin = this.#originOf(row);
        return origin === undefined ? row : { ...row, origin };
      }),
      servers: servers.map((entry) => {
        const { name, origin, disabled, config } = entry;
        const request = trustRequestOf(entry);
        return {
          id: name,
          origin,
          state: disabled ? 'disabled' : config === undefined ? 'broken' : 'on',
          ...(request === undefined
            ? {}
            : { trust: this.#trust.decisionOn(request) ?? 'unasked', hash: request.hash }),
        };
      }),
      connections: this.#pool.inspect(),
      sessions: this.#sessions.list(),
      trust: this.#trust.inspect(),
      files,
      problems,
    };
  }

  /**
   * Starts what is there, for programs that want to fail at their start. Without this everything starts at its first use.
   * @param options.servers ids that have to be there beside those that are marked `required`
   * @throws PatchbayError `unavailable` that names the servers that are not there, each with the reason
   */
  async ready(
    options: { readonly servers?: readonly string[]; readonly timeoutMs?: number } = {},
  ): Promise<void> {
    const { servers = [], timeoutMs } = options;
    const view = this.registry.view();
    const { problems } = await view
      .compile(timeoutMs === undefined ? {} : { deadlineMs: timeoutMs })
      .finally(() => view.close());
    const marked = this.#loaded.servers.filter(({ required }) => required);
    const wanted = new Set([...marked.map(({ name }) => name), ...servers]);
    const failed = [...wanted].flatMap((id) => this.#missing(id, problems));
    if (failed.length === 0) return;
    const list = failed.map(({ source, message }) => `${source}: ${message}`).join(' ');
    throw new PatchbayError('unavailable', `Servers that are required did not start. ${list}`, {
      cause: failed[0]?.cause,
      details: { servers: failed.map(({ source }) => source) },
    });
  }

  /**
   * Reads the configuration again and applies what is different: servers and folders that are new, changed or gone. All
   * others are not touched. A file that cannot be read counts as it was.
   */
  reload(): Promise<void> {
    this.#reloading = this.#reloading.catch(() => undefined).then(() => this.#read());
    return this.#reloading;
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
    this.#watch.close();
    try {
      await this.#sessions.close();
      await this.registry.close();
    } finally {
      await this.#pool.close();
    }
  }

  /** Registers what is wanted and not there, takes out what is no longer wanted or has changed, and leaves the rest. */
  async #apply(loaded: LoadedConfig): Promise<void> {
    const wanted = new Map(
      wantedOf(loaded, this.#folders, {
        connections: this.#pool,
        trust: this.#trust,
        handlers: this.#options.commands,
      }).map((one) => [keyOf(one), one]),
    );
    const ending: Promise<void>[] = [];
    for (const [key, { wanted: before, handle }] of this.#plugged) {
      if (wanted.get(key)?.fingerprint === before.fingerprint) continue;
      this.#plugged.delete(key);
      ending.push(this.#unplug(before, handle));
    }
    for (const [key, one] of wanted) {
      if (!this.#plugged.has(key)) this.#plug(key, one);
    }
    await Promise.all(ending);
  }

  #plug(key: string, wanted: Wanted): void {
    try {
      const handle = this.registry.register(wanted.make(), wanted.scope);
      this.#plugged.set(key, { wanted, handle });
    } catch (error) {
      this.#insight.problem(problemFrom(wanted.id, error));
    }
  }

  async #unplug({ id, server }: Wanted, handle: RegistrationHandle): Promise<void> {
    await handle.close().catch((error: unknown) => this.#insight.problem(problemFrom(id, error)));
    if (server !== undefined) this.#pool.retire(server);
  }

  async #read(): Promise<void> {
    const before = new Set(this.#loaded.problems.map(({ message }) => message));
    const loaded = await this.#loader.load();
    if (this.#closing !== undefined) return;
    this.#loaded = loaded;
    const applied = this.#apply(loaded);
    for (const problem of loaded.problems)
      if (!before.has(problem.message)) this.#insight.problem(problem);
    await applied;
  }

  /** Registers what is a session's own, or an agent's. */
  async #setUp(
    scope: RegistrationScope,
    opening: Pick<OpenSessionOptions, 'skills' | 'servers'>,
  ): Promise<void> {
    const folders = (opening.skills ?? []).map((path) => resolve(this.#cwd, path));
    const register = (wanted: readonly Wanted[]) => {
      for (const one of wanted) this.registry.register(one.make(), one.scope);
    };
    register(wantedSkills('session-skills', folders, { precedence: 40, trusted: 'ask' }, scope));
    if (opening.servers === undefined) return;
    const { servers, problems } = await this.#loader.entries(opening.servers);
    for (const problem of problems) this.#insight.problem(problem);
    register(wantedServers(servers, scope, { connections: this.#pool, trust: this.#trust }));
  }

  #originOf({ id, scope }: InspectedCapability): string | undefined {
    const agents = this.#loaded.agents.filter(
      ({ name }) => scope === describeScope({ agent: name, everySession: true }),
    );
    const entries = scope === describeScope({}) ? this.#loaded.servers : [];
    return [...entries, ...agents.flatMap(({ servers }) => servers)].find(({ name }) => name === id)
      ?.origin;
  }

  /** Why a server is not there; nothing if it is. */
  #missing(id: string, problems: readonly Problem[]): readonly Problem[] {
    const entry = this.#loaded.servers.find(({ name }) => name === id);
    const [why] = [...(entry?.problems ?? []), ...problems].filter(
      ({ source, severity }) => source === id && severity === 'error',
    );
    if (why !== undefined) return [why];
    if (entry?.config !== undefined) return [];
    const message =
      entry === undefined
        ? 'there is no server of this name in the configuration.'
        : `it is disabled in ${entry.origin}.`;
    return [{ source: id, code: 'unavailable', severity: 'error', message }];
  }

  #filtersOf(agent: string): AgentFilters {
    const above = this.#loaded.agents.filter(({ name }) => scopeCovers({ agent: name }, { agent }));
    return {
      tools: above.flatMap(({ tools }) => (tools === undefined ? [] : [patternsOf(tools)])),
      skills: above.flatMap(({ skills }) => (skills === undefined ? [] : [patternsOf(skills)])),
    };
  }
}

/** What {@link createHost} has made ready. */
interface HostParts {
  readonly loader: ConfigLoader;
  readonly loaded: LoadedConfig;
  readonly folders: DefaultFolders;
  readonly watch: ConfigWatch;
}

const isSet = (value: string | undefined): boolean =>
  !['', '0', 'false', undefined].includes(value);

interface Plugged {
  readonly wanted: Wanted;
  readonly handle: RegistrationHandle;
}

const keyOf = ({ id, scope }: Wanted): string => JSON.stringify([scope.agent ?? '', id]);

const patternsOf = ({ include, exclude }: NamePatterns): NameFilter => ({
  ...(include === undefined ? {} : { include }),
  ...(exclude === undefined ? {} : { exclude }),
});

/**
 * Reads the configuration of a folder and wires it. Nothing is started: servers start at the first compile that sees them.
 * @throws PatchbayError `not-found` if `config` names a file that is not there. What is wrong inside files is a problem.
 */
export async function createHost(options: HostOptions = {}): Promise<Host> {
  const cwd = resolve(options.cwd ?? '.');
  const loader = new ConfigLoader({
    cwd,
    config: options.config,
    env: options.env ?? process.env,
    inputs: options.inputs,
  });
  await loader.check();
  const watch = new ConfigWatch(loader.candidates, () => void host.reload());
  const { files } = await watch.look();
  const loaded = await loader.load();
  const folders = await defaultFolders(cwd, options.home ?? homedir());
  const host = new Host({ loader, loaded, folders, watch }, { ...options, cwd });
  if (options.watch !== false) await watch.start(files);
  return host;
}
