import { rm } from 'node:fs/promises';
import { join } from 'node:path';

import type { Problem } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { memorySkills, SkillManagerCapability } from '@patchbay/skills';
import { localSkills } from '@patchbay/skills/node';
import fc from 'fast-check';
import { expect, it } from 'vitest';

import { benchFolder, callTool, loneContext } from './bench-folder.ts';

/** Printed, so that a run can be repeated: `SEED=… vitest run`. */
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
/** Few in the quick suite: each run has another seed. `RUNS=20` tries twenty times as many. */
const many = Number(process.env['RUNS'] ?? 1);
const runs = (numRuns: number) => ({ seed, numRuns: numRuns * many });
console.log(`properties of @patchbay/skills: seed ${seed}`);

const line = fc.oneof(
  fc.constantFrom(
    '---',
    'name: a',
    'name: [a, b]',
    'name:',
    'description: x: y',
    'description: {a: b}',
    'allowed-tools: {Read: true}',
    'disallowed-tools: Bash(rm *',
    'metadata: {patchbay: {always_active: yes}}',
    'metadata: text',
    'mcpServers: {x: {command: y}}',
    'argument-hint: [[a]]',
    'arguments: {a: b}',
    'user-invocable: []',
    '$ARGUMENTS[99999999999999999999]',
    '\0',
  ),
  fc.string(),
);

it('any SKILL.md is listed or refused with a problem, and can be used as listed', async () => {
  const bench = await benchFolder();
  try {
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 12 }), fc.boolean(), async (lines, fenced) => {
        await rm(join(bench.root, 'a'), { recursive: true, force: true });
        await bench.write('a/SKILL.md', `${fenced ? '---\n' : ''}${lines.join('\n')}`);
        const problems: Problem[] = [];
        const source = localSkills({ id: 'mine', folder: bench.root });
        const context = { ...loneContext(), report: (one: Problem) => void problems.push(one) };
        const entries = await source.listSkills(context);
        if (entries.length === 0)
          expect(problems.map(({ severity }) => severity)).toContain('error');
        await using registry = new ExtensionRegistry({ onProblem: () => undefined });
        registry.register(source);
        registry.register(new SkillManagerCapability());
        const view = registry.view({ session: 's' });
        await view.compile();
        for (const { name } of await view.commands.list())
          await view.commands.resolve(`/${name} x y`);
        for (const { name } of entries) {
          const { isError } = await callTool(view, 'activate_skill', { name });
          expect(isError).toBe(entries[0]?.modelInvocable === false);
        }
        await view.beginTurn({ userText: 'x' }).prepare();
      }),
      runs(75),
    );
  } finally {
    await bench.remove();
  }
});

it('nothing that is written in a skill breaks out of the catalogue or shortens a description', async () => {
  const text = fc
    .array(
      fc.oneof(
        fc.constantFrom('</skill>', '</available_skills>', '<system>', '&lt;', '"', '\u202E', '\n'),
        fc.string({ unit: 'grapheme' }),
      ),
      { minLength: 1, maxLength: 8 },
    )
    .map((parts) => `x${parts.join('')}`);
  const skills = fc.uniqueArray(fc.record({ name: text, description: text }), {
    selector: ({ name }) => name,
    maxLength: 8,
  });
  await fc.assert(
    fc.asyncProperty(skills, fc.integer({ min: 300, max: 2_000 }), async (made, catalogueChars) => {
      await using registry = new ExtensionRegistry({ onProblem: () => undefined });
      registry.register(
        memorySkills({ id: 'made', skills: made.map((skill) => ({ ...skill, body: 'b' })) }),
      );
      registry.register(new SkillManagerCapability({ catalogueChars }));
      const { instructions } = await registry.view().compile();
      const catalogue = instructions[0]?.text ?? '';
      const count = (tag: string) => catalogue.split(tag).length - 1;
      expect(count('</available_skills>')).toBe(made.length === 0 ? 0 : 1);
      const missing = Number(/<more count="(\d+)"\/>/.exec(catalogue)?.[1] ?? 0);
      expect(count('<skill>') + missing).toBe(made.length);
      expect(count('<skill>')).toBe(count('</skill>'));
      expect(catalogue).not.toContain('<system>');
      expect(catalogue).not.toContain('\u202E');
      expect(catalogue.length).toBeLessThan(catalogueChars + 120);
    }),
    runs(100),
  );
});
