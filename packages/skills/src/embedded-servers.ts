import {
  isChangeObservable,
  isToolSource,
  PatchbayError,
  problemFrom,
  toolsFromSource,
  type ChangeSource,
  type CompileContext,
  type EmbeddedServer,
  type Problem,
  type ServerFactory,
  type Tool,
  type ToolDefinition,
} from '@patchbay/protocols';

import type { NamedSkill } from './named-skills.ts';

/** The tools of a skill's servers may come this much later than the skill; they join when they are there. */
const MAX_WAIT_MS = 3_000;
/** When a server that failed is tried again, where the failure does not say. */
const RETRY_MS = 30_000;
/** Skills are edited, sessions come and go: the servers that were not used for longest are let go. */
const MAX_SERVERS = 64;

/** A server as a capability of its own. */
interface Child {
  readonly capability: ReturnType<ServerFactory>;
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

  /** `source` tells those who listen to the manager. */
  constructor(source: ChangeSource, factory: ServerFactory) {
    this.#source = source;
    this.#factory = factory;
  }

  /** Differs when a server has something new, or is to be tried again. */
  revision(): string {
    const now = Date.now();
    const parts = [...this.#children.values()].map(({ capability, retryAt }) => {
      const own = isChangeObservable(capability) ? capability.revision() : '';
      return `${own}${retryAt !== undefined && retryAt <= now ? ' again' : ''}`;
    });
    return [this.#source.revision(), ...parts].join(';');
  }

  async tools(skills: readonly NamedSkill[], context: CompileContext): Promise<readonly Tool[]> {
    const lists = skills.flatMap((skill) =>
      Object.entries(skill.skill.entry.servers ?? {}).map(([name, server]) =>
        this.#toolsOf(skill, name, server, context),
      ),
    );
    return (await Promise.all(lists)).flat();
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
    const key = JSON.stringify([id, config]);
    const child = this.#children.get(key) ?? this.#make(id, config);
    // The last one used comes last.
    this.#children.delete(key);
    this.#children.set(key, child);
    for (const [oldest, old] of this.#children) {
      if (this.#children.size <= MAX_SERVERS) break;
      this.#children.delete(oldest);
      void closeChild(old);
    }
    return child;
  }

  #make(id: string, config: EmbeddedServer['config']): Child {
    const child: Child = {
      capability: this.#factory(id, config),
      known: new WeakMap(),
      end: new AbortController(),
    };
    void this.#hear(child);
    return child;
  }

  async #hear({ capability, end }: Child): Promise<void> {
    if (!isChangeObservable(capability)) return;
    try {
      for await (const { kind } of capability.changes(end.signal)) this.#source.emit(kind);
    } catch {
      // Its revision still tells when it is asked.
    }
  }

  /** What comes later is announced when it comes. */
  async #waitFor(tools: Promise<readonly Tool[]>, id: string): Promise<readonly Tool[]> {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<'late'>((resolve) => {
      timer = setTimeout(() => resolve('late'), MAX_WAIT_MS);
    });
    try {
      const first = await Promise.race([tools, late]);
      if (first !== 'late') return first;
      tools.then(
        () => this.#source.emit('tools_changed'),
        () => undefined,
      );
      throw new PatchbayError(
        'source-slow',
        `"${id}" has not answered yet; its tools join when it does.`,
      );
    } finally {
      clearTimeout(timer);
    }
  }
}

async function listTools(child: Child, context: CompileContext): Promise<readonly Tool[]> {
  const { capability, known } = child;
  if (typeof capability.tools === 'function') return capability.tools(context);
  if (!isToolSource(capability)) return [];
  return toolsFromSource(capability.id, capability, await capability.listTools(context), known);
}

async function closeChild({ capability, end }: Child): Promise<void> {
  end.abort();
  await capability[Symbol.asyncDispose]?.();
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
