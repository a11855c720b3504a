import {
  PatchbayError,
  type CallOptions,
  type ExtensionView,
  type JsonSchema,
} from '@patchbay/protocols';

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
  /** The turn of a run at one of its steps. */
  readonly again: (
    view: ExtensionView,
    turnId: string,
    userText: string,
  ) => ReturnType<ExtensionView['beginTurn']>;
  /** Before the calls of a step whose turn ended meanwhile. */
  readonly prepareAgain: (turn: ReturnType<ExtensionView['beginTurn']>) => Promise<unknown>;
  readonly prepare: (
    turn: ReturnType<ExtensionView['beginTurn']>,
  ) => Promise<Pick<ModelRequest, 'tools' | 'schemas' | 'instructions'>>;
  readonly answer: (
    turn: ReturnType<ExtensionView['beginTurn']>,
    name: string,
    args: Readonly<Record<string, unknown>>,
    options: CallOptions,
  ) => Promise<ModelResult>;
  readonly goesOn: (signal: AbortSignal | undefined) => boolean;
}

/** Knows as much of JSON Schema as the suite needs: numbers, and its one schema with a union. */
const validator: CallOptions['validator'] = {
  validate: (schema, args) => {
    const properties = (schema['properties'] ?? {}) as Readonly<Record<string, { type?: string }>>;
    const given = args as Readonly<Record<string, unknown>>;
    const violations = Object.entries(given)
      .filter(([key, value]) => properties[key]?.type === 'number' && typeof value !== 'number')
      .map(([key]) => `${key} must be a number`);
    const { tree, leaf } = given as { tree?: { kid?: unknown }; leaf?: unknown };
    if ('anyOf' in schema && leaf !== 'green' && typeof tree?.kid !== 'object')
      violations.push('it fits none of the alternatives');
    return violations.length === 0 ? { ok: true } : { ok: false, violations };
  },
};

/** What a model is shown of a schema. */
const shown = ({ anyOf, ...schema }: JsonSchema): JsonSchema => ({
  ...schema,
  type: 'object',
  ...(Array.isArray(anyOf)
    ? {
        properties: Object.assign(
          {},
          ...anyOf.map((branch: JsonSchema) => branch['properties']),
        ) as JsonSchema,
      }
    : {}),
});

/** What a model reads of a text. */
const cut = (text: string): string =>
  text.length < 10_000 ? text || '(nothing)' : `${text.slice(0, 9000)} of ${text.length}`;

const RIGHT: Loop = {
  begin: (view, userText) => view.beginTurn({ userText }),
  again: (view, turnId, userText) => view.beginTurn({ turnId, userText }),
  prepareAgain: (turn) => turn.prepare(),
  prepare: async (turn) => {
    const { tools, instructions } = await turn.prepare();
    return {
      tools: tools.map(({ definition }) => definition.name),
      schemas: Object.fromEntries(
        tools.map(({ definition }) => [definition.name, shown(definition.inputSchema)]),
      ),
      instructions: instructions.map(({ text }) => text).join('\n'),
    };
  },
  answer: async (turn, name, args, options) => {
    try {
      const { content, isError = false } = await turn.callTool(name, args, options);
      const text = content.map((part) => ('text' in part ? part.text : '')).join('');
      return { text: cut(text), isError };
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
          const { turnId } = loop.begin(view, userText);
          // The same one while it is open.
          const current = () => loop.again(view, turnId, userText);
          const results: Record<string, ModelResult> = {};
          while (loop.goesOn(signal)) {
            const prepared = await loop.prepare(current());
            const calls = await script({ ...prepared, userText, results: { ...results } });
            if (calls.length === 0) break;
            const turn = current();
            if (turn.current() === undefined) await loop.prepareAgain(turn);
            await Promise.all(
              calls.map(async ({ id, name, args }) => {
                const options = {
                  callId: id,
                  validator,
                  ...(signal === undefined ? {} : { signal }),
                };
                results[id] = await loop.answer(turn, name, args, options);
              }),
            );
          }
          await current().close();
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
    subject: adapter({ prepare: async () => ({ tools: [], schemas: {}, instructions: '' }) }),
    says: /tools on offer/,
  },
  'hands arguments to a tool, and its result to the model': {
    subject: wrongResult((result) => ({ ...result, text: JSON.stringify(result.text) })),
    says: /The result/,
  },
  'tells a tool which call of the model it answers': {
    subject: adapter({
      answer: (turn, name, args) => RIGHT.answer(turn, name, args, { validator }),
    }),
    says: /ids of the calls/,
  },
  'shows arguments as an object whatever their schema is, and checks them as its author wrote it': {
    subject: adapter({
      prepare: async (turn) => {
        const { tools } = await turn.prepare();
        const schemas = tools.map(({ definition }) => [definition.name, definition.inputSchema]);
        return { ...(await RIGHT.prepare(turn)), schemas: Object.fromEntries(schemas) };
      },
    }),
    says: /type that the model is shown/,
  },
  'offers at the next step what came, changed or went during a run': {
    subject: preparingOnce,
    says: /step by step/,
  },
  'keeps the order of the view: tools by name, static instructions before dynamic ones': {
    subject: adapter({
      prepare: async (turn) => {
        const { tools, ...prepared } = await RIGHT.prepare(turn);
        return { ...prepared, tools: tools.toReversed() };
      },
    }),
    says: /tools on offer/,
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
  'lets the other calls of a step go on when one of them fails': {
    subject: () => {
      const stop = new AbortController();
      return adapter({
        answer: async (turn, name, args, options) => {
          const result = await RIGHT.answer(turn, name, args, { ...options, signal: stop.signal });
          if (result.isError) stop.abort();
          return result;
        },
      })();
    },
    says: /Its neighbour/,
  },
  'shows a text for a result without any, and cuts one that is huge, and says so': {
    subject: wrongResult((result) => ({ ...result, text: result.text.slice(0, 5000) })),
    says: /how long/,
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
        const prepared = await RIGHT.prepare(turn);
        return { ...prepared, tools: [...prepared.tools, 't__secret'] };
      },
    }),
    says: /tools on offer/,
  },
  'goes on with a turn that ended while the model thought: what it hides stays hidden': {
    subject: adapter({ prepareAgain: async () => undefined }),
    says: /That the call is refused/,
  },
  'does not mix what runs of one agent at the same time see': {
    subject: adapter({ again: (view, _, userText) => view.beginTurn({ userText, turnId: 'one' }) }),
    says: /tools on offer to|instructions for/,
  },
  'ends a run that is aborted: its tool is told, the model is not asked again': {
    subject: adapter({ goesOn: () => true }),
    says: /Requests to the model/,
  },
});
