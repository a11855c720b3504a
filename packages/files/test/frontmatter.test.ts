import {
  readFrontmatter,
  textField,
  listField,
  booleanField,
  type FrontmatterFile,
} from '@patchbay/files';
import { describe, expect, it } from 'vitest';

function read(text: string | Uint8Array): FrontmatterFile {
  const result = readFrontmatter(text, { file: 'x/SKILL.md', source: 'test' });
  if ('refused' in result) throw new Error(result.refused.code);
  return result;
}
const codes = ({ problems }: FrontmatterFile) => problems.map(({ code }) => code);
const fm = (head: string, body = 'Body') => `---\n${head}\n---\n${body}\n`;
const plain = (file: FrontmatterFile) => JSON.parse(JSON.stringify(file.data)) as unknown;

describe('a healthy file', () => {
  it('gives text for every scalar, and nests maps and lists', () => {
    const file = read(
      fm(
        'name: a\nversion: 1.10\non: yes\nwhen: 2026-01-01\nmetadata:\n  n: 3\nlist:\n  - x\n  - "y"',
      ),
    );
    expect(plain(file)).toEqual({
      name: 'a',
      version: '1.10',
      on: 'yes',
      when: '2026-01-01',
      metadata: { n: '3' },
      list: ['x', 'y'],
    });
    expect(codes(file)).toEqual([]);
    expect(file.body).toBe('Body\n');
  });

  it.each([
    ['three dashes inside a value', fm('description: first --- second'), 'first --- second'],
    ['a folded description', fm('description: >-\n  one\n  two'), 'one two'],
    ['a literal description', fm('description: |-\n  one\n  two'), 'one\ntwo'],
    ['a wrapped plain description', fm('description: one\n  two'), 'one two'],
    ['a block that ends with dots', '---\ndescription: d\n...\nB', 'd'],
  ])('%s', (_name, text, description) => {
    const file = read(text);
    expect(textField(file.data, 'description')).toBe(description);
    expect(codes(file)).toEqual([]);
  });

  it('leaves a rule in the body alone', () => {
    expect(read(fm('name: a', 'x\n\n---\n\ny')).body).toBe('x\n\n---\n\ny\n');
  });
});

describe('a file that needs repair', () => {
  it.each([
    [
      'unquoted colon',
      fm('name: a\ndescription: Use when: the user asks'),
      ['invalid-yaml', 'quoted-value'],
      'Use when: the user asks',
    ],
    [
      'brackets beside each other',
      fm('description: d\nhint: [a] [b]'),
      ['invalid-yaml', 'quoted-value'],
      'd',
    ],
    ['a key twice', fm('description: d\ndescription: e'), ['duplicate-key'], 'e'],
    ['tab indentation', fm('description: d\nmetadata:\n\tx: 1'), ['invalid-yaml'], 'd'],
    ['an alias', fm('description: d\nx: &x [1]\ny: *x'), ['invalid-yaml', 'quoted-value'], 'd'],
    [
      'prose between the fences',
      fm('description: d\n## Files\nfoo'),
      ['invalid-yaml', 'dropped-line'],
      'd',
    ],
    [
      'text before the fence',
      `<!-- x -->\n\n${fm('description: d')}`,
      ['text-before-frontmatter'],
      'd',
    ],
    [
      'a code fence around it',
      `\`\`\`md\n${fm('description: d')}\`\`\`\n`,
      ['wrapped-in-code-fence'],
      'd',
    ],
    ['no closing fence', '---\ndescription: d\n\n# Title\ntext', ['unclosed-frontmatter'], 'd'],
    [
      'longer dashes instead of a fence',
      '---\ndescription: d\n----\nB',
      ['unclosed-frontmatter'],
      'd',
    ],
  ])('%s', (_name, text, expected, description) => {
    const file = read(text);
    expect(codes(file).slice(0, expected.length)).toEqual(expected);
    expect(textField(file.data, 'description')).toBe(description);
  });

  it('keeps the entries beside the broken one', () => {
    const file = read(fm('description: x: y\nallowed-tools:\n  - Read\n  - Bash(git add *)'));
    expect(listField(file.data, 'allowed-tools')).toEqual(['Read', 'Bash(git add *)']);
  });

  it.each([
    ['LF', (text: string) => text],
    ['CRLF', (text: string) => text.replaceAll('\n', '\r\n')],
    ['CRLF and a mark', (text: string) => `\uFEFF${text.replaceAll('\n', '\r\n')}`],
    ['CR', (text: string) => text.replaceAll('\n', '\r')],
  ])('says the line of the file, with %s', (_name, write) => {
    const { problems } = read(write(fm('name: a\nx: 1\ndescription: b: c')));
    expect(problems.map(({ line }) => line)).toEqual([4, 4]);
    expect(problems[0]?.message).toMatch(/^x\/SKILL\.md:4 /);
  });
});

describe('a hostile or hopeless file', () => {
  it.each(['js', 'javascript', 'JS', 'coffee', 'json', ' toml'])(
    'does not read frontmatter in %s',
    (language) => {
      const file = read(`---${language}\n(globalThis.patchbayPwned = 1, { name: "a" })\n---\nB`);
      expect(codes(file)).toEqual(['frontmatter-language', 'no-frontmatter']);
      expect(globalThis).not.toHaveProperty('patchbayPwned');
    },
  );

  it('takes __proto__ for a plain key', () => {
    const { data } = read(fm('name: a\n__proto__:\n  polluted: 1\nconstructor: x'));
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
    expect(Object.keys(data)).toEqual(['name', '__proto__', 'constructor']);
    expect(Object.getPrototypeOf(data)).toBeNull();
  });

  it('does not run a tag', () => {
    expect(codes(read(fm('name: !!js/function "function () {}"')))).toContain('invalid-yaml');
  });

  it.each([
    ['too large', 'x'.repeat(1024 * 1024 + 1), 'file-too-large'],
    ['too much frontmatter', fm(`a: ${'x'.repeat(70_000)}`), 'frontmatter-too-large'],
    ['binary', 'a\0b', 'binary'],
  ])('refuses what is %s, and says so', (_name, text, code) => {
    const result = readFrontmatter(text, { file: 'f', source: 's' });
    expect(result).toMatchObject({ refused: { code, severity: 'error', file: 'f' } });
  });

  it('reads UTF-16 by its mark, and other bytes as well as it can', () => {
    const utf16 = read(Buffer.from(`\uFEFF${fm('name: ä')}`, 'utf16le'));
    expect([utf16.data['name'], codes(utf16)]).toEqual(['ä', ['not-utf8']]);
    expect(codes(read(Buffer.from(fm('name: \xe4'), 'latin1')))).toEqual(['not-utf8']);
    expect(read(fm('name: a', 'in\uFEFFside')).body).toBe('in\uFEFFside\n');
  });

  it.each(['', '---', '---\n---', '---\n---\n', '\n\n', '# Title'])(
    'reads %j without a crash',
    (text) => {
      expect(plain(read(text))).toEqual({});
    },
  );
});

describe('fields', () => {
  it('are found however their names are written, and booleans too', () => {
    const { data } = read(
      fm('allowed_tools: Read\nwhenToUse: now\nUser-Invocable: "No"\nflag: ON'),
    );
    expect(listField(data, 'allowed-tools')).toEqual(['Read']);
    expect(textField(data, 'when_to_use')).toBe('now');
    expect([
      booleanField(data, 'user-invocable'),
      booleanField(data, 'flag'),
      booleanField(data, 'none'),
    ]).toEqual([false, true, undefined]);
  });

  it.each([
    ['Read Grep Bash(git:*)', ['Read', 'Grep', 'Bash(git:*)']],
    ['Read, Grep, Bash(git add *)', ['Read', 'Grep', 'Bash(git add *)']],
    ['"[Read, Grep]"', ['Read', 'Grep']],
    ['[Read, Grep]', ['Read', 'Grep']],
    ['{Read: true}', []],
    ['""', []],
  ])('split the list %j', (written, list) => {
    expect(listField(read(fm(`x: ${written}`)).data, 'x')).toEqual(list);
  });
});
