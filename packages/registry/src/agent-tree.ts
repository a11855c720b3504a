/** An agent that was started of another: `coder#2` of `coder`. */
const INSTANCE = /#\d+$/;

/** Which of two sides of a path are walked. */
interface Sides {
  /** What agents higher up have, and those that this one was started of: it sees that. */
  readonly above?: boolean;
  /** What agents further down have, and those that were started of this one: they end with it. */
  readonly below?: boolean;
}

/**
 * What belongs to agents of one session each, by the parts of their paths: whatever is about one agent costs what is on its
 * path, or below it, however many others there are. What belongs to no agent is at the root, above all.
 */
export class AgentTree<T> {
  readonly #items = new Set<T>();
  /** By name without a number, then by name. */
  readonly #next = new Map<string, Map<string, AgentTree<T>>>();

  get isEmpty(): boolean {
    return this.#items.size === 0 && this.#next.size === 0;
  }

  add(agent: string | undefined, item: T): void {
    this.#add(partsOf(agent), item);
  }

  /** Whether it was there. */
  delete(agent: string | undefined, item: T): boolean {
    return this.#delete(partsOf(agent), item);
  }

  /** What an agent can have to do with: its own, and that of the sides asked for. */
  walk(agent: string | undefined, sides: Sides): Iterable<T> {
    return this.#walk(partsOf(agent), sides);
  }

  *#walk([part, ...rest]: readonly string[], sides: Sides): Iterable<T> {
    if (part === undefined || sides.above === true) yield* this.#items;
    if (part !== undefined)
      for (const tree of this.#met(part, sides)) yield* tree.#walk(rest, sides);
    else if (sides.below === true)
      for (const named of this.#next.values())
        for (const tree of named.values()) yield* tree.#walk([], sides);
  }

  *#met(part: string, { above, below }: Sides): Iterable<AgentTree<T>> {
    const plain = plainOf(part);
    const itself = this.#child(part);
    if (itself !== undefined) yield itself;
    const startedOf = above === true && plain !== part ? this.#child(plain) : undefined;
    if (startedOf !== undefined) yield startedOf;
    if (below !== true) return;
    for (const [name, tree] of this.#next.get(part) ?? []) if (name !== part) yield tree;
  }

  #child(part: string): AgentTree<T> | undefined {
    return this.#next.get(plainOf(part))?.get(part);
  }

  #add([part, ...rest]: readonly string[], item: T): void {
    if (part === undefined) this.#items.add(item);
    else (this.#child(part) ?? this.#grow(part)).#add(rest, item);
  }

  #grow(part: string): AgentTree<T> {
    const plain = plainOf(part);
    const named = this.#next.get(plain) ?? new Map<string, AgentTree<T>>();
    const tree = new AgentTree<T>();
    this.#next.set(plain, named.set(part, tree));
    return tree;
  }

  #delete([part, ...rest]: readonly string[], item: T): boolean {
    if (part === undefined) return this.#items.delete(item);
    const tree = this.#child(part);
    if (tree === undefined || !tree.#delete(rest, item)) return false;
    if (tree.isEmpty) {
      const named = this.#next.get(plainOf(part))!;
      named.delete(part);
      if (named.size === 0) this.#next.delete(plainOf(part));
    }
    return true;
  }
}

const partsOf = (agent: string | undefined): readonly string[] => agent?.split('/') ?? [];
const plainOf = (part: string): string => part.replace(INSTANCE, '');
