/**
 * The offline model of the demo: a few rules instead of a neural network, and plainly not more than that. It decides only
 * from the request that it is sent (system prompt, messages, tools), like any model: take the skill, a tool or the
 * instructions away, and it cannot do the task.
 */

/** What a model request contains, in the form that both frameworks' requests are brought to. */
export interface RuleRequest {
  readonly system: string;
  readonly user: string;
  /** Names of the tools that are offered. */
  readonly tools: readonly string[];
  /** Results of the calls so far, oldest first. */
  readonly results: readonly {
    readonly tool: string;
    readonly args: Record<string, unknown>;
    readonly text: string;
  }[];
}

/** What the model says: call one tool, or answer. */
export type RuleReply =
  | { readonly call: { readonly tool: string; readonly args: Record<string, unknown> } }
  | { readonly text: string };

export function reply(request: RuleRequest): RuleReply {
  if (/learn a trick/i.test(request.user)) return learnTrick(request);
  const replacement = /^Replace "(.+)" by "(.+)" in (\S+)$/.exec(request.user);
  if (replacement !== null) return replaceText(request, replacement);
  const skill = chooseSkill(request);
  if (skill === undefined)
    return { text: 'I know no skill for this, so I do not know how it is done here.' };
  const activation = resultOf(request, 'activate_skill');
  if (activation === undefined) return callOf(request, 'activate_skill', { name: skill });
  return follow(request, skill, activation);
}

/** Does a trick as soon as it is offered. */
function learnTrick(request: RuleRequest): RuleReply {
  if (resultOf(request, 'learn_trick') === undefined) return callOf(request, 'learn_trick', {});
  const trick = resultOf(request, 'do_trick');
  return trick === undefined ? callOf(request, 'do_trick', {}) : { text: `The trick: ${trick}` };
}

function replaceText(
  request: RuleRequest,
  [, oldText, newText, path]: readonly string[],
): RuleReply {
  if (resultOf(request, 'edit_file') !== undefined) return { text: 'It is replaced.' };
  return callOf(request, 'edit_file', { path, edits: [{ oldText, newText }] });
}

/** The skill of the catalogue whose name and description share most words with what the user asked. */
function chooseSkill({ system, user }: RuleRequest): string | undefined {
  const asked = new Set(wordsOf(user));
  const scored = [
    ...system.matchAll(/<name>([^<]+)<\/name>\s*<description>([^<]*)<\/description>/g),
  ]
    .map(([, name = '', description = '']) => ({
      name,
      score: new Set(wordsOf(`${name} ${description}`).filter((word) => asked.has(word))).size,
    }))
    .filter(({ score }) => score >= 2)
    .toSorted((a, b) => b.score - a.score);
  return scored[0]?.name;
}

/** Does the next thing that the skill's text says and that was not done yet. */
function follow(request: RuleRequest, skill: string, text: string): RuleReply {
  if (
    /`list_allowed_directories`/.test(text) &&
    resultOf(request, 'list_allowed_directories') === undefined
  ) {
    return callOf(request, 'list_allowed_directories', {});
  }
  const folder = /^\/.*|^[A-Z]:\\.*/m.exec(
    resultOf(request, 'list_allowed_directories') ?? '',
  )?.[0];
  const input = /`read_text_file` on `([^`]+)`/.exec(text)?.[1];
  const style = /\[[^\]]*\]\(([^)]+)\): read it with `read_skill_file`/.exec(text)?.[1];
  const output = /`write_file` with the result on `([^`]+)`/.exec(text)?.[1];
  if (folder === undefined || input === undefined || output === undefined) {
    return { text: `The skill ${skill} does not tell me what to read and what to write.` };
  }
  const changes = resultOf(request, 'read_text_file');
  if (changes === undefined)
    return callOf(request, 'read_text_file', { path: `${folder}/${input}` });
  const title = resultOf(request, 'read_skill_file');
  if (style !== undefined && title === undefined)
    return callOf(request, 'read_skill_file', { name: skill, path: style });
  const written = resultOf(request, 'write_file');
  if (written === undefined) {
    const content = [title?.split('\n')[0], '', ...rewrite(changes, text), '']
      .filter((line) => line !== undefined)
      .join('\n');
    return callOf(request, 'write_file', { path: `${folder}/${output}`, content });
  }
  return { text: `The release notes are in ${output}.` };
}

/** The house style, as far as the skill's text asks for it. */
function rewrite(changes: string, text: string): readonly string[] {
  const unwanted = /Leave out lines that begin with `([^`]+)`/.exec(text)?.[1];
  const prefix = /Begin every line that is left with `([^`]+)`/.exec(text)?.[1] ?? '';
  const lines = changes
    .split('\n')
    .filter((line) => line.trim() !== '' && (unwanted === undefined || !line.startsWith(unwanted)))
    .map((line) => prefix + line);
  return /Sort the lines/.test(text) ? lines.toSorted() : lines;
}

/** A call of the offered tool of this name, whichever server it comes from; an apology if there is none. */
function callOf({ tools }: RuleRequest, name: string, args: Record<string, unknown>): RuleReply {
  const tool = tools.find((offered) => bare(offered) === name);
  return tool === undefined
    ? { text: `I would need a tool called ${name}, and none is offered.` }
    : { call: { tool, args } };
}

function resultOf({ results }: RuleRequest, name: string): string | undefined {
  return results.findLast(({ tool }) => bare(tool) === name)?.text;
}

const bare = (tool: string): string =>
  tool.slice(tool.lastIndexOf('__') === -1 ? 0 : tool.lastIndexOf('__') + 2);

const wordsOf = (text: string): readonly string[] => text.toLowerCase().match(/[a-z]{4,}/g) ?? [];
