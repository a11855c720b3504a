import type { CallContext, Json } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { aiSdk } from '../src/index.ts';
import {
  call,
  capability,
  MAJORS,
  outputs,
  says,
  scripted,
  systemTexts,
  text,
  toolNames,
} from './majors.ts';

/** A tool that says in which turn it was called. */
const inTurn = (name: string) => ({
  name,
  call: (_args: unknown, { scope }: CallContext) => `${name} ran in ${scope.turn}`,
});

/** Whether a prompt has the first call of this content. */
function isOf(content: readonly object[], prompt: readonly object[]): boolean {
  const id = /"toolCallId":"([^"]+)"/u.exec(JSON.stringify(content))?.[1];
  return id !== undefined && JSON.stringify(prompt).includes(id);
}

describe.each(MAJORS)('a running agent of ai $major', (major) => {
  const { ai } = major;
  let registry: ExtensionRegistry;

  beforeEach(() => {
    registry = new ExtensionRegistry({ onProblem: () => undefined });
  });
  afterEach(() => registry.close());

  /** One script for each way to run it. */
  const WAYS = {
    'ToolLoopAgent.generate': async (settings: object) =>
      (await new ai.ToolLoopAgent(settings as never).generate({ prompt: 'go' })).text,
    'ToolLoopAgent.stream': async (settings: object) =>
      (await new ai.ToolLoopAgent(settings as never).stream({ prompt: 'go' })).text,
    generateText: async (settings: object) =>
      (await ai.generateText({ prompt: 'go', stopWhen: ai.stepCountIs(9), ...settings } as never))
        .text,
    streamText: async (settings: object) =>
      await ai.streamText({ prompt: 'go', stopWhen: ai.stepCountIs(9), ...settings } as never).text,
  };

  describe.each(Object.entries(WAYS))('%s', (_, run) => {
    it('sees a tool that joined, runs it, and no longer sees one that left', async () => {
      const late = capability('late', [says('b')]);
      const early = registry.register(
        capability('early', [{ name: 'a', call: () => (registry.register(late), 'ok') }]),
      );
      const { model, seen } = scripted(major, async (_given, step) => {
        if (step === 0) return [call('1', 'early__a')];
        if (step === 1) {
          await early.close();
          return [call('2', 'late__b')];
        }
        return [text('done')];
      });
      expect(await run({ model, ...aiSdk(registry.view()) })).toBe('done');
      expect(seen.map(toolNames)).toEqual([['early__a'], ['early__a', 'late__b'], ['late__b']]);
      expect(outputs(seen[2])).toMatchObject({
        early__a: { type: 'text', value: 'ok' },
        late__b: { type: 'text', value: 'b ran' },
      });
    });

    it('puts the instructions of now behind its own at each step, and nothing piles up', async () => {
      let words: readonly string[] = ['one'];
      registry.register({
        id: 'guide',
        revision: () => words.length,
        changes: async function* () {},
        instructions: async () =>
          words.map((word) => ({ source: 'guide', kind: 'dynamic', text: word })),
      } as never);
      const next: (readonly string[])[] = [['one', 'two'], [], ['three', 'four', 'five']];
      registry.register(
        capability('go', [{ name: 'on', call: () => ((words = next.shift() ?? []), 'ok') }]),
      );
      const { model, seen } = scripted(major, (_given, step) =>
        step < 3 ? [call(String(step), 'go__on')] : [text('done')],
      );
      await run({ model, ...aiSdk(registry.view(), { instructions: 'You are X.' }) });
      expect(seen.map(systemTexts)).toEqual([
        ['You are X.', 'one'],
        ['You are X.', 'one\n\ntwo'],
        ['You are X.'],
        ['You are X.', 'three\n\nfour\n\nfive'],
      ]);
      expect(seen[3]?.prompt.filter(({ role }) => role === 'user')).toHaveLength(1);
    });
  });

  it('does not mix parallel runs of one agent, nor what each of them may not use', async () => {
    registry.register(
      capability('t', [inTurn('left'), inTurn('right')], {
        prepareTurn: async ({ userText, turnId }) => ({
          hide: [userText === 'left' ? 't__right' : 't__left'],
          instructions: [{ source: 't', kind: 'dynamic', text: `${userText} ran in ${turnId}` }],
        }),
      }),
    );
    for (const way of ['generate', 'text'] as const) {
      const { model, seen } = scripted(major, (given) => {
        const asked = JSON.stringify(given.prompt.find(({ role }) => role === 'user')).includes(
          'left',
        )
          ? 'left'
          : 'right';
        const answered = given.prompt.some(({ role }) => role === 'tool');
        const id = crypto.randomUUID();
        return answered ? [text(asked)] : [call(id, 't__left'), call(`${id}-2`, 't__right')];
      });
      const extensions = aiSdk(registry.view({ session: 's' }));
      const agent = new ai.ToolLoopAgent({ model, ...extensions });
      const ask = (prompt: string) =>
        way === 'generate'
          ? agent.generate({ prompt })
          : ai.generateText({ model, prompt, stopWhen: ai.stepCountIs(5), ...extensions });
      const asked = Array.from({ length: 10 }, (_, index) => (index % 2 === 0 ? 'left' : 'right'));
      const results = await Promise.all(asked.map(ask));
      expect(results.map((result) => result.text)).toEqual(asked);
      expect(seen).toHaveLength(20);
      for (const each of seen) {
        const mine = JSON.stringify(each.prompt.find(({ role }) => role === 'user')).includes(
          'left',
        )
          ? 'left'
          : 'right';
        expect(toolNames(each)).toEqual([`t__${mine}`]);
        expect(systemTexts(each)).toEqual([expect.stringContaining(mine)]);
      }
      for (const result of results) {
        const told = systemTexts(
          seen.find(({ prompt }) => isOf(result.steps[0]?.content ?? [], prompt)),
        );
        const parts = result.steps.flatMap(({ content }) => content);
        const ran = parts.filter(({ type }) => type === 'tool-result');
        const refused = parts.filter(({ type }) => type === 'tool-error');
        // What the model was told of the turn, and the turn that its call was made in.
        expect(told).toEqual([expect.stringMatching(new RegExp(`^${result.text} ran in .`, 'u'))]);
        expect(ran).toMatchObject([
          { toolName: `t__${result.text}`, output: { content: [{ text: told[0] }] } },
        ]);
        expect(refused).toHaveLength(1);
      }
    }
  });

  it('refuses a hidden tool at its execution too, whatever the framework lets through', async () => {
    let ran = false;
    registry.register(
      capability('t', [{ name: 'x', call: () => ((ran = true), 'ran') }], {
        prepareTurn: async () => ({ hide: ['t__x'] }),
      }),
    );
    const messages = [{ role: 'user' as const, content: 'go' }];
    const known = await aiSdk(registry.view()).toolsForMessages();
    await expect(
      known['t__x']?.execute?.({}, { toolCallId: '1', messages } as never),
    ).rejects.toThrow(/may not be used/);
    expect(ran).toBe(false);
  });

  it('answers a call of a tool that left between the call and its execution', async () => {
    const gone = registry.register(capability('t', [says('x')]));
    registry.register(capability('u', [says('y')]));
    const { model, seen } = scripted(major, async (_given, step) => {
      if (step > 0) return [text('done')];
      await gone.close();
      return [call('1', 't__x'), call('2', 'u__y'), call('3', 'never__was')];
    });
    const agent = new ai.ToolLoopAgent({ model, ...aiSdk(registry.view()) });
    expect((await agent.generate({ prompt: 'go' })).text).toBe('done');
    expect(outputs(seen[1])).toMatchObject({
      t__x: { type: 'error-text', value: expect.stringContaining('is not available (any more)') },
      u__y: { type: 'text', value: 'y ran' },
      never__was: { type: 'error-text', value: expect.stringContaining('never__was') },
    });
  });

  it('keeps the tools, instructions and prepareStep that the agent has of its own', async () => {
    registry.register(
      capability('t', [says('x')], {
        instructions: async () => [{ source: 't', kind: 'static', text: 'Use x.' }],
      }),
    );
    const mine = ai.tool({
      inputSchema: ai.jsonSchema<object>({ type: 'object', properties: {} }),
      execute: () => 'mine ran',
    });
    const { model, seen } = scripted(major, [
      [call('1', 'mine'), call('2', 't__x')],
      [text('done')],
    ]);
    const extensions = aiSdk(registry.view());
    const agent = new ai.ToolLoopAgent({
      model,
      ...extensions,
      instructions: { role: 'system', content: 'You are X.' },
      tools: { ...extensions.tools, mine },
      prepareStep: ({ stepNumber }) => ({ toolChoice: stepNumber === 0 ? 'required' : 'auto' }),
    });
    const { steps } = await agent.generate({ prompt: 'go' });
    expect(steps).toHaveLength(2);
    expect(toolNames(seen[0])).toEqual(['mine', 't__x']);
    expect(systemTexts(seen[1])).toEqual(['You are X.', 'Use x.']);
    expect(outputs(seen[1])).toMatchObject({
      mine: { value: 'mine ran' },
      t__x: { value: 'x ran' },
    });
    expect(seen.map(({ toolChoice }) => toolChoice?.type)).toEqual(['required', 'auto']);
  });

  it('composes with a prepareCall of the agent’s own, which calls ours', async () => {
    registry.register(capability('t', [says('x')]));
    const mine = ai.tool({
      inputSchema: ai.jsonSchema<object>({ type: 'object' }),
      execute: () => 'mine ran',
    });
    const { model, seen } = scripted(major, [
      [call('1', 'mine'), call('2', 't__x')],
      [text('done')],
    ]);
    const extensions = aiSdk(registry.view());
    const agent = new ai.ToolLoopAgent({
      model,
      ...extensions,
      prepareCall: (settings) =>
        extensions.prepareCall({
          ...settings,
          instructions: 'You are X.',
          tools: { mine },
        }) as never,
    });
    expect((await agent.generate({ prompt: 'go' })).text).toBe('done');
    expect(toolNames(seen[0])).toEqual(['mine', 't__x']);
    expect(systemTexts(seen[0])).toEqual(['You are X.']);
    expect(outputs(seen[1])).toMatchObject({
      mine: { value: 'mine ran' },
      t__x: { value: 'x ran' },
    });
  });

  it('keeps the own ones of generateText, given as options', async () => {
    registry.register(capability('t', [says('x')]));
    const mine = ai.tool({
      inputSchema: ai.jsonSchema<object>({ type: 'object' }),
      execute: () => 'mine ran',
    });
    const { model, seen } = scripted(major, [[text('done')]]);
    const own = {
      tools: { mine },
      instructions: 'You are X.',
      prepareStep: () => ({ activeTools: ['mine'] }),
    };
    await ai.generateText({ model, prompt: 'go', ...aiSdk(registry.view(), own) });
    expect(toolNames(seen[0])).toEqual(['mine']);
    expect(systemTexts(seen[0])).toEqual(['You are X.']);
  });

  it('offers the tool of the program where both have one of a name, and says so once', async () => {
    registry.register(capability('t', [says('x')]));
    const mine = ai.tool({
      inputSchema: ai.jsonSchema<object>({ type: 'object' }),
      execute: () => 'mine ran',
    });
    const { model, seen } = scripted(major, [[call('1', 't__x')], [text('done')]]);
    const problems: unknown[] = [];
    const options = {
      tools: { t__x: mine },
      onProblem: (problem: unknown) => void problems.push(problem),
    };
    await new ai.ToolLoopAgent({ model, ...aiSdk(registry.view(), options) }).generate({
      prompt: 'go',
    });
    expect(outputs(seen[1])['t__x']?.value).toBe('mine ran');
    expect(problems).toEqual([expect.objectContaining({ code: 'tool-name', source: 't__x' })]);
  });

  it.each(['generateText', 'streamText'] as const)(
    'leaves the system prompt of a %s in front',
    async (way) => {
      registry.register(
        capability('t', [says('x')], {
          instructions: async () => [{ source: 't', kind: 'static', text: 'Use x.' }],
        }),
      );
      const { model, seen } = scripted(major, [[call('1', 't__x')], [text('done')]]);
      const system = major.major === 7 ? { instructions: 'You are X.' } : { system: 'You are X.' };
      const settings = {
        model,
        prompt: 'go',
        stopWhen: ai.stepCountIs(2),
        ...system,
        ...aiSdk(registry.view()),
      };
      const result =
        way === 'generateText' ? await ai.generateText(settings) : ai.streamText(settings);
      expect(await result.text).toBe('done');
      expect(seen.map(systemTexts)).toEqual([
        ['You are X.', 'Use x.'],
        ['You are X.', 'Use x.'],
      ]);
    },
  );

  it('sends the same order of tools whichever joined first', async () => {
    const { model, seen } = scripted(major, () => [text('done')]);
    const b = registry.register(capability('b', [says('y')]));
    const agent = new ai.ToolLoopAgent({ model, ...aiSdk(registry.view()) });
    await agent.generate({ prompt: 'go' });
    registry.register(capability('a', [says('z'), says('x')]));
    await agent.generate({ prompt: 'go' });
    await b.close();
    registry.register(capability('b', [says('y')]));
    await agent.generate({ prompt: 'go' });
    expect(seen.map(toolNames)).toEqual([
      ['b__y'],
      ['a__x', 'a__z', 'b__y'],
      ['a__x', 'a__z', 'b__y'],
    ]);
    expect(JSON.stringify(seen[1]?.tools)).toBe(JSON.stringify(seen[2]?.tools));
  });

  it('goes on after a turn that rested longer than turns may', async () => {
    await using own = new ExtensionRegistry({ turnIdleMs: 1, onProblem: () => undefined });
    own.register(capability('t', [says('x')]));
    const { model, seen } = scripted(major, async (_given, step) => {
      if (step === 0) return [call('1', 'own')];
      return [text('done')];
    });
    const rest = ai.tool({
      inputSchema: ai.jsonSchema<object>({ type: 'object' }),
      execute: async () => new Promise<Json>((resolve) => setTimeout(() => resolve('rested'), 20)),
    });
    const agent = new ai.ToolLoopAgent({ model, ...aiSdk(own.view(), { tools: { own: rest } }) });
    expect((await agent.generate({ prompt: 'go' })).text).toBe('done');
    expect(toolNames(seen[1])).toEqual(['own', 't__x']);
  });
});
