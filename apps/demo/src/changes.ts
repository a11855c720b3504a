import { join } from 'node:path';

import type { ExtensionView } from '@patchbay/protocols';

import { FRAMEWORKS } from './frameworks.ts';
import { offline } from './models.ts';
import type { Project } from './project.ts';
import { check, showTable, type Check } from './show.ts';

/** What changes while agents run, through each framework: the next step has it. */
export async function showChanges(
  project: Project,
  viewOf: (agent: string) => ExtensionView,
): Promise<readonly Check[]> {
  const checks: Check[] = [];
  const skill = join(project.folder, '.agents/skills/commit-messages/SKILL.md');
  const wordings = ['in the house style', 'in our own style', 'as this house likes them'];
  for (const [index, [framework, run]] of Object.entries(FRAMEWORKS).entries()) {
    const view = viewOf(`changes-${index}`);
    const [before, after] = [wordings[index]!, wordings[index + 1]!];
    const edit = await run({
      view,
      models: offline,
      prompt: `Replace "${before}" by "${after}" in ${skill}`,
    });
    console.log(`  ${framework}: the agent edits a SKILL.md, then a tool list changes`);
    const has = edit.requests.map(({ system }) =>
      system.includes(`Words commit messages ${after}`),
    );
    checks.push(
      check('the next step sees the edited skill', has.join() === 'false,true', has.join()),
    );
  }
  checks.push(...(await showNewTool(project, viewOf)));
  checks.push(...(await showKilledServer(project, viewOf('changes-2'))));
  return checks;
}

async function showNewTool(
  project: Project,
  viewOf: (agent: string) => ExtensionView,
): Promise<readonly Check[]> {
  const checks: Check[] = [];
  for (const [index, run] of Object.values(FRAMEWORKS).entries()) {
    const { requests, answer } = await run({
      view: viewOf(`tricks-${index}`),
      models: offline,
      prompt: 'Learn a trick and do it.',
    });
    const offered = requests.map(({ tools }) => tools.includes('tricks__do_trick'));
    checks.push(
      check(
        index === 0
          ? 'the next step has the new tool, and calls it'
          : 'so does the other framework',
        offered.at(-1) === true && answer === 'The trick: A rabbit out of a hat.',
        `${offered.join()} ${answer}`,
      ),
    );
    // The server forgets when it is started again: the second framework starts from the same place.
    if (index === 0) await restart(project, 'tricks');
  }
  return checks;
}

async function showKilledServer(project: Project, view: ExtensionView): Promise<readonly Check[]> {
  const { callTool } = await view.compile();
  const before = rowOf(project, 'files');
  await restart(project, 'files');
  const lost = rowOf(project, 'files');
  const result = await callTool('files__list_allowed_directories', {});
  project.look();
  const after = rowOf(project, 'files');
  showTable(
    ['files', 'state', 'pid'],
    [
      ['before', before?.state ?? '', String(before?.pid ?? '')],
      ['killed', lost?.state ?? '', String(lost?.pid ?? '')],
      ['after the next call', after?.state ?? '', String(after?.pid ?? '')],
    ],
  );
  return [
    check('a killed server is lost, and said to be', lost?.state === 'lost', lost?.state),
    check(
      'the next call works, through a new process',
      result.isError !== true && after?.state === 'ready' && after.pid !== before?.pid,
      JSON.stringify(result),
    ),
  ];
}

/** Kills the processes of a server, and waits until that was noticed. */
async function restart(project: Project, server: string): Promise<void> {
  project.look();
  const { host } = project;
  const running = () =>
    host.inspect().connections.filter((item) => item.server === server && item.state === 'ready');
  const stop = new AbortController();
  const changes = host.registry.changes({}, { signal: stop.signal });
  for (const { pid } of running()) if (pid !== undefined) process.kill(pid, 'SIGKILL');
  for await (const _change of changes) if (running().length === 0) break;
  stop.abort();
}

/** The program's own connection, which is the first. */
const rowOf = ({ host }: Project, server: string) =>
  host.inspect().connections.find((connection) => connection.server === server);
