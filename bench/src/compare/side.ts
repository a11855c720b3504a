import type { ServerConfig } from '@patchbay/protocols';

/** What a model does in a run: it calls these tools, one step each, by the names that it sees. */
export type Calls = readonly { readonly name: string; readonly args?: Record<string, unknown> }[];

/** Servers, plugged into a framework by patchbay or by one of its peers. */
export interface Plugged {
  /** What the model is offered at the start of a run. */
  tools(): Promise<readonly string[]>;
  /** Runs an agent. What the model is given for each call, as text: a result, or an error. */
  run(calls: Calls, signal?: AbortSignal): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** One server over HTTP, plugged into a program that has many users: each one's calls go out with their own token. */
export interface Shared {
  callAs(user: string, tool: string): Promise<unknown>;
  close(): Promise<void>;
}

/** What a user's calls go out with. */
export const headersOf = (user: string) => ({ authorization: `Bearer ${user}` });

/** One way to plug servers in, as its documentation shows it. */
export interface Side {
  readonly name: string;
  open(servers: Readonly<Record<string, ServerConfig>>): Promise<Plugged>;
  openShared(url: string): Promise<Shared>;
}
