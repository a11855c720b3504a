import type { RegistrationScope } from '@patchbay/protocols';

import { AgentTree } from './agent-tree.ts';

/**
 * What belongs to a scope each, by session and agent: whatever is about one of them costs what it has to do with, however
 * many others there are. Turns are not told apart: whoever asks for one looks through those of its agent.
 */
export class ByScope<T> {
  readonly #sessions = new Map<string | undefined, AgentTree<T>>();

  add({ session, agent }: RegistrationScope, item: T): void {
    let tree = this.#sessions.get(session);
    if (tree === undefined) this.#sessions.set(session, (tree = new AgentTree()));
    tree.add(agent, item);
  }

  /** Whether it was there. */
  delete({ session, agent }: RegistrationScope, item: T): boolean {
    const tree = this.#sessions.get(session);
    if (tree?.delete(agent, item) !== true) return false;
    if (tree.isEmpty) this.#sessions.delete(session);
    return true;
  }

  /** Whether anything is of this session. */
  has(session: string | undefined): boolean {
    return this.#sessions.has(session);
  }

  /** All that can be at or below a scope: of its session, or of every session, for a scope that is of none. */
  *within({ session, agent }: RegistrationScope): Iterable<T> {
    if (session !== undefined) yield* this.#walk(session, agent, { below: true });
    else for (const tree of this.#sessions.values()) yield* tree.walk(agent, { below: true });
  }

  /** All that a scope can see: everybody's, and its own. */
  *above({ session, agent }: RegistrationScope): Iterable<T> {
    yield* this.#walk(undefined, agent, { above: true });
    if (session !== undefined) yield* this.#walk(session, agent, { above: true });
  }

  /** All that somebody at or below a scope of a session can see. */
  *around({ session, agent }: RegistrationScope): Iterable<T> {
    yield* this.#walk(undefined, agent, { above: true, below: true });
    if (session !== undefined) yield* this.#walk(session, agent, { above: true, below: true });
  }

  clear(): void {
    this.#sessions.clear();
  }

  #walk(
    session: string | undefined,
    ...[agent, sides]: Parameters<AgentTree<T>['walk']>
  ): Iterable<T> {
    return this.#sessions.get(session)?.walk(agent, sides) ?? [];
  }
}
