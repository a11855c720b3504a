import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { SkillManagerCapability } from '@patchbay/skills';
import { localSkills } from '@patchbay/skills/node';
import {
  describeCapability,
  describeChangeObservable,
  describeSkillResource,
} from '@patchbay/testkit/vitest';

async function folder() {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'patchbay-suite-')));
  await writeFile(join(root, 'secret'), 'not for a model');
  for (const name of ['greet', 'review']) {
    await mkdir(join(root, 'skills', name, 'notes'), { recursive: true });
    await writeFile(
      join(root, 'skills', name, 'SKILL.md'),
      `---\nname: ${name}\ndescription: Does ${name}.\n---\nDo ${name}.\n`,
    );
    await writeFile(join(root, 'skills', name, 'notes/more.md'), 'More.\n');
  }
  return {
    path: join(root, 'skills'),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
}

describeSkillResource('localSkills', {
  create: async () => {
    const { path, ...rest } = await folder();
    return { ...rest, capability: localSkills({ id: 'mine', folder: path }) };
  },
});

describeChangeObservable('localSkills', {
  create: async () => {
    const { path, ...rest } = await folder();
    const skill = (text: string) =>
      writeFile(join(path, 'greet/SKILL.md'), `---\nname: greet\ndescription: ${text}\n---\n`);
    let edits = 0;
    return {
      ...rest,
      capability: localSkills({ id: 'mine', folder: path, debounceMs: 1 }),
      change: () => skill(`Edit ${++edits}.`),
    };
  },
});

describeCapability('localSkills', {
  create: async () => {
    const { path, ...rest } = await folder();
    return { ...rest, capability: () => localSkills({ id: 'mine', folder: path }) };
  },
});

describeCapability('SkillManagerCapability', {
  create: async () => ({ capability: new SkillManagerCapability() }),
});
