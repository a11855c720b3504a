import { createInterface } from 'node:readline/promises';

import { FRAMEWORKS } from './frameworks.ts';
import type { Models } from './models.ts';
import type { Project } from './project.ts';

/** A prompt on the same wiring: Tab completes slash commands, Ctrl-C cancels what runs and not the program. */
export async function chat({ host }: Project, models: Models): Promise<number> {
  await using session = await host.openSession('chat');
  const view = session.agent('chat').view();
  const run = Object.values(FRAMEWORKS)[0]!;
  const terminal = createInterface({
    input: process.stdin,
    output: process.stdout,
    prompt: '> ',
    completer: async (line: string): Promise<[string[], string]> => [
      await view.commands.complete(line),
      line,
    ],
  });
  let running: AbortController | undefined;
  terminal.on('SIGINT', () => {
    if (running === undefined) terminal.close();
    else running.abort(new Error('cancelled'));
  });
  // Input that is piped ends long before its lines are answered: from Node 24 on a prompt after that throws.
  let ended = false;
  terminal.on('close', () => {
    ended = true;
  });
  console.log(`The model is ${models.name}. An empty line, Ctrl-D or Ctrl-C ends it.`);
  terminal.prompt();
  for await (const line of terminal) {
    if (line.trim() === '') break;
    const resolved = await view.commands.resolve(line);
    if (resolved?.ok === false) console.log(resolved.message);
    else {
      const prompt =
        resolved === undefined
          ? line
          : resolved.content.map((part) => ('text' in part ? part.text : '')).join('\n');
      running = new AbortController();
      try {
        console.log((await run({ view, models, prompt, signal: running.signal })).answer);
      } catch (error) {
        console.log(running.signal.aborted ? '(cancelled)' : String(error));
      } finally {
        running = undefined;
      }
    }
    if (!ended) terminal.prompt();
  }
  terminal.close();
  return 0;
}
