import type { ContentPart, ToolResult } from '@patchbay/protocols';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';

import { planResult } from '../src/index.ts';

const PNG = 'iVBORw0KGgo=';
const plan = (content: readonly unknown[], more: Partial<ToolResult> = {}, options = {}) =>
  planResult({ content: content as ContentPart[], ...more }, options);
const words = (...texts: string[]) => texts.map((text) => ({ type: 'text', text }));

describe('what a model reads of a result', () => {
  it('is its text, part by part', () => {
    expect(plan(words('one', 'two'))).toEqual({
      text: 'one\ntwo',
      media: [],
      isError: false,
      problems: [],
    });
  });

  it.each<[string, unknown, string]>([
    ['an image', { type: 'image', mimeType: 'image/png', data: PNG }, '[image image/png, 8 bytes]'],
    [
      'a named file',
      { type: 'file', mimeType: 'application/pdf', data: PNG, name: 'a.pdf' },
      '[file a.pdf application/pdf, 8 bytes]',
    ],
    [
      'a file that providers refuse',
      { type: 'file', mimeType: 'text/csv', data: PNG, name: 'a.csv' },
      '[file a.csv text/csv, 8 bytes; not shown]',
    ],
    [
      'a text resource',
      { type: 'resource', uri: 'f://n.md', text: '# note' },
      '[resource f://n.md]\n# note',
    ],
    [
      'a binary resource',
      { type: 'resource', uri: 'f://p.png', mimeType: 'image/png', data: PNG },
      '[resource f://p.png image/png, 8 bytes]',
    ],
    [
      'a link',
      {
        type: 'resource_link',
        uri: 'f://big.csv',
        name: 'big.csv',
        mimeType: 'text/csv',
        size: 123,
        description: 'rows',
      },
      '[resource link big.csv <f://big.csv> text/csv, 123 bytes: rows]',
    ],
    ['a bare link', { type: 'resource_link', uri: 'f://x' }, '[resource link <f://x>]'],
    [
      'an unknown part',
      { type: 'hologram', raw: { beam: 1 } },
      '[part of type "hologram" that cannot be shown: it is of no kind, or has no shape, that is known]',
    ],
    [
      'no base64',
      { type: 'image', mimeType: 'image/png', data: '***' },
      '[image image/png that cannot be shown: its data is not base64]',
    ],
    [
      'no media type',
      { type: 'image', data: PNG },
      '[image that cannot be shown: it has no media type]',
    ],
    ['nothing', null, '[a part that cannot be shown: it has no type]'],
  ])('has a note for %s', (_, part, text) => {
    expect(plan([part]).text).toBe(text);
  });

  it('has media apart, once, with their kind', () => {
    const { media, text } = plan([
      { type: 'audio', mimeType: 'audio/wav', data: PNG },
      { type: 'resource', uri: 'f://d/p.png', mimeType: 'image/png', data: PNG },
      { type: 'resource', uri: 'f://d/q.pdf', mimeType: 'application/pdf', data: PNG },
      { type: 'resource', uri: 'f://z', data: PNG },
      { type: 'image', mimeType: 'image/svg+xml', data: PNG },
    ]);
    expect(media).toEqual([
      { kind: 'audio', mimeType: 'audio/wav', data: PNG },
      { kind: 'image', mimeType: 'image/png', data: PNG, name: 'p.png' },
      { kind: 'file', mimeType: 'application/pdf', data: PNG, name: 'q.pdf' },
    ]);
    expect(text).not.toContain(PNG);
  });

  it('leaves out media that are too large, or all of them', () => {
    const image = { type: 'image', mimeType: 'image/png', data: PNG };
    expect(plan([image], {}, { maxMediaBytes: 7 })).toMatchObject({
      media: [],
      text: '[image image/png, 8 bytes; not shown, more than 7 bytes]',
    });
    expect(plan([image], {}, { maxMediaBytes: 0 })).toMatchObject({
      media: [],
      text: '[image image/png, 8 bytes; not shown]',
    });
    expect(plan([image], {}, { maxMediaBytes: 8 }).media).toHaveLength(1);
  });

  it('langchain-mcp-adapters-283: has structured content where there is no text, and does not say it twice', () => {
    const structuredContent = { rows: [1, 2] };
    const json = '{"rows":[1,2]}';
    expect(plan([], { structuredContent }).text).toBe(json);
    expect(planResult({ structuredContent } as never).text).toBe(json);
    expect(plan(words('2 rows'), { structuredContent }).text).toBe('2 rows');
    expect(plan(words('2 rows'), { structuredContent }, { structured: 'both' }).text).toBe(
      `2 rows\n${json}`,
    );
    expect(plan(words('2 rows'), { structuredContent }, { structured: 'structured' }).text).toBe(
      json,
    );
    expect(
      plan([{ type: 'image', mimeType: 'image/png', data: PNG }], { structuredContent }).text,
    ).toBe(`[image image/png, 8 bytes]\n${json}`);
    expect(plan(words('ok'), { structuredContent, meta: { trace: 'hush' } }).text).not.toContain(
      'hush',
    );
  });

  it('llm-agent-231: says that it is an error, once, also where there are no words', () => {
    expect(plan(words('quota'), { isError: true })).toMatchObject({
      text: 'Error: quota',
      isError: true,
    });
    expect(plan(words('Error: quota'), { isError: true }).text).toBe('Error: quota');
    expect(plan([], { isError: true }).text).toBe('Error: The tool failed without saying why.');
    expect(plan(words('error'), {}).text).toBe('error');
  });

  it('is never empty', () => {
    expect(plan([]).text).toBe('(no output)');
    expect(plan(words('', '')).text).toBe('(no output)');
    expect(planResult(undefined as never).text).toBe('(no output)');
  });

  it('never throws, and has no base64 of a part in it, whatever the result is', () => {
    fc.assert(
      fc.property(fc.anything(), fc.array(fc.anything()), (result, content) => {
        expect(planResult(result as never).text).not.toBe('');
        expect(planResult({ content } as never).text).not.toBe('');
      }),
      { numRuns: 300 },
    );
  });
});

describe('qwen-code-2439: results have a limit', () => {
  it('cuts with a note that says how much and where the rest is', () => {
    const { text, cut } = plan(words('x'.repeat(1000)), {}, { maxResultChars: 100 });
    expect(text).toMatch(
      /^x{100}\n\[cut: 900 of 1000 characters are left out here; the whole result is kept/u,
    );
    expect(cut).toEqual({ total: 1000, shown: 100 });
  });

  it('cuts many small parts, an error, and structured content alike', () => {
    expect(
      plan(words(...Array.from({ length: 50_000 }, () => 'ab')), {}, { maxResultChars: 100 }).cut,
    ).toEqual({ total: 149_999, shown: 100 });
    expect(plan(words('x'.repeat(1000)), { isError: true }, { maxResultChars: 100 }).text).toMatch(
      /^Error: x{100}\n\[cut/u,
    );
    expect(
      plan([], { structuredContent: 'x'.repeat(1000) }, { maxResultChars: 100 }).cut,
    ).toBeDefined();
  });

  it('never splits a surrogate pair', () => {
    for (const max of [99, 100, 101, 102]) {
      const { text, cut } = plan(words('é😀'.repeat(500)), {}, { maxResultChars: max });
      expect(text).not.toMatch(/[\ud800-\udbff](?![\udc00-\udfff])/);
      expect(cut!.shown).toBeGreaterThanOrEqual(max - 1);
    }
  });

  it('is off with 0 and with Infinity, and 100,000 by default', () => {
    const long = words('x'.repeat(100_001));
    for (const maxResultChars of [0, Infinity])
      expect(plan(long, {}, { maxResultChars }).cut).toBeUndefined();
    expect(plan(long).cut).toEqual({ total: 100_001, shown: 100_000 });
  });

  it('keeps a large image out of the text', () => {
    const { text, media } = plan([
      { type: 'image', mimeType: 'image/png', data: 'QUJD'.repeat(5_000_000) },
    ]);
    expect(text.length).toBeLessThan(100);
    expect(media).toEqual([]);
  });
});
