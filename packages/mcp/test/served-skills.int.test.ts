import type { CompileContext, OpenSkill } from '@patchbay/protocols';
import { skillsServer, type SkillsServerOptions } from '@patchbay/testkit';
import { describe, expect, it } from 'vitest';

import { hearing, plugged } from './plugged.ts';

const TRANSPORTS = ['stdio', 'http'] as const;
const ERAS = ['legacy', 'modern'] as const;

/** A server that serves skills, behind pool, capability and registry. */
async function served(
  options: SkillsServerOptions,
  more: { readonly dynamicSkills?: 'refuse' | 'read'; readonly lazy?: boolean } = {},
) {
  const server = await skillsServer(options);
  const board = plugged({ id: 'acme', server: server.config, ...more });
  const context = {
    scope: {},
    signal: new AbortController().signal,
    report: (problem) => void reported.push(problem.message),
  } as CompileContext;
  const reported: string[] = [];
  const { capability } = board;
  return {
    server,
    board,
    capability,
    context,
    reported,
    list: () => capability.listSkills(context),
    open: (uri: string) => capability.openSkill(uri, context),
    [Symbol.asyncDispose]: async () => {
      await board[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

const PDF = {
  name: 'pdf',
  description: 'Fills forms.',
  frontmatter: { version: 2, tags: ['a', 1], metadata: { draft: 'true' } },
  body: 'Do it.\n',
  files: {
    'references/forms & more.md': 'All forms.',
    'odd#name?.txt': 'Odd.',
    'logo.png': new Uint8Array([0x89, 0x50, 0, 0xff]),
  },
};
const PDF_URI = 'skill://pdf/SKILL.md';

describe.each(TRANSPORTS)('skills of a server over %s', (transport) => {
  describe.each(ERAS)('of the %s era', (era) => {
    it('are listed and opened, and their files read; nothing is read before', async () => {
      await using acme = await served({ transport, era, skills: [PDF], pageSize: 1 });
      const [entry] = await acme.list();
      expect(acme.server.reads).toEqual([]);
      expect(acme.reported).toEqual([]);
      expect(entry).toMatchObject({
        uri: PDF_URI,
        name: 'pdf',
        description: 'Fills forms.',
        origin: 'mcp:acme',
        precedence: 0,
        frontmatter: { version: '2', tags: ['a', '1'], metadata: { draft: 'true' } },
        served: { server: 'acme', hash: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) },
      });
      const skill = await acme.open(PDF_URI);
      expect(acme.server.reads).toEqual([PDF_URI]);
      expect(skill).toMatchObject({ entry, body: 'Do it.\n' });
      expect(skill!.files).toEqual([
        { path: 'references/forms & more.md', size: 10 },
        { path: 'odd#name?.txt', size: 4 },
        { path: 'logo.png', size: 4 },
      ]);
      const text = (path: string) => skill!.readFile(path);
      expect(await text('references/forms & more.md')).toEqual([
        { type: 'text', text: 'All forms.' },
      ]);
      expect(await text('references/forms%20%26%20more.md')).toMatchObject([
        { text: 'All forms.' },
      ]);
      expect(await text('odd#name?.txt')).toMatchObject([{ text: 'Odd.' }]);
      expect(await text('logo.png')).toEqual([
        expect.objectContaining({ type: 'file', data: 'iVAA/w==', name: 'logo.png' }),
      ]);
      expect(acme.reported).toEqual([]);
    });
  });
});

const OTHERS = { name: 'other', body: 'Other.' };
const faulty = (misbehaviour: NonNullable<Parameters<typeof skillsServer>[0]>['skills']) =>
  served({ transport: 'stdio', skills: misbehaviour ?? [] });

describe('an entry that breaks the rules is left out, and the others stay', () => {
  it.each([
    ['no-resources', /bad.* is left out/],
    ['odd-resources', /bad.* is left out/],
    ['no-manifest', /bad.* is left out/],
    ['listed-twice', /bad.* is left out/],
    ['outside-folder', /bad.* is left out/],
    ['traversal', /bad.* is left out/],
    ['other-scheme', /bad.* is left out/],
    ['wrong-name', /bad.* is left out/],
    ['no-description', /bad.* is left out/],
    ['odd-uri', /bad.* is left out/],
    ['repeated', /bad.* is left out/],
    ['odd-digest', /bad.* is left out/],
    ['no-size', /older draft of the Skills extension/],
    ['too-many-files', /more than 512/],
    ['too-large', /more than 16777216/],
  ] as const)('%s', async (misbehaviour, told) => {
    await using acme = await faulty([{ name: 'bad', misbehaviour }, OTHERS]);
    const names = (await acme.list()).map(({ name }) => name);
    expect(acme.reported.join('\n')).toMatch(told);
    // An address outside the folder in one entry is no reason to distrust another.
    expect(names).toEqual(misbehaviour === 'traversal' ? names : ['other']);
    expect(acme.server.reads).toEqual([]);
  });
});

describe('a skill that is not what was announced is not used', () => {
  it.each([
    ['wrong-digest', 'digest'],
    ['wrong-size', 'size'],
    ['other-frontmatter', 'frontmatter'],
    ['broken-frontmatter', 'frontmatter'],
    ['binary-manifest', 'frontmatter'],
    ['huge-answer', 'size'],
  ] as const)('%s', async (misbehaviour, reason) => {
    await using acme = await faulty([{ name: 'bad', misbehaviour, files: { 'a.md': 'a' } }]);
    await acme.list();
    await expect(acme.open('skill://bad/SKILL.md')).rejects.toMatchObject({
      code: 'skill-changed',
      details: { reason, announced: true },
    });
    expect(acme.server.reads.every((uri) => uri.endsWith('/SKILL.md'))).toBe(true);
  });

  it.each(['other-file', 'no-files'] as const)('%s', async (misbehaviour) => {
    await using acme = await faulty([{ name: 'bad', misbehaviour }]);
    await expect(acme.open('skill://bad/SKILL.md')).rejects.toThrow();
  });

  it('says that it changed where it did, tells so, and then has the new one', async () => {
    await using acme = await faulty([{ name: 'memo', body: 'One.' }]);
    await using told = hearing(acme.board.view);
    const [before] = await acme.list();
    acme.server.setSkills([{ name: 'memo', body: 'Two.' }]);
    await expect(acme.open(before!.uri)).rejects.toMatchObject({
      code: 'skill-changed',
      message: expect.stringContaining('has changed on its server'),
      details: { announced: false },
    });
    await told.kind('skills_changed');
    const [after] = await acme.list();
    expect(after!.served!.hash).not.toBe(before!.served!.hash);
    expect((await acme.open(after!.uri))?.body).toBe('Two.');
  });

  it('a file that fails ends the skill: no further file of it is read', async () => {
    const files = { 'a.md': 'a', 'b.md': 'b' };
    await using acme = await faulty([{ name: 'bad', misbehaviour: 'wrong-file-digest', files }]);
    const skill = (await acme.open('skill://bad/SKILL.md'))!;
    await expect(skill.readFile('a.md')).rejects.toMatchObject({ code: 'skill-changed' });
    const before = acme.server.reads.length;
    await expect(skill.readFile('b.md')).rejects.toMatchObject({ code: 'skill-changed' });
    expect(acme.server.reads.length).toBe(before);
  });

  it('each read is verified, not only the first', async () => {
    await using acme = await faulty([{ name: 'bad', misbehaviour: 'changes', body: 'Text.' }]);
    expect((await acme.open('skill://bad/SKILL.md'))?.body).toBe('Text.');
    await expect(acme.open('skill://bad/SKILL.md')).rejects.toMatchObject({
      code: 'skill-changed',
    });
  });
});

describe('only what is listed is read', () => {
  const reading = async (skill: OpenSkill | undefined, path: string) =>
    skill!.readFile(path).then(
      () => 'read',
      (error: { readonly code: string }) => error.code,
    );

  it.each([
    'run.sh',
    '../other/SKILL.md',
    '..%2fother%2fSKILL.md',
    'skill://other/SKILL.md',
    'file:///etc/hostname',
    '/etc/hostname',
    'SKILL.md/../run.sh',
  ])('%s', async (path) => {
    await using acme = await faulty([{ name: 'memo', misbehaviour: 'unlisted-file' }, OTHERS]);
    const skill = await acme.open('skill://memo/SKILL.md');
    expect(await reading(skill, path)).toBe('not-found');
    expect(acme.server.reads).toEqual(['skill://memo/SKILL.md']);
    // A model may mistake a name: that says nothing about the server.
    expect(await reading(skill, 'SKILL.md')).toBe('read');
  });

  it('a nested SKILL.md is text of the outer skill, and a skill of its own only by its own entry', async () => {
    const inner = { name: 'inner', frontmatter: { 'allowed-tools': 'Bash(*)' }, body: 'Inner.' };
    await using acme = await faulty([{ name: 'outer', nested: [inner] }]);
    const skill = (await acme.open('skill://outer/SKILL.md'))!;
    const [part] = await skill.readFile('inner/SKILL.md');
    expect(part).toMatchObject({ type: 'text', text: expect.stringContaining('Bash(*)') });
  });

  it('dynamic skills are left out, and said; or read unverified where that was chosen', async () => {
    const skills = [{ name: 'live', dynamic: true, files: { 'a.md': 'a' } }];
    await using refused = await served({ transport: 'stdio', skills });
    expect(await refused.list()).toEqual([]);
    expect(refused.reported.join()).toContain('dynamicSkills');
    expect(await refused.open('skill://live/SKILL.md')).toBeUndefined();
    await using chosen = await served({ transport: 'stdio', skills }, { dynamicSkills: 'read' });
    const [entry] = await chosen.list();
    expect(entry!.served).toEqual({ server: 'acme' });
    const skill = (await chosen.open(entry!.uri))!;
    expect(skill.files).toBe('dynamic');
    expect(await skill.readFile('a.md')).toEqual([{ type: 'text', text: 'a' }]);
  });
});

describe('which skills there are', () => {
  it('a skill that is in no list is opened by its address; what is none there is none here', async () => {
    await using acme = await faulty([{ name: 'hidden', listed: false, body: 'Here.' }, OTHERS]);
    expect((await acme.list()).map(({ name }) => name)).toEqual(['other']);
    const { resources } = acme.board.view;
    const uri = 'skill://hidden/SKILL.md';
    expect(await resources.exists(uri)).toBe(true);
    expect(await resources.read(uri)).toMatchObject([{ uri, text: 'Here.' }]);
    expect(await acme.open('skill://nothing/SKILL.md')).toBeUndefined();
    await expect(resources.read('skill://nothing/SKILL.md')).rejects.toMatchObject({
      code: 'not-found',
    });
    await expect(resources.read('ftp://hidden/SKILL.md')).rejects.toMatchObject({
      code: 'unknown-scheme',
    });
  });

  it('an answer about another skill is refused', async () => {
    await using acme = await faulty([
      { name: 'asked', listed: false, misbehaviour: 'other-on-get' },
    ]);
    await expect(acme.open('skill://asked/SKILL.md')).rejects.toMatchObject({
      code: 'skill-changed',
    });
    expect(acme.server.reads).toEqual([]);
  });

  it('a longer address is routed to its skill, and to the files of it', async () => {
    await using acme = await faulty([
      { ...PDF, folder: 'skill://acme/office/pdf', files: { 'docs/a b.md': 'AB' } },
    ]);
    const { resources } = acme.board.view;
    const text = async (uri: string) =>
      (await resources.read(uri)).map((p) => 'text' in p && p.text);
    expect(await text('skill://acme/office/pdf/SKILL.md')).toEqual(['Do it.\n']);
    expect(await text('skill://acme/office/pdf/docs/a%20b.md')).toEqual(['AB']);
    expect(await text('skill://pdf')).toEqual(['Do it.\n']);
  });

  it('is asked only where the server says that it serves any', async () => {
    await using acme = await served({
      transport: 'stdio',
      skills: [OTHERS],
      misbehaviour: 'undeclared',
    });
    expect(await acme.list()).toEqual([]);
    expect(await acme.open('skill://other/SKILL.md')).toBeUndefined();
    expect(acme.server.requests).not.toContain('skills/list');
  });

  it.each(['draft', 'resources', 'index'] as const)(
    'a server of the generation "%s" works, and none of its skills counts as one',
    async (generation) => {
      await using acme = await served({ transport: 'stdio', generation, skills: [OTHERS] });
      expect(await acme.list()).toEqual([]);
      if (generation === 'draft') expect(acme.reported.join()).toContain('older draft');
      const listed = await acme.board.view.resources.list();
      expect(listed.length).toBeGreaterThan(0);
    },
  );

  it('an endless list is cut, and said', async () => {
    await using acme = await served({ transport: 'stdio', misbehaviour: 'endless-listing' });
    const entries = await acme.list();
    expect(entries.length).toBe(10_000);
    expect(acme.reported.join()).toContain('cut');
  });

  it('a list that fails is a problem of this server, and costs none of its tools', async () => {
    await using acme = await served({
      transport: 'stdio',
      misbehaviour: 'listing-fails',
      tools: [{ name: 'echo' }],
    });
    const { tools, problems } = await acme.board.view.compile();
    expect(tools.map(({ id }) => id.name)).toEqual(['echo']);
    expect(problems.map(({ message }) => message).join()).toContain('skills/list');
  });

  it('a server that is not there has no skills, and is said once', async () => {
    await using board = plugged({ id: 'gone', server: { command: 'no-such-program-here' } });
    const { problems } = await board.view.compile();
    expect(problems.map(({ code }) => code)).toEqual(['connect-failed']);
  });

  it('a list is kept until the server says that its resources changed', async () => {
    await using acme = await faulty([OTHERS]);
    const asked = () => acme.server.requests.filter((method) => method === 'skills/list').length;
    await acme.list();
    await acme.list();
    expect(asked()).toBe(1);
    await using told = hearing(acme.board.view);
    acme.server.setSkills([OTHERS, { name: 'more' }]);
    await told.kind('resources_changed');
    expect((await acme.list()).map(({ name }) => name)).toEqual(['other', 'more']);
    expect(asked()).toBe(2);
  });

  it('a lazy server is not asked before it is used', async () => {
    await using acme = await served({ transport: 'stdio', skills: [OTHERS] }, { lazy: true });
    expect(await acme.list()).toEqual([]);
    expect(acme.board.pool.inspect()).toEqual([]);
    expect((await acme.open('skill://other/SKILL.md'))?.body).toBe('Other.');
    expect(await acme.list()).toHaveLength(1);
  });
});
