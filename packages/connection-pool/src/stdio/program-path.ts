import { access, constants } from 'node:fs/promises';
import { delimiter, resolve } from 'node:path';

import { childEnvironment } from './child-environment.ts';

/** The file that a command starts, as an absolute path; `undefined` if there is none. */
export async function programPath(
  command: string,
  env: Readonly<Record<string, string>> = {},
  cwd: string = process.cwd(),
): Promise<string | undefined> {
  const variables = Object.entries(childEnvironment(env));
  const valueOf = (name: string) =>
    variables.findLast(([key]) => key.toUpperCase() === name)?.[1] ?? '';
  const isPath = /[\\/]/.test(command);
  const folders = isPath ? [''] : valueOf('PATH').split(delimiter);
  const endings = process.platform === 'win32' ? ['', ...valueOf('PATHEXT').split(';')] : [''];
  for (const folder of folders) {
    for (const ending of endings) {
      const file = resolve(cwd, folder, command + ending);
      if (await isExecutable(file)) return file;
    }
  }
  return undefined;
}

const isExecutable = (file: string): Promise<boolean> =>
  access(file, constants.X_OK).then(
    () => true,
    () => false,
  );
