import {
  changeSource,
  PatchbayError,
  textResult,
  type CallContext,
  type Capability,
  type ChangeObservable,
  type CompileContext,
  type ToolDefinition,
  type ToolResult,
  type ToolSource,
} from '@patchbay/protocols';

/** Something that the backend can do. */
export interface Action {
  readonly name: string;
  readonly description: string;
}

/** How the capability reaches its data. It is handed in, so that a test can hand in another one. */
export interface CapabilityNameBackend {
  actions(signal?: AbortSignal): Promise<readonly Action[]>;
  /** Rejects if it failed; the model reads why. */
  run(name: string, input: string, signal?: AbortSignal): Promise<string>;
  /** Calls the listener when the actions are others. Returns what ends it. */
  onChange(listener: () => void): () => void;
}

/** What {@link CapabilityName} takes. */
export interface CapabilityNameOptions {
  /** Unique in its scope; part of the tool names that a model sees. */
  readonly id: string;
  readonly backend: CapabilityNameBackend;
}

/** Each action of a backend as a tool. Nothing is asked of the backend before somebody compiles a view, or calls a tool. */
export class CapabilityName implements Capability, ToolSource, ChangeObservable {
  readonly id: string;
  readonly revision: ChangeObservable['revision'];
  readonly changes: ChangeObservable['changes'];
  readonly #backend: CapabilityNameBackend;
  /** An unchanged tool keeps its definition object. */
  #known = new Map<string, ToolDefinition>();

  constructor({ id, backend }: CapabilityNameOptions) {
    this.id = id;
    this.#backend = backend;
    // Attached to the backend while somebody listens, and no longer.
    const source = changeSource(id, (emit) => backend.onChange(() => emit('tools_changed')));
    this.revision = source.revision;
    this.changes = source.subscribe;
  }

  async listTools({ signal }: CompileContext): Promise<readonly ToolDefinition[]> {
    return await this.#list(signal);
  }

  /** @throws PatchbayError `tool-unavailable` for a name that the backend does not have, `aborted` */
  async callTool(name: string, args: unknown, context?: CallContext): Promise<ToolResult> {
    // A call may come before anybody listed the tools.
    if (!this.#known.has(name)) await this.#list(context?.signal);
    if (!this.#known.has(name)) {
      const message = `${this.id} has no tool ${name}; it has ${[...this.#known.keys()].join(', ')}.`;
      throw new PatchbayError('tool-unavailable', message, { source: this.id });
    }
    const { input = '' } = (args ?? {}) as { readonly input?: string };
    try {
      return textResult(await this.#backend.run(name, input, context?.signal));
    } catch (error) {
      if (context?.signal?.aborted === true) {
        const message = `The call of ${name} was aborted.`;
        throw new PatchbayError('aborted', message, { source: this.id, cause: error });
      }
      // What the backend calls a failure is an answer: the model reads it and goes on.
      return textResult(error instanceof Error ? error.message : String(error), { isError: true });
    }
  }

  async #list(signal?: AbortSignal): Promise<readonly ToolDefinition[]> {
    const definitions = (await this.#backend.actions(signal)).map((action) => this.#define(action));
    this.#known = new Map(definitions.map((definition) => [definition.name, definition]));
    return definitions;
  }

  #define({ name, description }: Action): ToolDefinition {
    const known = this.#known.get(name);
    if (known?.description === description) return known;
    return {
      name,
      description,
      inputSchema: {
        type: 'object',
        properties: { input: { type: 'string' } },
        additionalProperties: false,
      },
    };
  }
}
