import {
  changeSource,
  CircularCompositionError,
  compositionOf,
  defineTool,
  type AnyCapability,
  type Capability,
  type ChangeEvent,
  type Problem,
} from '@patchbay/protocols';
import { CombinedCapability, ExtensionRegistry } from '@patchbay/registry';
import { describe, expect, it } from 'vitest';

const forever = new Promise<never>(() => undefined);

/** A capability with something of every kind. */
function everything(id: string) {
  const source = changeSource(id);
  const skill = { uri: `skill://${id}/SKILL.md`, name: id, description: id, origin: id };
  return {
    id,
    emit: source.emit,
    revision: source.revision,
    changes: source.subscribe,
    tools: async () => [defineTool({ capability: id, name: 'x', call: () => `${id} did x` })],
    instructions: async () => [{ source: id, kind: 'static' as const, text: `about ${id}` }],
    prepareTurn: async () => ({
      instructions: [{ source: id, kind: 'dynamic' as const, text: `turn of ${id}` }],
    }),
    listSkills: async () => [skill],
    skillExists: async () => false,
    openSkill: async () => undefined,
    listCommands: async () => [{ name: `do-${id}`, description: id, origin: id, kind: 'file' }],
    getCommand: async () => ({ messages: [] }),
    listResources: async () => [{ uri: `mcp://${id}/a`, name: 'a' }],
    resourceExists: async () => true,
    readResource: async () => [{ type: 'text' as const, text: id }],
  } satisfies AnyCapability & { emit: unknown };
}

const silent = { onProblem: () => undefined };
const namesOf = async (registry: ExtensionRegistry, scope = {}) =>
  (await registry.view(scope).compile()).tools.map(({ definition }) => definition.name);
/** One that contains itself, three levels down. */
function loop(): Capability {
  const children: Capability[] = [];
  const outer = { id: 'a', children };
  children.push({ id: 'b', children: [{ id: 'c', children: [outer] }] });
  return outer;
}

describe('a combined capability', () => {
  it('brings the tools, instructions, turns, skills, commands, resources and changes of all its children', async () => {
    await using registry = new ExtensionRegistry();
    const [mail, calendar] = [everything('mail'), everything('calendar')];
    registry.register(new CombinedCapability('office', [mail, calendar]), { session: 's' });
    const view = registry.view({ session: 's' });
    const changes = view.changes()[Symbol.asyncIterator]();
    const { tools, instructions, skills, callTool } = await view.compile();
    expect(tools.map(({ definition }) => definition.name)).toEqual(['calendar__x', 'mail__x']);
    expect(instructions.map(({ text }) => text)).toEqual(['about calendar', 'about mail']);
    expect(skills.map(({ name, source }) => [name, source])).toEqual([
      ['calendar', 'calendar'],
      ['mail', 'mail'],
    ]);
    expect((await callTool('mail__x', {})).content).toEqual([{ type: 'text', text: 'mail did x' }]);
    expect((await view.commands.list()).map(({ name }) => name)).toEqual([
      'do-calendar',
      'do-mail',
    ]);
    expect(await view.resources.read('mcp://mail/a')).toEqual([{ type: 'text', text: 'mail' }]);
    await using turn = view.beginTurn();
    expect((await turn.prepare()).instructions.map(({ text }) => text)).toContain('turn of mail');
    mail.emit('tools_changed');
    expect((await changes.next()).value).toEqual({ capability: 'mail', kind: 'tools_changed' });
    await changes.return?.();
    expect(await namesOf(registry)).toEqual([]);
  });

  it('keeps what its other children offer when one fails and one hangs', async () => {
    await using registry = new ExtensionRegistry(silent);
    registry.register(
      new CombinedCapability('office', [
        everything('mail'),
        { id: 'broken', tools: () => Promise.reject(new Error('no network')) },
        { id: 'hangs', tools: () => forever },
      ]),
    );
    const { tools, problems } = await registry.view().compile({ deadlineMs: 1 });
    expect(tools.map(({ definition }) => definition.name)).toEqual(['mail__x']);
    expect(problems.map(({ source, code }) => `${source} ${code}`)).toEqual([
      'broken source-failed',
      'hangs source-slow',
    ]);
  });

  it('asks only the child that changed', async () => {
    await using registry = new ExtensionRegistry();
    const asked: string[] = [];
    const counted = (id: string) => {
      const capability = everything(id);
      const { tools } = capability;
      return { ...capability, tools: async () => (asked.push(id), tools()) };
    };
    const [mail, calendar] = [counted('mail'), counted('calendar')];
    registry.register(new CombinedCapability('office', [mail, calendar]));
    const view = registry.view();
    await view.compile();
    mail.emit('tools_changed');
    await view.compile();
    expect(asked.toSorted()).toEqual(['calendar', 'mail', 'mail']);
  });

  it('is replaced by its id together with its children, and a child by its own id alone', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(everything('mail'));
    registry.register(new CombinedCapability('office', [everything('mail'), everything('notes')]), {
      session: 's',
    });
    registry.register({ id: 'office' }, { session: 's', agent: 'a' });
    const own = defineTool({ capability: 'notes', name: 'own', call: () => '' });
    registry.register({ id: 'notes', tools: async () => [own] }, { session: 's', agent: 'b' });
    expect(await namesOf(registry, { session: 's' })).toEqual(['mail__x', 'notes__x']);
    // `mail` of everybody is seen again where the one of `office` is not.
    expect(await namesOf(registry, { session: 's', agent: 'a' })).toEqual(['mail__x']);
    expect(await namesOf(registry, { session: 's', agent: 'b' })).toEqual([
      'mail__x',
      'notes__own',
    ]);
    expect(
      registry.inspect().map(({ id, scope, within, shadows }) => [id, scope, within, shadows]),
    ).toEqual([
      ['mail', 'pool', undefined, []],
      ['mail', 'session="s"', 'office', ['pool']],
      ['notes', 'session="s"', 'office', []],
      ['office', 'session="s"', undefined, []],
      ['notes', 'session="s" agent="b"', undefined, ['session="s"']],
      ['office', 'session="s" agent="a"', undefined, ['session="s"']],
    ]);
  });

  it('hides its children when it hides itself, and a child may hide itself', async () => {
    await using registry = new ExtensionRegistry();
    const shy: AnyCapability = { ...everything('shy'), visible: ({ agent }) => agent === 'b' };
    registry.register({
      id: 'office',
      children: [everything('mail'), shy],
      visible: ({ agent }) => agent !== undefined,
    });
    expect(await namesOf(registry, { session: 's' })).toEqual([]);
    expect(await namesOf(registry, { session: 's', agent: 'a' })).toEqual(['mail__x']);
    expect(await namesOf(registry, { session: 's', agent: 'b' })).toEqual(['mail__x', 'shy__x']);
  });

  it('is closed with its children; one that is registered elsewhere too lives on there', async () => {
    await using registry = new ExtensionRegistry();
    const closed: string[] = [];
    const closing = (id: string): AnyCapability => ({
      ...everything(id),
      [Symbol.asyncDispose]: async () => void closed.push(id),
    });
    const shared = closing('shared');
    const other = registry.register(shared);
    const handle = registry.register(new CombinedCapability('office', [closing('mail'), shared]), {
      session: 's',
    });
    await handle.close();
    expect(closed).toEqual(['mail']);
    expect(registry.inspect().map(({ id }) => id)).toEqual(['shared']);
    await other.close();
    expect(closed).toEqual(['mail', 'shared']);
  });
});

describe('compositions', () => {
  it.each<[string, (registry: ExtensionRegistry) => unknown]>([
    ['registered', (registry) => registry.register(loop())],
    ['registered within another', (registry) => registry.register({ id: 'x', children: [loop()] })],
    ['combined', () => new CombinedCapability('x', [loop()])],
    [
      'registered, of a class of its own',
      (registry) => {
        class Ring implements Capability {
          readonly id = 'ring';
          get children(): readonly Capability[] {
            return [this];
          }
        }
        return registry.register(new Ring());
      },
    ],
    ['looked at', () => compositionOf(loop())],
  ])('that contain themselves are refused when they are %s', async (_, make) => {
    await using registry = new ExtensionRegistry();
    expect(() => make(registry)).toThrow(CircularCompositionError);
    expect(() => make(registry)).toThrow(/may not contain itself: .+ > .+\. Remove one/);
    expect(registry.inspect()).toEqual([]);
  });

  it('have ids of their own: nothing is registered of one with an id that is empty, twice in it, or taken', async () => {
    await using registry = new ExtensionRegistry();
    registry.register({ id: 'taken' });
    const code = (children: readonly Capability[]) => {
      try {
        registry.register({ id: 'x', children: [{ id: 'fine' }, ...children] });
      } catch (error) {
        return (error as { code?: string }).code;
      }
      return 'registered';
    };
    expect(code([{ id: 'taken' }])).toBe('duplicate-id');
    expect(code([{ id: 'y', children: [{ id: 'fine' }] }])).toBe('duplicate-id');
    expect(code([{ id: 'x' }])).toBe('duplicate-id');
    expect(code([{ id: '' }])).toBe('invalid-id');
    expect(registry.inspect().map(({ id }) => id)).toEqual(['taken']);
    expect(code([])).toBe('registered');
  });

  it('deeper than three work, and have a problem that says so, once, at register and in each view', async () => {
    const nested = (...ids: readonly string[]): Capability => {
      const [id = '', ...rest] = ids;
      return { ...everything(id), ...(rest.length === 0 ? {} : { children: [nested(...rest)] }) };
    };
    for (const [options, ids] of [
      [{}, ['a', 'b', 'c', 'd', 'e']],
      [{ maxCompositionDepth: 1 }, ['a', 'b']],
    ] as const) {
      const told: Problem[] = [];
      await using registry = new ExtensionRegistry({
        ...options,
        onProblem: (problem) => void told.push(problem),
      });
      registry.register(nested(...ids));
      expect(told).toMatchObject([{ code: 'composition-depth', severity: 'warning' }]);
      expect(told[0]?.message).toMatch(/composed \d deep \(a > b/);
      const { tools, problems } = await registry.view().compile();
      expect(tools).toHaveLength(ids.length);
      expect(problems).toMatchObject([{ code: 'composition-depth' }]);
      expect(told).toHaveLength(1);
    }
    await using registry = new ExtensionRegistry({
      onProblem: ({ message }) => {
        throw new Error(message);
      },
    });
    registry.register(nested('a', 'b', 'c'));
  });

  it('are told of as what comes and goes, child by child', async () => {
    await using registry = new ExtensionRegistry();
    const changes: ChangeEvent[] = [];
    const reading = (async () => {
      for await (const event of registry.changes()) changes.push(event);
    })();
    const handle = registry.register({ id: 'x', children: [{ id: 'y' }] });
    await handle.close();
    await registry.close();
    await reading;
    expect(changes.map(({ capability, kind }) => `${capability} ${kind}`)).toEqual([
      'x registered',
      'y registered',
      'x unregistered',
      'y unregistered',
    ]);
  });
});
