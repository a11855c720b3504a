import { makeBoard } from './board.ts';
import { check, checkRun, FRAMEWORKS, PROMPT, reset, type Check } from './task.ts';

/** Runs the task through both frameworks over one view, shows every step, and ends with how many checks held. */
async function main(): Promise<readonly Check[]> {
  const all: Check[] = [];
  const board = await makeBoard();
  let pid: number | undefined;
  try {
    const view = board.registry.view({ session: 'demo', agent: 'writer' });
    const { tools, skills, problems } = await view.compile();
    console.log('Plugged in:');
    for (const { id, status } of board.registry.inspect())
      console.log(`  ${id.padEnd(8)} ${status.state}`);
    console.log(`  ${tools.length} tools, ${skills.length} skill, ${problems.length} problems\n`);
    pid = board.pool.status(board.server).pid;

    for (const [index, [framework, run]] of Object.entries(FRAMEWORKS).entries()) {
      await reset(board);
      // Each framework has a session of its own: what is activated in one is not active in the other.
      const own = board.registry.view({ session: `demo-${index}`, agent: 'writer' });
      console.log(
        `${framework} (the model is a set of rules, no network, no key)\n  user: ${PROMPT}`,
      );
      const done = await run(own);
      for (const { tool, args, text } of done.requests.at(-1)?.results ?? []) {
        console.log(`  calls ${tool} ${shorten(JSON.stringify(args))}\n    gets ${shorten(text)}`);
      }
      console.log(`  says: ${done.answer}`);
      all.push(...show(await checkRun(board, done)));
      console.log();
    }
  } finally {
    await board[Symbol.asyncDispose]();
  }
  console.log('After closing:');
  all.push(
    ...show([
      check('the server process is gone', pid !== undefined && !isAlive(pid), `pid ${pid}`),
    ]),
  );
  return all;
}

function show(checks: readonly Check[]): readonly Check[] {
  for (const { what, holds, seen } of checks) {
    console.log(
      holds ? `  ok      ${what}` : `  NOT OK  ${what}\n          saw: ${shorten(seen, 600)}`,
    );
  }
  return checks;
}

function shorten(text: string, length = 100): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  return line.length > length ? `${line.slice(0, length)}…` : line;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

const checks = await main();
const held = checks.filter(({ holds }) => holds).length;
console.log(`\n${held} of ${checks.length} checks held`);
if (held !== checks.length) process.exitCode = 1;
