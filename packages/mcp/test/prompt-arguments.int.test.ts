import { readFile } from 'node:fs/promises';

import { ConnectionPool } from '@patchbay/connection-pool';
import { McpServerCapability } from '@patchbay/mcp';
import type { CommandArgument } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { scriptedServer } from '@patchbay/testkit';
import { describe, expect, it } from 'vitest';

type Row = readonly [string, readonly CommandArgument[], string | Readonly<Record<string, string>>];

const file = new URL('fixtures/qwen-code-5322/args.json', import.meta.url);
const rows = JSON.parse(await readFile(file, 'utf8')) as readonly Row[];
const more: readonly Row[] = [
  ['--on=false', [{ name: 'on' }], { on: 'false' }],
  ['a="x = --y"', [{ name: 'a' }], { a: 'x = --y' }],
  // A name that is not declared is a value like any other.
  ['other=1', [{ name: 'a' }], { a: 'other=1' }],
  ['"" two', [{ name: 'a', required: true }, { name: 'b' }], { a: '', b: 'two' }],
];

describe('qwen-code-5322: what is typed behind a prompt', () => {
  it.each([...rows, ...more])('%s', async (typed, declared, expected) => {
    await using server = await scriptedServer({
      prompts: [{ name: 'p', arguments: declared, text: '' }],
    });
    await using connections = new ConnectionPool();
    await using registry = new ExtensionRegistry();
    registry.register(new McpServerCapability({ id: 'shop', server: server.config, connections }));
    const resolved = await registry.view().commands.resolve(`/p ${typed}`);
    if (typeof expected === 'string') {
      const missing = expected.replace('error: ', '');
      expect(resolved).toMatchObject({ ok: false, code: 'command-arguments' });
      expect((resolved as { readonly message: string }).message).toContain(`\`${missing}\``);
      return;
    }
    const { content } = resolved as { readonly content: readonly { readonly text: string }[] };
    expect(JSON.parse(content[0]!.text)).toEqual(expected);
  });
});
