import { saidIn } from '@patchbay/adapter-kit';
import type { ExtensionView, Tool as PatchbayTool, TurnView } from '@patchbay/protocols';
import type { ModelMessage } from 'ai';

import { asMessages, systemMessages, userText, type Instructions } from './instructions.ts';
import type { LiveTools, Offer } from './live-tools.ts';

/** What `prepareStep` is given; 6 and 7 have more. */
export interface StepOptions {
  readonly steps: readonly unknown[];
  readonly stepNumber: number;
  readonly messages: ModelMessage[];
  /** 7 only: of the call, before anything was added. */
  readonly initialInstructions?: Instructions | undefined;
}

/** What `prepareStep` gives back, in both majors. Whatever else a composed one returns is kept. */
export interface StepSettings<NAME extends string = string> {
  activeTools?: NAME[];
  /** 7. */
  instructions?: Instructions;
  /** 6: system messages are put before the others, so that the `system` of the call stays. */
  messages?: ModelMessage[];
}

/** A `prepareStep` of the program's own, whichever major it is written for. */
export type AnyPrepareStep = (options: never) => unknown;

/** What a run starts from. */
export interface RunStart {
  readonly live: LiveTools;
  /** Put before ours, where the AI SDK does not tell them. */
  readonly instructions?: Instructions | undefined;
  readonly prepareStep?: AnyPrepareStep | undefined;
  readonly activeTools?: readonly string[] | undefined;
}

interface OwnSettings extends StepSettings {
  readonly system?: Instructions;
}

/** One `generate`, `stream`, `generateText` or `streamText`: its turn, and what it gets at each step. */
export class Run {
  readonly #view: ExtensionView;
  readonly #start: RunStart;
  readonly #make: (tools: readonly PatchbayTool[], canSearch: boolean) => Offer;
  readonly #turnId: string = globalThis.crypto.randomUUID();
  #userText: string | undefined;
  /** The program's own instructions in force: in 7 an override carries forward, ours must not. */
  #own: Instructions | undefined;
  /** What the program itself leaves of the tools at this step; absent: all. */
  #allowed: readonly string[] | undefined;

  constructor(
    view: ExtensionView,
    start: RunStart,
    make: (tools: readonly PatchbayTool[], canSearch: boolean) => Offer,
  ) {
    this.#view = view;
    this.#start = start;
    this.#make = make;
  }

  /** Whether the program lets this step use a tool. Not every version of the AI SDK keeps a model from the others. */
  allows(name: string): boolean {
    return this.#allowed?.includes(name) !== false;
  }

  /** The same one while it is open; one that is begun anew is not prepared yet. */
  turn(): TurnView {
    const text = this.#userText;
    return this.#view.beginTurn({
      turnId: this.#turnId,
      ...(text === undefined ? {} : { userText: text }),
    });
  }

  async prepareStep(options: StepOptions): Promise<StepSettings> {
    const isSeven = 'initialInstructions' in options;
    const { live, prepareStep, activeTools } = this.#start;
    if (options.stepNumber === 0)
      this.#own = options.initialInstructions ?? this.#start.instructions;
    const given = isSeven ? { ...options, instructions: this.#own } : options;
    const own = ((await prepareStep?.(given as never)) ?? {}) as OwnSettings;
    const messages = own.messages ?? options.messages;

    this.#userText = userText(messages) ?? this.#userText;
    const step = await this.turn().prepare({
      isSaid: saidIn(messages.map(({ content }) => content)),
    });
    this.#allowed = own.activeTools ?? activeTools;
    const names = live
      .offer(this.#make(step.tools, live.canSearch))
      .filter((name) => this.allows(name));
    const settings = { ...own, activeTools: names };
    const ours = systemMessages(step.instructions);
    if (isSeven) {
      this.#own = own.instructions ?? own.system ?? this.#own;
      return { ...settings, instructions: [...asMessages(this.#own), ...ours] };
    }
    const before = [...asMessages(this.#start.instructions), ...ours];
    return before.length === 0 ? settings : { ...settings, messages: [...before, ...messages] };
  }
}
