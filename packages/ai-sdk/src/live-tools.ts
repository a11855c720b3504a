import type { ToolSet } from 'ai';

/** Marks what `toolSearch()` of ai makes; only types are taken from a peer. */
const SEARCH = Symbol.for('vercel.ai.toolSearch');
/** Beyond this many, tools that are not offered now are forgotten. */
const MAX_KNOWN = 1000;

/** Tools of ours by name, in the order in which they are offered. Never changed: another offer is another map. */
export type Offer = ReadonlyMap<string, ToolSet[string]>;

/**
 * The object of tools that runs hold. The AI SDK reads it anew at each step, so it is changed in place. What is gone stays
 * in it, so that open calls and stored conversations find it; which ones a step may use is said by name.
 *
 * The program's own tools come first, then ours sorted by name: the same tools give the same prompt, whichever joined
 * first.
 */
export class LiveTools {
  /** Made as a dictionary: thousands of names in an ordinary object are thousands of shapes before it becomes one. */
  readonly object: ToolSet = Object.setPrototypeOf(
    Object.create(null),
    Object.prototype,
  ) as ToolSet;
  readonly #own: ToolSet;
  readonly #onClash: (name: string) => void;
  #known: Offer;
  /** What was learnt last. */
  #learnt: Offer | undefined;

  /** `onClash` hears of each tool that is not offered, because the program has one of that name. */
  constructor(own: ToolSet, onClash: (name: string) => void, known: Offer = new Map()) {
    this.#own = own;
    this.#onClash = onClash;
    this.#known = known;
    this.#write();
  }

  /** Whether the program has the tool with which models of 7 find deferred ones. */
  get canSearch(): boolean {
    return Object.values(this.#own).some((tool) => SEARCH in tool);
  }

  /** Without the program's own. */
  get known(): Offer {
    return this.#known;
  }

  learn(tools: Offer): void {
    if (tools === this.#learnt) return;
    this.#learnt = tools;
    if (!this.#hasNews(tools)) return;
    const full = this.#known.size > MAX_KNOWN;
    this.#known = full || this.#known.size === 0 ? tools : new Map([...this.#known, ...tools]);
    this.#write();
  }

  /** Takes in what a step offers. Gives every name that it may use. A tool of the program hides ours of the same name. */
  offer(tools: Offer): readonly string[] {
    this.learn(tools);
    const own = Object.keys(this.#own);
    for (const name of own) if (tools.has(name)) this.#onClash(name);
    return [...new Set([...own, ...tools.keys()])];
  }

  #hasNews(tools: Offer): boolean {
    for (const [name, tool] of tools) if (this.#known.get(name) !== tool) return true;
    return false;
  }

  #write(): void {
    const { object } = this;
    for (const name of Object.keys(object)) delete object[name];
    Object.assign(object, this.#own);
    // By code unit.
    for (const name of [...this.#known.keys()].toSorted())
      if (!Object.hasOwn(this.#own, name)) object[name] = this.#known.get(name)!;
  }
}
