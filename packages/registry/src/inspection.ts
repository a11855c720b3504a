import {
  describeScope,
  problemFrom,
  type CapabilityStatus,
  type InstructionBlock,
  type Problem,
  type Tool,
} from '@patchbay/protocols';

import type { Registration } from './registration.ts';

/** A row of `inspect()`: plain data, without secrets. */
export interface InspectedCapability {
  readonly id: string;
  /** As in messages: `pool`, `session="a" agent="coder"`. */
  readonly scope: string;
  readonly status: CapabilityStatus;
  /** The id of what it is a part of. */
  readonly within?: string;
  /** Where else the id is registered, hidden by this one. */
  readonly shadows: readonly string[];
  /** True where a deeper registration of the same id is seen instead, or the capability hides itself. */
  readonly hidden: boolean;
  /** What it offers, as far as anybody has asked: the names that models see. Nothing is asked for this. */
  readonly tools: readonly string[];
  /** What its tools and instructions cost in a prompt, roughly: a token for each four characters. */
  readonly estimatedTokens: number;
  /** What was not as meant when it was asked last. */
  readonly problems: readonly Problem[];
}

/** What is known of a registration. Asks nobody. */
export function inspect(
  registration: Registration,
  seen: Pick<InspectedCapability, 'shadows' | 'hidden'>,
): InspectedCapability {
  const { id, scope, parent, answers } = registration;
  const offered = new Map<string, Tool>();
  const blocks = new Set<InstructionBlock>();
  const problems = new Map<string, Problem>();
  for (const facet of ['tools', 'instructions', 'skills', 'commands', 'resources'] as const) {
    for (const { value = [], failure, problems: beside } of answers.known(facet)) {
      if (facet === 'tools')
        for (const tool of value as readonly Tool[]) offered.set(tool.definition.name, tool);
      if (facet === 'instructions')
        for (const block of value as readonly InstructionBlock[]) blocks.add(block);
      for (const problem of failure === undefined ? beside : [...beside, failure])
        problems.set(`${problem.code} ${problem.message}`, problem);
    }
  }
  const characters =
    [...offered.values()].reduce((sum, { definition }) => sum + sizeOf(definition), 0) +
    [...blocks].reduce((sum, { text }) => sum + text.length, 0);
  return {
    id,
    scope: describeScope(scope),
    ...(parent === undefined ? {} : { within: parent.id }),
    status: statusOf(registration),
    ...seen,
    tools: [...offered.keys()].toSorted(),
    estimatedTokens: Math.ceil(characters / 4),
    problems: [...registration.problems, ...problems.values()],
  };
}

/** What a model is sent of a tool. */
function sizeOf({ name, description = '', inputSchema }: Tool['definition']): number {
  return name.length + description.length + JSON.stringify(inputSchema).length;
}

function statusOf({ capability }: Registration): CapabilityStatus {
  try {
    return capability.status?.() ?? { state: 'ready' };
  } catch (error) {
    return { state: 'unknown', details: { error: problemFrom(capability.id, error).message } };
  }
}
