import { providerSchema, withoutStrictNulls, type ProviderSchema } from '@patchbay/adapter-kit';
import type { Tool as PatchbayTool } from '@patchbay/protocols';

import type { ToolHost } from './make-tool.ts';

/** By which the AI SDK knows one; only types are taken from a peer. */
const MARKS = [Symbol.for('vercel.ai.schema'), Symbol.for('vercel.ai.validator')];

type Validation = { success: true; value: unknown } | { success: false; error: Error };

/**
 * The arguments of one tool as `jsonSchema()` of the AI SDK gives them. What a model is shown is made when it is first asked
 * for: a tool that is deferred or not active is never asked. The rest is in the prototype, so that a thousand tools are a
 * thousand small objects.
 */
export class ToolSchema {
  static {
    for (const mark of MARKS) Object.defineProperty(this.prototype, mark, { value: true });
  }

  readonly #tool: PatchbayTool;
  readonly #host: ToolHost;
  #face: ProviderSchema | undefined;

  constructor(tool: PatchbayTool, host: ToolHost) {
    this.#tool = tool;
    this.#host = host;
  }

  get jsonSchema(): object {
    return this.#shown.schema;
  }

  /** Whether it can be asked for in strict mode; only where that is wanted at all does the schema have to be made for it. */
  get strict(): boolean {
    return this.#host.strict && this.#shown.strict;
  }

  /** A function that needs no `this`, as those of the AI SDK. */
  get validate(): (value: unknown) => Validation {
    return (value) => this.#validate(value);
  }

  /** The tool whose arguments they are. */
  static toolOf(schema: unknown): PatchbayTool | undefined {
    return typeof schema === 'object' && schema !== null && #tool in schema
      ? schema.#tool
      : undefined;
  }

  get #shown(): ProviderSchema {
    return (this.#face ??= this.#show());
  }

  #show(): ProviderSchema {
    const { id, definition } = this.#tool;
    const face = providerSchema(definition.inputSchema, { strict: this.#host.strict });
    for (const note of face.notes) {
      const message = `The arguments of ${definition.name} are not shown as written. ${note}`;
      this.#host.report({
        source: id.capability,
        code: 'schema-unusable',
        message,
        severity: 'warning',
      });
    }
    return face;
  }

  #validate(value: unknown): Validation {
    const { inputSchema } = this.#tool.definition;
    const args = this.strict ? withoutStrictNulls(inputSchema, value) : value;
    this.#host.validator.learn(this.#tool);
    const check = this.#host.validator.validate(inputSchema, args ?? {});
    return check.ok
      ? { success: true, value: args }
      : { success: false, error: new Error(check.violations.join('\n')) };
  }
}
