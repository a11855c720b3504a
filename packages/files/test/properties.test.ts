import { mkdir, mkdtemp, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { listField, readConfined, readFrontmatter, textField } from '@patchbay/files';
import fc from 'fast-check';
import { FAILSAFE_SCHEMA, load } from 'js-yaml';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

/** Printed, so that a run can be repeated: `SEED=… vitest run`. */
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
const runs = (numRuns: number) => ({ seed, numRuns });
console.log(`properties of @patchbay/files: seed ${seed}`);

const options = { file: 'f.md', source: 's' };

/** Pieces of what the field writes, so that random documents come near the rules. */
const piece = fc.constantFrom(
  '---\n',
  '---\r\n',
  '---js\n',
  '--- x\n',
  '...\n',
  '```md\n',
  '```\n',
  '<!-- c -->\n',
  '<!--',
  'name: a\n',
  'description: b: c\n',
  'x:\n  - 1\n',
  '  indented\n',
  '\ttab: 1\n',
  '__proto__: {polluted: 1}\n',
  'k: &a [*a]\n',
  'hint: [a] [b]\n',
  '!!js/function "x"\n',
  '|',
  '>-\n',
  '{',
  ']',
  '"',
  "'",
  '\r',
  '\uFEFF',
  '\0',
  '\uD800',
);
const document = fc
  .array(fc.oneof({ weight: 4, arbitrary: piece }, { weight: 1, arbitrary: fc.string() }), {
    maxLength: 24,
  })
  .map((parts) => parts.join(''));

describe('the frontmatter reader', () => {
  it('reads or refuses any text, and tells where each problem is', () => {
    fc.assert(
      fc.property(document, (text) => {
        const result = readFrontmatter(text, options);
        const problems = 'refused' in result ? [result.refused] : result.problems;
        const lines = text.split(/\r\n?|\n/).length;
        for (const { code, line, message } of problems) {
          expect(code).toMatch(/^[a-z-]+[a-z0-9-]*$/);
          expect(line).toBeGreaterThanOrEqual(1);
          expect(line).toBeLessThanOrEqual(lines);
          expect(message).not.toContain('\n');
        }
        expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
        if (!('refused' in result)) expect(Object.getPrototypeOf(result.data)).toBeNull();
      }),
      runs(3_000),
    );
  });

  it('reads or refuses any bytes, whole or as a head', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), fc.boolean(), (bytes, partial) => {
        expect(readFrontmatter(bytes, { ...options, partial })).toBeDefined();
      }),
      runs(1_000),
    );
  });

  it('gives back what was written in quotes, and the body untouched', () => {
    const key = fc.stringMatching(/^[a-z][a-z-]{0,12}$/);
    const text = fc.string({ unit: 'grapheme', maxLength: 60 }).filter((s) => !s.includes('\0'));
    const body = fc.string({ maxLength: 80 }).filter((s) => !/[\r\0\uFEFF]/.test(s));
    fc.assert(
      fc.property(fc.dictionary(key, text, { minKeys: 1, maxKeys: 6 }), body, (data, after) => {
        const head = Object.entries(data).map(
          ([name, value]) => `${name}: ${JSON.stringify(value)}`,
        );
        const file = readFrontmatter(`---\n${head.join('\n')}\n---\n${after}`, options);
        if ('refused' in file) throw new Error(file.refused.code);
        expect(file.problems).toEqual([]);
        expect({ ...file.data }).toEqual(data);
        expect(file.body).toBe(after);
      }),
      runs(1_000),
    );
  });

  it('reads as js-yaml loads it, and says that it is no YAML where js-yaml does', () => {
    const word = fc.constantFrom('a', 'b', 'long text', '__proto__', 'true', '1', '~', '<<', '');
    const sign = fc.constantFrom(
      ': ',
      ':',
      '\n',
      '\n  ',
      '\n    ',
      '\n- ',
      '\n  - ',
      ', ',
      ' #c',
      '? ',
      '| ',
      '|-',
      '>',
      '"',
      '[',
      ']',
      '{',
      '}',
      '&a ',
      '*a',
      '! ',
      '!!str ',
      '!!map ',
      '!x ',
      '\n--- ',
      '%YAML 1.2\n',
      "'",
    );
    const token = fc.oneof({ weight: 3, arbitrary: word }, { weight: 4, arbitrary: sign });
    const some = fc.array(token, { maxLength: 14 }).map((tokens) => tokens.join(''));
    fc.assert(
      fc.property(some, (tail) => {
        const head = `k: v\n${tail}`;
        // A line that is a fence would end the frontmatter before its time.
        fc.pre(!/^(?:---|\.\.\.)[ \t]*$/m.test(head));
        const file = readFrontmatter(`---\n${head}\n---\n`, options);
        if ('refused' in file) throw new Error(file.refused.code);
        let loaded: unknown;
        try {
          loaded = load(head, { schema: FAILSAFE_SCHEMA, maxAliases: 0, maxDepth: 20 });
        } catch {
          const codes = file.problems.map(({ code }) => code);
          expect(codes.some((c) => c === 'invalid-yaml' || c === 'duplicate-key')).toBe(true);
          return;
        }
        expect(file.problems).toEqual([]);
        expect(JSON.stringify(file.data)).toBe(JSON.stringify(loaded));
      }),
      runs(5_000),
    );
  });

  it('keeps an entry whatever stands broken beside it', () => {
    const broken = fc.constantFrom(
      'x: a: b',
      'x: [a] [b]',
      'x: @y',
      'x: "open',
      'x: %z',
      'x: {a',
      '# c',
    );
    fc.assert(
      fc.property(
        fc.array(broken, { maxLength: 3 }),
        fc.array(broken, { maxLength: 3 }),
        (above, below) => {
          const head = [
            'name: a',
            ...above,
            'description: Reads: things',
            'tools: Read, Bash(git add *)',
            ...below,
          ];
          const file = readFrontmatter(`---\n${head.join('\n')}\n---\nBody`, options);
          if ('refused' in file) throw new Error(file.refused.code);
          expect(textField(file.data, 'name')).toBe('a');
          expect(textField(file.data, 'description')).toContain('Reads: things');
          expect(listField(file.data, 'tools')?.slice(0, 2)).toEqual(['Read', 'Bash(git add *)']);
        },
      ),
      runs(300),
    );
  });

  it.each([
    ['dashes', (n: number) => '-'.repeat(n)],
    ['fences', (n: number) => '---\n'.repeat(n)],
    ['comments', (n: number) => '<!-- -->\n'.repeat(n)],
    ['open comments', (n: number) => '<!--'.repeat(n)],
    ['code fences', (n: number) => `\`\`\`\n---\n${'\n```'.repeat(n)}x`],
    ['backticks', (n: number) => '`'.repeat(n)],
    ['nested lists', (n: number) => `---\na: ${'['.repeat(Math.min(n, 60_000))}\n---\n`],
    ['entries', (n: number) => `---\n${'a: b: c\n'.repeat(Math.min(n, 7_000))}---\n`],
    ['white space', (n: number) => `---\na:${' '.repeat(Math.min(n, 60_000))}x: y\n---\n`],
    ['quotes', (n: number) => `---\na: ${'"'.repeat(Math.min(n, 60_000))}\n---\n`],
  ])('takes no more than linear time for many %s', (_name, write) => {
    // A reader that is quadratic here needs minutes, and the test its limit.
    expect(readFrontmatter(write(200_000), options)).toBeDefined();
  });
});

describe('a confined read', () => {
  let base: string;
  beforeAll(async () => {
    base = await realpath(await mkdtemp(join(tmpdir(), 'patchbay-properties-')));
    await mkdir(join(base, 'root/a/b'), { recursive: true });
    await mkdir(join(base, 'root-too'));
    for (const path of ['secret', 'root-too/secret', 'a', 'b'])
      await writeFile(join(base, path), 'SECRET');
    for (const path of ['root/good', 'root/a/good', 'root/a/b/good'])
      await writeFile(join(base, path), 'good');
    await symlink('../..', join(base, 'root/a/up'));
    await symlink(base, join(base, 'root/out'));
    await symlink('../secret', join(base, 'root/leak'));
    await symlink('a/good', join(base, 'root/in'));
  });
  afterAll(() => rm(base, { recursive: true, force: true }));

  it('gives nothing from outside, whatever the path', async () => {
    const part = fc.constantFrom(
      'a',
      'b',
      '..',
      '.',
      '',
      'up',
      'out',
      'leak',
      'in',
      'good',
      'secret',
      'root',
      'root-too',
      '%2e%2e',
      '..\\',
      '~',
      'a\0',
    );
    const path = fc.array(part, { maxLength: 7 }).map((parts) => parts.join('/'));
    await fc.assert(
      fc.asyncProperty(path, fc.boolean(), async (way, absolute) => {
        const asked = absolute ? join(base, way.replaceAll('\0', '')) : way;
        const given = await readConfined(join(base, 'root'), asked).then(
          String,
          (error: unknown) => error,
        );
        if (given === 'good') return;
        expect(given).toMatchObject({
          code: expect.stringMatching(/^(?:outside-root|not-found)$/),
        });
      }),
      runs(500),
    );
  });

  it('gives nothing from outside while a link is exchanged', async () => {
    const way = join(base, 'root/way');
    const reading = new AbortController();
    const exchanging = (async () => {
      for (let i = 0; !reading.signal.aborted; i++) {
        await symlink(i % 2 === 0 ? 'a' : '../root-too', `${way}.new`);
        await rename(`${way}.new`, way);
      }
    })();
    const given = new Set<string>();
    // At least one read has to come through between two exchanges.
    for (let i = 0; i < 300 || (given.size === 0 && i < 10_000); i++) {
      for (const name of ['good', 'secret'])
        await readConfined(join(base, 'root'), `way/${name}`).then(
          (bytes) => given.add(String(bytes)),
          () => undefined,
        );
    }
    reading.abort();
    await exchanging;
    expect([...given]).toEqual(['good']);
  });
});
