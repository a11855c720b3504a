import { markdownCommands, type CommandDialect } from '@patchbay/commands';
import type { CommandArguments, ContentPart } from '@patchbay/protocols';
import { testContext } from '@patchbay/testkit';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { benchFolder } from './bench-folder.ts';

/** Printed, so that a run can be repeated: `SEED=… vitest run`. */
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
/** Few in the quick suite: each run has another seed. `RUNS=20` tries twenty times as many. */
const many = Number(process.env['RUNS'] ?? 1);
const runs = (numRuns: number) => ({ seed, numRuns: numRuns * many });
console.log(`properties of @patchbay/commands: seed ${seed}`);

const TOKENS = [
  '$ARGUMENTS',
  '$ARGUMENTS[0]',
  '$0',
  '$1',
  '$2',
  '$10',
  '\\$1',
  '$$',
  '$NAME',
  '$name',
  ' !`git log $1`',
  ' !`a` ',
  ' !{b $ARGUMENTS}',
  ' @$1 ',
  '\n@src/$0.ts',
  ' @{x $1}',
  '```',
  '`',
  '\n',
  ' ',
];
const template = fc
  .array(fc.oneof(fc.constantFrom(...TOKENS), fc.string({ unit: 'grapheme' })), { maxLength: 12 })
  .map((parts) => parts.join('').replaceAll('\0', ''));
/** What could mean something in a template, a shell or a replacement. */
const value = fc
  .array(fc.oneof(fc.constantFrom(...TOKENS, "$'", '$&', '$`', '"', "'", '\\'), fc.string()))
  .map((parts) => parts.join(''))
  .filter((text) => text.trim() !== '');
/** The same for dialects that split what was typed by rules of their own. */
const oneWord = value
  .map((text) => text.replaceAll(/[\s"']|\[Image\s+\d+\]/gi, ''))
  .filter((text) => text !== '' && !text.includes('='));

const MARK = 'a7b1c9d3';
const shown = (parts: readonly ContentPart[]) =>
  parts.map((part) => ('text' in part ? part.text : part.type)).join('');

describe.each(['claude', 'patchbay', 'cursor', 'opencode', 'codex'] as const)(
  'in files of %s',
  (dialect: CommandDialect) => {
    it('no value can change the structure of a template, with or without handlers', async () => {
      await using bench = await benchFolder();
      const asked: string[] = [];
      const source = (handled: boolean) =>
        markdownCommands({
          id: 'c',
          folder: bench.root,
          dialect,
          ...(handled && {
            runShell: async ({ command }) => `<${asked.push(`!${command}`)}>`,
            readFile: async ({ path }) => `<${asked.push(`@${path}`)}>`,
          }),
        });
      await fc.assert(
        fc.asyncProperty(
          template,
          dialect === 'opencode' || dialect === 'codex' ? oneWord : value,
          fc.boolean(),
          async (text, typed, handled) => {
            // Names of Codex are required; they are looked at elsewhere.
            fc.pre(!(dialect === 'codex' && /\$[A-Z]/.test(text.replaceAll('$ARGUMENTS', ''))));
            await bench.write('x.md', `---\ndescription: x\n---\n${text}`);
            const capability = source(handled);
            const come = async (raw: string) => {
              asked.length = 0;
              const args: CommandArguments = { raw, positional: [raw], named: {} };
              const { messages } = await capability.getCommand('x', args, testContext());
              return { text: shown(messages[0]!.content), asked: [...asked] };
            };
            const withMark = await come(MARK);
            const withValue = await come(typed);
            const put = (one: string) => one.replaceAll(MARK, () => typed);
            expect(withValue.text).toBe(put(withMark.text));
            expect(withValue.asked).toEqual(
              withMark.asked.map((one) => (one.startsWith('@') ? put(one) : one)),
            );
            for (const one of withMark.asked)
              if (one.startsWith('!')) expect(one).not.toContain(MARK);
          },
        ),
        runs(100),
      );
    });
  },
);

it('a value that was quoted arrives as it was', async () => {
  await using bench = await benchFolder();
  await bench.write('x.md', '[$0][$1][$2]');
  bench.register({ dialect: 'claude' });
  const quoted = (text: string) => `"${text.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
  await fc.assert(
    fc.asyncProperty(value, fc.string(), fc.string({ unit: 'grapheme' }), async (a, b, c) => {
      expect(await bench.text(`/x ${[a, b, c].map(quoted).join(' ')}`)).toBe(`[${a}][${b}][${c}]`);
    }),
    runs(100),
  );
});

it('any file is listed or refused with a problem, and comes to something', async () => {
  await using bench = await benchFolder();
  const line = fc.oneof(
    fc.constantFrom(
      '---',
      'description: a: b',
      'description: [a]',
      'argument-hint: [a] [b]',
      'argument-hint: {a: b}',
      'arguments: [a, a, {name: b}, {x: y}, [c]]',
      'arguments: {a: b}',
      'user-invocable: []',
      '$99999999999999999999',
      '\0',
      ...TOKENS,
    ),
    fc.string(),
  );
  await fc.assert(
    fc.asyncProperty(
      fc.array(line, { maxLength: 12 }),
      fc.constantFrom('claude', 'patchbay', 'opencode', 'codex', 'cursor'),
      async (lines, dialect) => {
        await bench.write('x.md', lines.join('\n'));
        const source = markdownCommands({ id: 'c', folder: bench.root, dialect });
        const context = testContext();
        const entries = await source.listCommands(context);
        if (entries.length === 0) expect(context.problems).toHaveLength(1);
        for (const { name, arguments: declared = [] } of entries) {
          const raw = declared.map((one) => `${one.name}=1`).join(' ');
          const args = { raw, positional: raw.split(' '), named: {} };
          const { messages } = await source.getCommand(name, args, context);
          expect(messages[0]!.content.length).toBeGreaterThan(0);
        }
      },
    ),
    runs(150),
  );
});
