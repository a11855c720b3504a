import {
  scopeCovers,
  type Capability,
  type RegistrationScope,
  type Scope,
} from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { describe, expect, it } from 'vitest';

/** Repeatable numbers (mulberry32). */
function random(seed: number) {
  let state = seed;
  return (below: number) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

const SESSIONS = ['s1', 's2'];
const AGENTS = ['coder', 'coder/sub', 'coderx', 'writer'];
const everyScope: readonly RegistrationScope[] = [
  {},
  ...AGENTS.map((agent) => ({ agent, everySession: true })),
  ...SESSIONS.flatMap((session) => [
    { session },
    { session, turn: 't' },
    ...AGENTS.flatMap((agent) => [
      { session, agent },
      { session, agent, turn: 't' },
    ]),
  ]),
];
const askedScopes: readonly Scope[] = everyScope.filter(
  ({ everySession }) => everySession !== true,
);

/** The rules of DESIGN "Scopes", written as simply as they can be. */
function model(
  registered: readonly { readonly id: string; readonly at: RegistrationScope }[],
  asking: Scope,
): string[] {
  const agrees = (at: RegistrationScope) =>
    (at.session === undefined || at.session === asking.session) &&
    (at.turn === undefined || at.turn === asking.turn) &&
    (at.agent === undefined || `${asking.agent ?? ''}/`.startsWith(`${at.agent}/`));
  return [...new Set(registered.filter(({ at }) => agrees(at)).map(({ id }) => id))].toSorted();
}

describe('scopes', () => {
  const seed = Number(process.env['SEED'] ?? Date.now() % 1e9);
  it(`show what the model says, for any registrations and any scope (SEED=${seed})`, async () => {
    const pick = random(seed);
    for (let round = 0; round < 40; round++) {
      await using registry = new ExtensionRegistry();
      const registered = new Map<
        string,
        { id: string; at: RegistrationScope; handle: { close(): Promise<void> } }
      >();
      for (let step = 0; step < 30; step++) {
        const at = everyScope[pick(everyScope.length)]!;
        const id = `c${pick(6)}`;
        const key = JSON.stringify([id, at]);
        const known = registered.get(key);
        if (known === undefined)
          registered.set(key, { id, at, handle: registry.register({ id }, at) });
        else {
          await known.handle.close();
          registered.delete(key);
        }
      }
      const all = [...registered.values()];
      for (const asking of askedScopes) {
        const seen = registry.query(asking, (c): c is Capability => c !== undefined);
        expect(
          seen.map(({ id }) => id),
          JSON.stringify(asking),
        ).toEqual(model(all, asking));
      }
    }
  });

  it('let the deeper registration of an id be seen, and say so', async () => {
    await using registry = new ExtensionRegistry();
    const [pool, session, agent] = [{ id: 'x' }, { id: 'x' }, { id: 'x' }];
    registry.register(pool);
    registry.register(session, { session: 's' });
    registry.register(agent, { session: 's', agent: 'a' });
    const seen = (scope: Scope) =>
      registry.query(scope, (c): c is Capability => c !== undefined)[0];
    expect(seen({})).toBe(pool);
    expect(seen({ session: 't' })).toBe(pool);
    expect(seen({ session: 's' })).toBe(session);
    expect(seen({ session: 's', agent: 'a/b' })).toBe(agent);
    expect(registry.inspect().map(({ scope, shadows }) => [scope, shadows])).toEqual([
      ['pool', []],
      ['session="s"', ['pool']],
      ['session="s" agent="a"', ['session="s"', 'pool']],
    ]);
  });

  it('do not leak an agent of one session into another', () => {
    expect(scopeCovers({ session: 'a', agent: 'coder' }, { session: 'b', agent: 'coder' })).toBe(
      false,
    );
    expect(
      scopeCovers({ agent: 'coder', everySession: true }, { session: 'b', agent: 'coder/x' }),
    ).toBe(true);
  });

  it.each([
    [{ session: '' }],
    [{ agent: 'coder' }],
    [{ turn: 't' }],
    [{ session: 's', agent: 'a//b' }],
    [{ session: 's', agent: 'a', everySession: true }],
    [{ everySession: true }],
  ])('refuse %j', async (scope) => {
    await using registry = new ExtensionRegistry();
    expect(() => registry.register({ id: 'x' }, scope)).toThrow(
      expect.objectContaining({ code: 'invalid-scope' }),
    );
  });

  it('refuse the same id twice at one scope, and an empty id', async () => {
    await using registry = new ExtensionRegistry();
    registry.register({ id: 'x' }, { session: 's' });
    registry.register({ id: 'x' }, { session: 't' });
    expect(() => registry.register({ id: 'x' }, { session: 's' })).toThrow(
      expect.objectContaining({ code: 'duplicate-id' }),
    );
    expect(() => registry.register({ id: '' })).toThrow(
      expect.objectContaining({ code: 'invalid-id' }),
    );
  });

  it('let a capability hide itself but never show itself', async () => {
    await using registry = new ExtensionRegistry();
    registry.register({ id: 'x', visible: ({ agent }) => agent !== 'writer' }, { session: 's' });
    const sees = (scope: Scope) =>
      registry.query(scope, (c): c is Capability => c !== undefined).length;
    expect([
      sees({ session: 's' }),
      sees({ session: 's', agent: 'writer' }),
      sees({ session: 't' }),
      sees({}),
    ]).toEqual([1, 0, 0, 0]);
  });

  it('bind a session to the identity that looked first', async () => {
    await using registry = new ExtensionRegistry();
    registry.view({ session: 's' }, { identity: { id: 'ann' } });
    registry.view({ session: 's', agent: 'a' }, { identity: { id: 'ann', token: 'newer' } });
    expect(() => registry.view({ session: 's' }, { identity: { id: 'bob' } })).toThrow(
      expect.objectContaining({ code: 'identity-mismatch' }),
    );
    await registry.close({ session: 's' });
    registry.view({ session: 's' }, { identity: { id: 'bob' } });
  });

  it('report a capability that implements half a protocol', async () => {
    const problems: unknown[] = [];
    await using registry = new ExtensionRegistry({
      onProblem: (problem) => void problems.push(problem),
    });
    registry.register({ id: 'half', callTool: async () => ({ content: [] }) });
    expect(problems).toMatchObject([{ source: 'half', code: 'partial-protocol' }]);
    expect(problems).toHaveLength(1);
  });
});
