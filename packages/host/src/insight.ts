import { channel, type Channel } from 'node:diagnostics_channel';

import type { Problem, TraceEvent } from '@patchbay/protocols';

/** Where a program writes what happens: `console`, pino, winston and the like fit. */
export interface Logger {
  debug(message: string, fields?: object): void;
  info(message: string, fields?: object): void;
  warn(message: string, fields?: object): void;
  error(message: string, fields?: object): void;
}

export interface InsightOptions {
  readonly logger: Logger | undefined;
  readonly onProblem: ((problem: Problem) => void) | undefined;
  /** `PATCHBAY_DEBUG`: without a logger, everything goes to the standard error output. */
  readonly debug: boolean;
}

/**
 * Passes on what happens: to the channels `patchbay:connect`, `patchbay:call`, `patchbay:compile` and `patchbay:change` of
 * `node:diagnostics_channel`, and to a logger. Names and times only: no arguments, no results, no secrets.
 */
export class Insight {
  readonly #options: InsightOptions;
  readonly #logger: Logger | undefined;
  readonly #channels: Readonly<Record<TraceEvent['type'], Channel>> = {
    connect: channel('patchbay:connect'),
    call: channel('patchbay:call'),
    compile: channel('patchbay:compile'),
    change: channel('patchbay:change'),
  };

  constructor(options: InsightOptions) {
    this.#options = options;
    this.#logger = options.logger ?? (options.debug ? toStderr : undefined);
  }

  /** Somebody is told of problems. */
  get isHeard(): boolean {
    return this.#options.onProblem !== undefined || this.#logger !== undefined;
  }

  readonly trace = (event: TraceEvent): void => {
    this.#channels[event.type].publish(event);
    this.#logger?.debug(line(event), event);
  };

  /** Whoever listens is told; the first problem of each source is a process warning if nobody does. */
  readonly problem = (problem: Problem): void => {
    const { onProblem } = this.#options;
    onProblem?.(problem);
    const text = `${problem.source}: ${problem.message}`;
    this.#logger?.[problem.severity === 'error' ? 'error' : 'warn'](text, problem);
    if (this.isHeard) return;
    process.emitWarning(text, { type: 'PatchbayWarning', code: `patchbay:${problem.code}` });
  };
}

function line(event: TraceEvent): string {
  switch (event.type) {
    case 'connect':
      return `connect ${event.server} ${went(event)}`;
    case 'call':
      return `call ${event.name} ${went(event)}`;
    case 'compile':
      return `compile ${event.sources} sources ${went(event)}`;
    default:
      return `change ${event.capability} ${event.kind}`;
  }
}

const went = ({ outcome, durationMs }: { outcome: string; durationMs: number }): string =>
  `${outcome} ${durationMs.toFixed(1)} ms`;

const write = (level: string) => (message: string) =>
  void process.stderr.write(`patchbay ${level} ${message}\n`);
const toStderr: Logger = {
  debug: write('debug'),
  info: write('info'),
  warn: write('warn'),
  error: write('error'),
};
