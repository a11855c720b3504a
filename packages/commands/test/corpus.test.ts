import { readdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { markdownCommands } from '@patchbay/commands';
import { testContext } from '@patchbay/testkit';
import { expect, it } from 'vitest';

const home = realpathSync(fileURLToPath(new URL('../node_modules/ecc-universal', import.meta.url)));

/** Folders of commands in the package, and how many files each has. */
const FOLDERS: Readonly<Record<string, number>> = {
  '.opencode/commands': 35,
  commands: 84,
  'docs/ja-JP/commands': 87,
  'docs/ko-KR/commands': 18,
  'docs/pt-BR/commands': 18,
  'docs/tr/commands': 30,
  'docs/zh-CN/commands': 79,
  'docs/zh-TW/commands': 18,
};

it('of 369 command files of ecc-universal none is lost, and each comes to its text', async () => {
  const found = readdirSync(home, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.md'))
    .map((entry) => entry.parentPath.slice(home.length + 1))
    .filter((folder) => /(?:^|\/)commands$/.test(folder) && !folder.includes('node_modules'));
  expect(
    Object.fromEntries(
      Object.keys(FOLDERS).map((folder) => [folder, found.filter((one) => one === folder).length]),
    ),
  ).toEqual(FOLDERS);
  expect(found).toHaveLength(369);

  let loaded = 0;
  const codes: Record<string, number> = {};
  for (const folder of Object.keys(FOLDERS)) {
    const source = markdownCommands({ id: folder, folder: join(home, folder) });
    const context = testContext();
    const entries = await source.listCommands(context);
    expect(entries).toHaveLength(FOLDERS[folder]!);
    for (const { name, description, origin } of entries) {
      expect(description, origin).not.toBe('');
      const args = { raw: 'a b', positional: ['a', 'b'], named: {} };
      const { messages } = await source.getCommand(name, args, testContext());
      expect(JSON.stringify(messages), origin).toContain('a b');
      loaded++;
    }
    for (const { code } of context.problems) codes[code] = (codes[code] ?? 0) + 1;
  }
  expect(loaded).toBe(369);
  expect(codes).toEqual({});
});
