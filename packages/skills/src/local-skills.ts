import { createHash } from 'node:crypto';
import { readdir, realpath, stat } from 'node:fs/promises';
import { basename, join, relative, resolve, sep } from 'node:path';

import { isBelow, readConfined, readHead } from '@patchbay/files';
import {
  changeSource,
  PatchbayError,
  problemFrom,
  type Capability,
  type ChangeObservable,
  type ChangeSource,
  type CompileContext,
  type ContentPart,
  type OpenSkill,
  type Problem,
  type SkillEntry,
  type SkillFile,
  type SkillResource,
} from '@patchbay/protocols';

import { folderName, scanSkills, type FoundSkill } from './scan.ts';
import { readSkillDocument, type DocumentOptions } from './skill-document.ts';

export interface LocalSkillsOptions {
  /** The capability id. */
  readonly id: string;
  /** One folder or several: of skills, or a skill itself. Relative to the working directory. */
  readonly folder: string | readonly string[];
  /** A folder that is not there is no problem: it may come. Default false. */
  readonly optional?: boolean;
  /** Among several skills of one name the greatest is shown. Default 30, as for the skills of a project. */
  readonly precedence?: number;
}

/** Skills that lie in folders: registered, they are what agents see; edits are seen at the next compile. */
export function localSkills(
  options: LocalSkillsOptions,
): Capability & SkillResource & ChangeObservable {
  return new LocalSkills(options);
}

interface Known {
  readonly found: FoundSkill;
  readonly entry: SkillEntry | undefined;
  readonly problems: readonly Problem[];
}

/** Frontmatter is at most 64 K characters; most files are smaller than the first read. */
const HEAD_BYTES = 16 * 1024;
const MAX_HEAD_BYTES = 300 * 1024;
const MAX_LISTED_FILES = 50;
const MAX_RESOURCE_BYTES = 10 * 1024 * 1024;

class LocalSkills implements Capability, SkillResource, ChangeObservable {
  readonly id: string;
  readonly #folders: readonly string[];
  readonly #precedence: number;
  readonly #optional: boolean;
  /** By the path of SKILL.md. */
  #known = new Map<string, Known>();
  // Nothing watches the folders, so nothing can be vouched for: every compile looks at them.
  readonly #changes: ChangeSource;

  readonly revision: () => number;
  readonly changes: ChangeObservable['changes'];

  constructor({ id, folder, precedence = 30, optional = false }: LocalSkillsOptions) {
    this.id = id;
    this.#changes = changeSource(id, () => undefined);
    this.revision = this.#changes.revision;
    this.changes = this.#changes.subscribe;
    this.#precedence = precedence;
    this.#optional = optional;
    this.#folders = (typeof folder === 'string' ? [folder] : folder).map((path) => resolve(path));
  }

  async listSkills(context: CompileContext): Promise<readonly SkillEntry[]> {
    const { known, problems } = await this.#look();
    for (const problem of problems) context.report(problem);
    return [...known.values()].flatMap(({ entry }) => entry ?? []);
  }

  async skillExists(uri: string): Promise<boolean> {
    return (await this.#find(uri)) !== undefined;
  }

  async openSkill(uri: string): Promise<OpenSkill | undefined> {
    const known = await this.#find(uri);
    if (known === undefined) return undefined;
    const { found } = known;
    const text = await readConfined(found.root, basename(await realpath(found.file)));
    const document = readSkillDocument(text, this.#documentOptions(found));
    if ('refused' in document) {
      throw new PatchbayError('not-found', document.refused.message, { source: this.id });
    }
    return {
      entry: document.entry,
      body: document.body,
      digest: `sha256:${createHash('sha256').update(text).digest('hex')}`,
      folder: found.root,
      files: await listFiles(found),
      readFile: (path, options) => readResource(found, path, options),
    };
  }

  async #find(uri: string): Promise<Known | undefined> {
    const { known } = await this.#look();
    return [...known.values()].find(({ entry }) => entry?.uri === uri);
  }

  /** What is there now. A file that did not change is not read again, and its entry stays the same object. */
  async #look(): Promise<{
    readonly known: ReadonlyMap<string, Known>;
    readonly problems: readonly Problem[];
  }> {
    const scans = await Promise.all(
      this.#folders.map((folder) => scanSkills(folder, this.id, this.#optional)),
    );
    const before = this.#known;
    const known = new Map<string, Known>();
    const problems = scans.flatMap((scan) => scan.problems);
    const homes = new Map<string, FoundSkill>();
    for (const skill of scans.flatMap(({ skills }) => skills)) {
      const first = homes.get(skill.root);
      if (first === undefined) homes.set(skill.root, skill);
      else problems.push(twice(this.id, skill, first));
    }
    const found = [...homes.values()];
    const read = await Promise.all(
      found.map(async (skill): Promise<Known> => {
        const same = before.get(skill.file);
        return same?.found.stamp === skill.stamp ? same : this.#read(skill);
      }),
    );
    const uris = new Set<string>();
    for (const item of read) {
      const own =
        item.entry === undefined || !uris.has(item.entry.uri) ? item : this.#renamed(item);
      if (own.entry !== undefined) uris.add(own.entry.uri);
      known.set(own.found.file, own);
    }
    this.#known = known;
    return { known, problems: [...problems, ...read.flatMap((item) => item.problems)] };
  }

  /** Two skills of one name: the second is reached by its path. */
  #renamed(item: Known): Known {
    if (item.entry === undefined) return item;
    const folder = this.#folders.find((path) => isBelow(path, item.found.path)) ?? item.found.path;
    const path = relative(folder, item.found.path).split(sep).map(encodeURIComponent).join('/');
    return { ...item, entry: Object.freeze({ ...item.entry, uri: `skill://${path}/SKILL.md` }) };
  }

  async #read(found: FoundSkill): Promise<Known> {
    try {
      const document = readSkillDocument(
        await readSkillHead(found.file),
        this.#documentOptions(found),
      );
      if ('refused' in document) return { found, entry: undefined, problems: [document.refused] };
      return { found, entry: document.entry, problems: document.entry.problems ?? [] };
    } catch (error) {
      return { found, entry: undefined, problems: [problemFrom(this.id, error)] };
    }
  }

  #documentOptions(found: FoundSkill): DocumentOptions {
    return {
      source: this.id,
      file: found.file,
      folder: folderName(found),
      origin: found.path,
      precedence: this.#precedence,
    };
  }
}

/** As much of SKILL.md as its metadata needs: until the closing fence, with some text behind it. */
async function readSkillHead(file: string): Promise<Buffer> {
  for (let size = HEAD_BYTES; ; size *= 4) {
    const { bytes, complete } = await readHead(file, Math.min(size, MAX_HEAD_BYTES));
    const closed = /\n(?:---|\.\.\.)[ \t]*\r?\n[\s\S]{200}/.test(bytes.toString('latin1'));
    if (complete || closed || size >= MAX_HEAD_BYTES) return bytes;
  }
}

function twice(source: string, skill: FoundSkill, first: FoundSkill): Problem {
  return {
    source,
    code: 'skill-duplicate',
    severity: 'warning',
    message: `${skill.path} is the same skill as ${first.path}; it is listed once. Remove one of the links.`,
    file: skill.file,
  };
}

async function listFiles(found: FoundSkill): Promise<readonly SkillFile[]> {
  const files: SkillFile[] = [];
  const folders = [''];
  for (
    let at = folders.shift();
    at !== undefined && files.length < MAX_LISTED_FILES;
    at = folders.shift()
  ) {
    const entries = await readdir(join(found.root, at), { withFileTypes: true }).catch(() => []);
    for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = at === '' ? entry.name : `${at}/${entry.name}`;
      if (entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules')
        folders.push(path);
      if (!entry.isFile() || (at === '' && /^skill\.md$/i.test(entry.name))) continue;
      if (files.length >= MAX_LISTED_FILES) break;
      const size = await stat(join(found.root, path)).then(
        ({ size: bytes }) => ({ size: bytes }),
        () => ({}),
      );
      files.push({ path, ...size });
    }
  }
  return files;
}

async function readResource(
  found: FoundSkill,
  path: string,
  options: { readonly signal?: AbortSignal } = {},
): Promise<readonly ContentPart[]> {
  const bytes = await readConfined(found.root, path.split('/').join(sep), {
    ...options,
    maxBytes: MAX_RESOURCE_BYTES,
  });
  const name = path.split('/').at(-1)!;
  if (!bytes.includes(0)) {
    const text = new TextDecoder('utf-8').decode(bytes);
    if (!text.includes('\uFFFD')) return [{ type: 'text', text }];
  }
  const mimeType = MIME_TYPES[name.split('.').at(-1)!.toLowerCase()] ?? 'application/octet-stream';
  const type = mimeType.startsWith('image/')
    ? 'image'
    : mimeType.startsWith('audio/')
      ? 'audio'
      : 'file';
  return [{ type, data: bytes.toString('base64'), mimeType, name }];
}

const MIME_TYPES: Readonly<Record<string, string>> = {
  gif: 'image/gif',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  mp3: 'audio/mpeg',
  pdf: 'application/pdf',
  png: 'image/png',
  wav: 'audio/wav',
  webp: 'image/webp',
  zip: 'application/zip',
};
