import type {
  PatchbayError,
  ServerInfo,
  ServerRequestHandlers,
  Stop,
  ToolDefinition,
} from '@patchbay/protocols';

/** One process or socket with a client on it: from the handshake until it is gone. */
export interface Link {
  readonly info: ServerInfo;
  readonly pid?: number | undefined;
  /** Set once it is gone: why. */
  readonly lost: PatchbayError | undefined;
  /** How many requests were answered over it. */
  readonly answered: number;
  /**
   * Sends a request. The answer is not validated; the caller checks what it uses.
   * @throws PatchbayError `connection-lost` (with `details.neverRan` if that is certain), `protocol-error`, `closed`
   */
  request(
    method: string,
    params: Readonly<Record<string, unknown>>,
    options: LinkRequest,
  ): Promise<unknown>;
  /**
   * From now on the server tells updates of these resources, and of no others. `wanted` is asked when it is its turn.
   * @throws PatchbayError `not-supported`, or as {@link request}
   */
  watch(
    wanted: () => readonly string[],
    options: Pick<LinkRequest, 'what'> & { readonly signal: AbortSignal },
  ): Promise<void>;
  /** Nothing new is sent over it. Resolves when what is under way has ended, or cannot be answered any more. */
  drain(signal: AbortSignal): Promise<void>;
  /** Ends it, with everything it started. A client that somebody else owns stays. */
  close(): Promise<void>;
}

export interface LinkRequest {
  readonly stop: Stop;
  /** What is asked, and of whom, for messages: `the call of "echo" of "shop"`. */
  readonly what: () => string;
  /** Answer what the server asks meanwhile, as long as it is clear that it asks because of this request. */
  readonly handlers?: ServerRequestHandlers | undefined;
  /** The tool that is called, where some of its arguments are sent as headers too. */
  readonly tool?: ToolDefinition | undefined;
  /** Somebody listens to its progress. */
  readonly attended?: boolean;
  readonly onProgress: (params: {
    readonly progress: number;
    readonly total?: number;
    readonly message?: string;
  }) => void;
}

/** What a link tells. */
export interface LinkEvents {
  readonly onNotification: (method: string, params: unknown) => void;
  /** The server is gone, and nobody here closed it. */
  readonly onLost: (error: PatchbayError) => void;
  /** Text of the server where a message was expected. */
  readonly onNoise: (sample: string) => void;
  /** A newer server answers as an older one does: it may have been replaced by one. */
  readonly onUnmarked: () => void;
  /** Notifications do not arrive any more, although calls may still be answered. */
  readonly onDeaf: () => void;
}
