import {
  PatchbayError,
  problemFrom,
  type ConnectionStatus,
  type ServerConfig,
} from '@patchbay/protocols';

import { waitMs, type BackOff, type Clock } from './back-off.ts';
import { serverName } from './connection-key.ts';

/** How a connection stands, what failed last, and until when it is not tried again. */
export class Health {
  readonly #config: ServerConfig;
  readonly #backOff: BackOff;
  readonly #random: () => number;
  readonly #clock: Clock;
  #state: ConnectionStatus['state'] = 'idle';
  #since: number;
  #retryAt: number | undefined;
  #lastError: PatchbayError | undefined;
  #failures = 0;

  constructor(config: ServerConfig, backOff: BackOff, random: () => number, clock: Clock) {
    this.#config = config;
    this.#backOff = backOff;
    this.#random = random;
    this.#clock = clock;
    this.#since = clock.now();
  }

  get state(): ConnectionStatus['state'] {
    return this.#state;
  }

  /** What problems are said to come from. */
  get name(): string {
    return this.#config.label ?? 'connection';
  }

  to(state: ConnectionStatus['state'], retryAt?: number): void {
    this.#state = state;
    this.#since = this.#clock.now();
    this.#retryAt = retryAt;
  }

  /** Something failed. Returns how long to wait before the next attempt, in milliseconds: longer each time. */
  failed(error: PatchbayError): number {
    this.#failures++;
    this.#lastError = error;
    return waitMs(this.#failures, this.#backOff, this.#random);
  }

  /** It was lost, which counts as no failure yet. */
  lost(error: PatchbayError): void {
    this.#lastError = error;
  }

  /** It is there. `proven`: and was of use before, so that failures count from the beginning again. */
  recovered(proven: boolean): void {
    if (proven) this.#failures = 0;
    this.#lastError = undefined;
  }

  /** It is not tried again for so long. Returns the error for those who waited. */
  giveUp(error: PatchbayError, waitForMs: number): PatchbayError {
    const until = this.#clock.now() + waitForMs;
    this.to('degraded', until);
    return new PatchbayError(error.code, error.message, {
      cause: error.cause ?? error,
      source: this.name,
      details: { ...error.details, retryAt: iso(until) },
    });
  }

  /** @throws PatchbayError `unavailable` while it is not to be tried */
  check(): void {
    if (this.#retryAt === undefined || this.#clock.now() >= this.#retryAt) return;
    const retryAt = iso(this.#retryAt);
    const why = this.#lastError?.message ?? 'it could not be reached.';
    throw new PatchbayError(
      'unavailable',
      `${serverName(this.#config)} is not available: ${why} It is tried again at ${retryAt}.`,
      {
        cause: this.#lastError,
        source: this.name,
        details: { ...this.#lastError?.details, retryAt },
      },
    );
  }

  status(): Pick<ConnectionStatus, 'state' | 'since' | 'retryAt' | 'lastError'> {
    return {
      state: this.#state,
      since: iso(this.#since),
      ...(this.#retryAt === undefined ? {} : { retryAt: iso(this.#retryAt) }),
      ...(this.#lastError === undefined
        ? {}
        : { lastError: problemFrom(this.name, this.#lastError) }),
    };
  }
}

const iso = (time: number): string => new Date(time).toISOString();
