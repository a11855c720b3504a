import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import type { StdioServerConfig } from '@patchbay/protocols';
import { SkillManagerCapability } from '@patchbay/skills';
import { localSkills } from '@patchbay/skills/node';
import { scriptedServer } from '@patchbay/testkit';
import { describe, expect, it } from 'vitest';

import { benchFolder } from './bench-folder.ts';

const everything = (): StdioServerConfig => {
  const found = createRequire(import.meta.url).resolve(
    '@modelcontextprotocol/server-everything/package.json',
  );
  return { command: process.execPath, args: [join(dirname(found), 'dist/index.js'), 'stdio'] };
};
const pictures = (): StdioServerConfig => ({
  command: process.execPath,
  args: [fileURLToPath(new URL('fixtures/picture-server.mjs', import.meta.url))],
});

/** Commands of a folder, skills, and whatever servers are plugged in. */
async function board(servers: Readonly<Record<string, StdioServerConfig>> = {}) {
  const bench = await benchFolder();
  const connections = new ConnectionPool();
  for (const [id, server] of Object.entries(servers))
    bench.registry.register(new McpServerCapability({ id, server, connections }));
  return {
    ...bench,
    connections,
    [Symbol.asyncDispose]: async () => {
      await bench[Symbol.asyncDispose]();
      await connections.close();
    },
  };
}

describe('one list of slash commands', () => {
  it('has skills, command files and prompts, each with what it says of itself', async () => {
    await using server = await scriptedServer({
      prompts: [
        {
          name: 'deploy to',
          description: 'Deploys.',
          text: 'Deploy',
          arguments: [{ name: 'stage', required: true }, { name: 'note' }],
        },
        { name: 'review', text: 'The server reviews' },
      ],
    });
    await using bench = await board({ ops: server.config as StdioServerConfig });
    await bench.write(
      'skills/summary/SKILL.md',
      '---\nname: summary\ndescription: Sums up.\nargument-hint: [length]\narguments: length\n---\nSum up in $length.',
    );
    await bench.write(
      'skills/quiet/SKILL.md',
      '---\nname: quiet\ndescription: For models.\nuser-invocable: false\n---\nx',
    );
    await bench.write('.claude/commands/review.md', '---\nargument-hint: <file>\n---\nReview $0.');
    await bench.write('.claude/commands/git/commit.md', '# Commit\n\nCommits what is staged.');
    bench.registry.register(localSkills({ id: 'local', folder: join(bench.root, 'skills') }));
    bench.registry.register(new SkillManagerCapability());
    const folder = join(bench.root, '.claude/commands');
    bench.register({ id: 'project', folder });
    const list = await bench.commands.list();
    expect(list.map(({ name, kind, source, hint }) => [name, kind, source, hint])).toEqual([
      ['deploy_to', 'prompt', 'ops', '<stage> [note]'],
      ['git:commit', 'file', 'project', undefined],
      ['ops:review', 'prompt', 'ops', ''],
      ['review', 'file', 'project', '<file>'],
      ['summary', 'skill', 'skills', '[length]'],
    ]);
    expect(list.map(({ description }) => description)).toEqual([
      'Deploys.',
      'Commits what is staged.',
      '',
      'Review $0.',
      'Sums up.',
    ]);
    expect(list.map(({ origin }) => origin)).toEqual([
      'mcp:ops',
      join(folder, 'git/commit.md'),
      'mcp:ops',
      join(folder, 'review.md'),
      expect.stringContaining('summary'),
    ]);
    expect(await bench.text('/review a.ts')).toBe('Review a.ts.');
    expect(await bench.text('/project:review a.ts')).toBe('Review a.ts.');
    expect(await bench.text('/ops:review')).toBe('The server reviews {}');
    expect(await bench.text('/deploy_to live note="at night"')).toBe(
      'Deploy {"stage":"live","note":"at night"}',
    );
    expect(list.map((entry) => (entry.arguments ?? []).map(({ name }) => name))).toEqual([
      ['stage', 'note'],
      [],
      [],
      [],
      ['length'],
    ]);
    expect(await bench.text('/summary ten')).toContain('Sum up in ten.');
    expect(bench.problems).toMatchObject([{ source: 'ops', code: 'command-shadowed' }]);
    expect(await bench.commands.complete('/')).toEqual(list.map(({ name }) => `/${name}`));
  });

  it('completes the arguments of prompts as the server does, by what was typed before', async () => {
    await using bench = await board({ all: everything() });
    const { commands } = bench;
    expect(await commands.complete('/completable')).toEqual(['/completable-prompt']);
    expect(await commands.complete('/completable-prompt ')).toEqual(
      ['Engineering', 'Sales', 'Marketing', 'Support'].map((one) => `/completable-prompt ${one}`),
    );
    expect(await commands.complete('/completable-prompt Sa')).toEqual([
      '/completable-prompt Sales',
    ]);
    expect(await commands.complete('/completable-prompt Sales ')).toEqual(
      ['David', 'Eve', 'Frank'].map((one) => `/completable-prompt Sales ${one}`),
    );
    expect(await commands.complete('/completable-prompt name=J department=Sup')).toEqual([
      '/completable-prompt name=J department=Support',
    ]);
    expect(await commands.complete('/completable-prompt department=Support name=J')).toEqual([
      '/completable-prompt department=Support name=John',
    ]);
    expect(await commands.complete('/args-prompt B')).toEqual([]);
    expect(await bench.text('/completable-prompt Sales Eve')).toBe(
      'Please promote Eve to the head of the Sales team.',
    );
  });

  it('gives what a prompt consists of: images and resources too', async () => {
    await using bench = await board({ all: everything(), pictures: pictures() });
    expect(await bench.commands.resolve('/resource-prompt Text 1')).toMatchObject({
      ok: true,
      source: 'all',
      content: [
        { type: 'text', text: expect.stringContaining('Text resource with id: 1') },
        { type: 'resource', uri: 'demo://resource/dynamic/text/1', text: expect.any(String) },
      ],
    });
    expect(await bench.commands.resolve('/look')).toMatchObject({
      ok: true,
      messages: [{ role: 'user' }, { role: 'user' }, { role: 'user' }, { role: 'user' }],
      content: [
        { type: 'text', text: 'Look at this:' },
        { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' },
        { type: 'resource', uri: 'memo://a', mimeType: 'text/plain', text: 'A memo.' },
        { type: 'resource_link', uri: 'memo://b', name: 'b' },
      ],
    });
  });

  it('answers for the sources that work when a server does not', async () => {
    await using bench = await board({ broken: { command: join(import.meta.dirname, 'none') } });
    await bench.write('review.md', 'Review.');
    bench.register({});
    expect((await bench.commands.list()).map(({ name }) => name)).toEqual(['review']);
    expect(bench.problems).toMatchObject([{ source: 'broken' }]);
    expect(await bench.commands.resolve('/deploy')).toMatchObject({
      ok: false,
      code: 'command-unknown',
      message: expect.stringContaining('"broken"'),
    });
  });
});
