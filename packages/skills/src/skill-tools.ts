import {
  PatchbayError,
  textResult,
  toPatchbayError,
  type PeerQuery,
  type Tool,
  type ToolDefinition,
  type ToolResult,
} from '@patchbay/protocols';

import type { Activations } from './activations.ts';
import { findSkill, nameSkills, nearNames, type NamedSkill } from './named-skills.ts';
import { skillContent } from './skill-text.ts';

/** More names than this are not written into the schema: the catalogue has them anyway. */
const MAX_ENUM = 100;

/** What the tools of one view work with. */
export interface SkillToolContext {
  readonly capability: string;
  readonly peers: PeerQuery;
  readonly activations: Activations;
}

/** `list_skills`, `activate_skill` and `read_skill_file`; none without skills. */
export function skillTools(
  skills: readonly NamedSkill[],
  context: SkillToolContext,
): readonly Tool[] {
  if (skills.length === 0) return [];
  const names = skills.map(({ name }) => name);
  const name = { type: 'string', ...(names.length <= MAX_ENUM ? { enum: names } : {}) };
  return [
    tool(context.capability, {
      name: 'activate_skill',
      description:
        'Gives the instructions of a skill. Call it before you do a task that the skill describes.',
      inputSchema: object({ name: { ...name, description: 'The name of the skill.' } }),
      call: ({ name: wanted }) => activate(String(wanted), context),
    }),
    tool(context.capability, {
      name: 'list_skills',
      description: 'Lists every skill with its description.',
      inputSchema: object({}),
      call: async () => {
        const lines = (await visible(context)).map(
          ({ name: known, skill: { entry } }) =>
            `- ${known}: ${entry.description.replaceAll(/\s+/g, ' ')}`,
        );
        return textResult(lines.join('\n') || 'There are no skills.');
      },
    }),
    tool(context.capability, {
      name: 'read_skill_file',
      description: 'Reads a file of a skill, by its path within the skill.',
      inputSchema: object({
        name: { ...name, description: 'The name of the skill.' },
        path: {
          type: 'string',
          description: 'The path of the file, for example references/api.md.',
        },
      }),
      call: ({ name: wanted, path }) => readFile(String(wanted), String(path), context),
    }),
  ];
}

/** Skills that a model may use. */
async function visible({ peers }: Pick<SkillToolContext, 'peers'>): Promise<readonly NamedSkill[]> {
  return nameSkills(await peers.skills()).filter(
    ({ skill }) => skill.entry.modelInvocable !== false,
  );
}

async function activate(wanted: string, context: SkillToolContext): Promise<ToolResult> {
  const skills = await visible(context);
  const found = findSkill(skills, wanted);
  const skill = await found?.skill.open();
  if (found === undefined || skill === undefined) return unknownSkill(wanted, skills);
  const { name } = found;
  const { source } = found.skill;
  const before = context.activations.all().get(name);
  if (before?.digest === skill.digest && before.source === source) {
    return textResult(
      `The skill "${name}" is already active, and has not changed (${skill.digest}). Follow it.`,
    );
  }
  context.activations.set(name, { source, digest: skill.digest, by: 'model' });
  return textResult(skillContent(name, skill));
}

async function readFile(
  wanted: string,
  path: string,
  context: SkillToolContext,
): Promise<ToolResult> {
  const skills = await visible(context);
  const found = findSkill(skills, wanted);
  const skill = await found?.skill.open();
  if (skill === undefined) return unknownSkill(wanted, skills);
  try {
    return { content: await skill.readFile(path) };
  } catch (thrown) {
    const error = toPatchbayError(thrown, 'source-failed');
    if (!READ_FAULTS.has(error.code)) throw error;
    const files = skill.files === 'dynamic' ? [] : skill.files.map((file) => file.path);
    const known = files.length === 0 ? 'It has no other files.' : `Its files: ${files.join(', ')}.`;
    return textResult(`${error.message} ${known}`, { isError: true });
  }
}

const READ_FAULTS: ReadonlySet<string> = new Set(['not-found', 'outside-root', 'too-large']);

function unknownSkill(wanted: string, skills: readonly NamedSkill[]): ToolResult {
  const near = nearNames(skills, wanted);
  const hint =
    near.length > 0
      ? `Did you mean ${near.map((name) => `"${name}"`).join(' or ')}?`
      : 'Call list_skills to see what there is.';
  return textResult(`There is no skill "${wanted}". ${hint}`, { isError: true });
}

interface OwnTool {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: ToolDefinition['inputSchema'];
  readonly call: (args: Readonly<Record<string, unknown>>) => Promise<ToolResult>;
}

/** Its name is reserved, and shown bare. */
function tool(capability: string, { name, description, inputSchema, call }: OwnTool): Tool {
  return Object.freeze({
    id: Object.freeze({ capability, name }),
    definition: Object.freeze({
      name,
      description,
      inputSchema,
      annotations: { readOnlyHint: true },
    }),
    call: (args: unknown) => {
      if (typeof args === 'object' && args !== null) return call(args as Record<string, unknown>);
      throw new PatchbayError('invalid-arguments', `${name} needs an object of arguments.`);
    },
  });
}

function object(properties: Readonly<Record<string, object>>): ToolDefinition['inputSchema'] {
  return {
    type: 'object',
    properties,
    required: Object.keys(properties),
    additionalProperties: false,
  };
}
