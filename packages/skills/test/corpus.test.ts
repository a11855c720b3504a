import { SkillManagerCapability } from '@patchbay/skills';
import { packageSkills } from '@patchbay/skills/node';
import { ExtensionRegistry } from '@patchbay/registry';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';

import { catalogue } from './bench-folder.ts';
import { packageAt, printCorpus, readCorpus, skillFilesBelow } from './corpus.ts';

describe('skills that people publish', () => {
  it.each([
    ['@ant-design/x-skill', 12],
    ['@tanstack/intent', 4],
    ['@tanstack/db', 7],
    ['@tanstack/router-core', 10],
  ])('of %s all load, and none had to be repaired', async (name, count) => {
    const report = await readCorpus(skillFilesBelow(packageAt(name)));
    printCorpus(name, report);
    expect(report.files).toBe(count);
    expect(report.loaded).toHaveLength(count);
    expect(report.repaired).toBe(0);
    for (const { description } of report.loaded) expect(description.length).toBeGreaterThan(20);
  });

  it('come together from several packages, nested ones too', async () => {
    await using registry = new ExtensionRegistry({ onProblem: () => undefined });
    registry.register(
      packageSkills({
        id: 'packages',
        packages: ['@ant-design/x-skill', '@tanstack/db', '@tanstack/router-core'],
        from: fileURLToPath(new URL('.', import.meta.url)),
      }),
    );
    registry.register(new SkillManagerCapability());
    const view = registry.view({ session: 's' });
    const { skills, problems } = await view.compile();
    const from = (name: string) => skills.filter(({ origin }) => origin === `npm:${name}`).length;
    expect([
      from('@ant-design/x-skill'),
      from('@tanstack/db'),
      from('@tanstack/router-core'),
    ]).toEqual([6, 7, 10]);
    expect((await catalogue(view)).size).toBe(23);
    expect(problems.filter(({ severity }) => severity === 'error')).toEqual([]);
    // Also those with a slash in their name.
    for (const { uri } of skills) {
      const [content] = await view.resources.read(uri);
      expect(content).toMatchObject({ text: expect.stringMatching(/\S/) });
    }
  });
});
