import { sha256Hex, type CommandEntry, type Problem } from '@patchbay/protocols';

import type { Registration } from './registration.ts';

/** A command, and who has it. */
export interface Routed {
  readonly entry: CommandEntry;
  readonly registration: Registration;
}

/** The names of all commands of one view. */
export interface CommandNames {
  /** Each command under one name. */
  readonly shown: ReadonlyMap<string, Routed>;
  /** Every name that leads to a command: those that are shown, and `<source>:<name>`. */
  readonly reachable: ReadonlyMap<string, Routed>;
  /** Who lost a name, and what it is called by now. */
  readonly problems: readonly Problem[];
}

/** Among several of one precedence. What a server writes takes no name from its own prompts, a file none from a skill. */
const KINDS: readonly string[] = ['prompt', 'skill', 'file'];

/**
 * Names commands, which come in the order of their sources. Of several that would have one name the greatest precedence
 * keeps it, then the first kind of `prompt`, `skill`, `file`, then the first source; the others are called
 * `<source>:<name>`, and if that is taken too, the same with a suffix made of both. No name depends on the order in which
 * sources came. A file that two sources list is one command.
 */
export function nameCommands(commands: readonly Routed[]): CommandNames {
  const shown = new Map<string, Routed>();
  const lost: Routed[] = [];
  const files = new Set<string>();
  const sorted = commands.toSorted(
    (a, b) =>
      (b.entry.precedence ?? 0) - (a.entry.precedence ?? 0) ||
      rank(a.entry.kind) - rank(b.entry.kind),
  );
  for (const routed of sorted) {
    const { name, kind, origin } = routed.entry;
    const file = JSON.stringify([name, origin]);
    if (kind === 'file' && files.has(file)) continue;
    if (kind === 'file') files.add(file);
    if (shown.has(typable(name))) lost.push(routed);
    else shown.set(typable(name), routed);
  }
  const problems: Problem[] = [];
  for (const routed of lost) {
    const name = freeName(routed, shown);
    problems.push(shadowed(routed, name, shown.get(typable(routed.entry.name))!));
    shown.set(name, routed);
  }
  const reachable = new Map(shown);
  for (const routed of sorted) {
    const name = qualified(routed);
    if (!reachable.has(name)) reachable.set(name, routed);
  }
  return { shown, reachable, problems };
}

/** One word that can be typed behind a slash. */
function typable(name: string): string {
  return name.normalize('NFC').replaceAll(/[^\p{L}\p{M}\p{N}_.:-]|^[^\p{L}\p{N}_]|^$/gu, '_');
}

const qualified = ({ registration, entry }: Routed): string =>
  typable(`${registration.id}:${entry.name}`);

function freeName(routed: Routed, taken: ReadonlyMap<string, Routed>): string {
  const name = qualified(routed);
  if (!taken.has(name)) return name;
  const { registration, entry } = routed;
  return `${name}_${sha256Hex(`${registration.id}\0${entry.name}`).slice(0, 8)}`;
}

function rank(kind: string): number {
  const at = KINDS.indexOf(kind);
  return at === -1 ? KINDS.length : at;
}

function shadowed({ registration, entry }: Routed, name: string, winner: Routed): Problem {
  return {
    source: registration.id,
    code: 'command-shadowed',
    severity: 'warning',
    message: `/${typable(entry.name)} is that of "${winner.registration.id}" (${winner.entry.origin}); that of "${registration.id}" (${entry.origin}) is called /${name}. Rename one of them.`,
    ...(entry.kind === 'file' ? { file: entry.origin } : {}),
  };
}
