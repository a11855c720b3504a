import { readFileSync } from 'node:fs';

import { readFrontmatter } from '@patchbay/files';
import matter from 'gray-matter';
import { FAILSAFE_SCHEMA, load } from 'js-yaml';
import { describe, expect, it } from 'vitest';

import { fixture } from './bench-folder.ts';
import { packageAt, skillFilesBelow } from './corpus.ts';

/** gray-matter in its safe form: no engine but YAML, with text only; without options it would cache for ever. */
function readWithGrayMatter(text: string): { data: object; content: string } | 'throws' {
  const refuse = () => {
    throw new Error('not a language of frontmatter');
  };
  const yaml = (block: string) =>
    load(block, { schema: FAILSAFE_SCHEMA, maxAliases: 0, maxDepth: 20 }) as object;
  const engines = {
    yaml,
    js: refuse,
    javascript: refuse,
    json: refuse,
    coffee: refuse,
    toml: refuse,
  };
  try {
    const { data, content } = matter(text, { language: 'yaml', engines });
    return { data, content };
  } catch {
    return 'throws';
  }
}

function readOurs(text: string) {
  const file = readFrontmatter(text, { file: 'SKILL.md', source: 'test' });
  if ('refused' in file) return { codes: [file.refused.code], data: {}, content: '' };
  return {
    codes: file.problems.map(({ code }) => code),
    data: JSON.parse(JSON.stringify(file.data)) as object,
    content: file.body,
  };
}

const lines = (text: string) => text.replaceAll('\r\n', '\n');
const fromPackages = [
  '@ant-design/x-skill',
  '@tanstack/intent',
  '@tanstack/db',
  '@tanstack/router-core',
].flatMap((name) => skillFilesBelow(packageAt(name)));

describe('beside gray-matter', () => {
  it.each(fromPackages.map((file) => [file.split('node_modules/').at(-1)!, file]))(
    'data and body of %s are the same',
    (_name, file) => {
      const text = readFileSync(file, 'utf8');
      const theirs = readWithGrayMatter(text);
      const { codes, data, content } = readOurs(text);
      expect(codes).toEqual([]);
      expect({ data, content: lines(content) }).toEqual(
        theirs === 'throws' ? theirs : { data: theirs.data, content: lines(theirs.content) },
      );
    },
  );

  const fm = (head: string) => `---\n${head}\n---\nBody\n`;
  /** Each difference there is, what they make of it, what we make of it, and why. */
  it.each<
    [why: string, text: string, theirs: 'throws' | object, ours: object, codes: readonly string[]]
  >([
    [
      'what is not YAML is read entry by entry',
      fm('name: a\ndescription: Use: it'),
      'throws',
      { name: 'a', description: 'Use: it' },
      ['invalid-yaml', 'quoted-value'],
    ],
    [
      'of a key twice the last one counts',
      fm('name: a\nname: b'),
      'throws',
      { name: 'b' },
      ['duplicate-key'],
    ],
    [
      'a blank line before the fence is skipped',
      `\n${fm('name: a')}`,
      {},
      { name: 'a' },
      ['text-before-frontmatter'],
    ],
    [
      'so is a comment',
      `<!-- c -->\n${fm('name: a')}`,
      {},
      { name: 'a' },
      ['text-before-frontmatter'],
    ],
    [
      'a fence around the document is opened',
      `\`\`\`md\n${fm('name: a')}\`\`\`\n`,
      {},
      { name: 'a' },
      ['wrapped-in-code-fence'],
    ],
    [
      'an open block ends where its entries end',
      '---\nname: a\n\n# Title\ntext',
      'throws',
      { name: 'a' },
      ['unclosed-frontmatter'],
    ],
    [
      'a fence is a whole line',
      '---\nname: a\ndescription: |\n  x\n--- no fence\n---\nBody',
      { name: 'a', description: 'x\n' },
      { name: 'a', description: 'x\n' },
      ['invalid-yaml', 'dropped-line'],
    ],
    ['an empty block is empty', '---\n---\nBody', {}, {}, []],
    [
      'another language is not read',
      '---js\n{ name: "a" }\n---\nBody',
      'throws',
      {},
      ['frontmatter-language', 'no-frontmatter'],
    ],
    [
      'an alias is text',
      fm('name: &a x\ncopy: *a'),
      'throws',
      { name: 'x', copy: '*a' },
      ['invalid-yaml'],
    ],
  ])('%s', (_why, text, theirs, ours, codes) => {
    const gray = readWithGrayMatter(text);
    expect(gray === 'throws' ? gray : gray.data).toEqual(theirs);
    const own = readOurs(text);
    expect(own.data).toEqual(ours);
    expect(own.codes.slice(0, codes.length)).toEqual(codes);
  });

  it.each([
    'skills-1525',
    'cline-12151',
    'skills-1324',
    'cezar-fork-21',
    'adk-go-1296',
    'skills-npm-43',
  ])('where they differ on %s, a problem says why', (key) => {
    for (const file of skillFilesBelow(fixture(key))) {
      const text = readFileSync(file, 'utf8');
      const theirs = readWithGrayMatter(text);
      const { codes, data } = readOurs(text);
      const same = theirs !== 'throws' && JSON.stringify(theirs.data) === JSON.stringify(data);
      // What only ends its lines with CR is one line for gray-matter; for us that is no fault of the file.
      if (!same && !/\r(?!\n)/.test(text)) expect([file, codes]).not.toEqual([file, []]);
    }
  });
});
