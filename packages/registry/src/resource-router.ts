import {
  isResourceProvider,
  isSkillResource,
  PatchbayError,
  problemFrom,
  type ChangeEvent,
  type CompileContext,
  type ContentPart,
  type ResourceEntry,
  type ResourceProvider,
  type ResourceView,
  type SkillResource,
} from '@patchbay/protocols';

import type { Patience } from './answers.ts';
import { ask } from './ask.ts';
import { by } from './by.ts';
import type { CompilerHost } from './compiler.ts';
import type { Registration } from './registration.ts';
import { parseUri, type RoutedUri } from './uri.ts';
import { passes, type Viewer } from './viewer.ts';
import { untilAnyOf, waitFor } from './waiting.ts';

interface Options {
  readonly signal?: AbortSignal;
}

/** Finds who answers for a URI: the cheap question first, the reading after. (RFC-0051 "URI Routing") */
export class ResourceRouter implements ResourceView {
  readonly #viewer: Viewer;
  readonly #host: CompilerHost;
  readonly #changes: (options?: Options) => AsyncIterable<ChangeEvent>;

  constructor(
    viewer: Viewer,
    host: CompilerHost,
    changes: (options?: Options) => AsyncIterable<ChangeEvent>,
  ) {
    this.#viewer = viewer;
    this.#host = host;
    this.#changes = changes;
  }

  async list(
    options: Options = {},
  ): Promise<readonly (ResourceEntry & { readonly source: string })[]> {
    const lists = await this.#during(options, (patience) =>
      Promise.all(this.#visible().map((registration) => this.#entries(registration, patience))),
    );
    return lists.flat().toSorted(
      by(
        ({ uri }) => uri,
        ({ source }) => source,
      ),
    );
  }

  async read(uri: string, options: Options = {}): Promise<readonly ContentPart[]> {
    const parsed = this.#parse(uri);
    const found = await (parsed.scheme === 'skill'
      ? this.#readSkill(parsed, options)
      : this.#readResource(parsed, options));
    if (found === undefined) throw notFound(uri);
    return found;
  }

  async exists(uri: string, options: Options = {}): Promise<boolean> {
    const parsed = this.#parse(uri);
    if (parsed.scheme !== 'skill') return (await this.#provider(parsed, options)) !== undefined;
    const candidates = await this.#skillCandidates(parsed, options);
    if (candidates.every(({ path }) => path === undefined)) {
      const says = candidates.map(({ registration, capability, uri: known }) =>
        this.#safely(registration, options, (context) => capability.skillExists(known, context)),
      );
      return (await this.#soon(says)).length > 0;
    }
    return this.#readSkill(parsed, options).then(
      (content) => content !== undefined,
      (error: unknown) => {
        if (PatchbayError.isInstance(error) && error.code === 'not-found') return false;
        throw error;
      },
    );
  }

  async watch(uri: string, options: { readonly signal: AbortSignal }): Promise<void> {
    const parsed = this.#parse(uri);
    const provided = parsed.scheme === 'skill' ? undefined : await this.#provider(parsed, options);
    if (provided === undefined) throw notFound(uri);
    const { registration, capability } = provided;
    if (capability.watchResource === undefined)
      throw new PatchbayError('not-supported', `Updates of ${uri} are not told.`);
    const stop = await this.#ask(registration, options, (context) =>
      capability.watchResource!(parsed.uri, context),
    );
    const end = () =>
      void stop().catch((error: unknown) =>
        this.#host.problem(problemFrom(registration.id, error)),
      );
    if (options.signal.aborted) end();
    else options.signal.addEventListener('abort', end, { once: true });
  }

  changes(options?: Options): AsyncIterable<ChangeEvent> {
    return this.#changes(options);
  }

  #visible(): readonly Registration[] {
    return this.#host.visible(this.#viewer.scope);
  }

  #parse(uri: string): RoutedUri {
    const parsed = parseUri(uri);
    const known = new Set(['skill', ...this.#visible().flatMap(schemesOf)]);
    if (known.has(parsed.scheme)) return parsed;
    const list = [...known].toSorted();
    throw new PatchbayError(
      'unknown-scheme',
      `Nothing here answers for ${parsed.scheme}:// URIs; known are ${list.map((s) => `${s}://`).join(', ')}.`,
      { details: { scheme: parsed.scheme, known: list } },
    );
  }

  async #entries(registration: Registration, patience: Patience) {
    const { id, answers } = registration;
    const [skills, resources] = await Promise.all([
      answers.of('skills')?.get({ viewer: this.#viewer }, patience),
      answers.of('resources')?.get({ viewer: this.#viewer }, patience),
    ]);
    for (const answer of [skills, resources])
      if (answer?.failure !== undefined) this.#host.problem(answer.failure);
    const entries = (skills?.value ?? [])
      .filter(({ name }) => passes(this.#viewer.filter.skills, name))
      .map(({ uri, name, description, mimeType = 'text/markdown' }) => ({
        uri,
        name,
        description,
        mimeType,
      }));
    return [...entries, ...(resources?.value ?? [])].map((entry) => ({ ...entry, source: id }));
  }

  async #provider(parsed: RoutedUri, options: Options): Promise<Provider | undefined> {
    const says = this.#visible().map(async (registration) => {
      const { capability, id } = registration;
      if (!isResourceProvider(capability) || !schemesOf(registration).includes(parsed.scheme))
        return undefined;
      if (parsed.scheme === 'mcp' && parsed.authority !== id) return undefined;
      const exists = await this.#safely(registration, options, (context) =>
        capability.resourceExists(parsed.uri, context),
      );
      return exists && { registration, capability };
    });
    return (await this.#soon(says))[0];
  }

  async #readResource(
    parsed: RoutedUri,
    options: Options,
  ): Promise<readonly ContentPart[] | undefined> {
    const found = await this.#provider(parsed, options);
    return (
      found &&
      this.#ask(found.registration, options, (context) =>
        found.capability.readResource(parsed.uri, context),
      )
    );
  }

  async #readSkill(
    parsed: RoutedUri,
    options: Options,
  ): Promise<readonly ContentPart[] | undefined> {
    let missing: unknown;
    for (const candidate of await this.#skillCandidates(parsed, options)) {
      const { registration, capability, uri, path } = candidate;
      const skill = await this.#ask(registration, options, (context) =>
        capability.openSkill(uri, context),
      );
      if (skill === undefined) continue;
      if (path === undefined) {
        const { entry, body: text } = skill;
        const mimeType = entry.mimeType ?? 'text/markdown';
        return [{ type: 'resource', uri: entry.uri, mimeType, text }];
      }
      try {
        return await this.#ask(registration, options, ({ signal }) =>
          skill.readFile(path, { signal }),
        );
      } catch (error) {
        if (!PatchbayError.isInstance(error) || error.code !== 'not-found') throw error;
        missing = error;
      }
    }
    if (missing !== undefined) throw missing;
    return undefined;
  }

  /**
   * Who may have the skill, best first: by its URI, by the folder that is nearest to a file, by its name, by a name that
   * differs only in `_` and `-`.
   */
  async #skillCandidates(parsed: RoutedUri, options: Options): Promise<readonly Candidate[]> {
    const found = await this.#during(options, (patience) =>
      this.#soon(
        this.#visible().map(async (registration) => {
          const some = await this.#candidatesOf(registration, parsed, options, patience);
          return some.length > 0 && some;
        }),
      ),
    );
    // What a server serves stands behind everything else, however well its address fits.
    return found.flat().toSorted(
      by(
        ({ served }) => Number(served),
        ({ rank }) => rank,
        ({ precedence }) => -precedence,
      ),
    );
  }

  async #candidatesOf(
    registration: Registration,
    parsed: RoutedUri,
    options: Options,
    patience: Patience,
  ): Promise<readonly Candidate[]> {
    const { capability, answers } = registration;
    if (!isSkillResource(capability)) return [];
    const answer = await answers.of('skills')?.get({ viewer: this.#viewer }, patience);
    const listed = (answer?.value ?? []).flatMap((entry): readonly Candidate[] => {
      const match = matchOf(entry, parsed);
      if (match === undefined || !passes(this.#viewer.filter.skills, entry.name)) return [];
      const { uri, precedence = 0, served } = entry;
      return [
        { registration, capability, uri, precedence, served: served !== undefined, ...match },
      ];
    });
    if (listed.length > 0 || this.#viewer.filter.skills !== undefined) return listed;
    // A source may serve what it does not list.
    const { uri } = parsed;
    const exists = await this.#safely(registration, options, (context) =>
      capability.skillExists(uri, context),
    );
    const path = textOrPath(parsed);
    const unlisted = { registration, capability, uri, rank: 4, path, precedence: 0, served: true };
    return exists === true ? [unlisted] : [];
  }

  /** What there is, in the order of those who were asked. Who takes long is waited for where nobody else has it. */
  async #soon<T>(answers: readonly Promise<T | false | undefined>[]): Promise<readonly T[]> {
    const said: (T | false | undefined)[] = [];
    const all = Promise.all(answers.map(async (answer, i) => void (said[i] = await answer)));
    const found = () =>
      said.filter((answer): answer is T => answer !== undefined && answer !== false);
    await waitFor(all, this.#host.compileDeadlineMs);
    if (found().length === 0) await all;
    return found();
  }

  /** One source that fails does not keep another from answering. */
  async #safely<T>(
    registration: Registration,
    options: Options,
    question: (context: CompileContext) => Promise<T>,
  ): Promise<T | undefined> {
    try {
      return await this.#ask(registration, options, question);
    } catch (error) {
      if (options.signal?.aborted === true) throw error;
      this.#host.problem(problemFrom(registration.id, error));
      return undefined;
    }
  }

  #ask<T>(
    registration: Registration,
    { signal }: Options,
    question: (context: CompileContext) => Promise<T>,
  ): Promise<T> {
    return ask(registration, { viewer: this.#viewer }, question, signal);
  }

  async #during<T>({ signal }: Options, run: (patience: Patience) => Promise<T>): Promise<T> {
    const { stop, release } = untilAnyOf(signal, this.#viewer.ended);
    try {
      return await run({ deadlineMs: this.#host.sourceTimeoutMs, until: stop });
    } finally {
      release();
    }
  }
}

interface Provider {
  readonly registration: Registration;
  readonly capability: ResourceProvider;
}

interface Candidate extends Match {
  readonly registration: Registration;
  readonly capability: SkillResource;
  readonly uri: string;
  readonly precedence: number;
  readonly served: boolean;
}

/** How well a skill fits a URI. */
interface Match {
  /** The less the better. */
  readonly rank: number;
  /** Of the file within the skill that is meant; `undefined`: its text. */
  readonly path: string | undefined;
}

const notFound = (uri: string): PatchbayError =>
  new PatchbayError('not-found', `Nothing here has ${uri}.`, { details: { uri } });

const MANIFEST = '/SKILL.md';

const textOrPath = ({ path }: RoutedUri): string | undefined =>
  path === '' || path === 'SKILL.md' ? undefined : decodeURIComponent(path);

function matchOf(
  entry: { readonly uri: string; readonly name: string },
  parsed: RoutedUri,
): Match | undefined {
  if (entry.uri === parsed.uri) return { rank: 0, path: undefined };
  const folder = entry.uri.endsWith(MANIFEST) ? entry.uri.slice(0, -MANIFEST.length) : undefined;
  if (folder !== undefined && parsed.uri.startsWith(`${folder}/`)) {
    const path = decodeURIComponent(parsed.uri.slice(folder.length + 1));
    return { rank: 1 + 1 / folder.length, path };
  }
  const rank =
    entry.name === parsed.authority
      ? 2
      : folded(entry.name) === folded(parsed.authority)
        ? 3
        : undefined;
  return rank === undefined ? undefined : { rank, path: textOrPath(parsed) };
}

const folded = (name: string): string => name.replaceAll('_', '-');

function schemesOf({ capability }: Registration): readonly string[] {
  if (!isResourceProvider(capability)) return [];
  return (capability.uriSchemes ?? ['mcp']).map((scheme) => scheme.toLowerCase());
}
