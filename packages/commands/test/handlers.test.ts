import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

import type { CommandDialect, FileRequest, ShellRequest } from '@patchbay/commands';
import { readConfined } from '@patchbay/files';
import { describe, expect, it } from 'vitest';

import { benchFolder } from './bench-folder.ts';

const run = promisify(execFile);

describe('without a handler', () => {
  it.each([
    ['claude', 'Status: !`git status $0`', 'shell-injection-ignored', 'Status: !`git status a`'],
    ['opencode', 'x!`git status`', 'shell-injection-ignored', 'x!`git status`\n\na'],
    ['patchbay', 'Status: !{git status}', 'shell-injection-ignored', 'Status: !{git status}\n\na'],
    ['claude', 'See @src/$0.ts.', 'file-injection-ignored', 'See @src/a.ts.'],
    ['opencode', 'See @$1', 'file-injection-ignored', 'See @a'],
    ['patchbay', 'See @{my file}', 'file-injection-ignored', 'See @{my file}\n\na'],
  ] as const)('%s keeps the text of %j, and says so', async (dialect, template, code, expected) => {
    await using bench = await benchFolder();
    await bench.write('x.md', `---\ndescription: x\n---\nFirst.\n${template}`);
    bench.register({ dialect });
    expect(await bench.text('/x a')).toBe(`First.\n${expected}`);
    expect(bench.problems).toMatchObject([{ code, severity: 'warning', line: 5 }]);
  });

  it.each([
    ['claude', 'a!`no` `!`no`` ! `no` ask @someone, me@example.com, `@src/a.ts`'],
    ['claude', '```ts\n@Component.x\n```\n~~~\n@src/a.ts'],
    ['claude', 'if (!{x}.y) @{path}'],
    ['codex', '!`git status` @src/a.ts'],
    ['cursor', '!`git status` @src/a.ts'],
  ] as const)('%s has nothing to say of %j', async (dialect, template) => {
    await using bench = await benchFolder();
    await bench.write('x.md', template);
    bench.register({ dialect });
    expect(await bench.text('/x')).toBe(template);
    expect(bench.problems).toEqual([]);
  });
});

describe('a handler for shell commands', () => {
  it('gets the command as the file has it, and never a value in it', async () => {
    const requests: ShellRequest[] = [];
    await using bench = await benchFolder();
    await bench.write(
      'x.md',
      '---\narguments: [branch]\n---\nDiff: !`git diff $0 $branch "$ARGUMENTS[1]" $10`\nEnd $1.',
    );
    bench.register({
      dialect: 'claude',
      runShell: async (request) => {
        requests.push(request);
        return '$0 !`again` @x';
      },
    });
    expect(await bench.text('/x "`rm x`" b')).toBe('Diff: $0 !`again` @x\nEnd b.');
    expect(requests).toEqual([
      {
        command: 'git diff $0 $branch "${1}" ${10}',
        parameters: ['`rm x`', 'b'],
        variables: { branch: '`rm x`', ARGUMENTS: '"`rm x`" b' },
        name: 'x',
        file: `${bench.root}/x.md`,
      },
    ]);
    expect(bench.problems).toEqual([]);
  });

  it.each([
    ['claude', 'printf "%s|" "$0" "$1" "$ARGUMENTS"', `$(touch pwned)|b c|'$(touch pwned)' "b c"|`],
    ['opencode', 'printf "%s|" "$1" "$2"', '$(touch pwned)|b c|'],
    ['opencode', 'printf "%s|" "$1"', '$(touch pwned) b c|'],
  ] as const)('can let a shell expand them: %s, %s', async (dialect, command, expected) => {
    await using bench = await benchFolder();
    await bench.write('x.md', `!\`${command}\``);
    bench.register({
      dialect,
      runShell: async ({ command: text, parameters, variables }) => {
        const env = { ...variables, ...process.env };
        return (await run('/bin/sh', ['-c', text, ...parameters], { env, cwd: bench.root })).stdout;
      },
    });
    expect(await bench.text(`/x '$(touch pwned)' "b c"`)).toBe(expected);
    expect((await bench.commands.list()).map(({ name }) => name)).toEqual(['x']);
    await expect(readConfined(bench.root, 'pwned')).rejects.toMatchObject({ code: 'not-found' });
  });

  it('gets what stands in braces whole, or not at all', async () => {
    const asked: string[] = [];
    await using bench = await benchFolder();
    await bench.write('x.md', "!{awk '{print $1}' x} !{a {b {c}}} !{open");
    bench.register({ runShell: async ({ command }) => `<${asked.push(command)}>` });
    expect(await bench.text('/x')).toBe('<1> !{a {b {c}}} !{open');
    expect(asked).toEqual(["awk '{print $1}' x"]);
  });

  it('runs all that a file asks for at once, for the scope that asked', async () => {
    await using bench = await benchFolder();
    await bench.write('x.md', '!`a` !`b`');
    let waiting = 0;
    let go: () => void = () => undefined;
    const together = new Promise<void>((resolve) => (go = resolve));
    bench.register({
      runShell: async ({ command }, { scope }) => {
        if (++waiting === 2) go();
        await together;
        return `${command} of ${scope.session}`;
      },
    });
    expect(await bench.text('/x')).toBe('a of s b of s');
  });

  it.each(['claude', 'patchbay'] as const)('that fails ends a command of %s', async (dialect) => {
    await using bench = await benchFolder();
    await bench.write('x.md', 'A !`false` B');
    bench.register({ dialect, runShell: async () => Promise.reject(new Error('exit code 1')) });
    expect(await bench.commands.resolve('/x')).toMatchObject({
      ok: false,
      code: 'source-failed',
      message: `/x (${bench.root}/x.md) needs what \`false\` says, and it failed: exit code 1`,
    });
  });

  it('that fails leaves nothing in a command of OpenCode, and a problem', async () => {
    await using bench = await benchFolder();
    await bench.write('x.md', 'A !`false` B');
    bench.register({
      dialect: 'opencode',
      runShell: () => Promise.reject(new Error('exit code 1')),
    });
    expect(await bench.text('/x')).toBe('A  B');
    expect(bench.problems).toMatchObject([
      { source: 'mine', message: expect.stringContaining('exit code 1') as unknown },
    ]);
  });

  it.each(['codex', 'cursor'] as const)('is not asked by files of %s', async (dialect) => {
    await using bench = await benchFolder();
    await bench.write('x.md', '!`a` @b.md');
    const refuse = () => Promise.reject(new Error('asked'));
    bench.register({ dialect, runShell: refuse, readFile: refuse });
    expect(await bench.text('/x')).toBe('!`a` @b.md');
  });
});

describe('a handler for files', () => {
  const forEach: readonly [CommandDialect, string, string, readonly string[]][] = [
    [
      'claude',
      'See @src/$0.ts, @README.md.',
      'See <src/a.ts>, <README.md>.',
      ['src/a.ts', 'README.md'],
    ],
    ['claude', '@a b@c `@d` @someone', '<a> b@c `@d` <someone>\n\nARGUMENTS: a', ['a', 'someone']],
    ['opencode', '- @$1\n- @$ARGUMENTS', '- <a>\n- <a>', ['a', 'a']],
    ['patchbay', '@{my $1.md}', '<my a.md>', ['my a.md']],
  ];
  it.each(forEach)(
    'is asked by %s for what %j names',
    async (dialect, template, expected, paths) => {
      const requests: FileRequest[] = [];
      await using bench = await benchFolder();
      await bench.write('x.md', template);
      bench.register({
        dialect,
        readFile: async (request) => {
          requests.push(request);
          return `<${request.path}>`;
        },
      });
      expect(await bench.text('/x a')).toBe(expected);
      expect(requests.map(({ path }) => path)).toEqual(paths);
      expect(requests[0]).toMatchObject({ name: 'x', file: `${bench.root}/x.md` });
      expect(bench.problems).toEqual([]);
    },
  );

  it('may say that something names no file, and give images and resources', async () => {
    await using bench = await benchFolder();
    await bench.write('x.md', 'Ask @someone about @logo.png and @api.json.');
    const image = { type: 'image', data: 'AAAA', mimeType: 'image/png' } as const;
    const resource = { type: 'resource', uri: 'file:///api.json', text: '{}' } as const;
    bench.register({
      readFile: async ({ path }) =>
        path === 'logo.png' ? [image] : path === 'api.json' ? [resource] : undefined,
    });
    expect(await bench.commands.resolve('/x')).toMatchObject({
      content: [
        { type: 'text', text: 'Ask @someone about ' },
        image,
        { type: 'text', text: ' and ' },
        resource,
        { type: 'text', text: '.' },
      ],
    });
  });

  it('that fails ends the command with its own code', async () => {
    await using bench = await benchFolder();
    await bench.write('x.md', 'See @$1');
    bench.register({
      readFile: async ({ path }) => String(await readConfined(bench.root, path)),
    });
    expect(await bench.commands.resolve('/x ../../etc/passwd')).toMatchObject({
      ok: false,
      code: 'outside-root',
    });
  });
});
