import { createHash } from 'node:crypto';

import type { CommandHandlers } from '@patchbay/commands';
import {
  PatchbayError,
  toPatchbayError,
  type ConnectionProvider,
  type TrustPolicy,
  type TrustRequest,
} from '@patchbay/protocols';

/** A row of `inspect()`: what was asked about, and what was said. */
export interface InspectedTrust extends TrustRequest {
  readonly decision: 'open' | 'trusted' | 'refused';
  /** Why it was refused, where the policy failed. */
  readonly reason?: string;
}

interface Asked {
  readonly request: TrustRequest;
  decision: InspectedTrust['decision'];
  reason?: string;
  readonly answer: Promise<boolean>;
}

/**
 * What the user of a host said about things that come from elsewhere. Each content is asked about once, when it is wanted for
 * the first time, and the answer holds as long as the host.
 */
export class Trust {
  readonly #policy: TrustPolicy | undefined;
  readonly #asked = new Map<string, Asked>();

  constructor(policy: TrustPolicy | undefined) {
    this.#policy = policy;
  }

  /** The user's policy, asked once for each content; absent if nobody can be asked. */
  get policy(): TrustPolicy | undefined {
    return this.#policy && ((request) => this.#ask(this.#policy!, request).answer);
  }

  inspect(): readonly InspectedTrust[] {
    return [...this.#asked.values()].map(({ request, decision, reason }) => ({
      ...request,
      decision,
      ...(reason === undefined ? {} : { reason }),
    }));
  }

  /** How it stands with a request; absent if nobody has asked for it yet. */
  decisionOn({ hash }: TrustRequest): InspectedTrust['decision'] | undefined {
    return hash === undefined ? undefined : this.#asked.get(hash)?.decision;
  }

  /** Connections for a server that is not trusted before the user said so. */
  guard(connections: ConnectionProvider, request: TrustRequest): ConnectionProvider {
    return {
      acquire: async (config, options = {}) => {
        await this.#require(request, options.signal);
        return connections.acquire(config, options);
      },
      ...(connections.status === undefined ? {} : { status: connections.status.bind(connections) }),
    };
  }

  /** Handlers for command files that are not trusted before the user said so: each thing that they do is a question. */
  guardHandlers({ runShell, readFile }: CommandHandlers): CommandHandlers {
    return {
      ...(runShell === undefined
        ? {}
        : {
            runShell: async (request, context) => {
              const { name, file, command } = request;
              await this.#require(commandRequest(name, file, `run ${command}`), context.signal);
              return runShell(request, context);
            },
          }),
      ...(readFile === undefined
        ? {}
        : {
            readFile: async (request, context) => {
              const { name, file, path } = request;
              await this.#require(commandRequest(name, file, `read ${path}`), context.signal);
              return readFile(request, context);
            },
          }),
    };
  }

  /** @throws PatchbayError `not-trusted`, `aborted` (who asked does not wait any more; the question stays) */
  async #require(request: TrustRequest, signal: AbortSignal | undefined): Promise<void> {
    const { name, origin, wants } = request;
    const what = `${JSON.stringify(name)} of ${origin} wants to ${wants.join('; to ')}, and is not trusted`;
    const details = { kind: request.kind, hash: request.hash };
    if (this.#policy === undefined) {
      this.#unasked(request);
      throw new PatchbayError(
        'not-trusted',
        `${what}. Give \`trust\` to createHost() to be asked about what comes with a project, or put it into patchbay.yaml.`,
        { source: name, details },
      );
    }
    const asked = this.#ask(this.#policy, request);
    if (await answered(asked.answer, signal)) return;
    const why = asked.reason === undefined ? '' : ` (the trust policy failed: ${asked.reason})`;
    throw new PatchbayError('not-trusted', `${what}: it was refused${why}.`, {
      source: name,
      details,
    });
  }

  /** Shown like a no: there is nobody to ask. */
  #unasked(request: TrustRequest): void {
    if (request.hash === undefined) return;
    const reason = 'there is no trust policy';
    const answer = Promise.resolve(false);
    this.#asked.set(request.hash, { request, decision: 'refused', reason, answer });
  }

  #ask(policy: TrustPolicy, request: TrustRequest): Asked {
    const known = request.hash === undefined ? undefined : this.#asked.get(request.hash);
    if (known !== undefined) return known;
    const asked: Asked = {
      request,
      decision: 'open',
      answer: (async () => policy(request))().then(
        // Whatever else a program returns is no yes.
        (said: unknown) => {
          asked.decision = said === true ? 'trusted' : 'refused';
          return said === true;
        },
        (error: unknown) => {
          asked.decision = 'refused';
          asked.reason = toPatchbayError(error).message;
          return false;
        },
      ),
    };
    if (request.hash !== undefined) this.#asked.set(request.hash, asked);
    return asked;
  }
}

/** What a server is: another configuration is another question. */
export function serverRequest(
  name: string,
  origin: string,
  wants: readonly string[],
  fingerprint: string,
): TrustRequest {
  return {
    kind: 'server',
    name,
    origin,
    wants,
    hash: hashOf('server', name, fingerprint),
  };
}

function commandRequest(name: string, origin: string, want: string): TrustRequest {
  return {
    kind: 'commands',
    name: `/${name}`,
    origin,
    wants: [want],
    hash: hashOf('commands', origin, want),
  };
}

const hashOf = (...parts: readonly string[]): string =>
  `sha256:${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}`;

async function answered(
  answer: Promise<boolean>,
  signal: AbortSignal | undefined,
): Promise<boolean> {
  if (signal === undefined) return answer;
  let stop = (): void => undefined;
  const over = new Promise<never>((_, reject) => {
    stop = () =>
      reject(
        new PatchbayError('aborted', 'Nobody waits for the answer of the trust policy any more.', {
          cause: signal.reason,
        }),
      );
    if (signal.aborted) stop();
    else signal.addEventListener('abort', stop, { once: true });
  });
  try {
    return await Promise.race([answer, over]);
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
