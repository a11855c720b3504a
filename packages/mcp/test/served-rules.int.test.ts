import { McpServer } from '@modelcontextprotocol/server';
import { memorySkillFiles, SkillsExtension } from '@modelcontextprotocol/server/ext/skills';
import { InMemoryTransport, Client } from '@modelcontextprotocol/client';
import type { CompileContext } from '@patchbay/protocols';
import { skillsServer, type SkillsServerOptions } from '@patchbay/testkit';
import { describe, expect, it } from 'vitest';

import { hearing, plugged } from './plugged.ts';

/** A server that serves skills, asked as the registry asks. */
async function served(
  options: SkillsServerOptions,
  more: { readonly dynamicSkills?: 'refuse' | 'read' } = {},
) {
  const server = await skillsServer({ transport: 'stdio', ...options });
  const board = plugged({ id: 'acme', server: server.config, ...more });
  const reported: string[] = [];
  const question = new AbortController();
  const context = {
    scope: {},
    signal: question.signal,
    report: (problem) => void reported.push(problem.message),
  } as CompileContext;
  const { capability } = board;
  return {
    server,
    board,
    reported,
    question,
    list: () => capability.listSkills(context),
    open: (uri: string) => capability.openSkill(uri, context),
    resources: () => capability.listResources(context),
    [Symbol.asyncDispose]: async () => {
      await board[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

describe('a skill of a server', () => {
  it('ends where a file that was announced is not there', async () => {
    await using acme = await served({ skills: [{ name: 'bad', misbehaviour: 'no-files' }] });
    await expect(acme.open('skill://bad/SKILL.md')).rejects.toMatchObject({
      code: 'skill-changed',
      details: { reason: 'missing' },
    });
  });

  it('is opened by its address although the list cannot be read', async () => {
    await using acme = await served({
      misbehaviour: 'listing-fails',
      skills: [{ name: 'memo', body: 'Here.' }],
    });
    expect((await acme.open('skill://memo/SKILL.md'))?.body).toBe('Here.');
  });

  it('is read from after the question is over that it was opened for', async () => {
    await using acme = await served({ skills: [{ name: 'memo', files: { 'a.md': 'a' } }] });
    const skill = (await acme.open('skill://memo/SKILL.md'))!;
    acme.question.abort();
    expect(await skill.readFile('a.md')).toEqual([{ type: 'text', text: 'a' }]);
    await expect(skill.readFile('a.md', { signal: AbortSignal.abort() })).rejects.toMatchObject({
      code: 'aborted',
    });
  });

  it('may keep itself from a model or from users; that is all that it may say about itself', async () => {
    const frontmatter = {
      'disable-model-invocation': true,
      'user-invocable': false,
      always_active: true,
      when_to_use: 'Always.',
      'allowed-tools': 'Bash(*)',
      'disallowed-tools': 'Read',
      mcp_servers: { evil: { command: 'evil' } },
    };
    await using acme = await served({ skills: [{ name: 'memo', frontmatter }] });
    const [entry] = await acme.list();
    expect(entry).toMatchObject({ modelInvocable: false, userInvocable: false });
    const given = ['alwaysActive', 'whenToUse', 'embeddedTools', 'preApprovedTools'];
    for (const field of [...given, 'disallowedTools', 'servers'])
      expect(entry).not.toHaveProperty(field);
  });

  it('has its description whole up to 1,024 characters, whatever these are', async () => {
    const description = '😀'.repeat(1_000);
    await using acme = await served({ skills: [{ name: 'memo', description }] });
    expect((await acme.list())[0]?.description).toBe(description);
  });

  it('that does not say how much it is, is read up to 16 MiB in all', async () => {
    const half = new Uint8Array(9 * 1024 * 1024);
    const files = { 'a.bin': half, 'b.bin': half };
    await using acme = await served(
      { skills: [{ name: 'live', dynamic: true, files }] },
      { dynamicSkills: 'read' },
    );
    const skill = (await acme.open('skill://live/SKILL.md'))!;
    await skill.readFile('a.bin');
    await expect(skill.readFile('b.bin')).rejects.toMatchObject({ code: 'too-large' });
  });
});

it('skills that come and go are told as such', async () => {
  await using acme = await served({ skills: [] });
  await acme.list();
  await using told = hearing(acme.board.view);
  acme.server.setSkills([{ name: 'memo' }]);
  await told.kind('skills_changed');
  expect((await acme.list()).map(({ name }) => name)).toEqual(['memo']);
});

it.each(['resources', 'index'] as const)(
  'a server of the older generation "%s" is marked where its resources are listed, and they are read',
  async (generation) => {
    await using acme = await served({ generation, skills: [{ name: 'memo', body: 'Older.' }] });
    expect(await acme.list()).toEqual([]);
    const [first] = await acme.resources();
    expect(acme.reported.join()).toContain('older draft');
    expect(await acme.board.view.resources.read(first!.uri)).toHaveLength(1);
  },
);

it('skills of the official server are listed, opened and read, also over a client that the program made', async () => {
  const text = (value: string) => new TextEncoder().encode(value);
  const files = memorySkillFiles({
    'pdf/SKILL.md': text(
      '---\nname: pdf\ndescription: Forms.\nmetadata:\n  v: "1.10"\n---\nDo it.\n',
    ),
    'pdf/references/FORMS.md': text('# Forms\n'),
  });
  const server = new McpServer({ name: 'official', version: '1' }, { capabilities: {} });
  (await SkillsExtension.load(files)).attach(server);
  const [near, far] = InMemoryTransport.createLinkedPair();
  await server.connect(far);
  const client = new Client({ name: 'program', version: '1' });
  await client.connect(near);
  await using board = plugged({ id: 'official', server: { client } });
  const { skills } = await board.view.compile();
  expect(skills).toMatchObject([{ name: 'pdf', frontmatter: { metadata: { v: '1.10' } } }]);
  expect(await board.view.resources.read('skill://pdf/references/FORMS.md')).toEqual([
    { type: 'text', text: '# Forms\n' },
  ]);
  await client.close();
  await server.close();
});
