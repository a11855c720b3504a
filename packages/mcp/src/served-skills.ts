import {
  PatchbayError,
  sha256Hex,
  type CompileContext,
  type ContentPart,
  type Listing,
  type McpClient,
  type OpenSkill,
  type RequestOptions,
  type ServedFileContent,
  type ServedSkill,
  type SkillEntry,
  type SkillFile,
} from '@patchbay/protocols';

import { isGone, until, type ListReader } from './list-reader.ts';
import type { ServerConnections } from './server-connections.ts';
import type { ServerLists } from './server-lists.ts';

/** Longer descriptions are cut: they are for a catalogue. In characters. (Agent Skills specification) */
const MAX_DESCRIPTION = 1_024;

/** Of a skill that does not say how much it is, so much is read. (Skills over MCP, "Limits") */
const MAX_DYNAMIC_BYTES: number = 16 * 1024 * 1024;

interface ServedSkillsOptions {
  readonly id: string;
  readonly server: ServerConnections;
  readonly reader: ListReader;
  readonly lists: ServerLists;
  /** Skills that cannot be verified are offered all the same. */
  readonly allowDynamic: boolean;
  /** What is known of the skills may be wrong. */
  readonly changed: () => void;
}

/**
 * The skills that a server serves. Nothing is read before it is wanted; what is read is what was announced, or nothing; what
 * is announced grants nothing: an entry has a name, a description, and the frontmatter as data. (Skills over MCP, SEP-2640)
 */
export class ServedSkills {
  readonly #options: ServedSkillsOptions;
  /** The same entry for the same announcement. */
  readonly #entries = new WeakMap<ServedSkill, SkillEntry>();

  constructor(options: ServedSkillsOptions) {
    this.#options = options;
  }

  async list(context: CompileContext): Promise<readonly SkillEntry[]> {
    const { id, reader } = this.#options;
    try {
      const listing = await this.#announced(context);
      reader.report(listing, context);
      return listing.items.flatMap((skill) => {
        if (!this.#isRefused(skill)) return [this.#entry(skill)];
        context.report({
          source: id,
          code: 'not-supported',
          severity: 'warning',
          message: `${skill.uri} is left out: its files are made when they are asked for, and cannot be verified. Set \`dynamicSkills: 'read'\` if you trust the server "${id}" with that.`,
        });
        return [];
      });
    } catch (error) {
      // That the server is not there is said where its tools are asked for.
      if (isGone(error)) return [];
      throw error;
    }
  }

  async exists(uri: string, context: CompileContext): Promise<boolean> {
    return (await this.#find(uri, context)) !== undefined;
  }

  async open(uri: string, context: CompileContext): Promise<OpenSkill | undefined> {
    const skill = await this.#find(uri, context);
    if (skill === undefined) return undefined;
    // Whatever the server says later: this is what is read and compared with until it is opened again.
    const held = new HeldSkill(skill, (reference, options) =>
      this.#read(skill, reference, context, options),
    );
    const manifest = await held.read(undefined, { signal: context.signal });
    return {
      entry: this.#entry(skill),
      body: manifest.body ?? '',
      digest: digestOf(skill, manifest),
      files: filesOf(skill),
      // What is listed is asked for by its address: a path is no URI, it may have a `#` in it.
      readFile: async (path, options = {}) =>
        toParts(await held.read(addressOf(skill, path) ?? path, options)),
    };
  }

  #announced(context: CompileContext): Promise<Listing<ServedSkill>> {
    const { reader } = this.#options;
    return reader.read('skills', reader.question(context), async (client) =>
      client.listSkills === undefined
        ? { items: [], problems: [] }
        : client.listSkills({ signal: context.signal }),
    );
  }

  /** What is in no list is asked for by its address: an address alone makes nothing a skill. */
  async #find(uri: string, context: CompileContext): Promise<ServedSkill | undefined> {
    const listed = await this.#announced(context).then(
      ({ items }) => items.find((skill) => skill.uri === uri),
      (error: unknown) => {
        // A list that cannot be read proves nothing about a skill; a server that is not there does.
        if (isGone(error) || context.signal.aborted) throw error;
      },
    );
    const found =
      listed ?? (uri.endsWith(MANIFEST) ? await this.#get(uri, context, context) : undefined);
    return found === undefined || this.#isRefused(found) ? undefined : found;
  }

  #get(
    uri: string,
    context: CompileContext,
    { signal }: RequestOptions,
  ): Promise<ServedSkill | undefined> {
    return this.#using(context, signal, async (client) => client.getSkill?.(uri, until(signal)));
  }

  async #read(
    skill: ServedSkill,
    reference: string | undefined,
    context: CompileContext,
    options: RequestOptions,
  ): Promise<ServedFileContent> {
    try {
      return await this.#using(context, options.signal, (client) => {
        if (client.readSkill === undefined) throw notSupported(this.#options.id);
        return client.readSkill(skill, reference, options);
      });
    } catch (error) {
      if (!PatchbayError.isInstance(error) || error.code !== 'skill-changed') throw error;
      throw await this.#failed(skill, error, context, options);
    }
  }

  /** What the list says is not right any more: whoever looks is told, and the server is asked what is. */
  async #failed(
    skill: ServedSkill,
    error: PatchbayError,
    context: CompileContext,
    options: RequestOptions,
  ): Promise<PatchbayError> {
    const { id, server, lists, changed } = this.#options;
    lists.known(server.keyOf(server.askerOf(context)))?.skills.invalidate();
    changed();
    const now = await this.#get(skill.uri, context, options).catch(() => undefined);
    const same = now !== undefined && hashOf(now) !== undefined && hashOf(now) === hashOf(skill);
    const why = same
      ? error.message
      : `The skill ${skill.uri} has changed on its server since it was listed. What was approved of it does not hold any more; activate it again to use it as it is now.`;
    return new PatchbayError('skill-changed', why, {
      source: id,
      cause: error,
      details: { ...error.details, announced: same },
    });
  }

  /** `signal`: of what is asked now. That of the context ends with the question that the skill was opened for. */
  async #using<T>(
    context: CompileContext,
    signal: AbortSignal | undefined,
    use: (client: McpClient) => Promise<T>,
  ): Promise<T> {
    const { server, reader } = this.#options;
    await using lease = await reader.acquire(server.askerOf(context), signal);
    return await use(lease.value);
  }

  #isRefused({ resources }: ServedSkill): boolean {
    return resources === 'dynamic' && !this.#options.allowDynamic;
  }

  #entry(skill: ServedSkill): SkillEntry {
    const before = this.#entries.get(skill);
    if (before !== undefined) return before;
    const { id } = this.#options;
    const { uri, frontmatter } = skill;
    const hash = hashOf(skill);
    const entry: SkillEntry = Object.freeze({
      uri,
      name: String(frontmatter['name']),
      description: Array.from(String(frontmatter['description']))
        .slice(0, MAX_DESCRIPTION)
        .join(''),
      origin: `mcp:${id}`,
      precedence: 0,
      mimeType: 'text/markdown',
      frontmatter: asText(frontmatter) as Readonly<Record<string, unknown>>,
      // What it keeps itself from is no grant.
      ...(frontmatter['disable-model-invocation'] === true ? { modelInvocable: false } : {}),
      ...(frontmatter['user-invocable'] === false ? { userInvocable: false } : {}),
      served: Object.freeze({ server: id, ...(hash === undefined ? {} : { hash }) }),
    });
    this.#entries.set(skill, entry);
    return entry;
  }
}

const MANIFEST = '/SKILL.md';

/** A skill that is in use: the first failure ends it. */
class HeldSkill {
  readonly #read: (
    reference: string | undefined,
    options: RequestOptions,
  ) => Promise<ServedFileContent>;
  readonly #uri: string;
  /** What was read, in bytes, of one that does not say how much it is. */
  #bytes: number | undefined;
  #failure: PatchbayError | undefined;

  constructor(
    { uri, resources }: ServedSkill,
    read: (reference: string | undefined, options: RequestOptions) => Promise<ServedFileContent>,
  ) {
    this.#uri = uri;
    if (resources === 'dynamic') this.#bytes = 0;
    this.#read = read;
  }

  async read(reference: string | undefined, options: RequestOptions): Promise<ServedFileContent> {
    if (this.#failure !== undefined) throw this.#ended(this.#failure);
    try {
      const content = await this.#read(reference, options);
      // Another file failed meanwhile: nothing of the skill is used.
      if (this.#failure !== undefined) throw this.#ended(this.#failure);
      this.#count(content);
      return content;
    } catch (error) {
      if (PatchbayError.isInstance(error) && error.code === 'skill-changed')
        this.#failure ??= error;
      throw error;
    }
  }

  #count({ bytes }: ServedFileContent): void {
    if (this.#bytes === undefined) return;
    this.#bytes += bytes.length;
    if (this.#bytes <= MAX_DYNAMIC_BYTES) return;
    throw new PatchbayError(
      'too-large',
      `More than ${MAX_DYNAMIC_BYTES} bytes of the skill ${this.#uri} were read, which does not say how much it is. Activate it again to read more.`,
      { details: { limit: MAX_DYNAMIC_BYTES } },
    );
  }

  #ended(cause: PatchbayError): PatchbayError {
    return new PatchbayError(
      'skill-changed',
      `A file of ${this.#uri} was not what its server announced, so that nothing more of the skill is read. Activate it again.`,
      { cause, ...(cause.details === undefined ? {} : { details: cause.details }) },
    );
  }
}

/** Of every file and its digest, in an order that does not depend on the server. */
function hashOf({ resources }: ServedSkill): string | undefined {
  if (resources === 'dynamic') return undefined;
  const set = resources.map(({ uri, digest }) => JSON.stringify([uri, digest])).toSorted();
  return `sha256:${sha256Hex(set.join('\n'))}`;
}

/** Of SKILL.md, which was compared with what was announced where anything was. */
function digestOf({ uri, resources }: ServedSkill, { bytes }: ServedFileContent): string {
  const announced =
    resources === 'dynamic' ? undefined : resources.find((file) => isSame(file.uri, uri));
  return (
    announced?.digest ??
    `sha256:${sha256Hex(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes))}`
  );
}

/** However they are spelled: `skill://a/./b` is `skill://a/b`. What is no URI was refused before. */
const spelled = (uri: string): string => (URL.canParse(uri) ? new URL(uri).href : uri);

const isSame = (one: string, other: string): boolean => spelled(one) === spelled(other);

/** The path of a file within the skill whose SKILL.md has this URI. */
const pathOf = (manifest: string, file: string): string =>
  decoded(spelled(file).slice(folderOf(spelled(manifest)).length));

const folderOf = (uri: string): string => uri.slice(0, uri.lastIndexOf('/') + 1);

function filesOf({ uri, resources }: ServedSkill): readonly SkillFile[] | 'dynamic' {
  if (resources === 'dynamic') return resources;
  return resources
    .filter((file) => !isSame(file.uri, uri))
    .map((file) => ({ path: pathOf(uri, file.uri), size: file.size }));
}

const addressOf = ({ uri, resources }: ServedSkill, path: string): string | undefined =>
  resources === 'dynamic'
    ? undefined
    : resources.find((file) => pathOf(uri, file.uri) === path)?.uri;

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** Text where it is UTF-8, otherwise a file. */
function toParts({ uri, bytes, mimeType }: ServedFileContent): readonly ContentPart[] {
  const text = textOf(bytes);
  if (text !== undefined) return [{ type: 'text', text }];
  const type = /^(image|audio)\//.exec(mimeType ?? '')?.[1] as 'image' | 'audio' | undefined;
  return [
    {
      type: type ?? 'file',
      data: toBase64(bytes),
      mimeType: mimeType ?? 'application/octet-stream',
      name: decoded(uri.slice(folderOf(uri).length)),
    },
  ];
}

function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** So many bytes become characters at once: `fromCharCode` takes them as arguments. */
const CHUNK = 0x80_00;

function toBase64(bytes: Uint8Array): string {
  let binary = '';
  for (let at = 0; at < bytes.length; at += CHUNK)
    binary += String.fromCharCode(...bytes.subarray(at, at + CHUNK));
  return btoa(binary);
}

/** Every scalar as text, as frontmatter is given everywhere. */
function asText(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(asText);
  if (typeof value === 'string' || value === null) return value ?? '';
  if (typeof value !== 'object') return JSON.stringify(value);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, asText(inner)]));
}

const notSupported = (id: string): PatchbayError =>
  new PatchbayError(
    'not-supported',
    `Whoever makes the connections of "${id}" cannot read skills of servers.`,
    { source: id },
  );
