import {
  isResourceProvider,
  isSkillResource,
  PatchbayError,
  problemFrom,
  type ChangeEvent,
  type ContentPart,
  type OpenSkill,
  type Problem,
  type CompileContext,
  type ResourceEntry,
  type ResourceProvider,
  type ResourceView,
} from '@patchbay/protocols';

import type { CompilerHost } from './compiler.ts';
import type { Registration } from './registration.ts';
import { TrackedContext } from './tracked-context.ts';
import { parseUri, type RoutedUri } from './uri.ts';
import { passes, type Viewer } from './viewer.ts';

interface Options {
  readonly signal?: AbortSignal;
}

/** Finds who answers for a URI: the cheap question first, the reading after. (RFC-0051 "URI Routing") */
export class ResourceRouter implements ResourceView {
  readonly #viewer: Viewer;
  readonly #host: CompilerHost;
  readonly #changes: (options?: Options) => AsyncIterable<ChangeEvent>;
  readonly #report: (problem: Problem) => void;

  constructor(
    viewer: Viewer,
    host: CompilerHost,
    changes: (options?: Options) => AsyncIterable<ChangeEvent>,
  ) {
    this.#viewer = viewer;
    this.#host = host;
    this.#changes = changes;
    this.#report = (problem) => host.problem(problem);
  }

  async list(
    options: Options = {},
  ): Promise<readonly (ResourceEntry & { readonly source: string })[]> {
    const patience = { deadlineMs: this.#host.sourceTimeoutMs, ...options };
    const lists = await Promise.all(
      this.#visible().map(async ({ id, answers }) => {
        const skills = await answers.of('skills')?.get(this.#viewer, this.#host, [], patience);
        const resources = await answers
          .of('resources')
          ?.get(this.#viewer, this.#host, [], patience);
        for (const answer of [skills, resources])
          if (answer?.failure !== undefined) this.#report(answer.failure);
        const entries = (skills?.value ?? [])
          .filter(({ name }) => passes(this.#viewer.filter.skills, name))
          .map(({ uri, name, description, mimeType }) => ({
            uri,
            name,
            description,
            mimeType: mimeType ?? 'text/markdown',
          }));
        return [...entries, ...(resources?.value ?? [])].map((entry) => ({ ...entry, source: id }));
      }),
    );
    return lists.flat().toSorted((a, b) => (a.uri < b.uri ? -1 : Number(a.uri > b.uri)));
  }

  async read(uri: string, options: Options = {}): Promise<readonly ContentPart[]> {
    const parsed = this.#parse(uri);
    const found =
      parsed.scheme === 'skill'
        ? await this.#readSkill(parsed, options)
        : await this.#readResource(parsed, options);
    if (found === undefined) throw notFound(uri);
    return found;
  }

  async exists(uri: string, options: Options = {}): Promise<boolean> {
    const parsed = this.#parse(uri);
    if (parsed.scheme !== 'skill') return (await this.#provider(parsed, options)) !== undefined;
    if (isSkillText(parsed)) {
      for (const candidate of await this.#skillCandidates(parsed, options)) {
        if (await this.#safely(candidate.registration, () => candidate.exists())) return true;
      }
      return false;
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
    const { provider, context } = provided;
    if (provider.watchResource === undefined)
      throw new PatchbayError('not-supported', `Updates of ${uri} are not told.`);
    const stop = await provider.watchResource(parsed.uri, context);
    const end = () =>
      void stop().catch((error: unknown) => this.#report(problemFrom(provided.id, error)));
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

  async #provider(parsed: RoutedUri, options: Options): Promise<Provided | undefined> {
    for (const registration of this.#visible()) {
      const { capability, id } = registration;
      if (!isResourceProvider(capability) || !schemesOf(registration).includes(parsed.scheme))
        continue;
      if (parsed.scheme === 'mcp' && parsed.authority !== id) continue;
      const context = this.#context(registration, options);
      const exists = await this.#safely(registration, () =>
        capability.resourceExists(parsed.uri, context),
      );
      if (exists === true) return { id, provider: capability, context };
    }
    return undefined;
  }

  async #readResource(
    parsed: RoutedUri,
    options: Options,
  ): Promise<readonly ContentPart[] | undefined> {
    const provided = await this.#provider(parsed, options);
    return provided?.provider.readResource(parsed.uri, provided.context);
  }

  async #readSkill(
    parsed: RoutedUri,
    options: Options,
  ): Promise<readonly ContentPart[] | undefined> {
    for (const candidate of await this.#skillCandidates(parsed, options)) {
      const skill = await candidate.open();
      if (skill === undefined) continue;
      if (!isSkillText(parsed)) return skill.readFile(decodeURIComponent(parsed.path), options);
      const { uri, mimeType } = skill.entry;
      return [{ type: 'resource', uri, mimeType: mimeType ?? 'text/markdown', text: skill.body }];
    }
    return undefined;
  }

  /** Who may have the skill, best first: by its URI, by its name, by a name that differs only in `_` and `-`. */
  async #skillCandidates(parsed: RoutedUri, options: Options): Promise<readonly Candidate[]> {
    const patience = { deadlineMs: this.#host.sourceTimeoutMs, ...options };
    const found: (Candidate & { rank: number; precedence: number })[] = [];
    for (const registration of this.#visible()) {
      const { capability, answers } = registration;
      if (!isSkillResource(capability)) continue;
      const context = this.#context(registration, options);
      const answer = await answers.of('skills')?.get(this.#viewer, this.#host, [], patience);
      const candidate = (uri: string, rank: number, precedence: number) =>
        found.push({
          registration,
          rank,
          precedence,
          exists: () => capability.skillExists(uri, context),
          open: () => capability.openSkill(uri, context),
        });
      let listed = false;
      for (const entry of answer?.value ?? []) {
        if (!passes(this.#viewer.filter.skills, entry.name)) continue;
        const rank = rankOf(entry, parsed);
        if (rank === undefined) continue;
        listed = true;
        candidate(entry.uri, rank, entry.precedence ?? 0);
      }
      // A source may serve what it does not list.
      if (!listed && this.#viewer.filter.skills === undefined) {
        const exists = await this.#safely(registration, () =>
          capability.skillExists(parsed.uri, context),
        );
        if (exists === true) candidate(parsed.uri, 3, 0);
      }
    }
    return found.toSorted((a, b) => a.rank - b.rank || b.precedence - a.precedence);
  }

  /** One source that fails does not keep another from answering. */
  async #safely<T>(registration: Registration, ask: () => Promise<T>): Promise<T | undefined> {
    try {
      return await ask();
    } catch (error) {
      this.#report(problemFrom(registration.id, error));
      return undefined;
    }
  }

  #context(registration: Registration, { signal }: Options): TrackedContext {
    const peers = this.#host.peers(this.#viewer, [registration]);
    return new TrackedContext(this.#viewer, peers, signal ?? registration.gone.signal);
  }
}

/** Who has a resource, and with what it is asked. */
interface Provided {
  readonly id: string;
  readonly provider: ResourceProvider;
  readonly context: CompileContext;
}

interface Candidate {
  readonly registration: Registration;
  exists(): Promise<boolean>;
  open(): Promise<OpenSkill | undefined>;
}

const isSkillText = ({ path }: RoutedUri): boolean => path === '' || path === 'SKILL.md';

function rankOf(
  entry: { readonly uri: string; readonly name: string },
  parsed: RoutedUri,
): number | undefined {
  if (entry.uri === parsed.uri) return 0;
  if (entry.name === parsed.authority) return 1;
  return folded(entry.name) === folded(parsed.authority) ? 2 : undefined;
}

const folded = (name: string): string => name.replaceAll('_', '-');

function schemesOf({ capability }: Registration): readonly string[] {
  if (!isResourceProvider(capability)) return [];
  return capability.uriSchemes ?? ['mcp'];
}

function notFound(uri: string): PatchbayError {
  return new PatchbayError('not-found', `Nothing here has ${uri}.`, { details: { uri } });
}
