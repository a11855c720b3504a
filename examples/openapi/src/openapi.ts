import {
  changeSource,
  PatchbayError,
  textResult,
  type CallContext,
  type Capability,
  type ChangeObservable,
  type CompileContext,
  type Identity,
  type Problem,
  type ToolDefinition,
  type ToolResult,
  type ToolSource,
} from '@patchbay/protocols';

import { readOperations, type Operation } from './operations.ts';
import { toRequest } from './to-request.ts';

/** What {@link OpenApi} takes. */
export interface OpenApiOptions {
  /** Unique in its scope; part of the tool names that a model sees. */
  readonly id: string;
  /** Gives an OpenAPI 3 document, parsed. Asked at first use, and again after `refresh()`. */
  readonly document: () => Promise<object>;
  /** Where the service is, as an absolute URL. What the document says about that is not followed. */
  readonly baseUrl: string;
  /** Sent with each request: credentials of whoever calls. */
  readonly headers?: (identity: Identity | undefined) => Readonly<Record<string, string>>;
  readonly fetch?: typeof fetch;
}

/** How long a service may take, in milliseconds, where the call does not say. */
const TIMEOUT = 60_000;

/** Each operation of an OpenAPI document as a tool. */
export class OpenApi implements Capability, ToolSource, ChangeObservable {
  readonly id: string;
  readonly revision: ChangeObservable['revision'];
  readonly changes: ChangeObservable['changes'];
  /** The document may be another now: it is read again at the next look. */
  readonly refresh: () => void;
  readonly #options: OpenApiOptions;
  #loaded: Promise<Loaded> | undefined;
  #last: Loaded['operations'] = new Map();

  constructor(options: OpenApiOptions) {
    this.id = options.id;
    this.#options = options;
    const source = changeSource(this.id);
    this.revision = source.revision;
    this.changes = source.subscribe;
    this.refresh = () => {
      this.#loaded = undefined;
      source.emit('tools_changed');
    };
  }

  async listTools(context: CompileContext): Promise<readonly ToolDefinition[]> {
    const { operations, problems } = await this.#load();
    for (const problem of problems) context.report(problem);
    return [...operations.values()].map(({ definition }) => definition);
  }

  /** @throws PatchbayError `tool-unavailable`, `invalid-arguments`, `aborted`, `timeout`, `unavailable`, `outcome-unknown` */
  async callTool(name: string, args: unknown, context?: CallContext): Promise<ToolResult> {
    const { baseUrl, headers, fetch: send = fetch } = this.#options;
    const operation = (await this.#load()).operations.get(name);
    if (operation === undefined) {
      throw this.#error('tool-unavailable', `${this.id} has no operation ${name}.`);
    }
    const { url, ...init } = toRequest(operation, baseUrl, (args ?? {}) as Record<string, unknown>);
    const timeout = AbortSignal.timeout(context?.timeoutMs ?? TIMEOUT);
    const own = headers?.(context?.identity) ?? {};
    try {
      const response = await send(url, {
        ...init,
        headers: { ...init.headers, ...own },
        redirect: 'manual', // credentials stay with the service
        signal: AbortSignal.any([timeout, ...(context?.signal ? [context.signal] : [])]),
      });
      return await toResult(response);
    } catch (cause) {
      if (context?.signal?.aborted === true) {
        throw this.#error('aborted', `The call of ${name} was aborted.`, context.signal.reason);
      }
      if (timeout.aborted) throw this.#error('timeout', `${url.host} did not answer.`, cause);
      throw operation.definition.annotations?.readOnlyHint === true
        ? this.#error('unavailable', `${url.host} cannot be reached. Is the service up?`, cause)
        : this.#error('outcome-unknown', `${url.host} was lost: ${name} may have run.`, cause);
    }
  }

  #load(): Promise<Loaded> {
    this.#loaded ??= this.#read().catch((error: unknown) => {
      this.#loaded = undefined; // tried again at the next look
      throw error;
    });
    return this.#loaded;
  }

  async #read(): Promise<Loaded> {
    const problems: Problem[] = [];
    const read = await readOperations(await this.#options.document(), (code, message) =>
      problems.push({ source: this.id, code, message, severity: 'warning' }),
    );
    // What did not change keeps its definition object, so that nothing is made anew from it.
    const operations = new Map(
      [...read].map(([name, operation]) => {
        const last = this.#last.get(name);
        return [name, last !== undefined && isSame(last, operation) ? last : operation];
      }),
    );
    this.#last = operations;
    return { operations, problems };
  }

  #error(code: string, message: string, cause?: unknown): PatchbayError {
    return new PatchbayError(code, message, { source: this.id, cause });
  }
}

interface Loaded {
  readonly operations: ReadonlyMap<string, Operation>;
  readonly problems: readonly Problem[];
}

const isSame = (a: Operation, b: Operation) => JSON.stringify(a) === JSON.stringify(b);

async function toResult(response: Response): Promise<ToolResult> {
  const text = await response.text();
  if (!response.ok) {
    return textResult(`${response.status} ${response.statusText}\n${text}`.trim(), {
      isError: true,
    });
  }
  if (!/\bjson\b/u.test(response.headers.get('content-type') ?? '')) return textResult(text);
  try {
    return textResult(text, { structuredContent: JSON.parse(text) });
  } catch {
    return textResult(text);
  }
}
