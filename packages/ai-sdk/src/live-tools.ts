import type { ToolSet } from 'ai';

/** Marks what `toolSearch()` of ai makes; only types are taken from a peer. */
const SEARCH = Symbol.for('vercel.ai.toolSearch');
/** Beyond this many, tools that are not offered now are forgotten. */
const MAX_KNOWN = 1000;

/**
 * The object of tools that runs hold. The AI SDK reads it anew at each step, so it is changed in place. What is gone stays
 * in it, so that open calls and stored conversations find it; which ones a step may use is said by name.
 *
 * The program's own tools come first, then ours sorted by name: the same tools give the same prompt, whichever joined
 * first.
 */
export class LiveTools {
  readonly object: ToolSet = {};
  readonly #own: ToolSet;
  readonly #onClash: (name: string) => void;
  #known: ToolSet;
  /** What was learnt last. */
  #learnt: ToolSet | undefined;

  /** `onClash` hears of each tool that is not offered, because the program has one of that name. */
  constructor(own: ToolSet, onClash: (name: string) => void, known: ToolSet = {}) {
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
  get known(): ToolSet {
    return this.#known;
  }

  learn(tools: ToolSet): void {
    if (tools === this.#learnt) return;
    this.#learnt = tools;
    const isNew = Object.entries(tools).some(([name, tool]) => this.#known[name] !== tool);
    if (!isNew) return;
    const full = Object.keys(this.#known).length > MAX_KNOWN;
    this.#known = full ? tools : { ...this.#known, ...tools };
    this.#write();
  }

  /** Takes in what a step offers. Gives every name that it may use. A tool of the program hides ours of the same name. */
  offer(tools: ToolSet): readonly string[] {
    this.learn(tools);
    for (const name of Object.keys(tools)) if (Object.hasOwn(this.#own, name)) this.#onClash(name);
    return [...new Set([...Object.keys(this.#own), ...Object.keys(tools)])];
  }

  #write(): void {
    for (const name of Object.keys(this.object)) delete this.object[name];
    const ours = Object.entries(this.#known).filter(([name]) => !Object.hasOwn(this.#own, name));
    Object.assign(this.object, this.#own, Object.fromEntries(ours.toSorted(byName)));
  }
}

const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]) =>
  a < b ? -1 : a > b ? 1 : 0;
