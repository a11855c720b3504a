import { mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { markdownCommands } from '@patchbay/commands';
import { describeCapability, describeCommandResource } from '@patchbay/testkit/vitest';

async function folder() {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'patchbay-suite-')));
  await mkdir(join(root, 'git'));
  await writeFile(join(root, 'review.md'), '---\narguments: [path]\n---\nReview $path.\n');
  await writeFile(join(root, 'git/commit.md'), 'Commit: $ARGUMENTS\n');
  return {
    capability: () => markdownCommands({ id: 'project', folder: root }),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
}

describeCapability('markdownCommands', { create: folder });

describeCommandResource('markdownCommands', {
  create: async () => {
    const { capability, ...rest } = await folder();
    return { ...rest, capability: capability() };
  },
});
