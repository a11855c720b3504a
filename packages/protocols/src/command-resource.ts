import type { CompileContext } from './capability.ts';
import type { ContentPart, PromptMessage } from './content.ts';

/** A declared argument of a command. */
export interface CommandArgument {
  readonly name: string;
  readonly description?: string;
  readonly required?: boolean;
}

/** A slash command as a list shows it. */
export interface CommandEntry {
  /** Without the slash, as its source names it; `group:name` for namespaces. */
  readonly name: string;
  readonly description: string;
  readonly arguments?: readonly CommandArgument[];
  /** Shown behind the name while it is typed: `[id] [--all]`. */
  readonly hint?: string;
  /** Where it comes from, for people. */
  readonly origin: string;
  readonly kind: 'skill' | 'file' | 'prompt' | (string & {});
  /**
   * Among several of one name the greatest is reached by the plain name; the others by `<source>:<name>`. What lies here is
   * greater than what a server says: project 30, user 20, MCP 0. Default 0.
   */
  readonly precedence?: number;
  /** Frontmatter as written, unknown keys included, where there is any; every scalar is text. */
  readonly frontmatter?: Readonly<Record<string, unknown>>;
}

/** What was typed behind a command. */
export interface CommandArguments {
  /** As typed, without the command itself. */
  readonly raw: string;
  /** Split as a shell would, quotes removed. */
  readonly positional: readonly string[];
  /** `name=value` and `--name value`, for commands that declare arguments: see {@link assignArguments}. */
  readonly named: Readonly<Record<string, string>>;
}

/** What a command resolves to. */
export interface CommandPrompt {
  readonly messages: readonly PromptMessage[];
}

/** Provides commands that a user triggers. (RFC-0051 "CommandResource") */
export interface CommandResource {
  listCommands(context: CompileContext): Promise<readonly CommandEntry[]>;
  /** @throws PatchbayError `not-found`, `command-arguments` */
  getCommand(name: string, args: CommandArguments, context: CompileContext): Promise<CommandPrompt>;
  /** Completions of one argument. `given`: what was typed for the other arguments of the command, by name. */
  completeArgument?(
    name: string,
    argument: string,
    value: string,
    context: CompileContext,
    given?: Readonly<Record<string, string>>,
  ): Promise<readonly string[]>;
}

/** A command of another capability, as `peers.commands()` gives it. */
export interface PeerCommand {
  readonly source: string;
  readonly entry: CommandEntry;
}

/** What a typed line came to. */
export type ResolvedCommand =
  | {
      readonly ok: true;
      readonly name: string;
      readonly source: string;
      readonly messages: readonly PromptMessage[];
      /** The parts of all messages, in order. */
      readonly content: readonly ContentPart[];
    }
  | {
      readonly ok: false;
      /** `command-unknown`, `command-arguments`, or what the source failed with. */
      readonly code: string;
      /** For the user: what is wrong and what was perhaps meant. */
      readonly message: string;
      readonly suggestions: readonly string[];
    };

/** The slash commands of one view. */
export interface CommandRouter {
  /** Every command under the name by which it is reached, sorted. */
  list(): Promise<readonly (CommandEntry & { readonly source: string })[]>;
  /** `undefined` if the line is not a slash command. Never throws for what a user types. */
  resolve(
    line: string,
    options?: { readonly signal?: AbortSignal },
  ): Promise<ResolvedCommand | undefined>;
  /** Whole lines that the typed one could become: names, then argument values. As `readline` takes them. */
  complete(line: string): Promise<string[]>;
}
