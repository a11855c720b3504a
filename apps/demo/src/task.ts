import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';

import type { Problem } from '@patchbay/protocols';

import type { Run } from './frameworks.ts';
import { check, type Check } from './show.ts';

export const PROMPT = 'Please write the release notes of this project.';

const EXPECTED = `# What is new

- a lost server is rebuilt at its next use
- the watcher sees edits behind links
`;

const NOTES = 'RELEASE_NOTES.md';

/** Looks at a run step by step: what the model was sent, what it called, what came of it. */
export async function checkTask(
  folder: string,
  { requests, answer }: Run,
): Promise<readonly Check[]> {
  const first = requests[0];
  const results = requests.at(-1)?.results ?? [];
  const called = results.map(({ tool }) => tool);
  const activation = results.find(({ tool }) => tool === 'activate_skill')?.text ?? '';
  return [
    check(
      'the catalogue in the system prompt has the skill',
      first?.system.includes('<name>release-notes</name>'),
      first?.system,
    ),
    check(
      'its text is not in the prompt yet',
      first !== undefined && !first.system.includes('Leave out lines'),
      first?.system,
    ),
    check(
      'the tools of the file server and of the skills are offered',
      hasAll(first?.tools, ['activate_skill', 'files__read_text_file', 'files__write_file']),
      first?.tools.join(' '),
    ),
    check(
      'the model activates the skill and gets its text',
      activation.includes('Leave out lines'),
      activation,
    ),
    check(
      'it reads and writes through the server, as the skill says',
      hasAll(called, [
        'files__list_allowed_directories',
        'files__read_text_file',
        'read_skill_file',
        'files__write_file',
      ]),
      called.join(' → '),
    ),
    await checkNotes(folder),
    check(
      'the model says that it is done',
      answer === `The release notes are in ${NOTES}.`,
      answer,
    ),
  ];
}

/** What must hold whichever model did it. */
export async function checkNotes(folder: string): Promise<Check> {
  const written = await readFile(join(folder, NOTES), 'utf8').catch(() => '(no file)');
  return check(`${NOTES} is in the house style`, written.trim() === EXPECTED.trim(), written);
}

export function checkProblems(problems: readonly Problem[]): Check {
  const errors = problems.filter(({ severity }) => severity === 'error');
  return check(
    'no source has an error',
    errors.length === 0,
    errors.map(({ source, message }) => `${source}: ${message}`).join('; '),
  );
}

/** The next run starts from the same place. */
export async function resetTask(folder: string): Promise<void> {
  await rm(join(folder, NOTES), { force: true });
}

function hasAll(list: readonly string[] | undefined, wanted: readonly string[]): boolean {
  return wanted.every((item) => list?.includes(item));
}
