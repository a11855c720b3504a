import type { Problem } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { memorySkills, SkillManagerCapability } from '@patchbay/skills';
import * as newest from 'ai';
import { describe, expect, it } from 'vitest';

import { aiSdk } from '../src/index.ts';
import { call, capability, MAJORS, outputs, says, scripted, text, toolNames } from './majors.ts';

/** A view of many tools beside the tools of skills. */
function board(count: number) {
  const registry = new ExtensionRegistry();
  registry.register(
    capability('t', [
      says('weather'),
      ...Array.from({ length: count - 1 }, (_, i) => says(`n${i}`)),
    ]),
  );
  registry.register(
    memorySkills({ id: 's', skills: [{ name: 'a', description: 'A.', body: 'A.' }] }),
  );
  registry.register(new SkillManagerCapability());
  return registry;
}

describe.each(MAJORS)('more tools than a model should be shown, in ai $major', (major) => {
  it('are deferred where the program gives `toolSearch()`, and found; else a problem says so, once', async () => {
    await using registry = board(6);
    const problems: Problem[] = [];
    const options = { deferAbove: 5, onProblem: (problem: Problem) => void problems.push(problem) };
    // 7 has it since one of its later versions.
    const canSearch = major.major === 7 && 'toolSearch' in newest;
    const extensions = aiSdk(registry.view({ session: 's' }), options);
    // Before a step it is not known what can be searched with: nothing is said yet.
    await extensions.toolsForMessages();
    expect(problems).toEqual([]);
    const { model, seen } = scripted(major, [
      [canSearch ? call('1', 'find', { query: 'weather' }) : call('1', 't__n0')],
      [call('2', 't__weather')],
      [text('done')],
    ]);
    await new major.ai.ToolLoopAgent({
      model,
      ...extensions,
      ...(canSearch ? { tools: { find: newest.toolSearch() } } : {}),
    } as never).generate({ prompt: 'go' });
    expect(outputs(seen[2])['t__weather']).toMatchObject({ type: 'text' });
    if (canSearch) {
      const skills = ['activate_skill', 'list_skills', 'read_skill_file'];
      expect(toolNames(seen[0])).toEqual(['find', ...skills]);
      expect(toolNames(seen[1])).toEqual(['find', ...skills, 't__weather']);
      expect(problems).toEqual([]);
    } else {
      expect(toolNames(seen[0])).toHaveLength(9);
      expect(problems).toMatchObject([
        { code: 'tool-limit', message: expect.stringMatching(/ai 7|toolSearch/) },
      ]);
    }
  });

  it('are all shown without a tool to search them with, and a problem says what to do', async () => {
    await using registry = board(130);
    const problems: Problem[] = [];
    const { model, seen } = scripted(major, [[call('1', 't__n0')], [text('done')]]);
    const parts = aiSdk(registry.view(), { onProblem: (problem) => void problems.push(problem) });
    await new major.ai.ToolLoopAgent({ model, ...parts }).generate({ prompt: 'go' });
    expect(toolNames(seen[0])).toHaveLength(133);
    expect(problems.map(({ code }) => code)).toEqual(['tool-limit']);
  });
});
