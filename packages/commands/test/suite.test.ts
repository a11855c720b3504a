import { appendFile, mkdir, mkdtemp, realpath, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { markdownCommands } from '@patchbay/commands';
import {
  describeCapability,
  describeChangeObservable,
  describeCommandResource,
} from '@patchbay/testkit/vitest';

async function folder() {
  const root = await realpath(await mkdtemp(join(tmpdir(), 'patchbay-suite-')));
  await mkdir(join(root, 'git'));
  const file = join(root, 'review.md');
  await writeFile(file, '---\narguments: [{name: path, required: yes}]\n---\nReview $path.\n');
  await writeFile(join(root, 'git/commit.md'), 'Commit: $ARGUMENTS\n');
  return {
    capability: () => markdownCommands({ id: 'project', folder: root }),
    change: () => appendFile(file, 'Once more.\n'),
    [Symbol.asyncDispose]: () => rm(root, { recursive: true, force: true }),
  };
}

async function withOne() {
  const { capability, ...rest } = await folder();
  return { ...rest, capability: capability() };
}

describeCapability('markdownCommands', { create: folder });
describeCommandResource('markdownCommands', { create: withOne });
describeChangeObservable('markdownCommands', { create: withOne });
