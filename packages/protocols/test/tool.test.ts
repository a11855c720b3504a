import { createHash } from 'node:crypto';

import {
  defineTool,
  exposedToolName,
  toolsFromSource,
  type CallContext,
  type Tool,
  type ToolDefinition,
} from '@patchbay/protocols';
import { describe, expect, it } from 'vitest';

const context: CallContext = { scope: {}, callId: '1' };

describe('the name that a model sees', () => {
  const name = (capability: string, tool: string) => exposedToolName({ capability, name: tool });
  const hash = (capability: string, tool: string) =>
    createHash('sha256').update(`${capability}\0${tool}`).digest('hex').slice(0, 8);

  it('is capability and tool, as they are where that is safe', () => {
    expect(name('github', 'create_issue')).toBe('github__create_issue');
    expect(name('a', '__b')).toBe('a____b');
    expect(name('x'.repeat(30), 'y'.repeat(32))).toHaveLength(64);
  });

  it.each([
    ['my server', 'do'],
    ['github', 'a.b/c'],
    ['github', 'Größe'],
    ['a__b', 'c'],
    ['a_', 'b'],
    ['a', 'x'.repeat(62)],
    ['a', ''],
  ])('is cut to 55 and gets a hash: %s, %s', (capability, tool) => {
    const exposed = name(capability, tool);
    expect(exposed).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(exposed.endsWith(`_${hash(capability, tool)}`)).toBe(true);
    expect(exposed.length).toBeLessThanOrEqual(64);
  });

  it('differs where a separator could be read in two ways', () => {
    const pairs = [
      ['a', 'b__c'],
      ['a__b', 'c'],
      ['a_', '_c'],
      ['a', '__c'],
      ['a__', 'c'],
      ['a.b', 'c'],
      ['a/b', 'c'],
      ['a_b', 'c'],
    ] as const;
    expect(new Set(pairs.map(([c, t]) => name(c, t))).size).toBe(pairs.length);
  });
});

describe('defineTool', () => {
  it('makes a frozen tool with an empty object schema', () => {
    const tool = defineTool({ capability: 'a', name: 'x', description: 'X', call: () => 'x' });
    expect(tool).toMatchObject({
      id: { capability: 'a', name: 'x' },
      definition: {
        name: 'a__x',
        description: 'X',
        inputSchema: { type: 'object', properties: {} },
      },
    });
    expect(Object.isFrozen(tool) && Object.isFrozen(tool.definition)).toBe(true);
    expect(() => defineTool({ capability: 'a', name: '', call: () => 'x' })).toThrow(
      expect.objectContaining({ code: 'tool-name' }),
    );
  });

  it.each([
    ['text', { content: [{ type: 'text', text: 'text' }] }],
    [undefined, { content: [] }],
    [3, { content: [{ type: 'text', text: '3' }], structuredContent: 3 }],
    [{ n: 1 }, { content: [{ type: 'text', text: '{"n":1}' }], structuredContent: { n: 1 } }],
    [[1], { content: [{ type: 'text', text: '[1]' }], structuredContent: [1] }],
    [
      { content: [], isError: true },
      { content: [], isError: true },
    ],
  ])('takes %j for a result', async (returned, result) => {
    const tool = defineTool({ capability: 'a', name: 'x', call: () => returned });
    expect(await tool.call({}, context)).toEqual(result);
  });

  it('hands on no arguments as an empty object', async () => {
    const tool = defineTool({ capability: 'a', name: 'x', call: (args) => Object.keys(args) });
    expect((await tool.call(undefined, context)).structuredContent).toEqual([]);
  });
});

describe('toolsFromSource', () => {
  it('keeps one tool per definition object and calls by the source name', async () => {
    const calls: unknown[] = [];
    const source = {
      listTools: async () => [],
      callTool: async (name: string, args: unknown) => {
        calls.push([name, args]);
        return { content: [] };
      },
    };
    const definition: ToolDefinition = { name: 'a.b', inputSchema: { type: 'object' } };
    const known = new WeakMap<ToolDefinition, Tool>();
    const [tool] = toolsFromSource('s', source, [definition], known);
    expect(toolsFromSource('s', source, [definition, { ...definition, name: 'c' }], known)[0]).toBe(
      tool,
    );
    expect(tool?.definition.name).toBe(exposedToolName({ capability: 's', name: 'a.b' }));
    await tool?.call({ x: 1 }, context);
    expect(calls).toEqual([['a.b', { x: 1 }]]);
  });
});
