import {
  assignArguments,
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
import { parseCommandLine, quoteWord, wordsIn } from './command-line.ts';
import { nameCommands, type CommandNames, type Routed } from './command-names.ts';
import type { CompilerHost } from './compiler.ts';
import { nearNames } from './near-names.ts';
import type { Registration } from './registration.ts';
import type { TrackedContext } from './tracked-context.ts';
import type { Viewer } from './viewer.ts';

/** Stands where somebody is typing. */
const HERE = '\0';

/** Slash commands of every source in one list, each under the name that {@link nameCommands} gives it. */
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
    const { reachable, shown, failed } = await this.#table();
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
        message: `Unknown command: /${typed.name}.${perhaps}${withoutThem(failed)}`,
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
    const { arguments: declared = [], name } = entry;
    if (!isCommandResource(capability) || capability.completeArgument === undefined) return [];
    const words = wordsIn(line, true).slice(1); // without the command
    const open = words.at(-1)?.to === line.length ? words.at(-1) : undefined;
    const before = (open === undefined ? words : words.slice(0, -1)).map(({ text }) => text);
    const typed = open?.text ?? '';
    const [assigned = '', argumentName] = /^(?:--)?([^=\s]+)=/.exec(typed) ?? [];
    const prefix = declared.some((one) => one.name === argumentName) ? assigned : '';
    // Whichever argument would get what is typed here.
    const { values } = assignArguments(declared, [...before, prefix + HERE]);
    const { [HERE]: argument } = Object.fromEntries(
      Object.entries(values).map(([key, value]) => [value, key]),
    );
    if (argument === undefined) return [];
    const given = Object.fromEntries(Object.entries(values).filter(([key]) => key !== argument));
    const start = line.slice(0, open?.from ?? line.length) + prefix;
    const value = typed.slice(prefix.length);
    try {
      const found = await this.#ask(registration, undefined, (context) =>
        capability.completeArgument!(name, argument, value, context, given),
      );
      return found.map((text) => start + quoteWord(text));
    } catch (error) {
      this.#host.problem(problemFrom(registration.id, error));
      return [];
    }
  }

  async #table(): Promise<CommandNames & { readonly failed: readonly string[] }> {
    const patience = { deadlineMs: this.#host.sourceTimeoutMs, until: this.#viewer.ended };
    const failed: string[] = [];
    const lists = await Promise.all(
      this.#host.visible(this.#viewer.scope).map(async (registration) => {
        const answer = await registration.answers
          .of('commands')
          ?.get({ viewer: this.#viewer }, patience);
        if (answer?.failure !== undefined) {
          failed.push(registration.id);
          this.#host.problem(answer.failure);
        }
        for (const problem of answer?.problems ?? []) this.#host.problem(problem);
        return (answer?.value ?? []).map((entry) => ({ entry, registration }));
      }),
    );
    const names = nameCommands(lists.flat());
    for (const problem of names.problems) this.#host.problem(problem);
    return { ...names, failed: failed.toSorted() };
  }

  /** What is reported meanwhile is told as well. */
  #ask<T>(
    registration: Registration,
    signal: AbortSignal | undefined,
    question: (context: CompileContext) => Promise<T>,
  ): Promise<T> {
    const telling = async (context: TrackedContext) => {
      try {
        return await question(context);
      } finally {
        for (const problem of context.reported) this.#host.problem(problem);
      }
    };
    return ask(registration, { viewer: this.#viewer }, telling, signal);
  }
}

function withoutThem(failed: readonly string[]): string {
  if (failed.length === 0) return '';
  return ` The commands of ${failed.map((id) => `"${id}"`).join(', ')} could not be listed.`;
}
