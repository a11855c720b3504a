import { access, readFile } from 'node:fs/promises';
import { basename, dirname, relative, resolve } from 'node:path';

import { PatchbayError, problemFrom, type Problem } from '@patchbay/protocols';
import { z } from 'zod';

import { SECTIONS, type AgentConfig, type HostConfig, type NamePatterns } from './config-schema.ts';
import { readConfigText, type ConfigText } from './config-text.ts';
import { expand, type Placeholders, type Values } from './expand.ts';
import { Inputs, type InputHandler } from './inputs.ts';
import { asRecord, openCodeEntry, openCodeServers } from './opencode.ts';
import {
  readServerEntry,
  type EntryContext,
  type McpServerEntry,
  type ServerEntry,
} from './server-entry.ts';
import { suggestion } from './suggestion.ts';

/** What one agent has for itself, and which names it may see. */
interface LoadedAgent {
  /** Its path. */
  readonly name: string;
  readonly servers: readonly ServerEntry[];
  readonly skillFolders: readonly string[];
  readonly tools: NamePatterns | undefined;
  readonly skills: NamePatterns | undefined;
}

interface Folders {
  readonly folders: readonly string[];
  readonly defaults: boolean;
}

/** Everything that was found. */
export interface LoadedConfig {
  readonly servers: readonly ServerEntry[];
  readonly skills: Folders;
  readonly commands: Folders;
  readonly maxCompositionDepth: number | undefined;
  readonly agents: readonly LoadedAgent[];
  /** Files that were read. */
  readonly files: readonly string[];
  readonly problems: readonly Problem[];
}

/** Looked for in this order; of two servers of one name the first is taken. */
const PATCHBAY_FILES = ['patchbay.yaml', 'patchbay.yml'];
const INNER_KEYS = [
  'defaults',
  'exclude',
  'folders',
  'include',
  'max_composition_depth',
  'mcp_servers',
  'skills',
  'tools',
];
const SERVER_FILES = ['.mcp.json', '.vscode/mcp.json', 'opencode.json', 'opencode.jsonc'];

export interface ConfigLoaderOptions {
  readonly cwd: string;
  /** A file, or the configuration itself. */
  readonly config: string | HostConfig | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly inputs: InputHandler | undefined;
}

/** Reads the configuration of a folder, as often as it is asked to. */
export class ConfigLoader {
  readonly #options: ConfigLoaderOptions;
  readonly #inputs: Inputs;
  /** What each file said when it could last be read: half of an edit takes nothing away. */
  readonly #readable = new Map<string, ConfigText>();

  constructor(options: ConfigLoaderOptions) {
    this.#options = options;
    this.#inputs = new Inputs(options.inputs);
  }

  /** What placeholders stand for in what is not a configuration file of this folder. */
  get values(): Values {
    const { env, cwd } = this.#options;
    return { env, folder: cwd, input: (id) => this.#inputs.ask(id) };
  }

  /** Files that count, whether they are there or not. */
  get candidates(): readonly string[] {
    const { cwd, config } = this.#options;
    const own = typeof config === 'object' ? [] : config === undefined ? PATCHBAY_FILES : [config];
    return [...new Set([...own, ...SERVER_FILES].map((file) => resolve(cwd, file)))];
  }

  /** @throws PatchbayError `not-found` if `config` names a file that is not there */
  async check(): Promise<void> {
    const { cwd, config } = this.#options;
    if (typeof config !== 'string') return;
    const file = resolve(cwd, config);
    await access(file).catch((cause: unknown) => {
      throw new PatchbayError(
        'not-found',
        `There is no configuration file ${file}. Create it, or leave \`config\` out.`,
        { cause },
      );
    });
  }

  /**
   * Never throws for what is in a file: a file that cannot be read, or an entry that is broken, is a problem, and the
   * rest goes on without it.
   */
  async load(): Promise<LoadedConfig> {
    const { config } = this.#options;
    const loading = new Loading(this.#options, this.#inputs);
    if (typeof config === 'object') await loading.given(config);
    for (const file of this.candidates) {
      const text = await this.#read(file, loading);
      if (text !== undefined) await loading.file(file, text);
    }
    return loading.result();
  }

  /** Servers that are given in code later, for a session say. */
  async entries(servers: Readonly<Record<string, McpServerEntry>>): Promise<LoadedConfig> {
    const loading = new Loading(this.#options, this.#inputs);
    await loading.given({ mcp_servers: servers });
    return loading.result();
  }

  async #read(file: string, loading: Loading): Promise<ConfigText | undefined> {
    let text: string;
    try {
      text = await readFile(file, 'utf8');
    } catch (error) {
      this.#readable.delete(file);
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'ENOENT' && code !== 'ENOTDIR') loading.failed(file, error);
      return undefined;
    }
    try {
      const read = readConfigText(loading.shown(file), text);
      this.#readable.set(file, read);
      return read;
    } catch (error) {
      const before = this.#readable.get(file);
      loading.failed(file, error, before === undefined ? '' : ' What it said before still counts.');
      return before;
    }
  }
}

/** Where a part of a configuration stands, and how it is to be read. */
interface Source {
  /** Absent: it was given in code. */
  readonly file?: string;
  readonly text?: ConfigText;
  /** Relative commands and folders are meant from here. */
  readonly base: string;
  readonly placeholders: Placeholders;
  /** It came with a project, and nobody named it: it starts nothing unasked. */
  readonly asks?: boolean;
}

class Loading {
  readonly #options: ConfigLoaderOptions;
  readonly #inputs: Inputs;
  readonly #servers = new Map<string, ServerEntry>();
  readonly #folders = {
    skills: { folders: [] as string[], defaults: true },
    commands: { folders: [] as string[], defaults: true },
  };
  readonly #agents: LoadedAgent[] = [];
  readonly #files: string[] = [];
  readonly #problems: Problem[] = [];
  #depth: number | undefined;

  constructor(options: ConfigLoaderOptions, inputs: Inputs) {
    this.#options = options;
    this.#inputs = inputs;
  }

  result(): LoadedConfig {
    const servers = [...this.#servers.values()];
    const entries = [...servers, ...this.#agents.flatMap(({ servers: own }) => own)];
    return {
      servers,
      ...this.#folders,
      maxCompositionDepth: this.#depth,
      agents: this.#agents,
      files: this.#files,
      problems: [...this.#problems, ...entries.flatMap(({ problems }) => problems)],
    };
  }

  given(config: HostConfig): Promise<void> {
    return this.#sections(config, { base: this.#options.cwd, placeholders: 'shell' });
  }

  async file(file: string, text: ConfigText): Promise<void> {
    this.#files.push(file);
    const folder = dirname(file);
    const name = basename(file);
    const source = {
      file,
      text,
      base: basename(folder) === '.vscode' ? dirname(folder) : folder,
      placeholders: 'shell' as const,
      asks:
        SERVER_FILES.some((one) => resolve(this.#options.cwd, one) === file) &&
        !this.#isNamed(file),
    };
    if (/\.ya?ml$/i.test(name)) await this.#sections(text.value ?? {}, source);
    else if (/^opencode\.jsonc?$/i.test(name)) await this.#openCode(source);
    else await this.#serverFile(source);
  }

  /** The program itself names it. */
  #isNamed(file: string): boolean {
    const { config, cwd } = this.#options;
    return typeof config === 'string' && resolve(cwd, config) === file;
  }

  failed(file: string, error: unknown, more = ''): void {
    const problem = problemFrom(this.shown(file), error, { code: 'invalid-config' });
    this.#problems.push(more === '' ? problem : { ...problem, message: problem.message + more });
  }

  /** A path for people. */
  shown(file: string): string {
    const path = relative(this.#options.cwd, file);
    return path.startsWith('..') ? file : path;
  }

  /** `patchbay.yaml`, section by section. */
  async #sections(value: unknown, source: Source): Promise<void> {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      this.#say(source, [], 'it is not a mapping of sections (`mcp_servers`, `skills` …)');
      return;
    }
    const known = Object.keys(SECTIONS);
    for (const key of Object.keys(value).filter((name) => !known.includes(name))) {
      const why = `\`${key}\` is not a section${suggestion(key, known)}`;
      this.#say(source, [key], why, { severity: 'warning' });
    }
    const section = <K extends keyof typeof SECTIONS>(key: K) =>
      this.#section(SECTIONS[key], (value as Readonly<Record<string, unknown>>)[key], source, key);
    await this.#entries(source, ['mcp_servers'], section('mcp_servers') ?? {}, (entry) =>
      this.#add(entry),
    );
    for (const kind of ['skills', 'commands'] as const) {
      const given = section(kind);
      this.#folders[kind].folders.push(
        ...(await this.#paths(source, [kind, 'folders'], given?.folders ?? [])),
      );
      if (given?.defaults === false) this.#folders[kind].defaults = false;
    }
    this.#depth ??= section('extensions')?.max_composition_depth;
    for (const [name, agent] of Object.entries(section('agents') ?? {}))
      this.#agents.push(await this.#agent(name, agent, source));
  }

  /** What a section says; unknown keys are told and passed over, anything else that is wrong leaves the section out. */
  #section<T extends z.ZodType>(
    schema: T,
    raw: unknown,
    source: Source,
    key: string,
  ): z.output<T> | undefined {
    const value = structuredClone(raw ?? undefined);
    const first = schema.safeParse(value);
    if (first.success) return first.data;
    for (const issue of first.error.issues) {
      if (issue.code === 'unrecognized_keys') {
        const parent = at(value, issue.path);
        for (const unknown of issue.keys) {
          delete parent[unknown];
          const why = `\`${[key, ...issue.path, unknown].join('.')}\` is not known${suggestion(unknown, INNER_KEYS)}`;
          this.#say(source, [key, ...issue.path.map(String), unknown], why, {
            severity: 'warning',
          });
        }
      } else {
        const path = [key, ...issue.path.map(String)];
        this.#say(source, path, `${path.join('.')}: ${issue.message}`);
      }
    }
    return schema.safeParse(value).data;
  }

  async #agent(name: string, given: AgentConfig, source: Source): Promise<LoadedAgent> {
    const servers: ServerEntry[] = [];
    const path = ['agents', name];
    await this.#entries(source, [...path, 'mcp_servers'], given.mcp_servers ?? {}, (entry) =>
      servers.push(entry),
    );
    const { folders = [], ...skills } = given.skills ?? {};
    return {
      name,
      servers,
      skillFolders: await this.#paths(source, [...path, 'skills', 'folders'], folders),
      tools: given.tools,
      skills: given.skills === undefined ? undefined : skills,
    };
  }

  /** `mcpServers` (Claude Code and most others), `servers` (VS Code), or servers at the top. */
  async #serverFile(source: Source): Promise<void> {
    const value = source.text?.value;
    const top = asRecord(value);
    if (top === undefined) return this.#say(source, [], 'it is not an object');
    this.#inputs.describe(top['inputs']);
    const keys = ['mcpServers', 'servers'].filter((key) => key in top);
    if (keys.length === 0 && Object.values(top).some(looksLikeServer)) {
      const flat = Object.entries(top).filter(([, entry]) => looksLikeServer(entry));
      return this.#entries(source, [], Object.fromEntries(flat), (entry) => this.#add(entry));
    }
    if (keys.length === 0) this.#say(source, [], 'it has neither `mcpServers` nor `servers`');
    for (const key of keys) {
      const servers = asRecord(top[key]);
      if (servers === undefined) this.#say(source, [key], `\`${key}\` is not an object`);
      else await this.#entries(source, [key], servers, (entry) => this.#add(entry));
    }
  }

  async #openCode(source: Source): Promise<void> {
    const { path, servers } = openCodeServers(source.text?.value);
    await this.#entries({ ...source, placeholders: 'opencode' }, path, servers, (entry) =>
      this.#add(entry),
    );
  }

  async #entries(
    source: Source,
    path: readonly string[],
    servers: Readonly<Record<string, unknown>>,
    take: (entry: ServerEntry) => void,
  ): Promise<void> {
    for (const [name, raw] of Object.entries(servers)) {
      const place = source.text?.locate([...path, name]);
      const file = source.file === undefined ? 'code' : this.shown(source.file);
      const context: EntryContext = {
        values: this.#values(source, [...path, name], name),
        placeholders: source.placeholders,
        base: source.base,
        origin: place === undefined ? file : `${file}:${place.line}`,
        asks: source.asks === true,
        problem: (field, why, kind) =>
          this.#problem(source, [...path, name, ...field], entryText(name, why, kind), {
            ...kind,
            source: name,
          }),
      };
      const entry = source.placeholders === 'opencode' ? openCodeEntry(raw) : raw;
      take(await readServerEntry(name, entry, context));
    }
  }

  #add(entry: ServerEntry): void {
    const known = this.#servers.get(entry.name);
    if (known === undefined) {
      this.#servers.set(entry.name, entry);
      return;
    }
    // People keep the same servers for several clients: there is nothing to say then.
    if (entry.disabled || JSON.stringify(known.config) === JSON.stringify(entry.config)) return;
    this.#problems.push({
      source: entry.name,
      code: 'duplicate-id',
      severity: 'warning',
      message: `The server "${entry.name}" of ${entry.origin} is not used: ${known.origin} has one of that name. Rename one of them.`,
    });
  }

  async #paths(
    source: Source,
    path: readonly string[],
    folders: readonly string[],
  ): Promise<readonly string[]> {
    const paths: string[] = [];
    for (const [i, folder] of folders.entries()) {
      const expanded = await expand(folder, this.#values(source, path, path[0] ?? ''));
      if ('text' in expanded) paths.push(resolve(source.base, expanded.text));
      else {
        const why = `${path.join('.')} needs ${expanded.missing.join(', ')}, which is not set. Set it, or write \${NAME:-default}`;
        this.#say(source, [...path, String(i)], why, { code: 'env-missing' });
      }
    }
    return paths;
  }

  #values({ base }: Source, path: readonly string[], asking: string): Values {
    return {
      env: this.#options.env,
      folder: base,
      input: (id) =>
        this.#inputs.ask(id).catch((error: unknown) => {
          const what = `The answer to \${input:${id}} of ${path.join('.')} could not be had`;
          this.#problems.push(
            problemFrom(asking, new PatchbayError('invalid-config', what, { cause: error })),
          );
          return undefined;
        }),
    };
  }

  #say(source: Source, path: readonly string[], why: string, kind: ProblemKind = {}): void {
    this.#problems.push(this.#problem(source, path, why, kind));
  }

  #problem(
    { file, text }: Source,
    path: readonly string[],
    why: string,
    kind: ProblemKind,
  ): Problem {
    if (file === undefined) return problemOf(kind.source ?? 'config', why, kind, path.join('.'));
    const place = text?.locate(path);
    const shown = this.shown(file);
    const where = place === undefined ? shown : `${shown}:${place.line}:${place.column}`;
    return {
      ...problemOf(kind.source ?? shown, `${where}: ${why}`, kind),
      file,
      ...(place === undefined ? {} : { line: place.line }),
    };
  }
}

interface ProblemKind {
  readonly code?: Problem['code'];
  readonly severity?: Problem['severity'];
  readonly source?: string;
}

function problemOf(
  source: string,
  why: string,
  { code = 'invalid-config', severity = 'error' }: ProblemKind = {},
  field = '',
): Problem {
  const text = field === '' ? why : `${why} (${field})`;
  const message = text.endsWith('?') ? text : `${text}.`;
  return { source, code, severity, message };
}

function entryText(name: string, why: string, kind: ProblemKind = {}): string {
  return kind.severity === 'warning'
    ? `in the server "${name}" ${why}`
    : `the server "${name}" is left out: ${why}`;
}

function looksLikeServer(entry: unknown): boolean {
  const record = asRecord(entry);
  return record !== undefined && ('command' in record || 'url' in record);
}

function at(value: unknown, path: readonly PropertyKey[]): Record<string, unknown> {
  return path.reduce((inner, key) => (inner as Record<PropertyKey, unknown>)[key], value) as Record<
    string,
    unknown
  >;
}
