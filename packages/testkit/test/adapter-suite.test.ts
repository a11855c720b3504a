import { PatchbayError, type CallOptions, type ExtensionView } from '@patchbay/protocols';

import {
  adapterSuite,
  type AdapterSubject,
  type ModelRequest,
  type ModelResult,
  type ScriptedAgent,
} from '../src/index.ts';
import { prove } from './prove.ts';

/** What a framework's loop does with a view, in the smallest way; each part can be replaced by a broken one. */
interface Loop {
  readonly begin: (view: ExtensionView, userText: string) => ReturnType<ExtensionView['beginTurn']>;
  readonly prepare: (
    turn: ReturnType<ExtensionView['beginTurn']>,
  ) => Promise<Pick<ModelRequest, 'tools' | 'instructions'>>;
  readonly answer: (
    turn: ReturnType<ExtensionView['beginTurn']>,
    name: string,
    args: Readonly<Record<string, unknown>>,
    options: CallOptions,
  ) => Promise<ModelResult>;
  readonly goesOn: (signal: AbortSignal | undefined) => boolean;
}

/** Knows as much of JSON Schema as the suite needs: numbers. */
const validator: CallOptions['validator'] = {
  validate: (schema, args) => {
    const properties = (schema['properties'] ?? {}) as Readonly<Record<string, { type?: string }>>;
    const violations = Object.entries(args as Readonly<Record<string, unknown>>)
      .filter(([key, value]) => properties[key]?.type === 'number' && typeof value !== 'number')
      .map(([key]) => `${key} must be a number`);
    return violations.length === 0 ? { ok: true } : { ok: false, violations };
  },
};

const RIGHT: Loop = {
  begin: (view, userText) => view.beginTurn({ userText }),
  prepare: async (turn) => {
    const { tools, instructions } = await turn.prepare();
    return {
      tools: tools.map(({ definition }) => definition.name),
      instructions: instructions.map(({ text }) => text).join('\n'),
    };
  },
  answer: async (turn, name, args, options) => {
    try {
      const { content, isError = false } = await turn.callTool(name, args, options);
      return { text: content.map((part) => ('text' in part ? part.text : '')).join(''), isError };
    } catch (error) {
      if (!PatchbayError.isInstance(error)) throw error;
      return { text: error.message, isError: true };
    }
  },
  goesOn: (signal) => signal?.aborted !== true,
};

const adapter =
  (more: Partial<Loop> = {}) =>
  (): AdapterSubject => {
    const loop = { ...RIGHT, ...more };
    return {
      agent: (view, script): ScriptedAgent => {
        return async ({ userText, signal }) => {
          const turn = loop.begin(view, userText);
          const results: Record<string, ModelResult> = {};
          while (loop.goesOn(signal)) {
            const prepared = await loop.prepare(turn);
            const calls = await script({ ...prepared, userText, results: { ...results } });
            if (calls.length === 0) break;
            const options = { validator, ...(signal === undefined ? {} : { signal }) };
            await Promise.all(
              calls.map(async ({ id, name, args }) => {
                results[id] = await loop.answer(turn, name, args, options);
              }),
            );
          }
          await turn.close();
        };
      },
    };
  };

/** A loop that keeps what it prepared first. */
const preparingOnce = (): AdapterSubject => {
  const known = new WeakMap<object, ReturnType<Loop['prepare']>>();
  return adapter({
    prepare: (turn) => {
      const first = known.get(turn) ?? RIGHT.prepare(turn);
      known.set(turn, first);
      return first;
    },
  })();
};

const wrongResult = (change: (result: ModelResult) => ModelResult) =>
  adapter({ answer: async (...call) => change(await RIGHT.answer(...call)) });

prove(adapterSuite, adapter(), {
  'offers the tools and the instructions of the view': {
    subject: adapter({ prepare: async () => ({ tools: [], instructions: '' }) }),
    says: /tools on offer/,
  },
  'hands arguments to a tool, and its result to the model': {
    subject: wrongResult((result) => ({ ...result, text: JSON.stringify(result.text) })),
    says: /The result/,
  },
  'offers at the next step what came, changed or went during a run': {
    subject: preparingOnce,
    says: /step by step/,
  },
  'gives the instructions of now at each step, and piles up nothing': {
    subject: () => {
      const before: string[] = [];
      return adapter({
        prepare: async (turn) => {
          const prepared = await RIGHT.prepare(turn);
          before.push(prepared.instructions);
          return { ...prepared, instructions: before.join('\n') };
        },
      })();
    },
    says: /step by step/,
  },
  'answers the model with an error, and goes on, when a tool throws': {
    subject: adapter({
      answer: async (turn, name, args, options) => ({
        text: JSON.stringify(await turn.callTool(name, args, options)),
        isError: false,
      }),
    }),
    says: /boom/,
  },
  'answers the model with what a tool calls an error, marked as one': {
    subject: wrongResult((result) => ({ ...result, isError: false })),
    says: /No such city/,
  },
  'answers bad arguments with what is wrong, without running the tool': {
    subject: adapter({ answer: (turn, name, args) => RIGHT.answer(turn, name, args, {}) }),
    says: /How often the tool ran/,
  },
  'answers a call of a tool that went away since it was offered': {
    subject: adapter({
      answer: async (turn, name, args, options) => {
        const offered = turn.current()?.tools.find(({ definition }) => definition.name === name);
        await offered?.call(args, { scope: {}, callId: '1' });
        return RIGHT.answer(turn, offered === undefined ? name : 't__stays', args, options);
      },
    }),
    says: /t__gone/,
  },
  'neither offers nor runs a tool that is hidden in this turn': {
    subject: adapter({
      prepare: async (turn) => {
        const { tools, instructions } = await RIGHT.prepare(turn);
        return { tools: [...tools, 't__secret'], instructions };
      },
    }),
    says: /tools on offer/,
  },
  'does not mix what runs of one agent at the same time see': {
    subject: adapter({ begin: (view, userText) => view.beginTurn({ userText, turnId: 'one' }) }),
    says: /tools on offer to|instructions for/,
  },
  'ends a run that is aborted: its tool is told, the model is not asked again': {
    subject: adapter({ goesOn: () => true }),
    says: /Requests to the model/,
  },
});
