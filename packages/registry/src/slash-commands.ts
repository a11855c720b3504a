import {
  isCommandResource,
  problemFrom,
  toPatchbayError,
  type CommandEntry,
  type CommandRouter,
  type CompileContext,
  type ResolvedCommand,
} from '@patchbay/protocols';

import { ask } from './ask.ts';
import { by } from './by.ts';
import { parseCommandLine, splitWords } from './command-line.ts';
import type { CompilerHost } from './compiler.ts';
import { nearNames } from './near-names.ts';
import type { Registration } from './registration.ts';
import type { Viewer } from './viewer.ts';

interface Routed {
  readonly entry: CommandEntry;
  readonly registration: Registration;
}

/**
 * Slash commands of every source in one list. Of two with one name the one of greater precedence (then the first by
 * source id) has the plain name; each is reached by `<source>:<name>` too.
 */
export class SlashCommands implements CommandRouter {
  readonly #viewer: Viewer;
  readonly #host: CompilerHost;

  constructor(viewer: Viewer, host: CompilerHost) {
    this.#viewer = viewer;
    this.#host = host;
  }

  async list(): Promise<readonly (CommandEntry & { readonly source: string })[]> {
    const { shown } = await this.#table();
    return [...shown]
      .toSorted(by(([name]) => name))
      .map(([name, { entry, registration }]) => ({ ...entry, name, source: registration.id }));
  }

  async resolve(
    line: string,
    options: { readonly signal?: AbortSignal } = {},
  ): Promise<ResolvedCommand | undefined> {
    const typed = parseCommandLine(line);
    if (typed === undefined) return undefined;
    const { reachable, shown } = await this.#table();
    const routed = reachable.get(typed.name);
    if (routed === undefined) {
      const suggestions = nearNames(typed.name, [...shown.keys()]);
      const perhaps =
        suggestions.length === 0
          ? ''
          : ` Did you mean ${suggestions.map((s) => `/${s}`).join(' or ')}?`;
      return {
        ok: false,
        code: 'command-unknown',
        message: `Unknown command: /${typed.name}.${perhaps}`,
        suggestions,
      };
    }
    const { entry, registration } = routed;
    const { capability, id } = registration;
    try {
      if (!isCommandResource(capability)) throw new Error(`"${id}" has no commands any more.`);
      const { messages } = await this.#ask(registration, options.signal, (context) =>
        capability.getCommand(entry.name, typed.args, context),
      );
      return {
        ok: true,
        name: entry.name,
        source: id,
        messages,
        content: messages.flatMap(({ content }) => content),
      };
    } catch (thrown) {
      const error = toPatchbayError(thrown, 'source-failed', {
        source: id,
        what: `/${typed.name} of "${id}" failed`,
      });
      return { ok: false, code: error.code, message: error.message, suggestions: [] };
    }
  }

  async complete(line: string): Promise<string[]> {
    if (!/^\s*\//.test(line)) return [];
    const { shown, reachable } = await this.#table();
    const name = /^\s*\/(\S*)$/.exec(line)?.[1];
    if (name !== undefined) {
      return [...shown.keys()]
        .filter((known) => known.startsWith(name))
        .toSorted()
        .map((known) => `/${known}`);
    }
    const typed = parseCommandLine(line);
    const routed = typed === undefined ? undefined : reachable.get(typed.name);
    if (typed === undefined || routed === undefined) return [];
    return this.#completeArgument(line, routed);
  }

  async #completeArgument(line: string, { entry, registration }: Routed): Promise<string[]> {
    const { capability } = registration;
    if (!isCommandResource(capability) || capability.completeArgument === undefined) return [];
    const value = /\S*$/.exec(line)![0];
    const before = line.slice(0, line.length - value.length);
    const [, ...words] = splitWords(before); // the first word is the command
    const argument = entry.arguments?.[words.length];
    if (argument === undefined) return [];
    try {
      const given = Object.fromEntries(words.map((word, i) => [entry.arguments![i]!.name, word]));
      const values = await this.#ask(registration, undefined, (context) =>
        capability.completeArgument!(entry.name, argument.name, value, context, given),
      );
      return values.map((text) => before + (/[\s"]/.test(text) ? JSON.stringify(text) : text));
    } catch (error) {
      this.#host.problem(problemFrom(registration.id, error));
      return [];
    }
  }

  async #table(): Promise<{
    readonly shown: ReadonlyMap<string, Routed>;
    readonly reachable: ReadonlyMap<string, Routed>;
  }> {
    const patience = { deadlineMs: this.#host.sourceTimeoutMs, until: this.#viewer.ended };
    const lists = await Promise.all(
      this.#host.visible(this.#viewer.scope).map(async (registration) => {
        const answer = await registration.answers
          .of('commands')
          ?.get({ viewer: this.#viewer }, patience);
        if (answer?.failure !== undefined) this.#host.problem(answer.failure);
        for (const problem of answer?.problems ?? []) this.#host.problem(problem);
        return (answer?.value ?? []).map((entry) => ({ entry, registration }));
      }),
    );
    const all = lists
      .flat()
      .toSorted((a, b) => (b.entry.precedence ?? 0) - (a.entry.precedence ?? 0));
    const shown = new Map<string, Routed>();
    const reachable = new Map<string, Routed>();
    for (const routed of all) {
      const qualified = `${routed.registration.id}:${routed.entry.name}`;
      if (!reachable.has(qualified)) reachable.set(qualified, routed);
      const name = shown.has(routed.entry.name) ? qualified : routed.entry.name;
      if (!shown.has(name)) shown.set(name, routed);
    }
    for (const [name, routed] of shown) reachable.set(name, routed);
    return { shown, reachable };
  }

  #ask<T>(
    registration: Registration,
    until: AbortSignal | undefined,
    question: (context: CompileContext) => Promise<T>,
  ): Promise<T> {
    return ask(registration, { viewer: this.#viewer }, question, until);
  }
}
