import {
  PatchbayError,
  type Capability,
  type ResourceProvider,
  type SkillEntry,
  type SkillResource,
} from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { describe, expect, it } from 'vitest';

/** Skills in memory; counts what is opened. */
function shelf(id: string, skills: Readonly<Record<string, string>>, precedence = 0) {
  const entries = Object.keys(skills).map((name): SkillEntry => ({
    uri: `skill://${name}/SKILL.md`,
    name,
    description: name,
    origin: id,
    precedence,
  }));
  const opened: string[] = [];
  const capability: Capability & SkillResource & { opened: readonly string[] } = {
    id,
    opened,
    listSkills: async () => entries,
    skillExists: async (uri) => entries.some((entry) => entry.uri === uri),
    openSkill: async (uri) => {
      opened.push(uri);
      const entry = entries.find((e) => e.uri === uri);
      if (entry === undefined) return undefined;
      return {
        entry,
        body: skills[entry.name]!,
        digest: 'sha256:0',
        files: [],
        readFile: async (path) => {
          if (path !== 'notes.md')
            throw new PatchbayError('not-found', `No ${path} in ${entry.name}.`);
          return [{ type: 'text', text: 'notes' }];
        },
      };
    },
  };
  return capability;
}

function provider(
  id: string,
  uris: Readonly<Record<string, string>>,
  uriSchemes?: readonly string[],
) {
  const capability: Capability & ResourceProvider = {
    id,
    ...(uriSchemes === undefined ? {} : { uriSchemes }),
    listResources: async () => Object.keys(uris).map((uri) => ({ uri, name: uri })),
    resourceExists: async (uri) => uri in uris,
    readResource: async (uri) => [{ type: 'text', text: uris[uri]! }],
  };
  return capability;
}

describe('resources of a view', () => {
  it('are skills and resources of every source in one list', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(shelf('mine', { b: 'B' }), { session: 's' });
    registry.register(provider('git', { 'mcp://git/a': 'A' }));
    const list = await registry.view({ session: 's' }).resources.list();
    expect(list.map(({ uri, source }) => [uri, source])).toEqual([
      ['mcp://git/a', 'git'],
      ['skill://b/SKILL.md', 'mine'],
    ]);
    expect((await registry.view({ session: 't' }).resources.list()).map(({ uri }) => uri)).toEqual([
      'mcp://git/a',
    ]);
  });

  it('read a skill, a file of it, a resource, and forgive _ and -', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(shelf('mine', { 'code-review': 'Review.' }));
    registry.register(provider('git', { 'mcp://git/a': 'A' }));
    const { resources } = registry.view();
    expect(await resources.read('skill://code-review/SKILL.md')).toMatchObject([
      { text: 'Review.' },
    ]);
    expect(await resources.read('skill://code_review')).toMatchObject([{ text: 'Review.' }]);
    expect(await resources.read('skill://code-review/notes.md')).toMatchObject([{ text: 'notes' }]);
    expect(await resources.read('mcp://git/a')).toMatchObject([{ text: 'A' }]);
    expect(await resources.exists('skill://code-review')).toBe(true);
    expect(await resources.exists('skill://code-review/none.md')).toBe(false);
    expect(await resources.exists('skill://other')).toBe(false);
    expect(await resources.exists('mcp://git/b')).toBe(false);
  });

  it('ask who has it before anything is opened, and prefer the local one', async () => {
    await using registry = new ExtensionRegistry();
    const [remote, local, other] = [
      shelf('a', { x: 'remote' }, 0),
      shelf('b', { x: 'local' }, 30),
      shelf('c', { y: 'y' }),
    ];
    for (const source of [remote, local, other]) registry.register(source);
    expect(await registry.view().resources.read('skill://x')).toMatchObject([{ text: 'local' }]);
    expect([remote.opened.length, local.opened.length, other.opened.length]).toEqual([0, 1, 0]);
  });

  it('refuse unknown schemes with the known ones, also after a package brought its own', async () => {
    await using registry = new ExtensionRegistry();
    const { resources } = registry.view();
    await expect(resources.read('ftp://x/y')).rejects.toMatchObject({
      code: 'unknown-scheme',
      details: { known: ['skill'] },
    });
    registry.register(provider('db', { 'prompt://db/one': 'one' }, ['prompt']));
    expect(await resources.read('prompt://db/one')).toMatchObject([{ text: 'one' }]);
  });

  it.each([
    'skill://a/../b',
    'skill://a/%2e%2e/b',
    'skill://a/%252e%252e%252fb',
    'skill://..',
    'skill://%2e%2e/x',
    'skill://a/x%5c..%5cy',
    'skill://a/x%00y',
    'skill://a/%zz',
    'skill://a/b?c',
    'nothing',
    `skill://${'%25'.repeat(6)}2e`,
  ])('refuse %s', async (uri) => {
    await using registry = new ExtensionRegistry();
    registry.register(shelf('mine', { a: 'A' }));
    await expect(registry.view().resources.read(uri)).rejects.toMatchObject({
      code: 'invalid-uri',
    });
  });

  it('do not let one failing source keep another from answering', async () => {
    await using registry = new ExtensionRegistry({ onProblem: () => undefined });
    registry.register({
      ...provider('mcp', {}),
      resourceExists: async () => Promise.reject(new Error('down')),
    });
    registry.register(shelf('zz', { a: 'A' }));
    registry.register({
      ...shelf('aa', {}),
      listSkills: async () => Promise.reject(new Error('down')),
    });
    expect(await registry.view().resources.read('skill://a')).toMatchObject([{ text: 'A' }]);
    await expect(registry.view().resources.read('skill://none')).rejects.toMatchObject({
      code: 'not-found',
    });
  });
});
