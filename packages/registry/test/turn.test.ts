import { defineTool, type Capability, type Tool, type TurnStep } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { afterEach, describe, expect, it, vi } from 'vitest';

const tool = (capability: string, name: string): Tool =>
  defineTool({ capability, name, description: name, call: () => name });
const names = ({ tools }: TurnStep) => tools.map(({ definition }) => definition.name);

/** Says what the user said, and hides `b` while the text asks for it. */
const echo: Capability = {
  id: 'echo',
  tools: async () => [tool('echo', 'a'), tool('echo', 'b')],
  prepareTurn: async ({ userText, turnId }) => ({
    instructions: [{ source: 'echo', kind: 'dynamic', text: `${turnId}: ${userText ?? ''}` }],
    hide: userText?.includes('hide') === true ? ['echo__b'] : [],
    active: [{ name: 'x', source: 'echo', digest: 'sha256:0', body: 'X', by: 'matcher' }],
  }),
};

afterEach(() => void vi.useRealTimers());

describe('a turn', () => {
  it('adds what capabilities contribute, and the same step for the same contribution', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(echo);
    const turn = registry.view({ session: 's' }).beginTurn({ userText: 'hello', turnId: '1' });
    const step = await turn.prepare();
    expect(step.instructions.map(({ text }) => text)).toEqual(['1: hello']);
    expect(step.active).toHaveLength(1);
    expect(await turn.prepare()).toBe(step);
    expect((await turn.prepare({ userText: 'more' })).instructions.map(({ text }) => text)).toEqual(
      ['1: more'],
    );
  });

  it('hides tools and refuses to run them; parallel turns do not mix', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(echo);
    const view = registry.view({ session: 's' });
    const [one, two] = [
      view.beginTurn({ userText: 'hide it' }),
      view.beginTurn({ userText: 'all' }),
    ];
    const steps = await Promise.all([one.prepare(), two.prepare()]);
    expect(steps.map(names)).toEqual([['echo__a'], ['echo__a', 'echo__b']]);
    await expect(one.callTool('echo__b', {})).rejects.toMatchObject({ code: 'tool-hidden' });
    expect((await two.callTool('echo__b', {})).content).toEqual([{ type: 'text', text: 'b' }]);
  });

  it('is the same one for the same id while it is open', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(echo);
    const view = registry.view({ session: 's' });
    const turn = view.beginTurn({ turnId: '1' });
    expect(view.beginTurn({ turnId: '1', userText: 'later' })).toBe(turn);
    expect((await turn.prepare()).instructions[0]?.text).toBe('1: later');
    await turn.close();
    await expect(turn.prepare()).rejects.toMatchObject({ code: 'closed' });
    expect(view.beginTurn({ turnId: '1' })).not.toBe(turn);
  });

  it('sees what is registered for it, calls what joined meanwhile, and closes what is its own', async () => {
    await using registry = new ExtensionRegistry();
    const view = registry.view({ session: 's' });
    const turn = view.beginTurn({ turnId: '1' });
    await turn.prepare();
    let disposed = 0;
    registry.register(
      {
        id: 'own',
        tools: async () => [tool('own', 'x')],
        [Symbol.asyncDispose]: async () => void disposed++,
      },
      { session: 's', turn: '1' },
    );
    registry.register({ id: 'pool', tools: async () => [tool('pool', 'y')] });
    expect((await turn.callTool('own__x', {})).content).toEqual([{ type: 'text', text: 'x' }]);
    expect(names(await turn.prepare())).toEqual(['own__x', 'pool__y']);
    expect(names(await view.beginTurn({ turnId: '2' }).prepare())).toEqual(['pool__y']);
    await turn.close();
    expect(disposed).toBe(1);
    expect(registry.inspect().map(({ id }) => id)).toEqual(['pool']);
  });

  it('ends by its signal', async () => {
    await using registry = new ExtensionRegistry();
    const stop = new AbortController();
    const turn = registry.view().beginTurn({ signal: stop.signal });
    await turn.prepare();
    stop.abort();
    await expect(turn.prepare()).rejects.toMatchObject({ code: 'closed' });
  });

  it('ends when it was not used for the idle limit, counted from its last use', async () => {
    vi.useFakeTimers();
    await using registry = new ExtensionRegistry({ turnIdleMs: 1_000 });
    const turn = registry.view().beginTurn();
    for (let i = 0; i < 3; i++) {
      await vi.advanceTimersByTimeAsync(900);
      await turn.prepare();
    }
    await vi.advanceTimersByTimeAsync(999);
    await turn.prepare();
    await vi.advanceTimersByTimeAsync(1_001);
    await expect(turn.prepare()).rejects.toMatchObject({ code: 'closed' });
  });

  it.each([Infinity, 2 ** 40])('with an idle limit of %d ms is open for months', async (ms) => {
    vi.useFakeTimers();
    await using registry = new ExtensionRegistry({ turnIdleMs: ms });
    await using turn = registry.view().beginTurn();
    await vi.advanceTimersByTimeAsync(90 * 24 * 3_600_000);
    expect((await turn.prepare()).problems).toEqual([]);
  });

  it('ends by the idle limit, but not while it is used', async () => {
    await using registry = new ExtensionRegistry({ turnIdleMs: 5 });
    let release: (() => void) | undefined;
    registry.register({
      id: 'a',
      tools: async () => [
        defineTool({
          capability: 'a',
          name: 'wait',
          call: () => new Promise<string>((ok) => (release = () => ok('done'))),
        }),
      ],
    });
    let ended = false;
    registry.register(
      { id: 'own', [Symbol.asyncDispose]: async () => void (ended = true) },
      { session: 's', turn: '1' },
    );
    const turn = registry.view({ session: 's' }).beginTurn({ turnId: '1' });
    const call = turn.callTool('a__wait', {});
    await expect.poll(() => release).toBeDefined();
    await new Promise((ok) => setImmediate(ok));
    expect(ended).toBe(false);
    release?.();
    await call;
    await expect.poll(() => ended).toBe(true);
  });

  it('goes on without a contribution that fails or takes too long, and says so', async () => {
    await using registry = new ExtensionRegistry({
      compileDeadlineMs: 5,
      onProblem: () => undefined,
    });
    registry.register({
      id: 'bad',
      prepareTurn: async () => Promise.reject(new Error('no matcher')),
    });
    registry.register({ id: 'slow', prepareTurn: () => new Promise(() => undefined) });
    registry.register(echo);
    const step = await registry.view().beginTurn({ userText: 'hi' }).prepare();
    expect(step.instructions).toHaveLength(1);
    expect(step.problems.map(({ source, code }) => [source, code])).toEqual([
      ['bad', 'source-failed'],
      ['slow', 'source-slow'],
    ]);
  });

  it('answers a tool that is gone with an error that says so', async () => {
    await using registry = new ExtensionRegistry();
    const handle = registry.register(echo);
    const turn = registry.view().beginTurn();
    await turn.prepare();
    await handle.close();
    await expect(turn.callTool('echo__a', {})).rejects.toMatchObject({ code: 'tool-unavailable' });
  });
});

describe('the activity of a session', () => {
  it('counts open turns and running calls', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(echo);
    const running = (session: string) => registry.activity({ session }).running;
    const view = registry.view({ session: 's' });
    const turn = view.beginTurn();
    expect([running('s'), running('t')]).toEqual([1, 0]);
    const call = turn.callTool('echo__a', {});
    await turn.prepare();
    await call;
    expect(running('s')).toBe(1);
    await turn.close();
    const before = registry.activity({ session: 's' });
    expect(before.running).toBe(0);
    await view.compile();
    expect(registry.activity({ session: 's' }).lastUsedAt).toBeGreaterThanOrEqual(
      before.lastUsedAt,
    );
  });
});
