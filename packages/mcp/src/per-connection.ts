import type {
  CommandEntry,
  Listing,
  PromptEntry,
  ResourceEntry,
  ToolDefinition,
} from '@patchbay/protocols';

/** What was read from one connection, and whether it is still right. */
export interface Lists {
  tools: Kept<Listing<ToolDefinition>>;
  resources: Kept<Listing<ResourceEntry>>;
  prompts: Kept<{
    readonly listing: Listing<PromptEntry>;
    readonly entries: readonly CommandEntry[];
  }>;
}

/** A list, kept until its server says that it changed or its connection was rebuilt. */
export class Kept<T> {
  #value: T | undefined;
  #generation = -1;
  #version = 0;
  #reading: Promise<T> | undefined;

  get value(): T | undefined {
    return this.#value;
  }

  invalidate(): void {
    this.#version++;
    this.#generation = -1;
  }

  isFresh(generation: number): boolean {
    return this.#value !== undefined && this.#generation === generation;
  }

  /** Everybody waits for the same reading. What changed while it was read is read again at the next question. */
  async read(ask: () => Promise<{ readonly value: T; readonly generation: number }>): Promise<T> {
    this.#reading ??= this.#ask(ask).finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #ask(ask: () => Promise<{ readonly value: T; readonly generation: number }>): Promise<T> {
    const version = this.#version;
    const { value, generation } = await ask();
    this.#value = value;
    this.#generation = version === this.#version ? generation : -1;
    return value;
  }
}

export function emptyLists(): Lists {
  return { tools: new Kept(), resources: new Kept(), prompts: new Kept() };
}
