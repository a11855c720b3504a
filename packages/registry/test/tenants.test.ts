import {
  changeSource,
  defineTool,
  type AnyCapability,
  type CompileContext,
  type SkillEntry,
} from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { describe, expect, it } from 'vitest';

import { random, seed } from './random.ts';

describe('smg-43: whose answers they are', () => {
  /** Everything that it says depends on who asks. */
  function bank() {
    const asked: string[] = [];
    const says = (kind: string, context: Pick<CompileContext, 'identity'>) => {
      asked.push(`${kind} for ${context.identity?.id ?? 'nobody'}`);
      return context.identity?.id ?? 'nobody';
    };
    const capability: AnyCapability = {
      id: 'bank',
      tools: async (context) => [
        defineTool({
          capability: 'bank',
          name: `pay_${says('tools', context)}`,
          call: (_args, { identity }) => `paid with ${String(identity?.['token'])}`,
        }),
      ],
      instructions: async (context) => [
        { source: 'bank', kind: 'static', text: `account of ${says('instructions', context)}` },
      ],
      listResources: async (context) => [
        { uri: `mcp://bank/${says('resources', context)}`, name: 'account' },
      ],
      resourceExists: async (uri, { identity }) => uri === `mcp://bank/${identity?.id ?? 'nobody'}`,
      readResource: async (_uri, { identity }) => [
        { type: 'text', text: String(identity?.['token']) },
      ],
      listCommands: async (context) => [
        {
          name: `of-${says('commands', context)}`,
          description: '',
          origin: 'bank',
          kind: 'prompt',
        },
      ],
      getCommand: async () => ({ messages: [] }),
    };
    return { capability, asked };
  }

  it(`everybody sees and uses what is their own, however they take turns (SEED=${seed})`, async () => {
    const pick = random(seed);
    await using registry = new ExtensionRegistry();
    const { capability, asked } = bank();
    registry.register(capability);
    const people = ['ann', 'bob', 'eve', undefined];
    const views = people.flatMap((id) =>
      [1, 2].map((n) => ({
        who: id ?? 'nobody',
        token: id === undefined ? 'undefined' : `secret of ${id}`,
        view: registry.view(
          { session: `${id ?? 'nobody'}-${n}` },
          id === undefined ? {} : { identity: { id, token: `secret of ${id}` } },
        ),
      })),
    );
    await Promise.all(
      Array.from({ length: 100 }, async () => {
        const { who, token, view } = views[pick(views.length)]!;
        const { tools, instructions, callTool } = await view.compile();
        expect(tools.map(({ definition }) => definition.name)).toEqual([`bank__pay_${who}`]);
        expect(instructions.map(({ text }) => text)).toEqual([`account of ${who}`]);
        expect((await callTool(`bank__pay_${who}`, {})).content).toEqual([
          { type: 'text', text: `paid with ${token}` },
        ]);
        expect((await view.resources.list()).map(({ uri }) => uri)).toEqual([`mcp://bank/${who}`]);
        expect(await view.resources.read(`mcp://bank/${who}`)).toMatchObject([{ text: token }]);
        expect((await view.commands.list()).map(({ name }) => name)).toEqual([`of-${who}`]);
        for (const other of ['ann', 'bob', 'eve'].filter((id) => id !== who))
          expect(await view.resources.exists(`mcp://bank/${other}`)).toBe(false);
      }),
    );
    // Once for each identity, not for each session, and never for another.
    expect(new Set(asked).size).toBe(asked.length);
    expect(JSON.stringify(registry.inspect())).not.toContain('secret');
  });

  it('a new token is used by the next call of its owner; the list is not asked for again', async () => {
    await using registry = new ExtensionRegistry();
    const { capability, asked } = bank();
    registry.register(capability);
    const pay = async (token: string) => {
      const view = registry.view({ session: 's' }, { identity: { id: 'ann', token } });
      const { callTool } = await view.compile();
      return JSON.stringify((await callTool('bank__pay_ann', {})).content);
    };
    expect(await pay('old')).toContain('paid with old');
    expect(await pay('new')).toContain('paid with new');
    expect(asked.filter((what) => what.startsWith('tools'))).toHaveLength(1);
  });

  it('closing the session of one does not disturb a call of another, and what was said to it is forgotten', async () => {
    await using registry = new ExtensionRegistry();
    let goOn!: () => void;
    const waiting = new Promise<void>((resolve) => (goOn = resolve));
    let asked = 0;
    const wait = defineTool({ capability: 'pool', name: 'wait', call: () => waiting });
    registry.register({
      id: 'pool',
      tools: async ({ scope }) => (asked++, scope.session === undefined ? [] : [wait]),
    });
    const ofBob = await registry.view({ session: 'bob' }).compile();
    await registry.view({ session: 'ann' }).compile();
    const call = ofBob.callTool('pool__wait', {});
    await registry.close({ session: 'ann' });
    goOn();
    expect(await call).toEqual({ content: [] });
    await registry.view({ session: 'ann' }).compile();
    await registry.view({ session: 'bob' }).compile();
    expect(asked).toBe(3);
  });

  it('events of a tenant are told to that tenant only (IvanMurzak/MCP-Plugin-dotnet#102)', async () => {
    await using registry = new ExtensionRegistry();
    const ofAnn = registry.changes({ session: 'ann' })[Symbol.asyncIterator]();
    const ofBob = registry.changes({ session: 'bob' })[Symbol.asyncIterator]();
    const source = changeSource('notes');
    registry.register(
      { id: 'notes', revision: source.revision, changes: source.subscribe },
      { session: 'ann' },
    );
    source.emit('resource_updated', 'mcp://notes/private');
    expect(await ofAnn.next()).toMatchObject({ value: { kind: 'registered' } });
    expect(await ofAnn.next()).toMatchObject({ value: { sourceUri: 'mcp://notes/private' } });
    await registry.close();
    expect(await ofAnn.next()).toMatchObject({ value: { kind: 'unregistered' } });
    expect(await ofBob.next()).toEqual({ done: true, value: undefined });
    await ofAnn.return?.();
  });
});

describe('claude-code-89207: which of one name', () => {
  const sources = [
    { id: 'user', precedence: 20 },
    { id: 'project', precedence: 30 },
    { id: 'plugin', precedence: 10 },
    { id: 'server', precedence: 0 },
  ];
  /** A skill, a command and a prompt, all named `deploy`. */
  function deploys({ id, precedence }: (typeof sources)[number]): AnyCapability {
    const entry: SkillEntry = {
      uri: `skill://deploy/SKILL.md`,
      name: 'deploy',
      description: id,
      origin: id,
      precedence,
    };
    return {
      id,
      listSkills: async () => [entry],
      skillExists: async () => true,
      openSkill: async () => ({
        entry,
        body: `body of ${id}`,
        digest: 'sha256:0',
        files: [],
        readFile: async () => [],
      }),
      listCommands: async () => [
        { name: 'deploy', description: id, origin: id, kind: 'file', precedence },
      ],
      getCommand: async () => ({
        messages: [{ role: 'user', content: [{ type: 'text', text: id }] }],
      }),
    };
  }

  it(`the same one wins in every list and every look-up, in whatever order they are loaded (SEED=${seed})`, async () => {
    const pick = random(seed);
    for (let round = 0; round < 20; round++) {
      await using registry = new ExtensionRegistry({ onProblem: () => undefined });
      const order = sources
        .map((source) => ({ source, at: pick(1_000) }))
        .toSorted((a, b) => a.at - b.at);
      const handles = new Map(
        order.map(({ source }) => [
          source.id,
          registry.register(deploys(source), { session: 's' }),
        ]),
      );
      const { commands, resources } = registry.view({ session: 's' });
      const resolved = async (line: string) => {
        const command = await commands.resolve(line);
        return command?.ok === true ? command.source : command?.code;
      };
      const winner = async () => {
        const [plain] = (await commands.list()).filter(({ name }) => name === 'deploy');
        const [part] = await resources.read('skill://deploy');
        return [plain?.source, await resolved('/deploy'), (part as { text?: string }).text];
      };
      expect(await winner()).toEqual(['project', 'project', 'body of project']);
      expect((await commands.list()).map(({ name }) => name)).toEqual([
        'deploy',
        'plugin:deploy',
        'server:deploy',
        'user:deploy',
      ]);
      for (const { id } of sources) expect(await resolved(`/${id}:deploy`)).toBe(id);
      await handles.get('project')?.close();
      expect(await winner()).toEqual(['user', 'user', 'body of user']);
      registry.register(deploys(sources[1]!), { session: 's' });
      expect(await winner()).toEqual(['project', 'project', 'body of project']);
      const other = registry.view({ session: 't' });
      expect(await other.commands.list()).toEqual([]);
      expect(await other.resources.list()).toEqual([]);
    }
  });
});
