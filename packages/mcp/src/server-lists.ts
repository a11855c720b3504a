import type {
  Listing,
  PromptEntry,
  ResourceEntry,
  ResourceTemplate,
  ServedSkill,
  ToolDefinition,
} from '@patchbay/protocols';

/** What was read from one connection, and whether it is still right. */
export interface Lists {
  readonly tools: Kept<Listing<ToolDefinition>>;
  readonly resources: Kept<Listing<ResourceEntry>>;
  readonly templates: Kept<Listing<ResourceTemplate>>;
  readonly prompts: Kept<Listing<PromptEntry>>;
  readonly skills: Kept<Listing<ServedSkill>>;
}

/** What a reading gave. */
interface Reading<T> {
  readonly value: T;
  /** Of the connection that it was read over. */
  readonly generation: number;
  /** How long it counts without being read again, in milliseconds. */
  readonly forMs: number;
}

/** A list, kept until its server says that it changed, its time is over, or its connection was rebuilt. */
export class Kept<T> {
  #value: T | undefined;
  #generation = -1;
  #version = 0;
  #until = Number.POSITIVE_INFINITY;
  #reading: Promise<T> | undefined;

  get value(): T | undefined {
    return this.#value;
  }

  /** When it has to be read again, whatever happens; as `performance.now()`. */
  get until(): number {
    return this.#generation === -1 ? Number.POSITIVE_INFINITY : this.#until;
  }

  invalidate(): void {
    this.#version++;
    this.#generation = -1;
  }

  isFresh(generation: number): boolean {
    return this.#value !== undefined && this.#generation === generation;
  }

  /** Everybody waits for the same reading. What changed while it was read is read again at the next question. */
  async read(ask: () => Promise<Reading<T>>): Promise<T> {
    this.#reading ??= this.#ask(ask).finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #ask(ask: () => Promise<Reading<T>>): Promise<T> {
    const version = this.#version;
    const { value, generation, forMs } = await ask();
    this.#value = value;
    this.#generation = version === this.#version ? generation : -1;
    this.#until = performance.now() + forMs;
    return value;
  }
}

/** For so many askers lists are kept; the oldest are read again. */
const MAX_ASKERS = 1_000;
/** What cannot be relied on is read again after so long, in milliseconds; not at every question. */
const DOUBTFUL_MS = 30_000;

/** The lists of one server, for each of those whom its `sharing` keeps apart: a list never crosses an identity. */
export class ServerLists {
  readonly #byKey = new Map<string, Lists>();
  #nextEnd = Number.POSITIVE_INFINITY;

  of(key: string): Lists {
    const known = this.#byKey.get(key);
    if (known !== undefined) return known;
    const lists = {
      tools: new Kept<Listing<ToolDefinition>>(),
      resources: new Kept<Listing<ResourceEntry>>(),
      templates: new Kept<Listing<ResourceTemplate>>(),
      prompts: new Kept<Listing<PromptEntry>>(),
      skills: new Kept<Listing<ServedSkill>>(),
    };
    this.#byKey.set(key, lists);
    if (this.#byKey.size > MAX_ASKERS) this.#byKey.delete(this.#byKey.keys().next().value!);
    return lists;
  }

  known(key: string): Lists | undefined {
    return this.#byKey.get(key);
  }

  /** A list was read that ends at this time. */
  endsAt(time: number): void {
    this.#nextEnd = Math.min(this.#nextEnd, time);
  }

  /** Lists whose time is over do not count any more. Whether there were any since the last look. */
  sweep(): boolean {
    const now = performance.now();
    if (now < this.#nextEnd) return false;
    this.#nextEnd = Number.POSITIVE_INFINITY;
    let found = false;
    for (const lists of this.#byKey.values()) {
      for (const kept of Object.values(lists) as readonly Kept<unknown>[]) {
        if (now < kept.until) {
          this.endsAt(kept.until);
        } else {
          kept.invalidate();
          found = true;
        }
      }
    }
    return found;
  }

  clear(): void {
    this.#byKey.clear();
  }
}

/**
 * How long a list counts without being read again, in milliseconds: as long as its server says; for ever, where the server
 * tells changes or knows no such hint. (MCP 2026-07-28, "Caching")
 */
export function lifetimeMs(
  { ttlMs, incomplete }: Pick<Listing<unknown>, 'ttlMs' | 'incomplete'>,
  tellsChanges: boolean,
): number {
  if (incomplete === true) return DOUBTFUL_MS;
  if (ttlMs === undefined) return Number.POSITIVE_INFINITY;
  if (ttlMs > 0) return ttlMs;
  return tellsChanges ? Number.POSITIVE_INFINITY : DOUBTFUL_MS;
}
