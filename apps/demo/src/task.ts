import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';

import { aiSdk } from '@patchbay/ai-sdk';
import { langchain } from '@patchbay/langchain';
import type { ExtensionView } from '@patchbay/protocols';
import { ToolLoopAgent } from 'ai';
import { createAgent } from 'langchain';

import { ruleLanguageModel } from './ai-sdk-model.ts';
import type { Board } from './board.ts';
import { RuleChatModel } from './langchain-model.ts';
import type { RuleRequest } from './rule-model.ts';

export const PROMPT = 'Please write the release notes of this project.';

/** How one framework runs the task: every request that the model got, and what it said in the end. */
export interface Run {
  readonly requests: readonly RuleRequest[];
  readonly answer: string;
}

export const FRAMEWORKS: Readonly<Record<string, (view: ExtensionView) => Promise<Run>>> = {
  'Vercel AI SDK, ToolLoopAgent': async (view) => {
    const requests: RuleRequest[] = [];
    const agent = new ToolLoopAgent({ model: ruleLanguageModel(requests), ...aiSdk(view) });
    const { text } = await agent.generate({ prompt: PROMPT });
    return { requests, answer: text };
  },
  'LangChain.js, createAgent': async (view) => {
    const requests: RuleRequest[] = [];
    const agent = createAgent({ model: new RuleChatModel(requests), ...langchain(view) });
    const { messages } = await agent.invoke({ messages: [{ role: 'user', content: PROMPT }] });
    return { requests, answer: messages.at(-1)?.text ?? '' };
  },
};

/** One thing that must hold, and whether it did. */
export interface Check {
  readonly what: string;
  readonly holds: boolean;
  /** What was seen. */
  readonly seen: string;
}

const EXPECTED = `# What is new

- a lost server is rebuilt at its next use
- the watcher sees edits behind links
`;

/** Looks at a run step by step: what the model was sent, what it called, what came of it. */
export async function checkRun(board: Board, { requests, answer }: Run): Promise<readonly Check[]> {
  const first = requests[0];
  const called = requests.at(-1)?.results.map(({ tool }) => tool) ?? [];
  const activation =
    requests.at(-1)?.results.find(({ tool }) => tool === 'activate_skill')?.text ?? '';
  const written = await readFile(join(board.folder, 'RELEASE_NOTES.md'), 'utf8').catch(
    () => '(no file)',
  );
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
      'the file server and the skill tools are offered',
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
    check('RELEASE_NOTES.md is in the house style', written === EXPECTED, written),
    check(
      'the model says that it is done',
      answer === 'The release notes are in RELEASE_NOTES.md.',
      answer,
    ),
    check(
      'no source has a problem',
      board.problems.length === 0,
      board.problems.map(({ message }) => message).join('; '),
    ),
  ];
}

/** The next run starts from the same place. */
export async function reset(board: Board): Promise<void> {
  await rm(join(board.folder, 'RELEASE_NOTES.md'), { force: true });
}

export function check(what: string, holds: boolean | undefined, seen = ''): Check {
  return { what, holds: holds === true, seen };
}

function hasAll(list: readonly string[] | undefined, wanted: readonly string[]): boolean {
  return wanted.every((item) => list?.includes(item));
}
