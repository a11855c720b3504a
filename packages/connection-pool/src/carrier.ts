import type { Client } from '@modelcontextprotocol/client';

import type { Post } from './own/own-calls.ts';

/** What carries the messages of a client: a transport, and what a link wants to know and do beside it. */
export interface Carrier {
  readonly transport: Parameters<Client['connect']>[0];
  /** Of the child process. */
  readonly pid?: number | undefined;
  /** The end of what the server wrote to stderr. */
  readonly stderrTail?: string;
  /** Sends calls on the path of our own, if there is one. Its transport has a stream for each answer, or one for all. */
  readonly own?: { readonly post: Post; readonly hasStreams: boolean } | undefined;
  /** The server knows this connection by a session, and may forget it. */
  readonly hasSession?: boolean;
  /** How long answers may still come after nothing can be sent any more, in milliseconds. */
  readonly lastAnswersMs?: number;
  /** Nothing is sent any more; what is under way may still be answered. */
  retire?(): void;
  /** Ends it, with everything that it started; quickly, if no connection came about. */
  close(options?: { readonly abandon?: boolean }): Promise<void>;
}

/** What a carrier tells. */
export interface CarrierEvents {
  /** Text of the server where a message was expected. */
  readonly onNoise: (sample: string) => void;
  /** Messages that nobody asked for do not arrive any more, although calls may still be answered. */
  readonly onDeaf: () => void;
  /** Such messages may have been missed. */
  readonly onGap: () => void;
  /** A request waits for something that is not the server: a user who has to log in. */
  readonly onWait: (until: Promise<void>) => void;
}
