import { HumanMessage } from '@langchain/core/messages';
import { commands, langchain } from '@patchbay/langchain';
import type { Capability, CommandResource, PromptMessage } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { createAgent } from 'langchain';
import { describe, expect, it } from 'vitest';

import { kinds, script } from './script.ts';

const PNG = 'iVBORw0KGgo=';

/** One command, `/review`. */
const review = (
  messages: (raw: string) => readonly PromptMessage[],
): Capability & CommandResource => ({
  id: 'c',
  listCommands: async () => [{ name: 'review', description: 'R.', origin: 'here', kind: 'prompt' }],
  getCommand: async (_name, { raw }) => ({ messages: messages(raw) }),
});

describe('a slash command of the user', () => {
  it('becomes its prompt, which the model gets and skills are chosen by', async () => {
    await using registry = new ExtensionRegistry();
    const said: (string | undefined)[] = [];
    registry.register(
      review((raw) => [
        { role: 'assistant', content: [{ type: 'text', text: 'Understood.' }] },
        {
          role: 'user',
          content: [
            { type: 'text', text: `Review ${raw}.` },
            { type: 'image', mimeType: 'image/png', data: PNG },
          ],
        },
      ]),
    );
    registry.register({
      id: 'watch',
      prepareTurn: async ({ userText }) => (said.push(userText), undefined),
    });
    const view = registry.view();
    const messages = await commands(view, [
      { role: 'user', content: 'Before.' },
      new HumanMessage('/review b.ts'),
    ]);
    const model = script([]);
    await createAgent({ model, ...langchain(view) }).invoke({ messages });
    const shown = model.calls[0]?.messages ?? [];
    expect(kinds(shown)).toBe('human,ai,human');
    expect(shown.at(-1)?.content).toEqual([
      { type: 'text', text: 'Review b.ts.\n[image image/png, 8 bytes]' },
      { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
    ]);
    expect(said).toEqual([expect.stringContaining('Review b.ts.')]);
  });

  it('that is none, or stands before something else, is left as it is', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(review(() => []));
    const answered = [
      { role: 'user', content: '/review' },
      { role: 'assistant', content: 'x' },
    ];
    const texts = (await commands(registry.view(), answered)).map(({ text }) => text);
    expect(texts).toEqual(['/review', 'x']);
    expect(await commands(registry.view(), [])).toEqual([]);
  });

  it('that nobody knows is an error for the user', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(review(() => []));
    await expect(commands(registry.view(), [new HumanMessage('/reveiw it')])).rejects.toMatchObject(
      {
        code: 'command-unknown',
        message: expect.stringContaining('Did you mean /review?'),
        details: { suggestions: ['review'] },
      },
    );
  });
});
