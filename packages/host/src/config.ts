import { access, readFile } from 'node:fs/promises';
import { basename, dirname, relative, resolve } from 'node:path';

import { PatchbayError, problemFrom, type Problem } from '@patchbay/protocols';
import { z } from 'zod';

import { readConfigText, type ConfigText } from './config-text.ts';
import { expand, type Values } from './expand.ts';
import { codeProblem, readServerEntry, type ServerEntry } from './server-entry.ts';

/** A configuration as a program gives it: the same shape as `patchbay.yaml`. */
export interface HostConfig {
  /** Servers by the id under which their tools appear. Entries as in `.mcp.json`. */
  readonly mcp_servers?: Readonly<Record<string, unknown>>;
  /** Skill folders beside the usual ones; `defaults: false` leaves the usual ones out. */
  readonly skills?: { readonly folders?: readonly string[]; readonly defaults?: boolean };
  /** Command folders beside the usual ones. */
  readonly commands?: { readonly folders?: readonly string[]; readonly defaults?: boolean };
}

/** Everything that was found. */
export interface LoadedConfig {
  readonly servers: readonly ServerEntry[];
  readonly skills: { readonly folders: readonly string[]; readonly defaults: boolean };
  readonly commands: { readonly folders: readonly string[]; readonly defaults: boolean };
  /** Files that were read. */
  readonly files: readonly string[];
  readonly problems: readonly Problem[];
}

/** Looked for in this order; of two servers of one name the first is taken. */
const PATCHBAY_FILES = ['patchbay.yaml', 'patchbay.yml'];
const SERVER_FILES = ['.mcp.json', '.vscode/mcp.json'];

const folders = z.object({
  folders: z.array(z.string()).optional(),
  defaults: z.boolean().optional(),
});
const PatchbaySchema = z.object({
  mcp_servers: z.record(z.string(), z.unknown()).optional(),
  skills: folders.optional(),
  commands: folders.optional(),
});
const ServersSchema = z.object({
  mcpServers: z.record(z.string(), z.unknown()).optional(),
  servers: z.record(z.string(), z.unknown()).optional(),
});

/**
 * Reads the configuration of a folder. Never throws for what is in a file: a file that cannot be read, or an entry that
 * is broken, is a problem, and the rest goes on without it.
 * @throws PatchbayError `not-found` if `config` names a file that is not there
 */
export async function loadConfig(
  cwd: string,
  config: string | HostConfig | undefined,
  values: Values,
): Promise<LoadedConfig> {
  const loading = new Loading(cwd, values);
  if (typeof config === 'object') {
    loading.given(config);
  } else if (config === undefined) {
    for (const file of PATCHBAY_FILES) await loading.file(resolve(cwd, file));
  } else {
    const file = resolve(cwd, config);
    await access(file).catch((cause: unknown) => {
      throw new PatchbayError(
        'not-found',
        `There is no configuration file ${file}. Create it, or leave \`config\` out.`,
        { cause },
      );
    });
    await loading.file(file);
  }
  for (const file of SERVER_FILES) await loading.file(resolve(cwd, file));
  return loading.result();
}

class Loading {
  readonly #cwd: string;
  readonly #values: Values;
  readonly #servers = new Map<string, ServerEntry>();
  readonly #folders = {
    skills: { folders: [] as string[], defaults: true },
    commands: { folders: [] as string[], defaults: true },
  };
  readonly #files: string[] = [];
  readonly #problems: Problem[] = [];

  constructor(cwd: string, values: Values) {
    this.#cwd = cwd;
    this.#values = values;
  }

  result(): LoadedConfig {
    const servers = [...this.#servers.values()];
    return {
      servers,
      ...this.#folders,
      files: this.#files,
      problems: [...this.#problems, ...servers.flatMap(({ problems }) => problems)],
    };
  }

  given(config: HostConfig): void {
    for (const [name, raw] of Object.entries(config.mcp_servers ?? {})) {
      this.#add(
        readServerEntry(name, raw, {
          values: this.#values,
          base: this.#cwd,
          origin: 'code',
          problem: (_code, field, why) => codeProblem(name, field, why),
        }),
      );
    }
    for (const kind of ['skills', 'commands'] as const)
      this.#addFolders(kind, config[kind], this.#cwd);
  }

  async file(file: string): Promise<void> {
    if (this.#files.includes(file)) return;
    let text: string;
    try {
      text = await readFile(file, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
        this.#problems.push(problemFrom(this.#shown(file), error, { code: 'invalid-config' }));
      }
      return;
    }
    this.#files.push(file);
    try {
      const config = readConfigText(this.#shown(file), text);
      if (/\.ya?ml$/i.test(file)) this.#patchbay(file, config);
      else this.#serverFile(file, config);
    } catch (error) {
      this.#problems.push(problemFrom(this.#shown(file), error, { code: 'invalid-config' }));
    }
  }

  #patchbay(file: string, config: ConfigText): void {
    const parsed = PatchbaySchema.safeParse(config.value ?? {});
    if (!parsed.success) {
      for (const { path, message } of parsed.error.issues) {
        this.#problems.push(
          this.#problem(file, config, path.map(String), `${path.join('.')}: ${message}`),
        );
      }
      return;
    }
    const base = dirname(file);
    const { mcp_servers: servers = {}, ...rest } = parsed.data;
    this.#entries(file, config, 'mcp_servers', servers, base);
    for (const kind of ['skills', 'commands'] as const) {
      const given = rest[kind];
      if (given !== undefined) {
        this.#addFolders(
          kind,
          {
            ...(given.folders === undefined ? {} : { folders: given.folders }),
            ...(given.defaults === undefined ? {} : { defaults: given.defaults }),
          },
          base,
        );
      }
    }
  }

  /** `mcpServers` (Claude Code and most others) or `servers` (VS Code), in any of the files. */
  #serverFile(file: string, config: ConfigText): void {
    const parsed = ServersSchema.safeParse(config.value);
    if (!parsed.success) {
      this.#problems.push(
        this.#problem(file, config, [], 'it has neither `mcpServers` nor `servers`'),
      );
      return;
    }
    const folder = dirname(file);
    const base = basename(folder) === '.vscode' ? dirname(folder) : folder;
    this.#entries(file, config, 'mcpServers', parsed.data.mcpServers ?? {}, base);
    this.#entries(file, config, 'servers', parsed.data.servers ?? {}, base);
  }

  #entries(
    file: string,
    config: ConfigText,
    key: string,
    servers: Readonly<Record<string, unknown>>,
    base: string,
  ): void {
    for (const [name, raw] of Object.entries(servers)) {
      const place = config.locate([key, name]);
      const origin = place === undefined ? this.#shown(file) : `${this.#shown(file)}:${place.line}`;
      this.#add(
        readServerEntry(name, raw, {
          values: this.#values,
          base,
          origin,
          problem: (_code, field, why) =>
            this.#problem(
              file,
              config,
              [key, name, ...field],
              `the server "${name}" is left out: ${why}`,
              name,
            ),
        }),
      );
    }
  }

  #add(entry: ServerEntry): void {
    const known = this.#servers.get(entry.name);
    if (known === undefined) {
      this.#servers.set(entry.name, entry);
      return;
    }
    this.#problems.push({
      source: entry.name,
      code: 'duplicate-id',
      severity: 'warning',
      message: `The server "${entry.name}" of ${entry.origin} is not used: ${known.origin} has one of that name. Rename one of them.`,
    });
  }

  #addFolders(
    kind: 'skills' | 'commands',
    given: { folders?: readonly string[]; defaults?: boolean } | undefined,
    base: string,
  ): void {
    const target = this.#folders[kind];
    for (const folder of given?.folders ?? []) {
      const expanded = expand(folder, this.#values);
      if ('text' in expanded) target.folders.push(resolve(base, expanded.text));
      else
        this.#problems.push(
          codeProblem(`${kind} folder ${folder}`, [], `${expanded.missing.join(', ')} is not set`),
        );
    }
    if (given?.defaults === false) target.defaults = false;
  }

  #problem(
    file: string,
    config: ConfigText,
    path: readonly string[],
    why: string,
    source?: string,
  ): Problem {
    const place = config.locate(path);
    const shown = this.#shown(file);
    const at = place === undefined ? shown : `${shown}:${place.line}:${place.column}`;
    return problemFrom(
      source ?? shown,
      new PatchbayError('invalid-config', `${at}: ${why}.`, {
        details: { file, ...(place === undefined ? {} : { line: place.line }) },
      }),
    );
  }

  #shown(file: string): string {
    const path = relative(this.#cwd, file);
    return path.startsWith('..') ? file : path;
  }
}
