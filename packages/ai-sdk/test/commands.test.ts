import type { Capability, CommandResource, PromptMessage } from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import type { ModelMessage } from 'ai';
import { describe, expect, it } from 'vitest';

import { aiSdk, commands } from '../src/index.ts';
import { MAJORS, scripted, text } from './majors.ts';

const PNG = 'iVBORw0KGgo=';

/** One command, `/review`. */
const review = (
  messages: (raw: string) => readonly PromptMessage[],
): Capability & CommandResource => ({
  id: 'c',
  listCommands: async () => [{ name: 'review', description: 'R.', origin: 'here', kind: 'prompt' }],
  getCommand: async (_name, { raw }) => ({ messages: messages(raw) }),
});

const user = (said: string): ModelMessage => ({ role: 'user', content: said });

describe.each(MAJORS)('a slash command of the user, in ai $major', (major) => {
  it('becomes its prompt, which the model gets and skills are chosen by', async () => {
    await using registry = new ExtensionRegistry();
    const said: (string | undefined)[] = [];
    registry.register(
      review((raw) => [
        { role: 'user', content: [{ type: 'text', text: 'An example.' }] },
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
    const messages = await commands(view, [user('/review a.ts'), user('/review b.ts')]);
    const { model, seen } = scripted(major, [[text('done')]]);
    await new major.ai.ToolLoopAgent({ model, ...aiSdk(view) }).generate({ messages });
    expect(seen[0]?.prompt.map(({ role }) => role)).toEqual(['user', 'user', 'assistant', 'user']);
    const shown = JSON.stringify(seen[0]?.prompt);
    expect(shown).toContain('Review b.ts.');
    expect(shown.split(PNG)).toHaveLength(2);
    expect(said).toEqual([expect.stringContaining('Review b.ts.')]);
  });

  it('that is none, or stands before something else, is left as it is', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(review(() => []));
    const view = registry.view();
    const answered: ModelMessage[] = [user('/review'), { role: 'assistant', content: 'x' }];
    for (const messages of [[user('hello')], answered, []])
      expect(await commands(view, messages)).toEqual(messages);
  });

  it('that nobody knows is an error for the user', async () => {
    await using registry = new ExtensionRegistry();
    registry.register(review(() => []));
    await expect(commands(registry.view(), [user('/reveiw it')])).rejects.toMatchObject({
      code: 'command-unknown',
      message: expect.stringContaining('Did you mean /review?'),
      details: { suggestions: ['review'] },
    });
  });
});
