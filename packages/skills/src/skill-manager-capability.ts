import {
  PatchbayError,
  problemFrom,
  type ActiveSkill,
  type Capability,
  type CommandArguments,
  type CommandEntry,
  type CommandPrompt,
  type CommandResource,
  type CompileContext,
  type InstructionBlock,
  type Tool,
  type TurnContext,
  type TurnContribution,
} from '@patchbay/protocols';

import { Activations } from './activations.ts';
import { catalogueText } from './catalogue.ts';
import { match, type SkillMatcher } from './matcher.ts';
import { findSkill, nameSkills, shadowProblems, type NamedSkill } from './named-skills.ts';
import { skillCommandText, skillContent } from './skill-text.ts';
import { skillTools } from './skill-tools.ts';

export interface SkillManagerOptions {
  /** Default `skills`. One per view: of several the deepest registration of the id counts. */
  readonly id?: string;
  /** Chooses skills before each model request, for what the user said. Default: the model chooses from the catalogue. */
  readonly matcher?: SkillMatcher;
  /** How long the matcher may take, in milliseconds. Default 2,000. */
  readonly matcherTimeoutMs?: number;
}

/**
 * One catalogue of every skill that a view sees, whoever serves it: metadata in the instructions, bodies by activation,
 * by the matcher, or for skills that are always active. It has no skills of its own and no state: what is active is kept
 * in the session. (RFC-0051 "SkillManagerCap")
 */
export class SkillManagerCapability implements Capability, CommandResource {
  readonly id: string;
  readonly #matcher: SkillMatcher | undefined;
  readonly #matcherTimeoutMs: number;

  constructor(options: SkillManagerOptions = {}) {
    this.id = options.id ?? 'skills';
    this.#matcher = options.matcher;
    this.#matcherTimeoutMs = options.matcherTimeoutMs ?? 2_000;
  }

  async instructions(context: CompileContext): Promise<readonly InstructionBlock[]> {
    const named = nameSkills(await context.peers.skills());
    for (const problem of shadowProblems(named)) context.report(problem);
    const text = catalogueText(forModels(named));
    return text === undefined ? [] : [{ source: this.id, kind: 'static', text }];
  }

  async tools(context: CompileContext): Promise<readonly Tool[]> {
    const { peers, state, scope } = context;
    const skills = forModels(nameSkills(await peers.skills()));
    return skillTools(skills, {
      capability: this.id,
      peers,
      activations: new Activations(state, scope),
    });
  }

  async prepareTurn(turn: TurnContext): Promise<TurnContribution | undefined> {
    const named = nameSkills(await turn.peers.skills());
    if (named.length === 0) return undefined;
    const active = new Activations(turn.state, turn.scope).all();
    const matched = await this.#matched(named, turn);
    const inForce = named.flatMap((skill): (NamedSkill & { by: ActiveSkill['by'] })[] => {
      if (skill.skill.entry.alwaysActive === true) return [{ ...skill, by: 'always' }];
      if (matched.has(skill.name) || matched.has(skill.skill.entry.name))
        return [{ ...skill, by: 'matcher' }];
      const by = active.get(skill.name)?.by;
      return by === undefined ? [] : [{ ...skill, by }];
    });
    const opened = await Promise.all(inForce.map((skill) => this.#open(skill, turn)));
    const found = opened.filter((skill) => skill !== undefined);
    return {
      // What the model activated is in the conversation already; everything else is put in front of it.
      instructions: found
        .filter(({ active: { by } }) => by !== 'model')
        .map(({ content }) => ({ source: this.id, kind: 'dynamic', text: content })),
      active: found.map(({ active: skill }) => skill),
      hide: found.flatMap(({ hide }) => hide),
    };
  }

  async listCommands(context: CompileContext): Promise<readonly CommandEntry[]> {
    return nameSkills(await context.peers.skills())
      .filter(({ skill }) => skill.entry.userInvocable !== false)
      .map(({ name, skill: { entry } }) => {
        const hint = entry.frontmatter?.['argument-hint'];
        const shown = Array.isArray(hint) ? `[${hint.join(', ')}]` : hint;
        return {
          name,
          description: entry.description,
          origin: entry.origin,
          kind: 'skill',
          precedence: entry.precedence ?? 0,
          ...(typeof shown === 'string' ? { hint: shown } : {}),
        };
      });
  }

  async getCommand(
    name: string,
    args: CommandArguments,
    context: CompileContext,
  ): Promise<CommandPrompt> {
    const found = findSkill(nameSkills(await context.peers.skills()), name);
    const skill = await found?.skill.open();
    if (skill === undefined)
      throw new PatchbayError('not-found', `There is no skill "${name}".`, { source: this.id });
    const text = skillCommandText(skill, args.raw);
    return { messages: [{ role: 'user', content: [{ type: 'text', text }] }] };
  }

  /** A matcher that fails leaves the catalogue as it is. */
  async #matched(named: readonly NamedSkill[], turn: TurnContext): Promise<ReadonlySet<string>> {
    if (this.#matcher === undefined || turn.userText === undefined) return new Set();
    try {
      const entries = forModels(named).map(({ name, skill: { entry } }) => ({ ...entry, name }));
      return await match(this.#matcher, turn.userText, entries, this.#matcherTimeoutMs);
    } catch (error) {
      turn.report(problemFrom(this.id, error));
      return new Set();
    }
  }

  async #open(
    { name, skill, by }: NamedSkill & { readonly by: ActiveSkill['by'] },
    turn: TurnContext,
  ) {
    try {
      const open = await skill.open();
      if (open === undefined) return undefined;
      const { digest, body } = open;
      return {
        content: skillContent(name, open),
        active: { name, source: skill.source, digest, body, by },
        hide: (open.entry.disallowedTools ?? []).map(toolPattern),
      };
    } catch (error) {
      turn.report(problemFrom(skill.source, error));
      return undefined;
    }
  }
}

const forModels = (named: readonly NamedSkill[]): readonly NamedSkill[] =>
  named.filter(({ skill }) => skill.entry.modelInvocable !== false);

/** `Bash(git *)` and `mcp__server__tool` of other clients, and our own names: the tool, wherever it comes from. */
function toolPattern(written: string): string {
  const name = written.replace(/\(.*\)$/, '').replace(/^mcp__/, '');
  return name.includes('__') || name.includes('*') ? name : `*__${name}`;
}
