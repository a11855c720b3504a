// A program that watches a folder of skills, for what only a whole program shows: that it ends, and what it needs of the
// system. Run bundled; prints what it saw as JSON.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as after } from 'node:timers/promises';

import { localSkills } from '@patchbay/skills/node';

import { loneContext } from './lone-context.ts';

const [mode = '', folder = ''] = process.argv.slice(2);
const source = localSkills({
  id: 'mine',
  folder,
  debounceMs: 20,
  ...(mode === 'poll' ? { poll: 50 } : {}),
});
const context = loneContext();
const list = () => source.listSkills(context);
const description = async () => (await list())[0]?.description;
const end = new AbortController();
const changes = source.changes(end.signal)[Symbol.asyncIterator]();
const isCurrent = () => source.revision() === source.revision();
const seen: Record<string, unknown> = {};

if (mode !== 'idle') {
  // Listening alone does not keep a program alive.
  const alive = setInterval(() => undefined, 1_000);
  if (mode === 'many' || mode === 'compile') while (!isCurrent()) await after(1);
  seen['skills'] = (await list()).length;
  if (mode === 'many') {
    const args = ['-e', 'process.stdout.write("started")'];
    seen['started'] = execFileSync(process.execPath, args, { encoding: 'utf8' });
  } else {
    if (mode === 'enospc') while (!context.codes.includes('watch-limit')) await list();
    writeFileSync(join(folder, 'a/SKILL.md'), '---\nname: a\ndescription: edited\n---\n');
    if (mode === 'poll') seen['event'] = (await changes.next()).value?.sourceUri;
    while ((await description()) !== 'edited') await after(20);
  }
  seen['problems'] = [...new Set(context.codes)];
  clearInterval(alive);
}
console.log(JSON.stringify(seen));
