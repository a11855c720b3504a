import type { AnyCapability, CompileContext, Tool } from '@patchbay/protocols';
import { SkillManagerCapability } from '@patchbay/skills';
import { describe, expect, it } from 'vitest';

import { makeBoard, type BoardChanges } from '../src/board.ts';
import { checkRun, FRAMEWORKS, type Check } from '../src/task.ts';

async function run(framework: string, changes: BoardChanges = {}): Promise<readonly Check[]> {
  await using board = await makeBoard(changes);
  const done = await FRAMEWORKS[framework]!(board.registry.view({ session: 's', agent: 'writer' }));
  return checkRun(board, done);
}

const missed = (checks: readonly Check[]) =>
  checks.filter(({ holds }) => !holds).map(({ what }) => what);

/** The same server, with one tool under another name. */
function renamed(server: AnyCapability): AnyCapability {
  return {
    id: server.id,
    tools: async (context: CompileContext): Promise<readonly Tool[]> => {
      const tools = await server.tools!(context);
      return tools.map((tool) => {
        if (tool.id.name !== 'read_text_file') return tool;
        return {
          ...tool,
          id: { ...tool.id, name: 'open_text_file' },
          definition: { ...tool.definition, name: 'files__open_text_file' },
        };
      });
    },
  };
}

describe.each(Object.keys(FRAMEWORKS))('the demo through %s', (framework) => {
  it('does the task as the skill says', async () => {
    expect(missed(await run(framework))).toEqual([]);
  });

  it('cannot do it without the skill', async () => {
    expect(missed(await run(framework, { skills: false }))).toContain(
      'RELEASE_NOTES.md is in the house style',
    );
  });

  it('cannot do it when a tool has another name', async () => {
    expect(missed(await run(framework, { files: renamed }))).toContain(
      'RELEASE_NOTES.md is in the house style',
    );
  });

  it('cannot do it when the instructions are empty', async () => {
    const manager = new SkillManagerCapability();
    manager.instructions = async () => [];
    expect(missed(await run(framework, { manager }))).toContain(
      'RELEASE_NOTES.md is in the house style',
    );
  });
});
