/** What `${input:id}` asks for, as far as the file that uses it says (`inputs` of `.vscode/mcp.json`). */
export interface InputRequest {
  readonly id: string;
  readonly description?: string;
  /** It is a secret: do not show what is typed. */
  readonly password?: boolean;
  /** What to offer. */
  readonly default?: string;
  /** What to choose from. */
  readonly options?: readonly string[];
}

/** Answers `${input:id}`: from a prompt, a vault, a map. `undefined`: no answer, and the server is left out. */
export type InputHandler = (
  request: InputRequest,
) => string | undefined | Promise<string | undefined>;

/** Asks once for each id, one at a time, and remembers the answers. */
export class Inputs {
  readonly #handler: InputHandler | undefined;
  readonly #known = new Map<string, InputRequest>();
  readonly #answers = new Map<string, string>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(handler: InputHandler | undefined) {
    this.#handler = handler;
  }

  /** Takes what a file says about its inputs. What is not such a description is passed over. */
  describe(definitions: unknown): void {
    if (!Array.isArray(definitions)) return;
    for (const definition of definitions as readonly unknown[]) {
      if (typeof definition !== 'object' || definition === null) continue;
      const { id, description, password, default: offered, options } = definition as Raw;
      if (typeof id !== 'string') continue;
      const choices = Array.isArray(options)
        ? options.filter((option) => typeof option === 'string')
        : undefined;
      this.#known.set(id, {
        id,
        ...(typeof description === 'string' ? { description } : {}),
        ...(typeof password === 'boolean' ? { password } : {}),
        ...(typeof offered === 'string' ? { default: offered } : {}),
        ...(choices === undefined ? {} : { options: choices }),
      });
    }
  }

  /** Rejects with what the handler throws. */
  ask(id: string): Promise<string | undefined> {
    const asked = this.#last.then(() => this.#ask(id));
    this.#last = asked.catch(() => undefined);
    return asked;
  }

  async #ask(id: string): Promise<string | undefined> {
    const known = this.#answers.get(id);
    if (known !== undefined) return known;
    const answer = await this.#handler?.(this.#known.get(id) ?? { id });
    if (typeof answer !== 'string') return undefined;
    this.#answers.set(id, answer);
    return answer;
  }
}

type Raw = Readonly<Record<'id' | 'description' | 'password' | 'default' | 'options', unknown>>;
