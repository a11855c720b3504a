import { setTimeout as delay } from 'node:timers/promises';

import type { JsonSchema, ToolAnnotations } from '@patchbay/protocols';

import type { AccessGrant } from './oauth-grants.ts';

/** A tool of a scripted server. */
export interface ScriptedTool {
  readonly name: string;
  readonly description?: string;
  /** Default: any object. */
  readonly inputSchema?: JsonSchema;
  readonly outputSchema?: JsonSchema;
  readonly annotations?: ToolAnnotations;
  /** What a call does, after it was counted. Default: the arguments as JSON text. */
  readonly onCall?: Misbehaviour | ScriptedAnswer;
}

/** Answers a call: a string is a text result, anything else is sent as the MCP result that it is. */
export type ScriptedAnswer = (
  args: Readonly<Record<string, unknown>>,
  call: ScriptedCall,
) => string | object | Promise<string | object>;

/** A call that a scripted server answers. */
export interface ScriptedCall {
  /** How often this tool was called, with this one: 1, 2 … */
  readonly execution: number;
  /** Aborted when the client cancels the call, or is gone. */
  readonly signal: AbortSignal;
  /** Sends a sign of life, if the client asked for them. */
  readonly progress: (progress: number, total?: number) => void;
  /** Sends anything, as one message: an object as JSON, a string as it is. */
  readonly send: (message: object | string) => void;
  /**
   * Asks the client, one thing at a time: `elicitation/create`, `sampling/createMessage`, `roots/list`. Legacy clients get a
   * request, modern ones a result that they answer by calling again: for the tool it is the same. Rejects if the client
   * refuses, or is gone.
   */
  readonly ask: (method: string, params: Readonly<Record<string, unknown>>) => Promise<object>;
  /** Ends this server's process, or cuts the socket of this request. */
  readonly die: () => void;
  /** What the caller's token allows, if the server has a `protection`. */
  readonly grant: AccessGrant | undefined;
}

/** What goes wrong with a call. Each but `die-before-execution` counts it first. */
export type Misbehaviour =
  /** The server is gone before it has done anything. */
  | 'die-before-execution'
  /** It has done it, and is gone before it answers. */
  | 'die-after-execution'
  /** The same, but only the first time; later calls are answered. */
  | 'die-once'
  /** No answer. */
  | 'never'
  /** The answer comes after 400 ms, with four signs of life on the way. */
  | 'slow'
  /** A JSON-RPC error, -32602. */
  | 'rpc-error'
  /** A result with `isError`. */
  | 'tool-error'
  /** Lines that are no messages, then the answer. */
  | 'garbage'
  /** Two answers. */
  | 'answer-twice'
  /** An answer to a request that nobody made, then the right one. */
  | 'wrong-id';

/** A call, with what only a misbehaving tool does. */
export interface MisbehavingCall extends ScriptedCall {
  /** Answers now, beside the answer that is still to come. */
  readonly answer: (outcome: object) => void;
}

/** Refuses a call with a JSON-RPC error. */
export class RpcError extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/** `undefined` is no answer at all. */
export type Outcome = object | undefined;

const SLOW_STEPS = 4;
const SLOW_STEP_MS = 100;

export const textOutcome = (text: string): object => ({ content: [{ type: 'text', text }] });

/** What each misbehaviour does. `die-before-execution` never comes here. */
export const MISBEHAVIOURS: Readonly<
  Record<Misbehaviour, (call: MisbehavingCall) => Outcome | Promise<Outcome>>
> = {
  'die-before-execution': (call) => {
    call.die();
    return undefined;
  },
  'die-after-execution': (call) => {
    call.die();
    return undefined;
  },
  'die-once': (call) => {
    if (call.execution > 1) return textOutcome(`execution ${call.execution}`);
    call.die();
    return undefined;
  },
  never: () => undefined,
  slow: async ({ progress, signal }) => {
    for (let step = 1; step <= SLOW_STEPS; step++) {
      progress(step, SLOW_STEPS);
      await delay(SLOW_STEP_MS, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return undefined;
    }
    return textOutcome('slow');
  },
  'rpc-error': () => {
    throw new RpcError(-32602, 'These arguments are refused.');
  },
  'tool-error': () => ({ ...textOutcome('It failed.'), isError: true }),
  garbage: ({ send }) => {
    for (const line of ['this is no JSON', '{"half": ', '{"jsonrpc":"2.0"}', '[]', 'null']) {
      send(line);
    }
    return textOutcome('after garbage');
  },
  'answer-twice': ({ answer }) => {
    answer(textOutcome('first'));
    return textOutcome('second');
  },
  'wrong-id': ({ send }) => {
    send({ jsonrpc: '2.0', id: 'nobody', result: textOutcome('for nobody') });
    return textOutcome('right');
  },
};
