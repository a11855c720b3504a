import type {
  AnyCapability,
  Capability,
  CompileContext,
  ExtensionView,
  Tool,
} from '@patchbay/protocols';
import { SkillManagerCapability } from '@patchbay/skills';
import { expect, it } from 'vitest';

import { FRAMEWORKS } from '../src/frameworks.ts';
import { offline } from '../src/models.ts';
import { openProject, type Project } from '../src/project.ts';
import { checkTask, PROMPT } from '../src/task.ts';

/** What does not hold when the task is done over the view that `change` gives. */
export async function missed(
  framework: string,
  change: (project: Project) => Promise<ExtensionView>,
): Promise<readonly string[]> {
  const project = await openProject();
  try {
    const run = await FRAMEWORKS[framework]!({
      view: await change(project),
      models: offline,
      prompt: PROMPT,
    });
    return (await checkTask(project.folder, run))
      .filter(({ holds }) => !holds)
      .map(({ what }) => what);
  } finally {
    await project.close();
  }
}

export const viewOf = async ({ host }: Project) =>
  (await host.openSession('demo')).agent('writer').view();
const NOTES = 'RELEASE_NOTES.md is in the house style';

/** The same server, with one tool under another name. */
function renamed(server: Capability): AnyCapability {
  return {
    id: server.id,
    tools: async (context: CompileContext): Promise<readonly Tool[]> =>
      (await server.tools!(context)).map((tool) =>
        tool.id.name === 'read_text_file'
          ? {
              call: (args, call) => tool.call(args, call),
              id: { ...tool.id, name: 'open_text_file' },
              definition: { ...tool.definition, name: 'files__open_text_file' },
            }
          : tool,
      ),
  };
}

/** Each of these takes away something that the task needs: a demo that passed all the same would show nothing. */
export function taskFailsWithoutItsParts(framework: string): void {
  it('cannot be done without the skill', async () => {
    const without = async ({ host }: Project) =>
      (await host.openSession('demo'))
        .agent('writer')
        .view({ skills: { exclude: ['release-notes'] } });
    expect(await missed(framework, without)).toContain(NOTES);
  });

  it('cannot be done when a tool has another name', async () => {
    const other = async (project: Project) => {
      const { registry } = project.host;
      const [files] = registry.query(
        {},
        (capability): capability is Capability => capability.id === 'files',
      );
      registry.register(renamed(files!), { session: 'demo' });
      return viewOf(project);
    };
    expect(await missed(framework, other)).toContain(NOTES);
  });

  it('cannot be done when the instructions are empty', async () => {
    const silent = async (project: Project) => {
      const manager = new SkillManagerCapability();
      manager.instructions = async () => [];
      project.host.registry.register(manager, { session: 'demo' });
      return viewOf(project);
    };
    expect(await missed(framework, silent)).toContain(NOTES);
  });
}
