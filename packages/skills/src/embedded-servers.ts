import {
  CircularCompositionError,
  compositionOf,
  isChangeObservable,
  isToolSource,
  PatchbayError,
  problemFrom,
  toolsFromSource,
  type Capability,
  type ChangeSource,
  type CompileContext,
  type EmbeddedServer,
  type Problem,
  type RegistrationScope,
  type Scope,
  type ServerFactory,
  type Tool,
  type ToolDefinition,
} from '@patchbay/protocols';

import { endsWithin } from './ends-within.ts';
import type { NamedSkill } from './named-skills.ts';

/** The tools of a skill's servers may come this much later than the skill; they join when they are there. */
const MAX_WAIT_MS = 3_000;
/** When a server that failed is tried again, where the failure does not say. */
const RETRY_MS = 30_000;

/** A server as a capability of its own. */
interface Child {
  readonly capability: Capability;
  /** Itself, and what it is made of. */
  readonly parts: readonly Capability[];
  /** It is deeper than is usual. */
  readonly deep: string | undefined;
  /** Who has it in force: a skill in a scope. */
  readonly users: Map<string, Scope>;
  readonly known: WeakMap<ToolDefinition, Tool>;
  readonly end: AbortController;
  /** It failed, and is tried again then. In milliseconds. */
  retryAt?: number | undefined;
}

/**
 * The MCP servers that skills bring along, while their skill is in force. What fails or is slow costs nobody but itself:
 * the skill works, the other tools are there. (RFC-0051 "Skill with Embedded MCP Server")
 */
export class EmbeddedServers {
  readonly #factory: ServerFactory;
  readonly #source: ChangeSource;
  readonly #children = new Map<string, Child>();
  readonly #manager: Capability;
  readonly #maxDepth: number;

  /** `source` tells those who listen to `manager`, whose parts these are. */
  constructor(
    source: ChangeSource,
    factory: ServerFactory,
    { manager, maxDepth }: { readonly manager: Capability; readonly maxDepth: number },
  ) {
    this.#source = source;
    this.#factory = factory;
    this.#manager = manager;
    this.#maxDepth = maxDepth;
  }

  /** Differs when a server has something new, or is to be tried again. */
  revision(): string {
    const now = Date.now();
    const parts = [...this.#children.values()].map(({ parts: own, retryAt }) => {
      const said = own.map((part) => (isChangeObservable(part) ? part.revision() : ''));
      return `${said.join(',')}${retryAt !== undefined && retryAt <= now ? ` again ${retryAt}` : ''}`;
    });
    return [this.#source.revision(), ...parts].join(';');
  }

  async tools(skills: readonly NamedSkill[], context: CompileContext): Promise<readonly Tool[]> {
    // Nobody waits for it, perhaps because the scope is over: nothing is started that nobody would end.
    if (context.signal.aborted) return [];
    const lists = skills.flatMap((skill) =>
      Object.entries(skill.skill.entry.servers ?? {}).map(([name, server]) =>
        this.#toolsOf(skill, name, server, context),
      ),
    );
    return (await Promise.all(lists)).flat();
  }

  /** Servers of a skill that could not be had, by name: what a model is told. */
  missing({ name, skill: { entry } }: NamedSkill): readonly string[] {
    return Object.entries(entry.servers ?? {}).flatMap(([serverName, { config }]) => {
      const child = this.#children.get(keyOf(`${name}-${serverName}`, config));
      return child === undefined || child.retryAt !== undefined ? [serverName] : [];
    });
  }

  /**
   * Of what these skills have in a scope only that stays which those in force bring now: not what was deactivated, edited or
   * is no longer granted. Who is last closes a server.
   */
  keep(skills: readonly NamedSkill[], inForce: readonly NamedSkill[], scope: Scope): void {
    const users = new Set(skills.map((skill) => userOf(skill, scope)));
    const wanted = new Set(
      inForce.flatMap((skill) =>
        Object.entries(skill.skill.entry.servers ?? {}).map(([name, { config }]) =>
          useOf(userOf(skill, scope), keyOf(`${skill.name}-${name}`, config)),
        ),
      ),
    );
    this.#letGo((user, _, key) => users.has(user) && !wanted.has(useOf(user, key)));
  }

  /** A scope is over: whatever was in force there. */
  scopeEnded(at: RegistrationScope): void {
    // A turn ends long before what its session has activated.
    if (at.turn === undefined) this.#letGo((_, scope) => isWithin(scope, at));
  }

  async close(): Promise<void> {
    const children = [...this.#children.values()];
    this.#children.clear();
    await Promise.all(children.map(closeChild));
  }

  async #toolsOf(
    { name, skill }: NamedSkill,
    serverName: string,
    server: EmbeddedServer,
    context: CompileContext,
  ): Promise<readonly Tool[]> {
    const id = `${name}-${serverName}`;
    let child: Child | undefined;
    try {
      child = this.#child(id, server);
      child.users.set(userOf({ skill }, context.scope), context.scope);
      if (child.deep !== undefined)
        context.report({
          source: skill.source,
          code: 'composition-depth',
          severity: 'warning',
          message: child.deep,
        });
      const tools = await this.#waitFor(listTools(child, context), id);
      child.retryAt = undefined;
      const allowed = [skill.entry.embeddedTools, server.includeTools].filter(
        (list) => list !== undefined,
      );
      return tools.filter((tool) =>
        allowed.every((list) => list.some((pattern) => matches(pattern, tool.id.name))),
      );
    } catch (error) {
      const problem = problemFrom(skill.source, error);
      if (child !== undefined)
        child.retryAt =
          problem.retryAt === undefined ? Date.now() + RETRY_MS : Date.parse(problem.retryAt);
      context.report({
        ...problem,
        severity: 'warning',
        message: `The server "${serverName}" of the skill "${name}" is not available; the skill itself works. ${problem.message}`,
      });
      return [];
    }
  }

  #child(id: string, { config }: EmbeddedServer): Child {
    const key = keyOf(id, config);
    const child = this.#children.get(key) ?? this.#make(id, config);
    this.#children.set(key, child);
    return child;
  }

  #make(id: string, config: EmbeddedServer['config']): Child {
    const capability = this.#factory(id, config);
    const composed = compositionOf(capability);
    const root = this.#manager.id;
    for (const { capability: part, chain } of composed)
      if (part === this.#manager) throw new CircularCompositionError([root, ...chain]);
    const deep = composed.find(({ chain }) => chain.length >= this.#maxDepth);
    const child: Child = {
      capability,
      parts: composed.map(({ capability: part }) => part),
      deep:
        deep &&
        `"${deep.capability.id}" is composed ${deep.chain.length + 1} deep (${[root, ...deep.chain].join(' > ')}), more than ${this.#maxDepth}. It works; give the skill a simpler server, or raise \`maxCompositionDepth\`.`,
      users: new Map(),
      known: new WeakMap(),
      end: new AbortController(),
    };
    for (const part of child.parts) void this.#hear(part, child.end.signal);
    return child;
  }

  #letGo(goes: (user: string, scope: Scope, key: string) => boolean): void {
    for (const [key, child] of this.#children) {
      const before = child.users.size;
      for (const [user, scope] of child.users) if (goes(user, scope, key)) child.users.delete(user);
      if (child.users.size > 0 || before === 0) continue;
      this.#children.delete(key);
      void closeChild(child).catch(() => undefined);
    }
  }

  async #hear(part: Capability, signal: AbortSignal): Promise<void> {
    if (!isChangeObservable(part)) return;
    try {
      for await (const { kind } of part.changes(signal)) this.#source.emit(kind);
    } catch {
      // Its revision still tells when it is asked.
    }
  }

  /** What comes later is announced when it comes. */
  async #waitFor(tools: Promise<readonly Tool[]>, id: string): Promise<readonly Tool[]> {
    if (await endsWithin(tools, MAX_WAIT_MS)) return tools;
    tools.then(
      () => this.#source.emit('tools_changed'),
      () => undefined,
    );
    throw new PatchbayError(
      'source-slow',
      `"${id}" has not answered yet; its tools join when it does.`,
    );
  }
}

/** Tools only: what else a server has (skills, resources, prompts) stays with servers that are registered. */
async function listTools(
  { parts, known }: Child,
  context: CompileContext,
): Promise<readonly Tool[]> {
  const lists = parts.map(async (part) => {
    if (typeof part.tools === 'function') return part.tools(context);
    if (!isToolSource(part)) return [];
    return toolsFromSource(part.id, part, await part.listTools(context), known);
  });
  return (await Promise.all(lists)).flat();
}

async function closeChild({ parts, end }: Child): Promise<void> {
  end.abort();
  const closing = parts.map(async (part) => part[Symbol.asyncDispose]?.());
  const failed = (await Promise.allSettled(closing)).find(({ status }) => status === 'rejected');
  if (failed?.status === 'rejected') throw failed.reason;
}

const keyOf = (id: string, config: EmbeddedServer['config']): string =>
  JSON.stringify([id, config]);

const useOf = (user: string, key: string): string => JSON.stringify([user, key]);

const userOf = ({ skill: { source, entry } }: Pick<NamedSkill, 'skill'>, scope: Scope): string =>
  JSON.stringify([scope.session, scope.agent, source, entry.uri]);

/** Whether a scope ends with another one. */
function isWithin({ session, agent = '' }: Scope, at: RegistrationScope): boolean {
  if (at.session !== undefined && at.session !== session) return false;
  return at.agent === undefined || agent === at.agent || agent.startsWith(`${at.agent}/`);
}

/** Skills that name servers which are not visible where they are used. */
export function neededProblems(
  named: readonly NamedSkill[],
  visible: readonly string[],
): readonly Problem[] {
  return named.flatMap(({ name, skill: { source, entry } }) => {
    const missing = entry.neededServers?.filter((id) => !visible.includes(id)) ?? [];
    if (missing.length === 0) return [];
    const message = `The skill "${name}" needs MCP servers that are not there (${missing.join(', ')}); the skill itself works. Configure servers of these names.`;
    return [{ source, code: 'skill-servers', severity: 'warning' as const, message }];
  });
}

function matches(pattern: string, name: string): boolean {
  const [head = '', ...rest] = pattern.split('*');
  if (rest.length === 0) return pattern === name;
  if (!name.startsWith(head)) return false;
  const tail = rest.pop()!;
  let at = head.length;
  for (const part of rest) {
    const found = name.indexOf(part, at);
    if (found === -1) return false;
    at = found + part.length;
  }
  return name.length - tail.length >= at && name.endsWith(tail);
}

/** For a program that gives no factory: the skills work, their servers are not started. */
export function serverProblems(named: readonly NamedSkill[]): readonly Problem[] {
  return named.flatMap(({ name, skill: { source, entry } }) =>
    entry.servers === undefined
      ? []
      : [
          {
            source,
            code: 'skill-servers',
            severity: 'warning' as const,
            message: `The skill "${name}" of ${entry.origin} brings MCP servers (${Object.keys(entry.servers).join(', ')}), which are not started; the skill itself works. Give \`servers\` to SkillManagerCapability, or configure them as servers of the program.`,
          },
        ],
  );
}
