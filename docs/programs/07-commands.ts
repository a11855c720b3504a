import { createHost } from '@patchbay/host';
import { createInterface } from 'node:readline/promises';

await using host = await createHost();
await using session = await host.openSession('user-42');
const commands = session.agent('coder').view().commands;

const terminal = createInterface({
  input: process.stdin,
  output: process.stdout,
  completer: async (line: string): Promise<[string[], string]> => [
    await commands.complete(line),
    line,
  ], // names, then arguments (MCP completion too)
});

for await (const line of terminal) {
  const resolved = await commands.resolve(line); // undefined: not a slash command
  if (resolved?.ok === false) console.error(resolved.message); // unknown command: /reveiw. Did you mean /review?
  else console.log(resolved ? resolved.content : `a plain message: ${line}`);
}
