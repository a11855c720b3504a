/**
 * Something that comes from elsewhere and wants more than to be read: to start a program, to be in force unasked, to have
 * tools approved beforehand.
 */
export interface TrustRequest {
  /**
   * `server`: a server that a project's configuration names. `skill`: what a skill asks for: servers that it brings, and,
   * where it is served over MCP, everything beyond its text. `commands`: files that run commands or read files.
   */
  readonly kind: 'server' | 'skill' | 'commands' | (string & {});
  /** The name of the server, skill or source. Data of others: escape it where it is shown. */
  readonly name: string;
  /** Where it comes from, for people: a file, `mcp:github`. */
  readonly origin: string;
  /** What it wants, for people, one thing each: `start npx -y some-server`, `be active always`. */
  readonly wants: readonly string[];
  /**
   * `sha256:` and 64 hex digits of all that the answer is about: other content is another question. Absent where the content
   * cannot be fixed: then the answer holds for this once.
   */
  readonly hash?: string;
}

/** Decides whether something is trusted. Asked once for each hash; a throw is a no. */
export type TrustPolicy = (request: TrustRequest) => boolean | Promise<boolean>;
