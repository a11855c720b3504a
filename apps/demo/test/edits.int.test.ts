import { mkdir, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { aiSdk } from '@patchbay/ai-sdk';
import { createHost } from '@patchbay/host';
import { langchain } from '@patchbay/langchain';
import { defineTool, type ExtensionView } from '@patchbay/protocols';
import { ToolLoopAgent } from 'ai';
import { MockLanguageModelV4 } from 'ai/test';
import { AIMessage, createAgent, fakeModel, HumanMessage } from 'langchain';
import { describe, expect, it } from 'vitest';

/** Runs an agent that calls the tool `edit` at its first step, and says what it was told at each one. */
type Run = (view: ExtensionView) => Promise<readonly string[]>;

const aiSdkRun: Run = async (view) => {
  const seen: string[] = [];
  const model = new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      seen.push(JSON.stringify(prompt.filter(({ role }) => role === 'system')));
      const first = seen.length === 1;
      return {
        content: [
          first
            ? { type: 'tool-call', toolCallId: '1', toolName: 'editor__edit', input: '{}' }
            : { type: 'text', text: 'done' },
        ],
        finishReason: { unified: first ? 'tool-calls' : 'stop', raw: undefined },
        usage: {
          inputTokens: { total: 1, noCache: 1, cacheRead: undefined, cacheWrite: undefined },
          outputTokens: { total: 1, text: 1, reasoning: undefined },
        },
        warnings: [],
      };
    },
  });
  await new ToolLoopAgent({ model, ...aiSdk(view) }).generate({ prompt: 'go' });
  return seen;
};

const langchainRun: Run = async (view) => {
  const model = fakeModel()
    .respondWithTools([{ name: 'editor__edit', args: {}, id: '1' }])
    .respond(new AIMessage('done'));
  const agent = createAgent({ model, ...langchain(view) });
  await agent.invoke({ messages: [new HumanMessage('go')] });
  return model.calls.map(({ messages }) => JSON.stringify(messages[0]?.content));
};

const text = (description: string) => `---\nname: a\ndescription: ${description}\n---\nBody.\n`;

describe.each([
  { framework: 'the AI SDK', run: aiSdkRun },
  { framework: 'LangChain', run: langchainRun },
])('an edit under a run of $framework', ({ run }) => {
  it.each([
    { who: 'nobody listens', listens: false },
    { who: 'somebody listens', listens: true },
  ])('is in front of the model at its next step, where $who', async ({ listens }) => {
    const cwd = await mkdtemp(join(tmpdir(), 'patchbay-edits-'));
    const skill = join(cwd, '.agents/skills/a');
    await mkdir(skill, { recursive: true });
    await mkdir(join(cwd, '.git'));
    await writeFile(join(skill, 'SKILL.md'), text('Before.'));
    const end = new AbortController();
    try {
      await using host = await createHost({ cwd, home: false, env: {} });
      await using session = await host.openSession('s');
      const view = session.view();
      await view.compile();
      const events = listens
        ? view.changes({ signal: end.signal })[Symbol.asyncIterator]()
        : undefined;
      const edit = defineTool({
        capability: 'editor',
        name: 'edit',
        description: 'Edits a skill.',
        inputSchema: { type: 'object', properties: {} },
        call: async () => {
          await writeFile(join(skill, '.SKILL.md.new'), text('After.'));
          await rename(join(skill, '.SKILL.md.new'), join(skill, 'SKILL.md'));
          for (let told = events === undefined; !told;) {
            const { value } = await events!.next();
            told = (value as { readonly sourceUri?: string }).sourceUri === 'skill://a/SKILL.md';
          }
          return 'edited';
        },
      });
      host.registry.register({ id: 'editor', tools: async () => [edit] });
      const [before, after] = await run(view);
      expect(before).toContain('Before.');
      expect(after).toContain('After.');
      expect(after).not.toContain('Before.');
    } finally {
      end.abort();
      await rm(cwd, { recursive: true, force: true });
    }
  });
});
