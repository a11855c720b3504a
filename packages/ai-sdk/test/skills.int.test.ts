import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { ExtensionRegistry } from '@patchbay/registry';
import { SkillManagerCapability } from '@patchbay/skills';
import { localSkills } from '@patchbay/skills/node';
import { describe, expect, it, onTestFinished } from 'vitest';

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

/** A registry with a skill folder, the skill manager and two tools. */
async function board(matcher?: (said: string) => readonly string[]) {
  const folder = await mkdtemp(join(tmpdir(), 'patchbay-ai-sdk-'));
  const skill = async (name: string, body: string, more = '') => {
    await mkdir(join(folder, name), { recursive: true });
    await writeFile(
      join(folder, name, 'SKILL.md'),
      `---\nname: ${name}\ndescription: About ${name}.\n${more}---\n${body}\n`,
    );
  };
  await skill('careful', 'Never delete.', 'disallowed-tools: t__remove\n');
  const registry = new ExtensionRegistry();
  registry.register(localSkills({ id: 'local', folder }));
  registry.register(new SkillManagerCapability(matcher === undefined ? {} : { matcher }));
  registry.register(capability('t', [says('remove'), says('look')]));
  onTestFinished(async () => {
    await registry.close();
    await rm(folder, { recursive: true, force: true });
  });
  return { registry, skill };
}

describe.each(MAJORS)('skills in a run of ai $major', (major) => {
  it('an activated skill takes its tools away from the next step on, for this session alone', async () => {
    const { registry } = await board();
    const run = async (session: string, activates: boolean) => {
      const { model, seen } = scripted(major, [
        [activates ? call('1', 'activate_skill', { name: 'careful' }) : call('1', 'list_skills')],
        [call('2', 't__remove')],
        [text('done')],
      ]);
      const agent = new major.ai.ToolLoopAgent({ model, ...aiSdk(registry.view({ session })) });
      await agent.generate({ prompt: 'go' });
      return seen;
    };
    const [careful, free] = await Promise.all([run('a', true), run('b', false)]);
    expect(JSON.stringify(systemTexts(careful[0]))).toContain('careful');
    expect(outputs(careful[1])['activate_skill']).toMatchObject({
      type: 'text',
      value: expect.stringContaining('Never delete.'),
    });
    expect(careful.map((seen) => toolNames(seen).includes('t__remove'))).toEqual([
      true,
      false,
      false,
    ]);
    expect(outputs(careful[2])['t__remove']).toMatchObject({ type: 'error-text' });
    expect(free.map((seen) => toolNames(seen).includes('t__remove'))).toEqual([true, true, true]);
    expect(outputs(free[2])['t__remove']).toEqual({
      type: 'text',
      value: 't__remove ran'.slice(3),
    });
  });

  it('an activated skill is said again where the conversation has lost its text, and only there', async () => {
    const { registry } = await board();
    const view = registry.view({ session: 's' });
    const said = (seen: (typeof run)['seen']) =>
      seen.map((step) => JSON.stringify(systemTexts(step)).includes('Never delete.'));
    const run = scripted(major, [
      [call('1', 'activate_skill', { name: 'careful' })],
      [call('2', 't__look')],
      [text('done')],
    ]);
    const agent = new major.ai.ToolLoopAgent({ model: run.model, ...aiSdk(view) });
    const { response, steps } = await agent.generate({ prompt: 'go' });
    expect(said(run.seen)).toEqual([false, false, false]);

    // 6 gives the messages of all steps, 7 those of the last one.
    const answered =
      response.messages.length > 1
        ? response.messages
        : steps.flatMap((step) => step.response.messages);
    const history = [{ role: 'user' as const, content: 'go' }, ...answered];
    for (const [messages, again] of [
      [history, false],
      [[{ role: 'user' as const, content: 'A summary: they did something.' }], true],
    ] as const) {
      const next = scripted(major, [[call('3', 't__look')], [text('done')]]);
      await new major.ai.ToolLoopAgent({ model: next.model, ...aiSdk(view) }).generate({
        messages: [...messages, { role: 'user', content: 'go on' }],
      });
      expect(said(next.seen)).toEqual([again, again]);
    }

    // Shortened in the middle of a run.
    const short = scripted(major, [[call('4', 't__look')], [text('done')]]);
    await new major.ai.ToolLoopAgent({
      model: short.model,
      ...aiSdk(view),
      prepareStep: ({ stepNumber, messages }) =>
        stepNumber === 0 ? {} : { messages: messages.slice(-2) },
    }).generate({ messages: [...history, { role: 'user', content: 'go on' }] });
    expect(said(short.seen)).toEqual([false, true]);
  });

  it('a skill that joins during a run is in the catalogue of the next step', async () => {
    const { registry, skill } = await board();
    const { model, seen } = scripted(major, async (_given, step) => {
      if (step === 0) await skill('late', 'Late.');
      return step === 0 ? [call('1', 't__look')] : [text('done')];
    });
    await new major.ai.ToolLoopAgent({ model, ...aiSdk(registry.view({ session: 'a' })) }).generate(
      { prompt: 'go' },
    );
    expect(seen.map((each) => JSON.stringify(systemTexts(each)).includes('About late.'))).toEqual([
      false,
      true,
    ]);
  });

  it('a skill that is chosen for what the user said is in force for that run only', async () => {
    const { registry } = await board((said) => (said.includes('delete') ? ['careful'] : []));
    const { model, seen } = scripted(major, () => [text('done')]);
    const agent = new major.ai.ToolLoopAgent({ model, ...aiSdk(registry.view({ session: 'a' })) });
    await Promise.all(['delete it', 'look at it'].map((prompt) => agent.generate({ prompt })));
    const inForce = seen.map((each) => [
      JSON.stringify(each.prompt).includes('delete it'),
      JSON.stringify(systemTexts(each)).includes('Never delete.'),
    ]);
    expect(new Map(inForce as [boolean, boolean][])).toEqual(
      new Map([
        [true, true],
        [false, false],
      ]),
    );
  });
});
