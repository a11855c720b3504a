import {
  changeSource,
  PatchbayError,
  problemFrom,
  type ActiveSkill,
  type Capability,
  type ChangeObservable,
  type CommandArguments,
  type CommandEntry,
  type CommandPrompt,
  type CommandResource,
  type CompileContext,
  type InstructionBlock,
  type ServerFactory,
  type Tool,
  type TurnContext,
  type TurnContribution,
} from '@patchbay/protocols';

import { Activations } from './activations.ts';
import { catalogueOf } from './catalogue.ts';
import { EmbeddedServers, serverProblems } from './embedded-servers.ts';
import { BoundedMatcher, type SkillMatcher } from './matcher.ts';
import { findSkill, nameSkills, shadowProblems, type NamedSkill } from './named-skills.ts';
import type { SkillModes } from './skill-modes.ts';
import { declaredArguments, skillCommandText, skillContent } from './skill-text.ts';
import { skillTools } from './skill-tools.ts';

export interface SkillManagerOptions {
  /** Default `skills`. One per view: of several the deepest registration of the id counts. */
  readonly id?: string;
  /** Chooses skills before the model is asked, for what the user said. Default: the model chooses from the catalogue. */
  readonly matcher?: SkillMatcher;
  /** How long the matcher may take, in milliseconds. Default 2,000. */
  readonly matcherTimeoutMs?: number;
  /**
   * Size of the catalogue in the system prompt, in characters. Default 32,000: about 80 skills with their descriptions.
   * Further ones have their name only, and a problem says which.
   */
  readonly catalogueChars?: number;
  /** What is made of single skills, by name or `<source>:<name>`. Default: everything that they offer. */
  readonly modes?: SkillModes;
  /**
   * Makes a capability of a server that a skill brings along: its tools are there while the skill is in force. Default:
   * such servers are not started, and a problem says so.
   */
  readonly servers?: ServerFactory | undefined;
}

/**
 * One catalogue of every skill that a view sees, whoever serves it: metadata in the instructions, bodies by activation,
 * by the matcher, or for skills that are always active. It has no skills of its own, and what is active is kept in the
 * session. (RFC-0051 "SkillManagerCap")
 */
export class SkillManagerCapability implements Capability, CommandResource, ChangeObservable {
  readonly id: string;
  /** Only the servers of skills can change here: everything else belongs to others. */
  readonly revision: () => number | string;
  readonly changes: ChangeObservable['changes'];
  readonly #matcher: BoundedMatcher | undefined;
  readonly #catalogueChars: number;
  readonly #modes: SkillModes;
  readonly #servers: EmbeddedServers | undefined;

  constructor(options: SkillManagerOptions = {}) {
    const { id = 'skills', matcher, matcherTimeoutMs = 2_000, catalogueChars = 32_000 } = options;
    this.id = id;
    this.#matcher = matcher && new BoundedMatcher(matcher, matcherTimeoutMs);
    this.#catalogueChars = catalogueChars;
    this.#modes = options.modes ?? {};
    const source = changeSource(id);
    const servers = options.servers && new EmbeddedServers(source, options.servers);
    this.#servers = servers;
    this.revision = () => servers?.revision() ?? source.revision();
    this.changes = source.subscribe;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#servers?.close();
  }

  async instructions(context: CompileContext): Promise<readonly InstructionBlock[]> {
    const named = await this.#named(context);
    for (const problem of shadowProblems(named)) context.report(problem);
    if (this.#servers === undefined)
      for (const problem of serverProblems(named)) context.report(problem);
    const catalogue = catalogueOf(forModels(named), this.#catalogueChars, this.id);
    if (catalogue === undefined) return [];
    if (catalogue.problem !== undefined) context.report(catalogue.problem);
    return [{ source: this.id, kind: 'static', text: catalogue.text }];
  }

  /** Made for one agent of one session: they close over its state. Their definitions are the same for the same skills. */
  async tools(context: CompileContext): Promise<readonly Tool[]> {
    const { peers, state, scope } = context;
    const activations = new Activations(state, scope);
    const find = async () => forModels(await this.#named({ peers }));
    const named = await this.#named(context);
    const own = skillTools(forModels(named), { capability: this.id, find, activations });
    if (this.#servers === undefined) return own;
    const inForce = named.filter(
      ({ skill: { source, entry } }) =>
        entry.servers !== undefined &&
        (entry.alwaysActive === true || activations.get({ source, uri: entry.uri }) !== undefined),
    );
    return [...own, ...(await this.#servers.tools(inForce, context))];
  }

  async prepareTurn(turn: TurnContext): Promise<TurnContribution | undefined> {
    const named = await this.#named(turn);
    if (named.length === 0) return undefined;
    const activations = new Activations(turn.state, turn.scope);
    const matched = await this.#matched(named, turn);
    const opened = await Promise.all(
      named.map(async (item) => {
        const { source, entry } = item.skill;
        const active = activations.get({ source, uri: entry.uri });
        const by =
          entry.alwaysActive === true
            ? 'always'
            : (active?.by ?? (matched.has(item.name) ? 'matcher' : undefined));
        return by && this.#open(item, by, active?.digest, turn);
      }),
    );
    const inForce = opened.filter((skill) => skill !== undefined);
    return {
      instructions: inForce.flatMap(({ instructions }) => instructions),
      active: inForce.map(({ active }) => active),
      hide: [...new Set(inForce.flatMap(({ hide }) => hide))],
    };
  }

  async listCommands(context: CompileContext): Promise<readonly CommandEntry[]> {
    return (await this.#named(context))
      .filter(({ forUser }) => forUser)
      .map(({ name, skill: { entry } }) => {
        const hint = entry.frontmatter?.['argument-hint'];
        const shown = Array.isArray(hint) ? `[${hint.join(', ')}]` : hint;
        const names = declaredArguments({ entry });
        return {
          name,
          description: entry.description,
          origin: entry.origin,
          kind: 'skill',
          precedence: entry.precedence ?? 0,
          ...(names.length === 0 ? {} : { arguments: names.map((one) => ({ name: one })) }),
          ...(typeof shown === 'string' ? { hint: shown } : {}),
        };
      });
  }

  async getCommand(
    name: string,
    args: CommandArguments,
    context: CompileContext,
  ): Promise<CommandPrompt> {
    const users = (await this.#named(context)).filter(({ forUser }) => forUser);
    const found = findSkill(users, name);
    const skill = await found?.skill.open();
    if (found === undefined || skill === undefined)
      throw new PatchbayError('not-found', `There is no skill "${name}".`, { source: this.id });
    const { source, entry } = found.skill;
    const { digest } = skill;
    const activations = new Activations(context.state, context.scope);
    activations.set({ source, uri: entry.uri, digest, by: 'user' });
    const text = skillCommandText(skill, args);
    return { messages: [{ role: 'user', content: [{ type: 'text', text }] }] };
  }

  async #named({ peers }: Pick<CompileContext, 'peers'>): Promise<readonly NamedSkill[]> {
    return nameSkills(await peers.skills(), this.#modes);
  }

  /** A matcher that fails leaves the catalogue as it is. */
  async #matched(named: readonly NamedSkill[], turn: TurnContext): Promise<ReadonlySet<string>> {
    if (this.#matcher === undefined || turn.userText === undefined) return new Set();
    try {
      const entries = forModels(named).map(({ name, skill: { entry } }) => ({ ...entry, name }));
      return await this.#matcher.choose(turn.turnId, turn.userText, entries);
    } catch (error) {
      turn.report(problemFrom(this.id, error));
      return new Set();
    }
  }

  async #open(
    { name, skill }: NamedSkill,
    by: ActiveSkill['by'],
    /** Of the text that is in the conversation already. */
    known: string | undefined,
    turn: TurnContext,
  ) {
    try {
      const open = await skill.open();
      if (open === undefined) return undefined;
      const { digest, body } = open;
      const text = skillContent(name, open);
      const said = (by === 'model' || by === 'user') && known === digest;
      return {
        instructions: said ? [] : [{ source: this.id, kind: 'dynamic' as const, text }],
        active: { name, source: skill.source, digest, body, by },
        hide: (open.entry.disallowedTools ?? []).flatMap(toolPatterns),
      };
    } catch (error) {
      turn.report(problemFrom(skill.source, error));
      return undefined;
    }
  }
}

const forModels = (named: readonly NamedSkill[]): readonly NamedSkill[] =>
  named.filter(({ forModel }) => forModel);

/**
 * What `disallowed-tools` names, as other clients write it: `mcp__github__delete_repo`, `mcp__github` for all of a server,
 * `Bash`, and `Bash(rm *)`, which can only be kept by taking the whole tool away. A bare name is that tool of any source.
 */
function toolPatterns(written: string): readonly string[] {
  const name = written.replace(/\(.*\)$/, '');
  const ofServer = /^mcp__(.+)$/.exec(name)?.[1];
  if (ofServer !== undefined) return [ofServer.includes('__') ? ofServer : `${ofServer}__*`];
  return name.includes('__') || name.includes('*') ? [name] : [name, `*__${name}`];
}
