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
  type RegistrationScope,
  type ServerFactory,
  type Tool,
  type TurnContext,
  type TurnContribution,
  type ActingSkill,
  type PeerSkill,
  type Problem,
  type TrustPolicy,
} from '@patchbay/protocols';

import { Activations, openingOf, type Activation, type SkillReference } from './activations.ts';
import { catalogueOf, inline } from './catalogue.ts';
import { Consents, consentTo, needsConsent } from './consents.ts';
import { EmbeddedServers, neededProblems, serverProblems } from './embedded-servers.ts';
import { BoundedMatcher, type SkillMatcher } from './matcher.ts';
import { findSkill, nameSkills, shadowProblems, type NamedSkill } from './named-skills.ts';
import {
  endActivation,
  forMatcher,
  hasChanged,
  isChanged,
  openNamed,
  servedActivation,
  servedBy,
  withoutDoubles,
} from './served-skills.ts';
import type { SkillModes } from './skill-modes.ts';
import { changedText, declaredArguments, skillCommandText, skillContent } from './skill-text.ts';
import { skillTools } from './skill-tools.ts';
import { approvedPatterns, disallowedPatterns } from './tool-patterns.ts';

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
  /** How deep what `servers` makes may be composed, this capability counted; more is a problem. Default 3. */
  readonly maxCompositionDepth?: number | undefined;
  /**
   * Asked whether a skill of a server, or of a source that is not trusted, gets what it asks for beyond being read: to be
   * active always, to start servers, to have tools approved or taken away. The answer holds for that content in that session. Default: nothing of it is granted, and
   * a problem says what it asks for.
   */
  readonly trust?: TrustPolicy | undefined;
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
  readonly #consents: Consents;

  constructor(options: SkillManagerOptions = {}) {
    const { id = 'skills', matcher, matcherTimeoutMs = 2_000, catalogueChars = 32_000 } = options;
    this.id = id;
    this.#matcher = matcher && new BoundedMatcher(matcher, matcherTimeoutMs);
    this.#catalogueChars = catalogueChars;
    this.#modes = options.modes ?? {};
    const source = changeSource(id);
    const servers =
      options.servers &&
      new EmbeddedServers(source, options.servers, {
        manager: this,
        maxDepth: options.maxCompositionDepth ?? 3,
      });
    this.#servers = servers;
    this.#consents = new Consents(options.trust, () => source.emit('skills_changed'));
    this.revision = () => servers?.revision() ?? source.revision();
    this.changes = source.subscribe;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#servers?.close();
  }

  scopeEnded(scope: RegistrationScope): void {
    this.#servers?.scopeEnded(scope);
  }

  async instructions(context: CompileContext): Promise<readonly InstructionBlock[]> {
    const problems: Problem[] = [];
    const named = await this.#named(context, problems);
    for (const problem of [...problems, ...shadowProblems(named)]) context.report(problem);
    if (this.#servers === undefined)
      for (const problem of serverProblems(named)) context.report(problem);
    if (named.some(({ skill: { entry } }) => entry.neededServers !== undefined))
      for (const problem of neededProblems(named, context.peers.ids?.() ?? []))
        context.report(problem);
    const catalogue = catalogueOf(forModels(named), this.#catalogueChars, this.id);
    if (catalogue === undefined) return [];
    if (catalogue.problem !== undefined) context.report(catalogue.problem);
    return [{ source: this.id, kind: 'static', text: catalogue.text }];
  }

  /** Made for one agent of one session: they close over its state. Their definitions are the same for the same skills. */
  async tools(context: CompileContext): Promise<readonly Tool[]> {
    const { state, scope } = context;
    const activations = new Activations(state, scope);
    const find = async () => forModels(await this.#named(context));
    const findAt = async (uri: string) => {
      const found = (await context.peers.skillsAt?.(uri)) ?? [];
      const served = found.filter(({ entry }) => entry.served !== undefined);
      const { skills } = await this.#consents.admit(served, context, () => false);
      return forModels(await nameSkills(skills, this.#modes));
    };
    const named = await this.#named(context);
    const own = skillTools(forModels(named), {
      capability: this.id,
      find,
      findAt,
      activations,
      contentOf: (skill) => this.#consents.asked(skill).content,
    });
    if (this.#servers === undefined) return own;
    const isInForce = ({ skill: { source, entry } }: NamedSkill) =>
      entry.servers !== undefined &&
      (entry.alwaysActive === true || activations.has({ source, uri: entry.uri }));
    const inForce = named.filter(isInForce);
    this.#servers.keep(named, inForce, scope);
    // What a server's skill brings takes no name from what a local one does.
    const ranked = inForce.toSorted((a, b) => Number(isServed(a)) - Number(isServed(b)));
    return [...own, ...(await this.#servers.tools(ranked, context))];
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
        if (active !== undefined && entry.served !== undefined) {
          const content = this.#consents.asked(item.skill).content;
          // Put in force by a program that did not say what it consists of: that it is from now on.
          if (active.served === undefined)
            activations.set({ ...active, ...servedActivation(item, content) });
          else if (hasChanged(active, content)) {
            endActivation(item.skill, activations);
            return this.#changed(item);
          }
        }
        const by =
          entry.alwaysActive === true
            ? 'always'
            : (active?.by ?? (matched.has(item.name) ? 'matcher' : undefined));
        return by && this.#open(item, by, active, turn, activations);
      }),
    );
    const inForce = opened.filter((skill) => skill !== undefined);
    return {
      instructions: inForce.flatMap(({ instructions }) => instructions),
      active: inForce.flatMap(({ active }) => active),
      hide: [...new Set(inForce.flatMap(({ hide }) => hide))],
    };
  }

  /** Also of skills that have changed: their old text is in the conversation. What leads an agent leads its sub-agents. */
  acting({ scope, state }: Pick<CompileContext, 'scope' | 'state'>): readonly ActingSkill[] {
    const active = withAncestors(scope.agent).flatMap((agent) =>
      new Activations(state, { agent }).served(),
    );
    return active.map(({ source, uri, served }) => {
      const { server, name, content, changed } = served;
      const consent = changed === true ? undefined : consentTo(state, { source, uri }, content);
      return { server, name, approvedTools: (consent?.tools ?? []).flatMap(approvedPatterns) };
    });
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
    const activations = new Activations(context.state, context.scope);
    const skill = found && (await openNamed(found, activations));
    if (found === undefined || skill === undefined)
      throw new PatchbayError('not-found', `There is no skill "${name}".`, { source: this.id });
    const { source, entry } = found.skill;
    const { digest } = skill;
    context.signal.throwIfAborted();
    const { content } = this.#consents.asked(found.skill);
    const served = servedActivation(found, content);
    const text = skillCommandText(found.name, skill, args);
    const opening = openingOf(text);
    activations.set({ source, uri: entry.uri, digest, opening, by: 'user', ...served });
    return { messages: [{ role: 'user', content: [{ type: 'text', text }] }] };
  }

  /** Under their names, with what they are granted; `problems` takes what kept some from it. */
  async #named(context: CompileContext, problems: Problem[] = []): Promise<readonly NamedSkill[]> {
    const all = await context.peers.skills();
    if (!all.some(({ entry }) => needsConsent(entry))) return nameSkills(all, this.#modes);
    const activations = new Activations(context.state, context.scope);
    const unlisted = await this.#unlisted(all, activations, context);
    const once = withoutDoubles([...all, ...unlisted], problems);
    const isActive = (skill: SkillReference) => activations.has(skill);
    const admitted = await this.#consents.admit(once, context, isActive);
    problems.push(...admitted.problems);
    return nameSkills(admitted.skills, this.#modes);
  }

  /** What was activated by its address, and is in no list. */
  async #unlisted(
    listed: readonly PeerSkill[],
    activations: Activations,
    { peers }: CompileContext,
  ): Promise<readonly PeerSkill[]> {
    const known = new Set(listed.map(({ source, entry }) => keyOf({ source, uri: entry.uri })));
    const wanted = activations.all().filter((skill) => !known.has(keyOf(skill)));
    const found = wanted.map(async ({ source, uri }) =>
      (await peers.skillsAt?.(uri))?.find((skill) => skill.source === source),
    );
    return (await Promise.all(found)).filter((skill) => skill !== undefined);
  }

  #changed({ name, skill: { entry } }: NamedSkill) {
    const text = changedText(name, entry.served!.server);
    const instructions = [{ source: this.id, kind: 'dynamic' as const, text }];
    return { instructions, active: [], hide: [] };
  }

  /** A matcher that fails leaves the catalogue as it is. */
  async #matched(named: readonly NamedSkill[], turn: TurnContext): Promise<ReadonlySet<string>> {
    if (this.#matcher === undefined || turn.userText === undefined) return new Set();
    try {
      const entries = forModels(named).map(({ name, skill }) => ({
        ...forMatcher(skill.entry),
        name,
      }));
      return await this.#matcher.choose(turn.turnId, turn.userText, entries);
    } catch (error) {
      turn.report(problemFrom(this.id, error));
      return new Set();
    }
  }

  async #open(
    item: NamedSkill,
    by: ActiveSkill['by'],
    /** Whose text may be in the conversation already. */
    activation: Activation | undefined,
    turn: TurnContext,
    activations: Activations,
  ) {
    const { name, skill } = item;
    try {
      const open = await openNamed(item, activations);
      if (open === undefined) return undefined;
      const { digest, body, entry } = open;
      const text = skillContent(name, open);
      // What a server makes anew each time is not said anew each time.
      const same = activation?.digest === digest || entry.served !== undefined;
      const said = (by === 'model' || by === 'user') && same && isStillSaid(activation, turn);
      return {
        instructions: [
          ...(said ? [] : [text]),
          ...missingText(name, this.#servers?.missing(item)),
        ].map((block) => ({ source: this.id, kind: 'dynamic' as const, text: block })),
        active: [{ name, source: skill.source, digest, body, by, ...servedBy(entry) }],
        hide: (entry.disallowedTools ?? []).flatMap(disallowedPatterns),
      };
    } catch (error) {
      if (activation !== undefined && isChanged(error)) return this.#changed(item);
      turn.report(problemFrom(skill.source, error));
      return undefined;
    }
  }
}

/** A conversation may have been shortened since. */
const isStillSaid = (activation: Activation | undefined, { isSaid }: TurnContext): boolean =>
  activation?.opening === undefined || isSaid === undefined || isSaid(activation.opening);

/** What a model has to know while servers of a skill are away. */
function missingText(name: string, missing: readonly string[] = []): readonly string[] {
  if (missing.length === 0) return [];
  return [
    `The skill "${inline(name)}" is active without the tools of its MCP servers that are not available: ${missing.map(inline).join(', ')}.`,
  ];
}

const keyOf = ({ source, uri }: SkillReference): string => JSON.stringify([source, uri]);

const forModels = (named: readonly NamedSkill[]): readonly NamedSkill[] =>
  named.filter(({ forModel }) => forModel);

const isServed = ({ skill }: NamedSkill): boolean => skill.entry.served !== undefined;

/** `a/b` and `a`. */
function withAncestors(agent: string | undefined): readonly (string | undefined)[] {
  if (agent === undefined) return [undefined];
  const parts = agent.split('/');
  return parts.map((_, i) => parts.slice(0, i + 1).join('/'));
}
