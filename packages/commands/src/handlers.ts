import type { CompileContext, ContentPart } from '@patchbay/protocols';

/** A template asks for what a shell command says. */
export interface ShellRequest {
  /** As the file has it: values are never in it. */
  readonly command: string;
  /** What `$0`, `$1`, … in it stand for: `execFile('sh', ['-c', command, ...parameters])`. */
  readonly parameters: readonly string[];
  /** What `$ARGUMENTS` and names in it stand for: for its environment, below what the program has there itself. */
  readonly variables: Readonly<Record<string, string>>;
  /** Which slash command it is, and where its file is. */
  readonly name: string;
  readonly file: string;
}

/** A template asks for a file. */
export interface FileRequest {
  /** As written behind the `@`, with the arguments in it. May lead anywhere: keep it inside of what may be read. */
  readonly path: string;
  /** Which slash command it is, and where its file is. */
  readonly name: string;
  readonly file: string;
}

/** Who does what templates ask for beyond text. Without a handler nothing is done: the text stays, and a problem says so. */
export interface CommandHandlers {
  /** Gives what the command says. Where it rejects the slash command fails; in OpenCode's files it leaves nothing instead. */
  readonly runShell?: (request: ShellRequest, context: CompileContext) => Promise<string>;
  /** Gives a file, as text or as parts (an image, say). `undefined`: it means no file, and stays as it is. */
  readonly readFile?: (
    request: FileRequest,
    context: CompileContext,
  ) => Promise<string | readonly ContentPart[] | undefined>;
}
