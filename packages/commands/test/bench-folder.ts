import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

import { markdownCommands, type MarkdownCommandsOptions } from '@patchbay/commands';
import type { CommandRouter, Problem, ResolvedCommand } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';

/** A folder of its own for a test, a registry, and what was told of. */
export interface BenchFolder extends AsyncDisposable {
  readonly root: string;
  readonly registry: ExtensionRegistry;
  readonly problems: readonly Problem[];
  readonly commands: CommandRouter;
  write(path: string, text: string | Uint8Array): Promise<void>;
  /** Registers commands. Default: those of the whole folder, as `mine`. */
  register(options?: Partial<MarkdownCommandsOptions>): void;
  /** The text that a line comes to. */
  readonly text: (line: string) => Promise<string>;
}

export async function benchFolder(): Promise<BenchFolder> {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'patchbay-commands-')));
  const problems: Problem[] = [];
  const registry = new ExtensionRegistry({ onProblem: (problem) => void problems.push(problem) });
  const { commands } = registry.view({ session: 's' });
  return {
    root,
    registry,
    problems,
    commands,
    write: async (path, text) => {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), text);
    },
    register: (options = {}) =>
      void registry.register(markdownCommands({ id: 'mine', folder: root, ...options })),
    text: async (line) => textOf(await commands.resolve(line)),
    [Symbol.asyncDispose]: async () => {
      await registry.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}

function textOf(resolved: ResolvedCommand | undefined): string {
  if (resolved?.ok !== true) throw new Error(resolved?.message ?? 'It is no command.');
  return resolved.content.map((part) => ('text' in part ? part.text : part.type)).join('');
}
