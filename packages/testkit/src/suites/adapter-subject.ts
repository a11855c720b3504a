import type { ExtensionView, JsonSchema } from '@patchbay/protocols';

import type { Ended } from '../requirement.ts';

/** What `adapterSuite` looks at: a framework, its own loop, and a model that is a script. */
export interface AdapterSubject extends Ended {
  /** One agent object of the framework over a view. It can run several times, also at once. */
  agent(view: ExtensionView, script: ModelScript): ScriptedAgent;
}

/** Runs until the model has no more calls, or rejects as the framework does. */
export type ScriptedAgent = (input: {
  readonly userText: string;
  readonly signal?: AbortSignal;
}) => Promise<void>;

/** Plays the model: called for each request; calls to make, or none to end the run. */
export type ModelScript = (
  request: ModelRequest,
) => readonly ModelCall[] | Promise<readonly ModelCall[]>;

/** A call that the model makes. */
export interface ModelCall {
  /** Unique within a run. */
  readonly id: string;
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

/** What the framework sent to the model. */
export interface ModelRequest {
  /** Names of the tools that are offered. */
  readonly tools: readonly string[];
  /** What the model is shown of their arguments, by name. */
  readonly schemas: Readonly<Record<string, JsonSchema>>;
  /** The whole system prompt. */
  readonly instructions: string;
  /** The newest text of the user. */
  readonly userText: string;
  /** Answers to calls so far, by id. */
  readonly results: Readonly<Record<string, ModelResult>>;
}

export interface ModelResult {
  readonly text: string;
  /** Whether it is marked as an error, in the way of the framework. */
  readonly isError: boolean;
}
