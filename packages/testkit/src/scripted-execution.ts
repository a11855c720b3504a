import type { Message, ScriptedState, Wire } from './scripted-session.ts';
import {
  MISBEHAVIOURS,
  textOutcome,
  type MisbehavingCall,
  type Outcome,
  type ScriptedTool,
} from './scripted-tool.ts';

/** A request that an execution answers. */
interface Turn {
  readonly wire: Wire;
  readonly params: Readonly<Record<string, unknown>>;
  /** As the protocol wants the result of this request. */
  readonly response: (outcome: object) => object;
}

type Waiting = Turn & {
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
};

/**
 * One execution of a tool. It outlives the request that began it when it asks its client something: a modern client
 * answers by sending the request again.
 */
export class ScriptedExecution {
  readonly #state: ScriptedState;
  readonly #tool: ScriptedTool;
  readonly #controller = new AbortController();
  #turn: Waiting | undefined;

  constructor(state: ScriptedState, tool: ScriptedTool) {
    this.#state = state;
    this.#tool = tool;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(): void {
    this.#controller.abort();
  }

  /** Answers a request: the first one begins the execution, the next ones bring what it asked for. */
  answer(turn: Turn): Promise<Outcome> {
    const isFirst = this.#turn === undefined;
    return new Promise((resolve, reject) => {
      const waiting = { ...turn, resolve, reject };
      this.#turn = waiting;
      if (isFirst) void this.#run(waiting);
      else this.#hear(turn.params['inputResponses'] as Record<string, object> | undefined);
    });
  }

  async #run({ params, wire }: Waiting): Promise<void> {
    const { name, onCall } = this.#tool;
    const before = this.#state.executions.get(name) ?? 0;
    const execution = onCall === 'die-before-execution' ? before : before + 1;
    this.#state.executions.set(name, execution);
    const call: MisbehavingCall = {
      execution,
      signal: this.signal,
      grant: wire.grant,
      send: (message) => this.#turn?.wire.send(message),
      die: () => this.#turn?.wire.die(),
      answer: (outcome) => this.#turn?.wire.send(this.#turn.response(outcome)),
      progress: (progress, total) => this.#progress(progress, total),
      ask: (method, asked) => this.#ask(method, asked),
    };
    const args = (params['arguments'] ?? {}) as Record<string, unknown>;
    try {
      const outcome = await outcomeOf(onCall, args, call);
      this.#turn?.resolve(outcome);
    } catch (error) {
      this.#turn?.reject(error);
    }
  }

  #progress(progress: number, total: number | undefined): void {
    const meta = this.#turn?.params['_meta'] as Record<string, unknown> | undefined;
    const progressToken = meta?.['progressToken'];
    if (progressToken === undefined) return;
    const body = { progressToken, progress, ...(total === undefined ? {} : { total }) };
    this.#turn?.wire.send({ jsonrpc: '2.0', method: 'notifications/progress', params: body });
  }

  async #ask(method: string, params: Readonly<Record<string, unknown>>): Promise<object> {
    const { id, answer } = question(this.#state, this.signal);
    if (this.#state.era === 'legacy') {
      this.#turn?.wire.send({ jsonrpc: '2.0', id, method, params });
    } else {
      this.#state.suspended.set(id, this);
      const inputRequests = { [id]: { method, params } };
      this.#turn?.resolve({ resultType: 'input_required', inputRequests, requestState: id });
    }
    return await answer;
  }

  #hear(responses: Readonly<Record<string, object>> = {}): void {
    for (const [id, result] of Object.entries(responses)) this.#state.asked.get(id)?.({ result });
  }
}

/** A question to a client: its id, and what the client will answer to it. */
export function question(
  { asked }: ScriptedState,
  signal?: AbortSignal,
): { readonly id: string; readonly answer: Promise<object> } {
  const id = `question-${globalThis.crypto.randomUUID()}`;
  const answer = new Promise<object>((resolve, reject) => {
    signal?.addEventListener('abort', () => reject(new Error('The client is gone.')), {
      once: true,
    });
    asked.set(id, ({ result, error }: Pick<Message, 'result' | 'error'>) => {
      asked.delete(id);
      if (result !== undefined) resolve(result);
      else reject(new Error(`The client refused: ${JSON.stringify(error)}`));
    });
  });
  return { id, answer };
}

async function outcomeOf(
  onCall: ScriptedTool['onCall'],
  args: Readonly<Record<string, unknown>>,
  call: MisbehavingCall,
): Promise<Outcome> {
  if (onCall === undefined) return textOutcome(JSON.stringify(args));
  if (typeof onCall === 'string') return await MISBEHAVIOURS[onCall](call);
  const answer = await onCall(args, call);
  return typeof answer === 'string' ? textOutcome(answer) : answer;
}
