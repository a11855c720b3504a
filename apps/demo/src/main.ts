import { parseArgs } from 'node:util';

import { chat } from './chat.ts';
import { demo } from './demo.ts';
import { interruptible } from './interruptible.ts';
import { offline, realModels } from './models.ts';
import { openProject, type Project } from './project.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { model: { type: 'string' } },
});

async function main(): Promise<number> {
  const models = values.model === undefined ? offline : await realModels(values.model, process.env);
  if ('missing' in models) {
    console.error(models.missing);
    return 2;
  }
  let project: Project | undefined;
  const opening = openProject().then((opened) => (project = opened));
  return interruptible(
    async () => {
      const opened = await opening;
      if (positionals[0] === 'chat') return chat(opened, models);
      const checks = await demo(opened, models);
      const held = checks.filter(({ holds }) => holds).length;
      console.log(`\n${held} of ${checks.length} checks held`);
      return held === checks.length ? 0 : 1;
    },
    async () => {
      await opening.catch(() => undefined);
      await project?.close();
    },
  );
}

process.exitCode = await main();
