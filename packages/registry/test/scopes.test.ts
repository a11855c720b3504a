import {
  describeScope,
  normalizeScope,
  scopeCovers,
  scopeDepth,
  type Capability,
  type RegistrationScope,
  type Scope,
} from '@patchbay/protocols';
import { ExtensionRegistry, type RegistrationHandle } from '@patchbay/registry';
import { describe, expect, it } from 'vitest';

import { random, seed } from './random.ts';

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

interface Registered {
  readonly capability: Capability;
  readonly at: RegistrationScope;
  readonly shows: (scope: Scope) => boolean;
}

/** The rules of DESIGN "Scopes", written as simply as they can be: what of one id is seen, and what it shadows. */
function model(all: readonly Registered[], asking: Scope): readonly (readonly Registered[])[] {
  const agrees = ({ at }: Registered) =>
    (at.session === undefined || at.session === asking.session) &&
    (at.turn === undefined || at.turn === asking.turn) &&
    (at.agent === undefined || `${asking.agent ?? ''}/`.startsWith(`${at.agent}/`));
  const depth = ({ at: { turn, agent, session } }: Registered) =>
    [turn ? 1 : 0, agent?.split('/').length ?? 0, session ? 1 : 0].join('');
  const deepestFirst = all.filter(agrees).toSorted((a, b) => depth(b).localeCompare(depth(a)));
  const ids = [...new Set(deepestFirst.map(({ capability }) => capability.id))].toSorted();
  return ids.map((id) => deepestFirst.filter(({ capability }) => capability.id === id));
}

const everything = (capability: Capability): capability is Capability => capability !== undefined;

describe('scopes', () => {
  it(`show what the model says, for any registrations and any scope (SEED=${seed})`, async () => {
    const pick = random(seed);
    for (let round = 0; round < 40; round++) {
      await using registry = new ExtensionRegistry();
      const registered = new Map<string, Registered & { readonly handle: RegistrationHandle }>();
      for (let step = 0; step < 30; step++) {
        const at = everyScope[pick(everyScope.length)]!;
        const id = `c${pick(6)}`;
        const key = JSON.stringify([id, at]);
        const known = registered.get(key);
        if (known === undefined) {
          const shyOf = askedScopes[pick(askedScopes.length)]!;
          const shows =
            pick(3) > 0 ? () => true : (scope: Scope) => !scopeCovers(shyOf, normalizeScope(scope));
          const capability = { id, visible: shows };
          const handle = registry.register(capability, at);
          registered.set(key, { capability, at, shows, handle });
        } else {
          await known.handle.close();
          registered.delete(key);
        }
      }
      const all = [...registered.values()];
      for (const asking of askedScopes) {
        const seen = registry.query(asking, everything);
        const winners = model(all, asking).map(([first]) => first!);
        const shown = winners.filter(({ shows }) => shows(asking));
        const where = JSON.stringify(asking);
        expect(seen, where).toEqual(shown.map(({ capability }) => capability));
        for (const { at } of shown) {
          expect(at.session ?? asking.session, `${where}: of this tenant`).toBe(asking.session);
          expect(scopeDepth(at), `${where}: not from deeper`).toBeLessThanOrEqual(
            scopeDepth(asking),
          );
        }
      }
      const rows = all.map((one) => {
        const [first, ...shadowed] = model(all, one.at).find((same) => same.includes(one))!;
        return {
          id: one.capability.id,
          scope: describeScope(one.at),
          status: { state: 'ready' },
          shadows: first === one ? shadowed.map(({ at }) => describeScope(at)) : [],
          hidden: first !== one || !one.shows(one.at),
        };
      });
      const key = ({ id, scope }: { readonly id: string; readonly scope: string }) => id + scope;
      const byKey = <T extends Parameters<typeof key>[0]>(list: readonly T[]) =>
        list.toSorted((a, b) => key(a).localeCompare(key(b)));
      expect(byKey(registry.inspect())).toMatchObject(byKey(rows));
    }
  });

  it('let the deeper registration of an id be seen, and say so', async () => {
    await using registry = new ExtensionRegistry();
    const [pool, session, agent] = [{ id: 'x' }, { id: 'x' }, { id: 'x' }];
    registry.register(pool);
    registry.register(session, { session: 's' });
    registry.register(agent, { session: 's', agent: 'a' });
    const seen = (scope: Scope) => registry.query(scope, everything)[0];
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
    const sees = (scope: Scope) => registry.query(scope, everything).length;
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

  it('refuse an identity without an id: its answers would be those of nobody', async () => {
    await using registry = new ExtensionRegistry();
    for (const id of ['', undefined as unknown as string]) {
      expect(() => registry.view({ session: 's' }, { identity: { id } })).toThrow(
        expect.objectContaining({ code: 'invalid-id' }),
      );
    }
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
