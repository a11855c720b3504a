import {
  PatchbayError,
  type Capability,
  type ResourceProvider,
  type SkillEntry,
  type SkillResource,
} from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { describe, expect, it, onTestFinished, vi } from 'vitest';

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
    'skill://a/%c0%ae%c0%ae/b',
    'skill://a/%2e./b',
    'skill://a/..%2fb',
    'skill://a/x%2f%2e%2e%2fb',
    'skill://a/\uff0e\uff0e/b',
    'skill://a/x%EF%BC%8F\u2025%EF%BC%8Fb',
    'skill://a/x%ef%bc%bcb',
    'mcp://git/file%3A%2F%2F%2Fa%2F..%2F..%2Fetc',
    'SKILL://a/%2E%2E/b',
    'skill:a/b',
    '',
    `skill://a/${'x'.repeat(9_000)}`,
    `skill://a/%${'25'.repeat(6)}2e%${'25'.repeat(6)}2e/b`,
  ])('refuse %s', async (uri) => {
    await using registry = new ExtensionRegistry();
    registry.register(shelf('mine', { a: 'A' }));
    await expect(registry.view().resources.read(uri)).rejects.toMatchObject({
      code: 'invalid-uri',
    });
  });

  it('take a percent sign, dots in a name and any case of a scheme for what they are', async () => {
    await using registry = new ExtensionRegistry();
    const uris = ['100%.txt', 'v1..v2', '...', '%2', 'a%25b'].map(
      (name) => `mcp://git/${encodeURIComponent(`file:///${encodeURIComponent(name)}`)}`,
    );
    registry.register(provider('git', Object.fromEntries(uris.map((uri) => [uri, 'text']))));
    registry.register(provider('db', { 'DB+v1://x/y': 'row' }, ['DB+v1']));
    const { resources } = registry.view();
    for (const uri of [...uris, 'DB+v1://x/y']) expect(await resources.exists(uri), uri).toBe(true);
    await expect(resources.exists('git://x')).rejects.toMatchObject({
      details: { known: ['db+v1', 'mcp', 'skill'] },
    });
  });

  it('answer while a source hangs, and wait for it only where nobody else has it', async () => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const problems: string[] = [];
    await using registry = new ExtensionRegistry({
      onProblem: ({ source, code }) => void problems.push(`${source} ${code}`),
    });
    const forever = new Promise<never>(() => undefined);
    registry.register({
      ...shelf('hangs', {}),
      ...provider('hangs', {}, ['note']),
      listSkills: () => forever,
      resourceExists: () => forever,
    });
    registry.register(shelf('mine', { a: 'A' }));
    registry.register(provider('notes', { 'note://x': 'X' }, ['note']));
    const { resources } = registry.view();
    const reads = Promise.all([resources.read('skill://a'), resources.read('note://x')]);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(await reads).toMatchObject([[{ text: 'A' }], [{ text: 'X' }]]);
    const others = Promise.allSettled([
      resources.read('skill://b'),
      resources.read('note://y'),
      resources.list(),
    ]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(await others).toMatchObject([
      { reason: { code: 'not-found' } },
      { reason: { code: 'not-found' } },
      { value: [{ uri: 'note://x' }, { uri: 'skill://a/SKILL.md' }] },
    ]);
    expect(problems).toContain('hangs timeout');
  });

  it('end what is read when its reader goes, and tell the source', async () => {
    await using registry = new ExtensionRegistry();
    const told: unknown[] = [];
    let count = 0;
    let asked!: () => void;
    const bothAsked = new Promise<void>((resolve) => (asked = () => ++count === 2 && resolve()));
    registry.register({
      ...provider('git', { 'mcp://git/a': 'A' }),
      readResource: (_uri, { signal }) =>
        new Promise(() => {
          signal.addEventListener('abort', () => told.push(signal.reason));
          asked();
        }),
    });
    const view = registry.view();
    const stop = new AbortController();
    const reason = new Error('reader left');
    const aborted = view.resources.read('mcp://git/a', { signal: stop.signal });
    const ended = view.resources.read('mcp://git/a');
    await bothAsked;
    stop.abort(reason);
    await expect(aborted).rejects.toBe(reason);
    await view.close();
    await expect(ended).rejects.toMatchObject({ code: 'closed' });
    expect(told).toMatchObject([reason, { code: 'closed' }]);
  });

  it('say which schemes of a capability cannot be routed to it', async () => {
    const problems: string[] = [];
    await using registry = new ExtensionRegistry({
      onProblem: ({ code, message }) => void problems.push(`${code}: ${message}`),
    });
    registry.register(provider('db', {}, ['db', 'Skill', 'my db', 'db:', '']));
    expect(problems.map((text) => /^unknown-scheme: .* scheme (".*?")/.exec(text)?.[1])).toEqual([
      '"Skill"',
      '"my db"',
      '"db:"',
      '""',
    ]);
  });

  it('tell changes of one scope', async () => {
    await using registry = new ExtensionRegistry();
    const changes = registry.view({ session: 's' }).resources.changes()[Symbol.asyncIterator]();
    registry.register(shelf('theirs', {}), { session: 't' });
    registry.register(shelf('mine', {}), { session: 's' });
    expect(await changes.next()).toMatchObject({
      value: { capability: 'mine', kind: 'registered' },
    });
    await changes.return?.();
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
