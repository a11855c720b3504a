import { hash } from 'node:crypto';
import { realpath } from 'node:fs/promises';
import { basename, dirname } from 'node:path';

import { readConfined, type Disk } from '@patchbay/files';
import { PatchbayError, problemFrom, type Problem, type SkillEntry } from '@patchbay/protocols';

import { SERVERS_FILE, type FoundSkill } from './found-skill.ts';
import { readSkillDocument, type DocumentOptions, type SkillDocument } from './skill-document.ts';

/** A folder to look into. */
export interface SkillRoot {
  readonly folder: string;
  /** Shown to people in place of a skill's path. */
  readonly origin?: string;
}

/** A skill that was found, and what its SKILL.md says. */
export interface KnownSkill {
  readonly found: FoundSkill;
  readonly root: SkillRoot;
  /** Under its own name. `undefined`: refused, and `problems` say why. */
  readonly entry: SkillEntry | undefined;
  readonly problems: readonly Problem[];
  /** When the file was read, in milliseconds. */
  readonly readAt: number;
}

export type SkillReaderOptions = Pick<
  DocumentOptions,
  'source' | 'precedence' | 'trusted' | 'validate'
>;

type ReadDocument = SkillDocument | { readonly refused: Problem };

/** A SKILL.md, read whole. */
export interface WholeSkill {
  readonly document: ReadDocument;
  readonly digest: string;
}

/** The first read takes nearly every file whole; more is read as long as the frontmatter has no end. */
const HEAD_BYTES = 16 * 1024;
const MAX_FILE_BYTES = 1024 * 1024;
/** File systems count time in steps: a file that changed this shortly before it was read may change unseen. */
const STAMP_STEP_MS = 50;

/** Reads SKILL.md files: the metadata of many, as little as possible, and the whole of one. */
export class SkillReader {
  readonly #options: SkillReaderOptions;

  constructor(options: SkillReaderOptions) {
    this.#options = options;
  }

  /** A file that did not change is not read again, and an entry that says the same stays the same object. */
  read(
    found: FoundSkill,
    root: SkillRoot,
    before: KnownSkill | undefined,
    disk: Disk,
  ): KnownSkill | Promise<KnownSkill> {
    if (before !== undefined && isSame(before, found, root))
      return before.root === root && before.found.path === found.path
        ? before
        : { found, root, entry: before.entry, problems: before.problems, readAt: before.readAt };
    return this.#readNow(found, root, before, disk);
  }

  async #readNow(
    found: FoundSkill,
    root: SkillRoot,
    before: KnownSkill | undefined,
    disk: Disk,
  ): Promise<KnownSkill> {
    const readAt = Date.now();
    const failed = (problem: Problem): KnownSkill => ({
      found,
      root,
      entry: undefined,
      problems: [problem],
      readAt,
    });
    if (found.size > MAX_FILE_BYTES) return failed(tooLarge(this.#options.source, found));
    try {
      const document = await this.#readHead(found, root, disk);
      if ('refused' in document) return failed(document.refused);
      const entry = sameAs(before?.entry, document.entry);
      return { found, root, entry, problems: entry.problems ?? [], readAt };
    } catch (error) {
      return failed(problemFrom(this.#options.source, error));
    }
  }

  /**
   * The whole file, as it is now.
   * @throws PatchbayError `not-found` also where a link on the way leads elsewhere by now
   */
  async readWhole(known: Pick<KnownSkill, 'found' | 'root'>): Promise<WholeSkill> {
    const { root, file } = known.found;
    const real = await realpath(file);
    if (dirname(real) !== root)
      throw new PatchbayError('not-found', `${file} was moved to ${real}.`);
    const bytes = await readConfined(root, basename(real), { maxBytes: MAX_FILE_BYTES });
    const digest = digestOf(bytes);
    const mcpJson = known.found.servers ? await readServersFile(known.found) : undefined;
    return { digest, document: this.#parse(known, bytes, { digest, mcpJson }) };
  }

  /** As much of SKILL.md as its metadata needs: until its frontmatter ends. */
  async #readHead(found: FoundSkill, root: SkillRoot, disk: Disk): Promise<ReadDocument> {
    const mcpJson = found.servers ? await readServersFile(found) : undefined;
    for (let size = HEAD_BYTES; ; size *= 4) {
      const { bytes, complete } = await disk.head(found.file, size, found.size);
      const document = this.#parse({ found, root }, bytes, {
        mcpJson,
        partial: !complete,
        digest: complete ? digestOf(bytes) : undefined,
      });
      const enough = !('refused' in document) && document.closed;
      if (complete || enough || size > MAX_FILE_BYTES) return document;
    }
  }

  #parse(
    { found, root }: Pick<KnownSkill, 'found' | 'root'>,
    bytes: Uint8Array,
    more: Pick<DocumentOptions, 'partial' | 'digest' | 'mcpJson'>,
  ): ReadDocument {
    const { source, precedence, trusted, validate } = this.#options;
    return readSkillDocument(bytes, {
      source,
      precedence,
      trusted,
      validate,
      file: found.file,
      folder: basename(found.path),
      base: found.root,
      origin: root.origin ?? found.path,
      ...more,
    });
  }
}

/** Whether it is the file that was read before, in the same place, and has not changed since. */
function isSame(before: KnownSkill, found: FoundSkill, { folder }: SkillRoot): boolean {
  return (
    before.found.stamp === found.stamp &&
    before.found.root === found.root &&
    before.root.folder === folder &&
    before.readAt - found.changedAt > STAMP_STEP_MS
  );
}

function sameAs(before: SkillEntry | undefined, now: SkillEntry): SkillEntry {
  if (before === undefined || before.digest === undefined) return now;
  return JSON.stringify(before) === JSON.stringify(now) ? before : now;
}

function tooLarge(source: string, { file }: FoundSkill): Problem {
  return {
    source,
    code: 'file-too-large',
    severity: 'error',
    message: `${file} is larger than ${MAX_FILE_BYTES} bytes and was left out. Move what is in it to files beside it.`,
    file,
  };
}

/** What cannot be read is read as nothing, which is no JSON: that is said. */
async function readServersFile({ root }: FoundSkill): Promise<string> {
  return readConfined(root, SERVERS_FILE).then(String, () => '');
}

const digestOf = (bytes: Uint8Array): string => `sha256:${hash('sha256', bytes)}`;
