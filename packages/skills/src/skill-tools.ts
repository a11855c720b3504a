import {
  PatchbayError,
  textResult,
  toPatchbayError,
  type CallContext,
  type PeerSkill,
  type Tool,
  type ToolDefinition,
  type ToolResult,
} from '@patchbay/protocols';

import { openingOf, type Activations } from './activations.ts';
import { clip, oneLine, withoutMarkup } from './catalogue.ts';
import { findSkill, nearNames, type NamedSkill } from './named-skills.ts';
import {
  changedResult,
  endActivation,
  hasChanged,
  isChanged,
  openNamed,
  servedActivation,
  unverifiedResult,
  type OpenedSkill,
} from './served-skills.ts';
import { fileOrigin, skillContent } from './skill-text.ts';

/** More names than this are not written into the schema: the catalogue has them anyway. */
const MAX_ENUM = 100;

/** What the tools of one view work with. */
export interface SkillToolContext {
  readonly capability: string;
  /** The skills that a model may use at the moment. */
  readonly find: () => Promise<readonly NamedSkill[]>;
  /** Skills of servers at an address, in a list or not. */
  readonly findAt: (uri: string) => Promise<readonly NamedSkill[]>;
  readonly activations: Activations;
  /** What a skill of a server consists of at the moment; `undefined` where that is not fixed. */
  readonly contentOf: (skill: PeerSkill) => string | undefined;
}

/** `list_skills`, `activate_skill` and `read_skill_file`; none without skills. */
export function skillTools(
  skills: readonly NamedSkill[],
  context: SkillToolContext,
): readonly Tool[] {
  if (skills.length === 0) return [];
  const names = skills.map(({ name }) => name);
  // What servers list is not all that they have: theirs may be named by address, too.
  const someServed = skills.some(({ skill }) => skill.entry.served !== undefined);
  const name = {
    type: 'string',
    description: someServed
      ? 'The name of the skill, or the URI of its SKILL.md.'
      : 'The name of the skill.',
    ...(names.length <= MAX_ENUM && !someServed ? { enum: names } : {}),
  };
  return [
    tool(context.capability, {
      name: 'activate_skill',
      description:
        'Gives the instructions of a skill. Call it before you do a task that the skill describes.',
      inputSchema: object({ name }),
      call: ({ name: wanted }, signal) => activate(String(wanted), context, signal),
    }),
    tool(context.capability, {
      name: 'list_skills',
      description: 'Lists every skill with its description.',
      inputSchema: object({}),
      call: async () => {
        const lines = (await context.find()).map(({ name: known, skill: { entry } }) => {
          const { description, whenToUse = '', served } = entry;
          const text = oneLine(`${description} ${whenToUse}`);
          if (served === undefined) return `- ${oneLine(known)}: ${text}`;
          return `- ${oneLine(known)} (of the server "${oneLine(served.server)}"): ${clip(withoutMarkup(text), 1_024)}`;
        });
        return textResult(lines.join('\n') || 'There are no skills.');
      },
    }),
    tool(context.capability, {
      name: 'read_skill_file',
      description: 'Reads a file of a skill, by its path within the skill.',
      inputSchema: object({
        name,
        path: {
          type: 'string',
          description: 'The path of the file, for example references/api.md.',
        },
      }),
      call: ({ name: wanted, path }) => readFile(String(wanted), String(path), context),
    }),
  ];
}

async function activate(
  wanted: string,
  context: SkillToolContext,
  signal: AbortSignal | undefined,
): Promise<ToolResult> {
  const { activations, contentOf } = context;
  const skills = await context.find();
  const listed = findSkill(skills, wanted);
  const found = listed ?? (await findUnlisted(wanted, context));
  if (found === undefined) return unknownSkill(wanted, skills);
  if ('content' in found) return found;
  const { source, entry } = found.skill;
  const reference = { source, uri: entry.uri };
  const before = activations.get(reference);
  const opened = await openForModel(found, context);
  if (opened === undefined) return unknownSkill(wanted, skills);
  if ('refused' in opened) return opened.refused;
  const { skill } = opened;
  const { digest } = skill;
  const content = contentOf(found.skill);
  const same =
    before !== undefined &&
    !hasChanged(before, content) &&
    (before.digest === digest || before.by === 'program');
  if (entry.alwaysActive === true || same) {
    return textResult(
      `The skill "${found.name}" is already active, and has not changed (${digest}). Follow it. ` +
        'Should its text be gone, read its file SKILL.md.',
    );
  }
  // A model that was interrupted has not read it.
  signal?.throwIfAborted();
  const activation = {
    ...reference,
    digest,
    by: 'model' as const,
    ...servedActivation(found, content),
  };
  activations.set(activation);
  // Its name is that among all others, of which it is one now.
  const text = skillContent(await nameNow(found, context), skill);
  activations.set({ ...activation, opening: openingOf(text) });
  return textResult(text);
}

/** A skill that is in no list, by its address; where several servers have that address, nobody knows which is meant. */
async function findUnlisted(
  wanted: string,
  context: SkillToolContext,
): Promise<NamedSkill | ToolResult | undefined> {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(wanted)) return undefined;
  const found = await context.findAt(wanted);
  if (found.length <= 1) return found[0];
  const servers = found.map(({ skill }) => `"${oneLine(skill.source)}"`).join(', ');
  const text = `Several servers have a skill at ${oneLine(wanted)}: ${servers}. Use its name as list_skills gives it.`;
  return textResult(text, { isError: true });
}

/** The name that it has among all others: one that was in no list is among them once it is active. */
async function nameNow(
  { name, skill: { source, entry } }: NamedSkill,
  { find }: SkillToolContext,
): Promise<string> {
  const now = (await find()).find(
    ({ skill }) => skill.source === source && skill.entry.uri === entry.uri,
  );
  return now?.name ?? name;
}

/** A skill of a server is read by those who have its text: what it says elsewhere counts as much as what SKILL.md says. */
async function readFile(
  wanted: string,
  path: string,
  context: SkillToolContext,
): Promise<ToolResult> {
  const { activations, contentOf } = context;
  const skills = await context.find();
  const found = findSkill(skills, wanted);
  if (found === undefined) return unknownSkill(wanted, skills);
  const { name } = found;
  const { source, entry } = found.skill;
  const { served, alwaysActive } = entry;
  if (served !== undefined && alwaysActive !== true) {
    const active = activations.get({ source, uri: entry.uri });
    if (active === undefined) {
      const text = `The skill "${name}" is not active. Call activate_skill before you read its files.`;
      return textResult(text, { isError: true });
    }
    if (hasChanged(active, contentOf(found.skill))) {
      endActivation(found.skill, activations);
      return changedResult(found);
    }
  }
  const opened = await openForModel(found, context);
  if (opened === undefined) return unknownSkill(wanted, skills);
  if ('refused' in opened) return opened.refused;
  const { skill } = opened;
  if (served !== undefined && path === 'SKILL.md') return textResult(skillContent(name, skill));
  try {
    const content = await skill.readFile(path);
    if (served === undefined) return { content };
    return { content: [{ type: 'text', text: fileOrigin(name, served.server, path) }, ...content] };
  } catch (thrown) {
    const error = toPatchbayError(thrown, 'source-failed');
    if (served !== undefined && isChanged(error)) {
      endActivation(found.skill, activations);
      return unverifiedResult(found, error);
    }
    if (!READ_FAULTS.has(error.code)) throw error;
    const files = skill.files === 'dynamic' ? [] : skill.files.map((file) => file.path);
    const known =
      files.length === 0
        ? 'It has no other files.'
        : `Its files: ${files.slice(0, MAX_FILES).map(oneLine).join(', ')}.`;
    return textResult(`${error.message} ${known}`, { isError: true });
  }
}

/** What keeps a skill of a server from being read is said to the model, as what it is. */
async function openForModel(
  found: NamedSkill,
  { activations }: SkillToolContext,
): Promise<{ readonly skill: OpenedSkill } | { readonly refused: ToolResult } | undefined> {
  try {
    const skill = await openNamed(found, activations);
    return skill && { skill };
  } catch (thrown) {
    if (found.skill.entry.served === undefined) throw thrown;
    if (isChanged(thrown)) return { refused: unverifiedResult(found, thrown) };
    const error = toPatchbayError(thrown, 'source-failed');
    if (!READ_FAULTS.has(error.code)) throw error;
    return { refused: textResult(error.message, { isError: true }) };
  }
}

const MAX_FILES = 50;
const READ_FAULTS: ReadonlySet<string> = new Set([
  'not-found',
  'outside-root',
  'too-large',
  'invalid-uri',
  'unknown-scheme',
]);

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
  readonly call: (
    args: Readonly<Record<string, unknown>>,
    signal: AbortSignal | undefined,
  ) => Promise<ToolResult>;
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
    call: (args: unknown, context?: CallContext) => {
      if (typeof args === 'object' && args !== null)
        return call(args as Record<string, unknown>, context?.signal);
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
