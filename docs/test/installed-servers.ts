import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const require = createRequire(import.meta.url);

/** Puts the locked copy of a server where `npx` finds it, so that nothing is downloaded. */
export async function installServers(folder: string, names: readonly string[]): Promise<void> {
  await mkdir(join(folder, 'node_modules/@modelcontextprotocol'), { recursive: true });
  await mkdir(join(folder, 'node_modules/.bin'), { recursive: true });
  for (const name of names) {
    const manifest = require.resolve(`${name}/package.json`);
    const { bin } = require(manifest) as { readonly bin: Readonly<Record<string, string>> };
    await symlink(dirname(manifest), join(folder, 'node_modules', name));
    for (const [command, file] of Object.entries(bin))
      await symlink(join(dirname(manifest), file), join(folder, 'node_modules/.bin', command));
  }
  await writeFile(
    join(folder, 'package.json'),
    JSON.stringify({
      name: 'project',
      private: true,
      dependencies: Object.fromEntries(names.map((name) => [name, '*'])),
    }),
  );
}
