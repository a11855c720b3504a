import {
  exposedToolName,
  PatchbayError,
  problemFrom,
  RESERVED_TOOL_NAMES,
  type InstructionBlock,
  type Problem,
  type SkillEntry,
  type Tool,
} from '@patchbay/protocols';

import type { Answer, Facets } from './answers.ts';
import { by } from './by.ts';
import type { Registration } from './registration.ts';
import { Sweep } from './sweep.ts';
import { passes, type Viewer } from './viewer.ts';

/** What one visible capability answered. */
export interface Part {
  readonly registration: Registration;
  readonly tools: Answer<Facets['tools']> | undefined;
  readonly instructions: Answer<Facets['instructions']> | undefined;
  readonly skills: Answer<Facets['skills']> | undefined;
}

/** Where a tool name leads. */
export interface OfferedTool {
  readonly tool: Tool;
  readonly registration: Registration;
}

/** What one viewer sees, put together. */
export interface Snapshot {
  /** The answers it was made of, as one string: the same string, the same snapshot. */
  readonly fingerprint: string;
  readonly tools: readonly Tool[];
  readonly byName: ReadonlyMap<string, OfferedTool>;
  readonly instructions: readonly InstructionBlock[];
  readonly skills: readonly (SkillEntry & { readonly source: string })[];
  readonly problems: readonly Problem[];
}

/** Snapshots in use: viewers of the same answers through the same filter share one. */
export class Snapshots {
  readonly #inUse = new Map<string, WeakRef<Snapshot>>();
  readonly #sweep = new Sweep();

  /** `parts` are sorted by id; `fingerprint` is theirs. */
  of(parts: readonly Part[], { filter }: Viewer, fingerprint: string): Snapshot {
    const key = `${fingerprint}\0${JSON.stringify(filter)}`;
    const known = this.#inUse.get(key)?.deref();
    if (known !== undefined) return known;
    const made = makeSnapshot(parts, filter, fingerprint);
    if (this.#sweep.isDue(this.#inUse.size)) {
      for (const [old, snapshot] of this.#inUse)
        if (snapshot.deref() === undefined) this.#inUse.delete(old);
      this.#sweep.done(this.#inUse.size);
    }
    this.#inUse.set(key, new WeakRef(made));
    return made;
  }
}

const FACETS = ['tools', 'instructions', 'skills'] as const;

export function fingerprintOf(parts: readonly Part[]): string {
  return parts
    .map((part) =>
      [part.registration.serial, ...FACETS.map((facet) => part[facet]?.serial ?? '')].join(','),
    )
    .join(' ');
}

/** Nothing is thrown: whatever does not fit becomes a problem. */
function makeSnapshot(
  parts: readonly Part[],
  filter: Viewer['filter'],
  fingerprint: string,
): Snapshot {
  const problems: Problem[] = [];
  for (const part of parts) problems.push(...problemsOf(part));
  const byName = offeredTools(parts, filter, problems);
  const skills = parts
    .flatMap(({ registration, skills: answer }) =>
      (answer?.value ?? [])
        .filter((entry) => passes(filter.skills, entry.name))
        .map((entry) => ({ ...entry, source: registration.id })),
    )
    .toSorted(
      by(
        ({ name }) => name,
        ({ source }) => source,
      ),
    );
  return Object.freeze({
    fingerprint,
    byName,
    tools: Object.freeze([...byName.values()].map(({ tool }) => tool)),
    instructions: Object.freeze(instructionsOf(parts)),
    skills: Object.freeze(skills),
    problems: Object.freeze(problems),
  });
}

/** Tools by the name that the model sees, sorted by it. */
function offeredTools(
  parts: readonly Part[],
  filter: Viewer['filter'],
  problems: Problem[],
): ReadonlyMap<string, OfferedTool> {
  const offered = new Map<string, OfferedTool>();
  const refuse = (registration: Registration, message: string) =>
    problems.push(problemFrom(registration.id, new PatchbayError('tool-name', message)));
  for (const { registration, tools } of parts) {
    for (const tool of tools?.value ?? []) {
      const name: unknown = tool?.definition?.name;
      if (
        typeof name !== 'string' ||
        typeof tool.call !== 'function' ||
        typeof tool.id?.name !== 'string'
      ) {
        refuse(
          registration,
          `"${registration.id}" offers something that is no tool; make tools with defineTool().`,
        );
      } else if (!RESERVED_TOOL_NAMES.includes(name) && name !== exposedToolName(tool.id)) {
        refuse(
          registration,
          `The tool "${tool.id.name}" of "${registration.id}" is left out: its name for the model must be ` +
            `"${exposedToolName(tool.id)}", not "${name}". Make it with defineTool().`,
        );
      } else if (offered.has(name)) {
        refuse(
          registration,
          `The tool "${tool.id.name}" of "${registration.id}" is left out: "${name}" is already the name of ` +
            `"${offered.get(name)!.tool.id.name}" of "${offered.get(name)!.registration.id}". Rename one of them.`,
        );
      } else if (passes(filter.tools, name)) {
        offered.set(name, { tool, registration });
      }
    }
  }
  const sorted = new Map<string, OfferedTool>();
  // By code unit.
  for (const name of [...offered.keys()].toSorted()) sorted.set(name, offered.get(name)!);
  return sorted;
}

/** Static blocks first, then dynamic ones, each in the order of their sources; last, what is missing and why. */
function instructionsOf(parts: readonly Part[]): InstructionBlock[] {
  const blocks = parts.flatMap(({ instructions }) => instructions?.value ?? []);
  const missing = parts.flatMap(({ registration, tools }) =>
    tools?.failure === undefined ? [] : [`- ${registration.id} (${tools.failure.code})`],
  );
  return [
    ...blocks.filter(({ kind }) => kind === 'static'),
    ...blocks.filter(({ kind }) => kind !== 'static'),
    ...(missing.length === 0
      ? []
      : [
          {
            source: 'patchbay',
            kind: 'dynamic' as const,
            text: `Not available at the moment, so their tools are missing:\n${missing.join('\n')}`,
          },
        ]),
  ];
}

function problemsOf(part: Part): readonly Problem[] {
  const answers = FACETS.flatMap((facet) => part[facet] ?? []);
  const found = [
    ...part.registration.problems,
    ...answers.flatMap(({ failure, problems }) => [
      ...(failure === undefined ? [] : [failure]),
      ...problems,
    ]),
  ];
  // A source that cannot be reached fails for each thing it is asked for: said once.
  const seen = new Set<string>();
  return found.filter(({ code, message, source }) => {
    const key = JSON.stringify([source, code, message]);
    return !seen.has(key) && seen.add(key);
  });
}
