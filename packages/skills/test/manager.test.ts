import { join } from 'node:path';

import { defineTool, type ExtensionView } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import {
  activateSkill,
  deactivateSkill,
  memorySkills,
  SkillManagerCapability,
  type MemorySkill,
  type SkillManagerOptions,
} from '@patchbay/skills';
import { localSkills } from '@patchbay/skills/node';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';

import { benchFolder, callTool, catalogue, type BenchFolder } from './bench-folder.ts';

let bench: BenchFolder;
let registry: ExtensionRegistry;

beforeEach(async () => {
  bench = await benchFolder();
  registry = new ExtensionRegistry({ onProblem: () => undefined });
});
afterEach(async () => {
  await registry.close();
  await bench.remove();
});

function plug(options: SkillManagerOptions = {}): ExtensionView {
  registry.register(localSkills({ id: 'mine', folder: bench.root }));
  registry.register(new SkillManagerCapability(options));
  return registry.view({ session: 's', agent: 'coder' });
}
function plugMemory(
  skills: readonly MemorySkill[],
  options: SkillManagerOptions = {},
): ExtensionView {
  registry.register(memorySkills({ id: 'made', skills }));
  registry.register(new SkillManagerCapability(options));
  return registry.view({ session: 's' });
}
const made = (name: string, more: Partial<MemorySkill> = {}): MemorySkill => ({
  name,
  description: `Does ${name}.`,
  body: `Do ${name}.`,
  ...more,
});
const dynamic = async (view: ExtensionView, userText = 'x') => {
  const { instructions } = await view.beginTurn({ userText }).prepare();
  return instructions.filter(({ kind }) => kind === 'dynamic').map(({ text }) => text);
};
const active = async (view: ExtensionView) =>
  (await view.beginTurn().prepare()).active.map(({ name, by }) => [name, by]);

describe('the budget of the catalogue', () => {
  const skills = ['a', 'b', 'c', 'd'].map((name) => made(name, { description: name.repeat(500) }));

  it('keeps whole descriptions for as many as fit, and names the others', async () => {
    const view = plugMemory(skills, { catalogueChars: 1_900 });
    const found = await catalogue(view);
    expect([...found].map(([name, { length }]) => [name, length])).toEqual([
      ['a', 500],
      ['b', 500],
      ['c', 0],
      ['d', 0],
    ]);
    const { instructions, problems } = await view.compile();
    expect(instructions[0]!.text.length).toBeLessThanOrEqual(1_900 + 100);
    expect(instructions[0]!.text).toContain('list_skills describes them all');
    expect(problems).toMatchObject([
      { source: 'skills', code: 'catalogue-budget', message: expect.stringContaining('c, d') },
    ]);
    expect((await callTool(view, 'list_skills', {})).text).toContain('d'.repeat(500));
    expect((await callTool(view, 'activate_skill', { name: 'd' })).text).toContain('Do d.');
  });

  it('prefers skills of greater precedence', async () => {
    registry.register(memorySkills({ id: 'low', skills: skills.slice(0, 2), precedence: 10 }));
    const found = await catalogue(plugMemory(skills.slice(2), { catalogueChars: 1_900 }));
    expect([...found].filter(([, text]) => text !== '').map(([name]) => name)).toEqual(['c', 'd']);
  });

  it('counts what has not even room for its name', async () => {
    const many = Array.from({ length: 100 }, (_, i) => made(`skill-${String(i).padStart(2, '0')}`));
    const view = plugMemory(many, { catalogueChars: 1_000 });
    const shown = (await catalogue(view)).size;
    expect(shown).toBeGreaterThan(5);
    const { instructions, problems } = await view.compile();
    expect(instructions[0]!.text).toContain(`<more count="${100 - shown}"/>`);
    expect(problems[0]?.message).toContain(`${100 - shown} of them without their name`);
  });
});

describe('one skill from two sources', () => {
  it('with the same text is one entry, and no problem', async () => {
    await bench.skill('one/x');
    await bench.skill('two/x');
    await bench.write(
      'one/big/SKILL.md',
      `---\nname: big\ndescription: B.\n---\n${'x'.repeat(40_000)}`,
    );
    await bench.write(
      'two/big/SKILL.md',
      `---\nname: big\ndescription: B.\n---\n${'x'.repeat(40_000)}`,
    );
    for (const id of ['one', 'two'])
      registry.register(localSkills({ id, folder: join(bench.root, id) }));
    registry.register(new SkillManagerCapability());
    const view = registry.view();
    expect([...(await catalogue(view)).keys()]).toEqual(['big', 'x']);
    expect((await view.compile()).problems).toEqual([]);

    await bench.write(
      'two/big/SKILL.md',
      `---\nname: big\ndescription: B.\n---\n${'x'.repeat(40_001)}`,
    );
    await bench.skill('two/x', '', 'Another body.');
    expect([...(await catalogue(view)).keys()]).toEqual(['big', 'two:big', 'two:x', 'x']);
  });

  it('claude-code-89207: when the winner goes, the next one has the name; back again, too', async () => {
    await bench.skill('user/deploy', '', 'body of user');
    await bench.skill('project/deploy', '', 'body of project');
    registry.register(
      localSkills({ id: 'user', folder: join(bench.root, 'user'), precedence: 20 }),
    );
    registry.register(localSkills({ id: 'project', folder: join(bench.root, 'project') }));
    registry.register(new SkillManagerCapability());
    const body = async (session: string) =>
      (await callTool(registry.view({ session }), 'activate_skill', { name: 'deploy' })).text;
    expect(await body('1')).toContain('body of project');
    const { rename } = await import('node:fs/promises');
    await rename(join(bench.root, 'project/deploy'), join(bench.root, 'away'));
    expect(await body('2')).toContain('body of user');
    await rename(join(bench.root, 'away'), join(bench.root, 'project/deploy'));
    expect(await body('3')).toContain('body of project');
    for (let i = 0; i < 20; i++) expect(await body(`again-${i}`)).toContain('body of project');
  });

  it('claude-code-89207: of one session is not seen in another', async () => {
    registry.register(memorySkills({ id: 'mine', skills: [made('private')] }), { session: 'a' });
    registry.register(new SkillManagerCapability());
    expect([...(await catalogue(registry.view({ session: 'a' }))).keys()]).toEqual(['private']);
    const other = registry.view({ session: 'b' });
    expect((await catalogue(other)).size).toBe(0);
    expect((await other.compile()).tools).toEqual([]);
    expect(await other.commands.list()).toEqual([]);
  });
});

describe('modes', () => {
  it('take a skill away without editing it', async () => {
    const skills = ['a', 'b', 'c', 'd'].map((name) => made(name));
    const view = plugMemory(skills, { modes: { a: 'off', b: 'user-only', 'made:c': 'name-only' } });
    expect([...(await catalogue(view))]).toEqual([
      ['c', ''],
      ['d', 'Does d.'],
    ]);
    expect((await view.commands.list()).map(({ name }) => name)).toEqual(['b', 'c', 'd']);
    expect((await view.compile()).problems).toEqual([]);
    for (const [name, isError] of [
      ['a', true],
      ['b', true],
      ['c', false],
    ] as const)
      expect(await callTool(view, 'activate_skill', { name })).toMatchObject({ isError });
  });

  it('leave the name of what is off to others, and end what is always active', async () => {
    registry.register(
      memorySkills({ id: 'low', precedence: 10, skills: [made('a', { description: 'Low.' })] }),
    );
    const view = plugMemory([made('a', { alwaysActive: true })], { modes: { 'made:a': 'off' } });
    expect([...(await catalogue(view))]).toEqual([['a', 'Low.']]);
    expect(await active(view)).toEqual([]);
  });
});

describe('what is in force', () => {
  it('by the program is in front of the model at each request, until it is ended', async () => {
    await bench.skill('a');
    const view = plug();
    const [skill] = (await view.compile()).skills;
    const state = registry.state({ session: 's' });
    activateSkill(state, skill!, { agent: 'coder' });
    expect(await active(view)).toEqual([['a', 'program']]);
    expect(await dynamic(view)).toEqual([expect.stringContaining('Do a.')]);
    expect((await callTool(view, 'activate_skill', { name: 'a' })).text).toContain(
      'already active',
    );
    expect(await active(registry.view({ session: 's', agent: 'other' }))).toEqual([]);
    deactivateSkill(state, skill!, { agent: 'coder' });
    expect(await active(view)).toEqual([]);
    expect(state.snapshot()).toEqual({});
  });

  it('by the model, and edited since, is shown anew until the model has read it', async () => {
    await bench.skill('a');
    const view = plug();
    await callTool(view, 'activate_skill', { name: 'a' });
    expect(await dynamic(view)).toEqual([]);
    await bench.skill('a', '', 'Do it differently.');
    expect(await dynamic(view)).toEqual([expect.stringContaining('Do it differently.')]);
    expect((await callTool(view, 'activate_skill', { name: 'a' })).text).toContain('differently');
    expect(await dynamic(view)).toEqual([]);
    const again = await callTool(view, 'activate_skill', { name: 'a' });
    expect(again.text).toContain('read its file SKILL.md');
    expect(
      (await callTool(view, 'read_skill_file', { name: 'a', path: 'SKILL.md' })).text,
    ).toContain('differently');
  });

  it('by the user, who called it as a command, counts as read', async () => {
    await bench.skill('a');
    const view = plug();
    await view.commands.resolve('/a now');
    expect(await active(view)).toEqual([['a', 'user']]);
    expect(await dynamic(view)).toEqual([]);
    expect((await callTool(view, 'activate_skill', { name: 'a' })).text).toContain(
      'already active',
    );
  });

  it('ends with its skill', async () => {
    await bench.skill('a');
    await bench.skill('b');
    const view = plug();
    await callTool(view, 'activate_skill', { name: 'a' });
    await (await import('node:fs/promises')).rm(join(bench.root, 'a'), { recursive: true });
    expect(await active(view)).toEqual([]);
  });

  it('takes away the tools that it disallows, in every way in which they are written', async () => {
    const tool = (capability: string, name: string) =>
      defineTool({ capability, name, call: () => 'x' });
    const tools = ['github', 'shell', 'git'].flatMap((id) => [
      tool(id, 'delete_repo'),
      tool(id, 'Bash'),
    ]);
    for (const id of ['github', 'shell', 'git'])
      registry.register({ id, tools: async () => tools.filter((one) => one.id.capability === id) });
    const left = async (disallowed: string) => {
      await bench.skill('a', `always_active: true\ndisallowed-tools: ${disallowed}\n`);
      const step = await view.beginTurn().prepare();
      return step.tools
        .map(({ definition }) => definition.name)
        .filter((name) => name.includes('__'));
    };
    const view = plug();
    expect(await left('mcp__github__delete_repo')).toHaveLength(5);
    expect(await left('mcp__github')).toEqual([
      'git__Bash',
      'git__delete_repo',
      'shell__Bash',
      'shell__delete_repo',
    ]);
    expect(await left('Bash(rm *), github__delete_repo')).toEqual([
      'git__delete_repo',
      'shell__delete_repo',
    ]);
    expect((await view.compile()).tools).toHaveLength(9);
  });

  it('is not put in front of the model twice by the matcher', async () => {
    await bench.skill('a');
    const view = plug({ matcher: () => ['a'] });
    expect(await dynamic(view)).toHaveLength(1);
    await callTool(view, 'activate_skill', { name: 'a' });
    expect(await dynamic(view)).toEqual([]);
  });
});

describe('the matcher', () => {
  it('is asked once for each text of a turn, and told when nobody waits any more', async () => {
    await bench.skill('a');
    const asked: string[] = [];
    let aborted = 0;
    const view = plug({
      matcherTimeoutMs: 5,
      matcher: (text, skills, { signal }) => {
        asked.push(`${text} ${skills.map(({ name }) => name).join()}`);
        signal.addEventListener('abort', () => aborted++);
        return text === 'slow' ? new Promise(() => undefined) : ['a'];
      },
    });
    const turn = view.beginTurn({ userText: 'one' });
    for (let step = 0; step < 3; step++) expect((await turn.prepare()).active).toHaveLength(1);
    await turn.prepare({ userText: 'two' });
    await view.beginTurn({ userText: 'one' }).prepare();
    expect(asked).toEqual(['one a', 'two a', 'one a']);
    const late = await view.beginTurn({ userText: 'slow' }).prepare();
    expect(late.problems).toMatchObject([{ code: 'source-slow' }]);
    expect([late.active, aborted]).toEqual([[], 1]);
  });

  it('that gives nonsense chooses nothing', async () => {
    await bench.skill('a');
    const view = plug({ matcher: () => ['none', '__proto__', 3 as unknown as string] });
    expect((await view.beginTurn({ userText: 'x' }).prepare()).active).toEqual([]);
    const broken = new SkillManagerCapability({
      id: 'skills',
      matcher: () => 7 as unknown as string[],
    });
    registry.register(broken, { session: 't' });
    const step = await registry.view({ session: 't' }).beginTurn({ userText: 'x' }).prepare();
    expect(step.problems).toMatchObject([{ source: 'skills' }]);
  });
});

describe('a skill that brings servers', () => {
  it('works, and says that they are not started', async () => {
    await bench.skill('a', 'mcpServers:\n  github:\n    command: github-mcp\n');
    await bench.skill('b', 'mcp_servers: [github]\n');
    const view = plug();
    expect((await view.compile()).problems).toMatchObject([
      { source: 'mine', code: 'skill-servers', message: expect.stringContaining('not started') },
      { source: 'mine', code: 'skill-servers', message: expect.stringContaining('not there') },
    ]);
    expect((await callTool(view, 'activate_skill', { name: 'a' })).text).toContain('Do a.');
  });
});

describe('a skill that is called as a command', () => {
  it('takes what was typed in one pass', async () => {
    await bench.skill(
      'a',
      'arguments: [issue, branch]\n',
      'In {baseDir}: $ARGUMENTS | $ARGUMENTS[0] | $ARGUMENTS[7] | $issue on $branch | $1 $HOME $ARGUMENTSX',
    );
    const view = plug();
    const resolved = await view.commands.resolve('/a $branch "{baseDir} x"');
    const text = resolved?.ok === true ? (resolved.content[0] as { text: string }).text : '';
    const folder = join(bench.root, 'a');
    expect(text).toBe(
      `In ${folder}: $branch "{baseDir} x" | $branch | $ARGUMENTS[7] | $branch on {baseDir} x | $1 $HOME $ARGUMENTSX`,
    );
    const activated = await callTool(registry.view({ session: 't' }), 'activate_skill', {
      name: 'a',
    });
    expect(activated.text).toContain(
      `In ${folder}: $ARGUMENTS | $ARGUMENTS[0] | $ARGUMENTS[7] | $issue on`,
    );
  });
});
