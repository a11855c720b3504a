import { showChanges } from './changes.ts';
import { showCommands } from './commands.ts';
import { FRAMEWORKS } from './frameworks.ts';
import type { Models } from './models.ts';
import { showOpened, showPluggedIn } from './plugged-in.ts';
import type { Project } from './project.ts';
import { check, shorten, showChecks, title, type Check } from './show.ts';
import { checkNotes, checkProblems, checkTask, PROMPT, resetTask } from './task.ts';
import { showTenants } from './tenants.ts';

/** Shows and checks the main job, point by point, on a project that is open. Closes it as its last point. */
export async function demo(project: Project, models: Models): Promise<readonly Check[]> {
  const all: Check[] = [];
  const report = (checks: readonly Check[]) => all.push(...showChecks(checks));

  title('1. A project with servers, skills and commands is opened');
  report(showOpened(project));

  const session = await project.host.openSession('demo');
  const viewOf = (agent: string) => session.agent(agent).view();

  title('2. What is plugged in');
  report(await showPluggedIn(project, viewOf('writer')));
  project.look();

  title(`3. The same task through both frameworks (the model is ${models.name})`);
  for (const [index, [framework, run]] of Object.entries(FRAMEWORKS).entries()) {
    await resetTask(project.folder);
    console.log(`  ${framework}\n  user: ${PROMPT}`);
    // An agent of its own for each: what one activates is not active in the other.
    const done = await run({ view: viewOf(`writer-${index}`), models, prompt: PROMPT });
    for (const { tool, args, text } of done.requests.at(-1)?.results ?? []) {
      console.log(`  calls ${tool} ${shorten(JSON.stringify(args))}\n    gets ${shorten(text)}`);
    }
    console.log(`  says: ${shorten(done.answer, 300)}`);
    report(
      models.isOffline ? await checkTask(project.folder, done) : [await checkNotes(project.folder)],
    );
  }
  report([checkProblems(project.problems)]);

  title('4. Two customers in one program');
  report(await showTenants(project));

  title('5. Changes while agents run');
  report(await showChanges(project, viewOf));

  title('6. Slash commands and URIs');
  report(await showCommands(viewOf('writer')));

  title('7. The end');
  await session.close();
  await project.close();
  const left = [...project.pids].filter(isAlive);
  report([check(`none of ${project.pids.size} processes is left`, left.length === 0, left.join())]);
  return all;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
