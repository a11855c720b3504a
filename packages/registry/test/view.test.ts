import {
  changeSource,
  defineTool,
  PatchbayError,
  type CallContext,
  type Capability,
  type ChangeObservable,
  type CompileContext,
  type CompiledView,
  type Problem,
  type Tool,
  type ToolResult,
} from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { describe, expect, it, onTestFinished, vi } from 'vitest';

const tool = (capability: string, name: string, call: () => string = () => name): Tool =>
  defineTool({ capability, name, description: name, call });

/** A source whose tools are a list that a test changes; counts how often it was asked. */
function board(id: string, ...names: string[]) {
  const changes = changeSource(id);
  const list = new Map(names.map((name) => [name, tool(id, name)]));
  return {
    id,
    list,
    asked: 0,
    revision: changes.revision,
    changes: changes.subscribe,
    emit: changes.emit,
    async tools() {
      this.asked++;
      return [...list.values()];
    },
  } satisfies Capability & ChangeObservable & { asked: number; list: unknown; emit: unknown };
}

const names = (view: { readonly tools: readonly Tool[] }) =>
  view.tools.map((t) => t.definition.name);
/** Promise.withResolvers, which Node 20 lacks. */
function deferred<T>() {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((ok) => (resolve = ok));
  return { promise, resolve };
}

const quiet = (problems: Problem[] = []) => ({
  onProblem: (problem: Problem) => void problems.push(problem),
});

describe('compile', () => {
  it('gives sorted tools, and the same object for as long as nothing changes', async () => {
    await using registry = new ExtensionRegistry();
    const source = board('b', 'two', 'one');
    registry.register(source);
    registry.register(board('a', 'x'));
    const view = registry.view();
    const first = await view.compile();
    expect(names(first)).toEqual(['a__x', 'b__one', 'b__two']);
    expect(await view.compile()).toBe(first);
    expect(source.asked).toBe(1);
  });

  it('asks only the source that changed', async () => {
    await using registry = new ExtensionRegistry();
    const [a, b] = [board('a', 'x'), board('b', 'y')];
    registry.register(a);
    registry.register(b);
    const view = registry.view();
    const before = await view.compile();
    b.list.set('z', tool('b', 'z'));
    b.emit('tools_changed');
    const after = await view.compile();
    expect(names(after)).toEqual(['a__x', 'b__y', 'b__z']);
    expect(after.revision).toBeGreaterThan(before.revision);
    expect([a.asked, b.asked]).toEqual([1, 2]);
    expect(after.tools[0]).toBe(before.tools[0]);
  });

  it('shares one listing and its tool objects among a hundred sessions', async () => {
    await using registry = new ExtensionRegistry();
    const source = board('a', 'x');
    registry.register(source);
    const views = Array.from({ length: 100 }, (_, i) => registry.view({ session: `s${i}` }));
    const compiled = await Promise.all(views.map((view) => view.compile()));
    expect(source.asked).toBe(1);
    expect(new Set(compiled.map(({ tools }) => tools[0])).size).toBe(1);
  });

  it('keeps answers apart by what they were made of', async () => {
    await using registry = new ExtensionRegistry();
    let asked = 0;
    registry.register({
      id: 'mine',
      tools: async ({ identity }: CompileContext) => {
        asked++;
        return [tool('mine', identity?.id ?? 'nobody')];
      },
    });
    const compile = async (session: string, id?: string) =>
      names(
        await registry.view({ session }, id === undefined ? {} : { identity: { id } }).compile(),
      );
    expect(
      await Promise.all([
        compile('1', 'ann'),
        compile('2', 'bob'),
        compile('3', 'ann'),
        compile('4'),
      ]),
    ).toEqual([['mine__ann'], ['mine__bob'], ['mine__ann'], ['mine__nobody']]);
    expect(asked).toBe(3);
  });

  it('asks again who read the session state when that key changes, and nobody else', async () => {
    await using registry = new ExtensionRegistry();
    const other = board('other', 'x');
    registry.register(other);
    registry.register({
      id: 'reader',
      tools: async ({ state }) => [
        tool('reader', JSON.stringify(state.get('mode') ?? 'none').replaceAll('"', '')),
      ],
    });
    const view = registry.view({ session: 's' });
    expect(names(await view.compile())).toContain('reader__none');
    registry.state({ session: 's' }).set('unrelated', 1);
    const same = await view.compile();
    expect(await view.compile()).toBe(same);
    registry.state({ session: 's' }).set('mode', 'fast');
    expect(names(await view.compile())).toContain('reader__fast');
    expect(names(await registry.view({ session: 't' }).compile())).toContain('reader__none');
    expect(other.asked).toBe(1);
  });

  it('asks again who read its peers when they change', async () => {
    await using registry = new ExtensionRegistry();
    const changes = changeSource('folder');
    const skills = [{ uri: 'skill://a/SKILL.md', name: 'a', description: 'A', origin: 'test' }];
    registry.register({
      id: 'folder',
      revision: changes.revision,
      changes: changes.subscribe,
      listSkills: async () => [...skills],
      openSkill: async () => undefined,
      skillExists: async () => false,
    });
    let asked = 0;
    registry.register({
      id: 'catalogue',
      instructions: async ({ peers }) => {
        asked++;
        const text = (await peers.skills()).map(({ entry }) => entry.name).join();
        return [{ source: 'catalogue', kind: 'static', text }];
      },
    });
    const view = registry.view({ session: 's' });
    expect((await view.compile()).instructions[0]?.text).toBe('a');
    expect(await view.compile()).toBe(view.current());
    expect(asked).toBe(1);
    skills.push({ uri: 'skill://b/SKILL.md', name: 'b', description: 'B', origin: 'test' });
    changes.emit('skills_changed');
    expect((await view.compile()).instructions[0]?.text).toBe('a,b');
    const narrowed = await registry
      .view({ session: 's' }, { skills: { exclude: ['b'] } })
      .compile();
    expect(narrowed.instructions[0]?.text).toBe('a');
    expect(narrowed.skills.map(({ name }) => name)).toEqual(['a']);
  });

  it('follows what was read through a chain of capabilities, at every compile, though nobody listens', async () => {
    await using registry = new ExtensionRegistry();
    const asked: string[] = [];
    const told: string[] = ['one'];
    const source = changeSource('z-skills');
    registry.register({
      id: 'z-skills',
      revision: source.revision,
      changes: source.subscribe,
      listSkills: async () => {
        asked.push('skills');
        return told.map((name) => ({ uri: `skill://${name}`, name, description: '', origin: '' }));
      },
      openSkill: async () => undefined,
      skillExists: async () => false,
    });
    registry.register({
      id: 'm-commands',
      listCommands: async ({ peers }: CompileContext) => {
        asked.push('commands');
        const skills = await peers.skills();
        return skills.map(({ entry: { name } }) => ({
          name,
          description: '',
          origin: '',
          kind: 'skill',
        }));
      },
      getCommand: async () => ({ messages: [] }),
    });
    registry.register({
      id: 'a-text',
      instructions: async ({ peers }) => {
        asked.push('text');
        const commands = await peers.commands();
        return [
          { source: 'a', kind: 'static', text: commands.map(({ entry }) => entry.name).join() },
        ];
      },
    });
    registry.register(board('other', 'x'));
    const view = registry.view({ session: 's' });
    const text = async () => (await view.compile()).instructions[0]?.text;
    expect(await text()).toBe('one');
    expect(await text()).toBe('one');
    expect(asked.toSorted()).toEqual(['commands', 'skills', 'text']);
    told.push('two');
    source.emit('skills_changed');
    expect(await text()).toBe('one,two');
    expect(asked.toSorted()).toEqual(['commands', 'commands', 'skills', 'skills', 'text', 'text']);
  });

  it('gives the same bytes for the same sources, in whatever order they are registered, also made anew', async () => {
    const sources = ['b', 'a', 'd', 'c'].map((id) => ({
      id,
      tools: async () => [tool(id, 'two'), tool(id, 'one')],
      instructions: async () => [
        { source: id, kind: 'dynamic' as const, text: `${id} now` },
        { source: id, kind: 'static' as const, text: `${id} always` },
      ],
      listSkills: async () => [
        { uri: `skill://${id}/s`, name: 's', description: id, origin: id },
        { uri: `skill://${id}/r`, name: 'r', description: id, origin: id },
      ],
      openSkill: async () => undefined,
      skillExists: async () => false,
    }));
    const bytes = async (order: typeof sources) => {
      await using registry = new ExtensionRegistry();
      for (const source of order) registry.register(source);
      const view = registry.view();
      const text = ({ tools, instructions, skills }: CompiledView) =>
        JSON.stringify([tools, instructions, skills]);
      const first = text(await view.compile());
      // A list that is made anew and says the same.
      const other = registry.register({ id: 'e' });
      expect(text(await view.compile())).toBe(first);
      await other.close();
      expect(text(await view.compile())).toBe(first);
      return first;
    };
    const first = await bytes(sources);
    expect(await bytes(sources.toReversed())).toBe(first);
    expect(await bytes(sources.toSorted((a, b) => (a.id < b.id ? -1 : 1)))).toBe(first);
  });

  it('waits once for a source that hangs: later compiles, and other sessions, go on without it at once', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    await using registry = new ExtensionRegistry(quiet());
    let asked = 0;
    registry.register({ id: 'hangs', tools: () => (asked++, new Promise(() => undefined)) });
    registry.register(board('fast', 'x'));
    const turn = registry.view({ session: 's' }).beginTurn();
    const first = turn.prepare();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(names(await first)).toEqual(['fast__x']);
    const again = Promise.all([
      turn.prepare(),
      registry.view({ session: 't' }).beginTurn().prepare(),
    ]);
    await vi.advanceTimersByTimeAsync(0);
    for (const step of await again) {
      expect(names(step)).toEqual(['fast__x']);
      expect(step.problems).toMatchObject([{ source: 'hangs', code: 'source-slow' }]);
    }
    expect(asked).toBe(1);
  });

  it('ends although two capabilities read each other', async () => {
    await using registry = new ExtensionRegistry();
    for (const id of ['a', 'b']) {
      registry.register({
        id,
        listSkills: async ({ peers }: CompileContext) => {
          const seen = (await peers.skills()).length;
          return [
            { uri: `skill://${id}/SKILL.md`, name: id, description: String(seen), origin: 'test' },
          ];
        },
        openSkill: async () => undefined,
        skillExists: async () => false,
      });
    }
    expect((await registry.view().compile()).skills.map(({ name }) => name)).toEqual(['a', 'b']);
  });

  it('turns a failing source into a problem and a note for the model, keeps the others, and asks it again', async () => {
    const problems: Problem[] = [];
    await using registry = new ExtensionRegistry(quiet(problems));
    let broken = true;
    registry.register(board('good', 'x'));
    registry.register({
      id: 'bad',
      tools: async () => {
        if (broken) throw new PatchbayError('connect-failed', 'no such command');
        return [tool('bad', 'y')];
      },
    });
    const view = registry.view();
    const compiled = await view.compile();
    expect(names(compiled)).toEqual(['good__x']);
    expect(compiled.problems).toMatchObject([
      { source: 'bad', code: 'connect-failed', severity: 'error' },
    ]);
    expect(compiled.instructions.at(-1)).toMatchObject({ kind: 'dynamic' });
    expect(compiled.instructions.at(-1)?.text).toContain('bad');
    expect(await view.compile()).toBe(compiled);
    expect(problems).toHaveLength(1);
    broken = false;
    expect(names(await view.compile())).toEqual(['bad__y', 'good__x']);
  });

  it('does not wait for the slowest beyond the deadline, and says when it has answered', async () => {
    await using registry = new ExtensionRegistry(quiet());
    const { promise, resolve } = deferred<readonly Tool[]>();
    registry.register({ id: 'slow', tools: () => promise });
    registry.register(board('fast', 'x'));
    const view = registry.view();
    const stop = new AbortController();
    const changes = view.changes({ signal: stop.signal })[Symbol.asyncIterator]();
    const early = await view.compile({ deadlineMs: 10 });
    expect(names(early)).toEqual(['fast__x']);
    expect(early.problems).toMatchObject([{ source: 'slow', code: 'source-slow' }]);
    const next = changes.next();
    resolve([tool('slow', 'y')]);
    expect((await next).value).toEqual({ capability: 'slow', kind: 'tools_changed' });
    expect(names(await view.compile({ deadlineMs: 0 }))).toEqual(['fast__x', 'slow__y']);
    stop.abort();
  });

  it('leaves out tools with a wrong or a taken name, and says so', async () => {
    await using registry = new ExtensionRegistry(quiet());
    const call = async () => ({ content: [] });
    const definition = (name: string) => ({ name, inputSchema: {} });
    registry.register({
      id: 'a',
      tools: async () => [
        { id: { capability: 'a', name: 'x' }, definition: definition('bare'), call },
        tool('a', 'twice'),
        tool('a', 'twice'),
        { id: { capability: 'a', name: 'list' }, definition: definition('list_skills'), call },
      ],
    });
    const { tools, problems } = await registry.view().compile();
    expect(tools.map((t) => t.definition.name)).toEqual(['a__twice', 'list_skills']);
    expect(problems.map(({ code }) => code)).toEqual(['tool-name', 'tool-name']);
  });

  it('gives static instructions before dynamic ones, each by source', async () => {
    await using registry = new ExtensionRegistry();
    for (const id of ['b', 'a']) {
      registry.register({
        id,
        instructions: async () => [
          { source: id, kind: 'dynamic', text: `${id} now` },
          { source: id, kind: 'static', text: `${id} always` },
        ],
      });
    }
    const { instructions } = await registry.view().compile();
    expect(instructions.map(({ text }) => text)).toEqual([
      'a always',
      'b always',
      'a now',
      'b now',
    ]);
  });
});

describe('calls', () => {
  it('binds scope and identity, and gives the call an id', async () => {
    await using registry = new ExtensionRegistry();
    registry.register({
      id: 'a',
      tools: async () => [
        defineTool({
          capability: 'a',
          name: 'who',
          call: (_args, { scope, identity, callId }) => ({
            scope,
            id: identity?.id,
            hasId: callId !== '',
          }),
        }),
      ],
    });
    const { callTool } = await registry
      .view({ session: 's', agent: 'coder' }, { identity: { id: 'ann' } })
      .compile();
    expect((await callTool('a__who', {})).structuredContent).toEqual({
      scope: { session: 's', agent: 'coder' },
      id: 'ann',
      hasId: true,
    });
  });

  it('refuses what the validator refuses, with every violation', async () => {
    await using registry = new ExtensionRegistry({
      validator: {
        validate: () => ({ ok: false, violations: ['/x must be a number', '/y is missing'] }),
      },
    });
    let ran = false;
    registry.register({ id: 'a', tools: async () => [tool('a', 'x', () => ((ran = true), 'x'))] });
    const { callTool } = await registry.view().compile();
    await expect(callTool('a__x', {})).rejects.toMatchObject({
      code: 'invalid-arguments',
      details: { violations: ['/x must be a number', '/y is missing'] },
    });
    expect(ran).toBe(false);
  });

  it('says in the meta of a result what its tool promised otherwise, and changes nothing else', async () => {
    const fits = (value: unknown) => typeof value === 'number';
    await using registry = new ExtensionRegistry({
      validator: {
        validate: ({ type }, value) =>
          type === 'object' || fits(value)
            ? { ok: true }
            : { ok: false, violations: ['no number'] },
      },
    });
    const results: readonly ToolResult[] = [
      { content: [], structuredContent: 1 },
      { content: [{ type: 'text', text: 'x' }], structuredContent: 'x', meta: { trace: 1 } },
      { content: [] },
      { content: [], structuredContent: { code: 'OFF' }, isError: true },
    ];
    const left = [...results];
    const made = { ...tool('a', 'x', () => ''), call: async () => left.shift()! };
    const promised = {
      ...made,
      definition: { ...made.definition, outputSchema: { type: 'number' } },
    };
    registry.register({ id: 'a', tools: async () => [promised] });
    const { callTool } = await registry.view().compile();
    const broken = (violation: string) => ({
      'patchbay/invalid-output': { code: 'invalid-output', tool: 'a__x', violations: [violation] },
    });
    const [fine, wrong, missing, failed] = results;
    expect(await callTool('a__x', {})).toEqual(fine);
    expect(await callTool('a__x', {})).toEqual({
      ...wrong,
      meta: { trace: 1, ...broken('no number') },
    });
    expect(await callTool('a__x', {})).toEqual({
      ...missing,
      meta: broken('there is no structured content'),
    });
    expect(await callTool('a__x', {})).toEqual(failed);
  });

  it('asks the approval policy inside the call: deny, ask, a question, a throw', async () => {
    let ran = 0;
    let decision: unknown = 'allow';
    await using registry = new ExtensionRegistry({
      approval: () => {
        if (decision === 'throw') throw new Error('policy is down');
        return decision as 'allow';
      },
    });
    registry.register({ id: 'a', tools: async () => [tool('a', 'x', () => String(++ran))] });
    const { callTool, approval } = await registry.view().compile();
    await callTool('a__x', {});
    decision = 'deny';
    await expect(callTool('a__x', {}, { approved: true })).rejects.toMatchObject({
      code: 'approval-denied',
    });
    decision = 'throw';
    await expect(callTool('a__x', {}, { approved: true })).rejects.toMatchObject({
      code: 'approval-denied',
    });
    decision = { ask: 'Really?' };
    expect(await approval('a__x', {})).toEqual({ ask: 'Really?' });
    await expect(callTool('a__x', {})).rejects.toThrow(/Really\?/);
    expect(ran).toBe(1);
    await callTool('a__x', {}, { approved: true });
    expect(ran).toBe(2);
  });

  it('keeps what a tool throws as the cause', async () => {
    await using registry = new ExtensionRegistry();
    const cause = new TypeError('boom');
    registry.register({
      id: 'a',
      tools: async () => [
        tool('a', 'x', () => {
          throw cause;
        }),
      ],
    });
    const { callTool } = await registry.view().compile();
    await expect(callTool('a__x', {})).rejects.toMatchObject({ code: 'source-failed', cause });
    await expect(callTool('a__nope', {})).rejects.toMatchObject({ code: 'tool-unavailable' });
  });

  it('hands an abort on, with its reason as the cause, and does not start an aborted call', async () => {
    await using registry = new ExtensionRegistry();
    let started = 0;
    const running = deferred<void>();
    registry.register({
      id: 'a',
      tools: async () => [
        defineTool({
          capability: 'a',
          name: 'wait',
          call: (_args, { signal }) => {
            started++;
            running.resolve();
            return new Promise((_, reject) =>
              signal?.addEventListener('abort', () => reject(signal.reason as Error)),
            );
          },
        }),
      ],
    });
    const { callTool } = await registry.view().compile();
    const stop = new AbortController();
    const call = callTool('a__wait', {}, { signal: stop.signal });
    await running.promise;
    const reason = new Error('user stopped');
    stop.abort(reason);
    await expect(call).rejects.toMatchObject({ code: 'aborted', cause: reason });
    await expect(callTool('a__wait', {}, { signal: stop.signal })).rejects.toMatchObject({
      code: 'aborted',
    });
    expect(started).toBe(1);
  });

  it('tells a call of its end by a signal and by a stop, also where they were handed on in a copy', async () => {
    await using registry = new ExtensionRegistry();
    const running = deferred<CallContext>();
    registry.register({
      id: 'a',
      tools: async () => [
        defineTool({
          capability: 'a',
          name: 'wait',
          call: (_args, context) =>
            new Promise((_, reject) => {
              context.stop?.onEnd((reason) => reject(reason));
              running.resolve({ ...context });
            }),
        }),
      ],
    });
    const { callTool } = await registry.view().compile();
    const stop = new AbortController();
    const call = callTool('a__wait', {}, { signal: stop.signal });
    const copy = await running.promise;
    const reason = new Error('user stopped');
    stop.abort(reason);
    await expect(call).rejects.toMatchObject({ code: 'aborted', cause: reason });
    expect([copy.signal?.reason, copy.stop?.reason]).toEqual([reason, reason]);
  });

  it('ends running calls when the capability is closed', async () => {
    await using registry = new ExtensionRegistry();
    const running = deferred<void>();
    const handle = registry.register({
      id: 'a',
      tools: async () => [
        defineTool({
          capability: 'a',
          name: 'wait',
          call: (_args, { signal }) => {
            running.resolve();
            return new Promise((_, reject) =>
              signal?.addEventListener('abort', () => reject(signal.reason as Error)),
            );
          },
        }),
      ],
    });
    const compiled = await registry.view().compile();
    const call = compiled.callTool('a__wait', {});
    await running.promise;
    await handle.close();
    await expect(call).rejects.toMatchObject({ code: 'closed' });
    await expect(compiled.callTool('a__wait', {})).rejects.toMatchObject({
      code: 'tool-unavailable',
    });
  });
});
