import type { ExtensionView, ResolvedCommand } from '@patchbay/protocols';

import { check, shorten, type Check } from './show.ts';

/** Slash commands of every kind, and URIs. */
export async function showCommands(view: ExtensionView): Promise<readonly Check[]> {
  const { commands, resources } = view;
  const list = await commands.list();
  console.log(
    `  ${list.length} slash commands: ${shorten(list.map(({ name }) => `/${name}`).join(' '), 160)}`,
  );
  const typed = [
    '/explain "src/main.ts" a beginner',
    '/args-prompt city=Berlin',
    '/release-notes for June',
    '/exlpain',
  ];
  const answers: (string | undefined)[] = [];
  for (const line of typed) {
    const text = textOf(await commands.resolve(line));
    answers.push(text);
    console.log(`  ${line}\n    ${shorten(text ?? '')}`);
  }
  const [first] = await resources.list();
  const remote = (await resources.list()).find(({ uri }) => uri.startsWith('mcp://everything/'));
  const skill = await resources.read('skill://release_notes/style.md');
  const resource = remote === undefined ? [] : await resources.read(remote.uri);
  console.log(`  skill://release_notes/style.md\n    ${shorten(JSON.stringify(skill))}`);
  console.log(`  ${remote?.uri}\n    ${shorten(JSON.stringify(resource))}`);
  const refused = await resources.read('skill://release-notes/%2e%2e/secret').then(
    () => 'read',
    (error: unknown) => (error as { code: string }).code,
  );
  return [
    check(
      'a command file takes its arguments',
      answers[0]?.includes('Explain src/main.ts to a in three sentences.'),
      answers[0],
    ),
    check(
      'a prompt of an MCP server is a slash command',
      answers[1]?.includes('Berlin'),
      answers[1],
    ),
    check('so is every skill', answers[2]?.includes('ARGUMENTS: for June'), answers[2]),
    check(
      'a mistyped one is answered with what was meant',
      answers[3]?.includes('Did you mean /explain'),
      answers[3],
    ),
    check(
      'skill:// and mcp:// URIs are resolved',
      skill.length > 0 && resource.length > 0 && first !== undefined,
    ),
    check('a URI that leaves its place is refused', refused === 'invalid-uri', refused),
  ];
}

function textOf(resolved: ResolvedCommand | undefined): string | undefined {
  if (resolved?.ok !== true) return resolved?.message;
  return resolved.content.map((part) => ('text' in part ? part.text : part.type)).join('\n');
}
