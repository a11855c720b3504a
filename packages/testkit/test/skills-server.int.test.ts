import { readFileSync } from 'node:fs';

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { describe, expect, it } from 'vitest';

import {
  authorizationServer,
  skillsServer,
  type ServedSkill,
  type SkillMisbehaviour,
  type SkillsServer,
  type SkillsServerOptions,
} from '../src/index.ts';
import { SKILL_FAULTS } from '../src/skill-misbehaviour.ts';

/** The official client, connected. */
async function connected({ config }: SkillsServer) {
  const client = new Client(
    { name: 'test', version: '1.0.0' },
    { versionNegotiation: { mode: 'auto' }, enforceStrictCapabilities: true },
  );
  await client.connect(
    'url' in config
      ? new StreamableHTTPClientTransport(new URL(config.url))
      : new StdioClientTransport({ command: config.command, args: [...(config.args ?? [])] }),
  );
  const skills = new SkillsClient(client, { skipInvalid: true });
  return { client, skills, [Symbol.asyncDispose]: () => client.close() };
}

const HTTP = { transport: 'http', era: 'modern' } as const;

const KINDS = [
  { transport: 'stdio', era: 'legacy' },
  { transport: 'stdio', era: 'modern' },
  { transport: 'http', era: 'legacy' },
  HTTP,
] as const;

const PDF: ServedSkill = {
  name: 'pdf',
  description: 'Fill in "forms": all of them\n# at once.',
  frontmatter: {
    'allowed-tools': 'Bash(rm:*)',
    metadata: { version: '1.10', since: '2026-01-01' },
    tags: ['a', 1, true, null, { b: 2.5 }],
  },
  body: 'Read [the guide](references/FORMS.md).\n',
  files: {
    'references/FORMS.md': '# Forms\n',
    'Q&A 100%.txt': 'ask',
    'assets/logo.bin': new Uint8Array([0, 255, 10, 13, 254]),
  },
};

describe.each(KINDS)('a skills server, $era over $transport', (kind) => {
  it('serves what the official client finds in order', async () => {
    await using server = await skillsServer({
      ...kind,
      skills: [PDF, { name: 'notes', folder: 'skill://group/of/notes' }],
      tools: [{ name: 'fill' }],
      instructions: 'See skill://group/of/notes/SKILL.md.',
    });
    await using connection = await connected(server);
    const { client, skills } = connection;
    const listing = await skills.list();
    expect(listing.invalid).toEqual([]);
    expect(listing.ttlMs).toBe(kind.era === 'modern' ? 0 : undefined);
    expect(listing.skills.map(({ uri }) => uri)).toEqual([
      'skill://pdf/SKILL.md',
      'skill://group/of/notes/SKILL.md',
    ]);
    const pdf = listing.skills[0]!;
    expect(pdf.frontmatter).toMatchObject(PDF.frontmatter!);
    expect(server.reads).toEqual([]);
    const manifest = await skills.read(pdf);
    expect(manifest).toMatchObject({ verified: true, body: PDF.body });
    expect((await skills.read(pdf, 'references/FORMS.md')).text).toBe('# Forms\n');
    expect((await skills.read(pdf, 'Q&A 100%25.txt')).text).toBe('ask');
    expect([...(await skills.read(pdf, 'assets/logo.bin')).bytes]).toEqual([0, 255, 10, 13, 254]);
    expect(server.reads).toEqual([
      'skill://pdf/SKILL.md',
      'skill://pdf/references/FORMS.md',
      'skill://pdf/Q%26A%20100%25.txt',
      'skill://pdf/assets/logo.bin',
    ]);
    expect((await skills.get(pdf.uri)).skill).toEqual(pdf);
    await expect(skills.get('skill://none/SKILL.md')).rejects.toMatchObject({ code: -32602 });
    await expect(client.readResource({ uri: 'skill://pdf/none.md' })).rejects.toMatchObject({
      code: -32602,
    });
    expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(
      listing.skills.map(({ uri }) => uri),
    );
    expect((await client.listResourceTemplates()).resourceTemplates).toHaveLength(1);
    expect((await client.listTools()).tools).toHaveLength(1);
    expect(client.getInstructions()).toContain('notes');
  });

  it('has unlisted, nested and dynamic skills, pages and folders', async () => {
    await using server = await skillsServer({
      ...kind,
      directoryRead: true,
      pageSize: 1,
      skills: [
        { name: 'outer', nested: [{ name: 'inner', files: { 'a.txt': 'a' } }], files: { b: 'b' } },
        { name: 'hidden', listed: false },
        { name: 'made', dynamic: true },
      ],
    });
    await using connection = await connected(server);
    const { client, skills } = connection;
    const { skills: listed } = await skills.list();
    expect(listed.map(({ frontmatter }) => frontmatter.name)).toEqual(['outer', 'inner', 'made']);
    expect(server.requests.filter((method) => method === 'skills/list')).toHaveLength(3);
    const [outer, inner, made] = listed;
    expect(outer?.resources).toMatchObject([
      { uri: 'skill://outer/SKILL.md' },
      { uri: 'skill://outer/b' },
      { uri: 'skill://outer/inner/SKILL.md' },
      { uri: 'skill://outer/inner/a.txt' },
    ]);
    expect((await skills.read(outer!, 'inner/a.txt')).text).toBe('a');
    expect((await skills.read(inner!)).verified).toBe(true);
    expect((await skills.read(made!)).verified).toBe(false);
    const { skill: hidden } = await skills.get('skill://hidden/SKILL.md');
    expect((await skills.read(hidden)).verified).toBe(true);
    const { resources } = await skills.readDirectory('skill://outer');
    expect(resources.map(({ name, mimeType }) => [name, mimeType])).toEqual([
      ['SKILL.md', 'text/markdown'],
      ['b', 'text/plain'],
      ['inner', 'inode/directory'],
    ]);
    await expect(skills.readDirectory('skill://outer/b')).rejects.toMatchObject({ code: -32602 });
    expect((await client.listResources()).resources).toHaveLength(3);
  });
});

describe('a skill that misbehaves', () => {
  const ENTRY: Readonly<Partial<Record<SkillMisbehaviour, RegExp>>> = {
    'no-resources': /resources/,
    'odd-resources': /resources/,
    'no-manifest': /must include/,
    'listed-twice': /more than once/,
    'outside-folder': /outside/,
    traversal: /outside/,
    'other-scheme': /outside/,
    'wrong-name': /last path segment/,
    'no-description': /description/,
    'odd-uri': /SKILL\.md/,
    repeated: /more than once/,
    'odd-digest': /digest/,
    'no-size': /resources/,
  };
  const READ: Readonly<Partial<Record<SkillMisbehaviour, object>>> = {
    'wrong-digest': { reason: 'digest' },
    'wrong-size': { reason: 'size' },
    'other-frontmatter': { reason: 'frontmatter' },
    'broken-frontmatter': { reason: 'frontmatter' },
    'binary-manifest': { reason: 'frontmatter' },
    'other-file': { code: 'INVALID_RESULT' },
    'no-files': { code: -32602 },
    'huge-answer': { reason: 'size' },
  };
  /** What nobody but the host can notice, or what shows later. */
  const OTHERS: readonly SkillMisbehaviour[] = [
    'too-many-files',
    'too-large',
    'other-on-get',
    'unknown-on-get',
    'wrong-file-digest',
    'changes',
    'unlisted-file',
    'silent',
  ];
  it('has a test for each of its kinds, and is named in the README', () => {
    const kinds = Object.keys(SKILL_FAULTS).toSorted();
    expect([...Object.keys(ENTRY), ...Object.keys(READ), ...OTHERS].toSorted()).toEqual(kinds);
    const page = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
    expect(kinds.filter((kind) => !page.includes(`\`${kind}\``))).toEqual([]);
  });

  const serving = async (misbehaviour: SkillMisbehaviour) => {
    const server = await skillsServer({
      ...HTTP,
      directoryRead: true,
      skills: [
        { name: 'good' },
        { name: 'bad', folder: 'skill://x/bad', files: { 'a.txt': 'a' }, misbehaviour },
      ],
    });
    const connection = await connected(server);
    const listing = await connection.skills.list();
    const close = async () => {
      await connection.client.close();
      await server.close();
    };
    return { server, ...connection, ...listing, [Symbol.asyncDispose]: close };
  };

  it.each(Object.entries(ENTRY))('shows it in its entry: %s', async (misbehaviour, why) => {
    await using given = await serving(misbehaviour as SkillMisbehaviour);
    const { skills, invalid } = given;
    expect([...new Set(invalid.map(({ reason }) => why.test(reason)))]).toEqual([true]);
    expect(skills.map(({ frontmatter }) => frontmatter.name)).toEqual(['good']);
    expect((await given.client.listResources()).resources).toHaveLength(2);
    expect(given.server.reads).toEqual([]);
  });

  it.each(Object.entries(READ))('shows it when it is read: %s', async (misbehaviour, error) => {
    await using given = await serving(misbehaviour as SkillMisbehaviour);
    const [, bad] = given.skills;
    expect(given.skills).toHaveLength(2);
    await expect(new SkillsClient(given.client).read(bad!)).rejects.toMatchObject(error);
    expect(given.server.reads).toEqual(['skill://x/bad/SKILL.md']);
  });

  it.each(OTHERS)('is in the list all the same: %s', async (misbehaviour) => {
    await using given = await serving(misbehaviour);
    expect(given.invalid).toEqual([]);
    expect(given.skills).toHaveLength(2);
  });

  it('lists more, or larger files than anybody must accept', async () => {
    const sizes = async (misbehaviour: SkillMisbehaviour) => {
      await using given = await serving(misbehaviour);
      const resources = given.skills[1]?.resources;
      const files = typeof resources === 'string' ? [] : (resources ?? []);
      return [files.length, files.reduce((sum, { size }) => sum + size, 0)] as const;
    };
    expect((await sizes('too-many-files'))[0]).toBeGreaterThan(512);
    expect((await sizes('too-large'))[1]).toBeGreaterThan(16_777_216);
  });

  it('is another one, or none, for who asks for it alone', async () => {
    for (const misbehaviour of ['other-on-get', 'unknown-on-get'] as const) {
      await using given = await serving(misbehaviour);
      const get = new SkillsClient(given.client).get('skill://x/bad/SKILL.md');
      await expect(get).rejects.toThrow(
        misbehaviour === 'other-on-get' ? 'returned skill://x/bad-other' : 'no such skill',
      );
    }
  });

  it('has files that are not what the entry says', async () => {
    await using given = await serving('wrong-file-digest');
    const client = new SkillsClient(given.client);
    const [, bad] = given.skills;
    expect((await client.read(bad!)).verified).toBe(true);
    await expect(client.read(bad!, 'a.txt')).rejects.toMatchObject({ reason: 'digest' });
  });

  it('changes with every second read', async () => {
    await using given = await serving('changes');
    const client = new SkillsClient(given.client);
    const [, bad] = given.skills;
    expect((await client.read(bad!)).verified).toBe(true);
    await expect(client.read(bad!)).rejects.toMatchObject({ reason: 'digest' });
    expect((await client.read(bad!)).verified).toBe(true);
  });

  it('shows a file in its folder that is not in its entry', async () => {
    await using given = await serving('unlisted-file');
    const client = new SkillsClient(given.client);
    const { resources } = await client.readDirectory('skill://x/bad');
    expect(resources.map(({ name }) => name)).toContain('run.sh');
    await expect(client.read(given.skills[1]!, 'run.sh')).rejects.toMatchObject({
      reason: 'unlisted',
    });
    const { contents } = await given.client.readResource({ uri: 'skill://x/bad/run.sh' });
    expect(contents).toMatchObject([{ text: 'echo unlisted\n' }]);
  });

  it('does not answer a read', async () => {
    await using given = await serving('silent');
    const controller = new AbortController();
    const reading = new SkillsClient(given.client).read(given.skills[1]!, undefined, {
      signal: controller.signal,
    });
    reading.catch(() => undefined);
    await expect.poll(() => given.server.reads).toHaveLength(1);
    controller.abort();
    await expect(reading).rejects.toThrow();
  });
});

describe('a skills server that misbehaves', () => {
  const listing = async (options: SkillsServerOptions) => {
    await using server = await skillsServer({ ...HTTP, skills: [{ name: 'pdf' }], ...options });
    await using connection = await connected(server);
    const { client, skills } = connection;
    const outcome = await skills.list().catch((error: unknown) => ({ error }));
    const { resources } = await client.listResources();
    const read = async (uri: string) => (await client.readResource({ uri })).contents;
    const contents = await Promise.all(resources.map(({ uri }) => read(uri)));
    return { outcome, supported: skills.supported, resources, contents: contents.flat() };
  };

  it('fails to list, never ends, or says nothing of how long that is good for', async () => {
    const failing = await listing({ misbehaviour: 'listing-fails' });
    expect(failing.outcome).toMatchObject({ error: { code: -32603 } });
    const endless = await listing({ misbehaviour: 'endless-listing' });
    expect(endless.outcome).toMatchObject({ error: { code: 'LIST_PAGINATION_EXCEEDED' } });
    const hintless = await listing({ misbehaviour: 'no-cache-hints' });
    expect(hintless.outcome).toMatchObject({ error: { code: 'INVALID_RESULT' } });
  });

  it('does not declare what it can do', async () => {
    await using server = await skillsServer({ ...HTTP, misbehaviour: 'undeclared' });
    await using connection = await connected(server);
    expect(connection.skills.supported).toBe(false);
  });

  it('is of an early draft', async () => {
    const { outcome, supported } = await listing({ generation: 'draft' });
    expect(supported).toBe(true);
    expect(outcome).toMatchObject({ skills: [], invalid: [{ uri: 'skill://pdf/SKILL.md' }] });
  });

  it('is older than the extension: it has resources', async () => {
    await using server = await skillsServer({
      ...HTTP,
      generation: 'resources',
      skills: [PDF, { name: 'hidden', listed: false }],
    });
    await using connection = await connected(server);
    const { client, skills } = connection;
    expect(skills.supported).toBe(false);
    const { resources } = await client.listResources();
    expect(resources.map(({ uri }) => uri)).toEqual([
      'skill://pdf/SKILL.md',
      'skill://pdf/_manifest',
    ]);
    const { contents } = await client.readResource({ uri: 'skill://pdf/_manifest' });
    const manifest = JSON.parse('text' in contents[0]! ? contents[0].text : '') as {
      files: { path: string; size: number; hash: string }[];
    };
    expect(manifest.files.map(({ path, size }) => [path, size])).toEqual([
      ['SKILL.md', expect.any(Number)],
      ['references/FORMS.md', 8],
      ['Q&A 100%.txt', 3],
      ['assets/logo.bin', 5],
    ]);
    expect(server.reads).toEqual(['skill://pdf/_manifest']);
  });

  it('is older than the extension: it has an index', async () => {
    await using server = await skillsServer({ ...HTTP, generation: 'index', skills: [PDF] });
    await using connection = await connected(server);
    const { client } = connection;
    const { contents } = await client.readResource({ uri: 'skill://index.json' });
    const text = 'text' in contents[0]! ? contents[0].text : '';
    expect(JSON.parse(text)).toMatchObject({
      skills: [{ name: 'pdf', type: 'skill-md', url: 'skill://pdf/SKILL.md' }],
    });
    const [manifest] = (await client.readResource({ uri: 'skill://pdf/SKILL.md' })).contents;
    expect(manifest).toMatchObject({ mimeType: 'text/markdown' });
  });
});

it.each(['stdio', 'http'] as const)('says over %s which skills it has now', async (transport) => {
  await using server = await skillsServer({ transport, skills: [{ name: 'a' }] });
  await using connection = await connected(server);
  const { client, skills } = connection;
  let heard = 0;
  const told = new Promise<void>((resolve) => {
    client.setNotificationHandler('notifications/resources/list_changed', () => {
      heard++;
      resolve();
    });
  });
  const [before] = (await skills.list()).skills;
  server.setSkills([{ name: 'a', body: 'Other text.' }]);
  await expect(skills.read(before!)).rejects.toMatchObject({ reason: 'size' });
  expect(heard).toBe(0);
  server.setSkills([{ name: 'a' }, { name: 'b' }]);
  await told;
  expect((await skills.list()).skills).toHaveLength(2);
});

it('is guarded like any scripted server', async () => {
  await using authorization = await authorizationServer();
  await using server = await skillsServer({ ...HTTP, protection: { by: authorization } });
  await expect(connected(server)).rejects.toThrow();
  expect(server.refusals).toEqual([401]);
});

it('wants a folder that ends with the name of its skill', async () => {
  const skills = [{ name: 'a', folder: 'skill://b' }];
  await expect(skillsServer({ skills })).rejects.toThrow('must end with its name');
});
