import { scriptedServer, type ScriptedServer, type ScriptedServerOptions } from '@patchbay/testkit';

interface Asked {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** Answers some requests with a result, or throws an {@link RpcError}; `undefined` leaves them to the script. */
type OnRequest = (request: Asked) => object | undefined;

export type AnsweringOptions = ScriptedServerOptions & { readonly onRequest?: OnRequest };

/** A JSON-RPC error as an answer. */
export class RpcError extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

const METHODS = [
  'server/discover',
  'initialize',
  'tools/list',
  'tools/call',
  'prompts/list',
  'prompts/get',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'resources/subscribe',
  'resources/unsubscribe',
];

/** A scripted server with one function for whatever is asked. */
export function answeringServer({
  onRequest,
  ...options
}: AnsweringOptions): Promise<ScriptedServer> {
  if (onRequest === undefined) return scriptedServer(options);
  const methods = Object.fromEntries(
    METHODS.map((method) => [
      method,
      (params: Asked['params'], usual: () => Promise<object | undefined>) =>
        onRequest({ method, params }) ?? usual(),
    ]),
  );
  return scriptedServer({ ...options, methods });
}
