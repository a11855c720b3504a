import type { ActingSkill, ActiveSkill, ApprovalDecision } from '@patchbay/protocols';

import { by } from './by.ts';
import { matchesAny } from './pattern.ts';
import type { Registration } from './registration.ts';
import { passes, type NameFilter, type Viewer } from './viewer.ts';

/**
 * Skills of servers that a call may be driven by: what capabilities remember of the session, and what is in force in a turn.
 * @throws whatever a capability that cannot say throws
 */
export function actingSkills(
  { scope, state }: Viewer,
  visible: readonly Registration[],
  active: readonly ActiveSkill[] = [],
): readonly ActingSkill[] {
  const found = new Map<string, ActingSkill>();
  const add = (skill: ActingSkill) => {
    const key = JSON.stringify([skill.server, skill.name]);
    // Said twice, only what both times was approved is.
    const before = found.get(key)?.approvedTools ?? skill.approvedTools ?? [];
    const approvedTools = before.filter((name) => skill.approvedTools?.includes(name));
    const { server, name } = skill;
    found.set(key, { server, name, ...(approvedTools.length === 0 ? {} : { approvedTools }) });
  };
  for (const { served, name } of active) if (served !== undefined) add({ ...served, name });
  for (const { capability } of visible) capability.acting?.({ scope, state }).forEach(add);
  return [...found.values()].toSorted(
    by(
      ({ server }) => server,
      ({ name }) => name,
    ),
  );
}

/**
 * What holds whatever a policy allows: a tool that executes something is asked for while a skill of a server is in force for
 * which the user did not approve it. (Skills over MCP: no execution without explicit approval per skill)
 */
export function executionRule(
  tool: string,
  acting: readonly ActingSkill[],
  executing: NameFilter | readonly NameFilter[] | undefined,
): ApprovalDecision {
  if (executing === undefined || acting.length === 0 || !passes(executing, tool)) return 'allow';
  const skills = acting.filter(({ approvedTools = [] }) => !matchesAny(approvedTools, tool));
  if (skills.length === 0) return 'allow';
  const list = skills.map(
    ({ server, name }) => `${JSON.stringify(name)} of the server ${JSON.stringify(server)}`,
  );
  return { ask: `it executes something, while the model acts on the skill ${list.join(' and ')}` };
}
