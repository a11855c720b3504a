import {
  defineTool,
  PatchbayError,
  textResult,
  type CallOptions,
  type CallTool,
  type ExtensionView,
} from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import { fakeView } from '@patchbay/testkit';
import { expect, it } from 'vitest';

const tool = (name: string, call: Parameters<typeof defineTool>[0]['call']) =>
  defineTool({ capability: 't', name, call });

const CONTENTS = {
  tools: [
    tool('works', () => 'ok'),
    tool('fails', () => textResult('no', { isError: true })),
    tool('throws', () => {
      throw new TypeError('boom');
    }),
    tool('refuses', () => {
      throw new PatchbayError('unavailable', 'Not now.');
    }),
    tool('hidden', () => 'never'),
    tool('aborts', async (_, { signal }) => {
      await new Promise((resolve) => signal?.addEventListener('abort', resolve, { once: true }));
      throw new Error('stopped');
    }),
  ],
  instructions: [
    { source: 't', kind: 'dynamic', text: 'now' },
    { source: 't', kind: 'static', text: 'always' },
  ],
} as const;
const HIDE = { hide: ['t__hidden'] };

/** What a caller sees of a call. */
async function outcome(callTool: CallTool, name: string, options?: CallOptions): Promise<unknown> {
  try {
    return await callTool(name, {}, options);
  } catch (error) {
    if (!PatchbayError.isInstance(error)) throw error;
    const { code, source, cause } = error;
    return { code, source, cause };
  }
}

/** What an adapter sees of a view. */
async function seenOf(view: ExtensionView): Promise<unknown> {
  const turn = view.beginTurn({ userText: 'hello' });
  const step = await turn.prepare();
  const invalid: CallOptions['validator'] = {
    validate: () => ({ ok: false, violations: ['x is missing'] }),
  };
  const later = new AbortController();
  const aborting = outcome(turn.callTool, 't__aborts', { signal: later.signal });
  setImmediate(() => later.abort('bye'));
  const names = ['works', 'fails', 'throws', 'refuses', 'hidden', 'unknown'];
  return {
    tools: step.tools.map(({ definition }) => definition),
    instructions: step.instructions,
    outcomes: await Promise.all(names.map((name) => outcome(turn.callTool, `t__${name}`))),
    invalid: await outcome(turn.callTool, 't__works', { validator: invalid }),
    aborted: await outcome(turn.callTool, 't__works', { signal: AbortSignal.abort('bye') }),
    aborting: await aborting,
  };
}

it('a fake view answers an adapter as a view of a registry does', async () => {
  await using registry = new ExtensionRegistry();
  registry.register({
    id: 't',
    tools: async () => CONTENTS.tools,
    instructions: async () => CONTENTS.instructions,
    prepareTurn: async () => HIDE,
  });
  await using real = registry.view();
  await using fake = fakeView({ ...CONTENTS, turn: () => HIDE });
  expect(await seenOf(fake)).toEqual(await seenOf(real));
});
