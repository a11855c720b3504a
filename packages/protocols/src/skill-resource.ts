import type { ActingSkill } from './approval.ts';
import type { CompileContext } from './capability.ts';
import type { ServerConfig } from './connection.ts';
import type { ContentPart } from './content.ts';
import type { Problem } from './problem.ts';

/** A skill as a catalogue shows it: metadata only. (Agent Skills specification) */
export interface SkillEntry {
  /** `skill://<name>/SKILL.md` for local skills; the server's own URI for one served over MCP. */
  readonly uri: string;
  /** Its identity within its source. */
  readonly name: string;
  /** What it does and when to use it. Data: escape it where it enters a prompt. */
  readonly description: string;
  /** Where it comes from, for people: a folder, `mcp:github`. */
  readonly origin: string;
  /** Among several of one name the greatest is shown: project 30, user 20, package 10, MCP 0. */
  readonly precedence?: number;
  readonly mimeType?: string;
  /** Frontmatter as written, unknown keys included; every scalar is text. */
  readonly frontmatter?: Readonly<Record<string, unknown>>;
  /** `disable-model-invocation`: not in the catalogue, still a command. */
  readonly modelInvocable?: boolean;
  /** `user-invocable: false`: not a command. */
  readonly userInvocable?: boolean;
  /** In force without being activated. Only trusted sources may say so. */
  readonly alwaysActive?: boolean;
  /** When to use it, appended to the description in the catalogue. */
  readonly whenToUse?: string;
  /** `allowed_tools` (RFC-0051): which tools of the servers that the skill itself embeds are offered. */
  readonly embeddedTools?: readonly string[];
  /** `allowed-tools` (Agent Skills): a pre-approval. It filters nothing. */
  readonly preApprovedTools?: readonly string[];
  /** `disallowed-tools`: taken away while the skill is active. */
  readonly disallowedTools?: readonly string[];
  /** MCP servers that the skill brings, by name. Only trusted sources give them: whoever uses them starts programs. */
  readonly servers?: Readonly<Record<string, EmbeddedServer>>;
  /** Servers that should be there for it, by id (`mcp_servers: [github]`); it does not bring them. */
  readonly neededServers?: readonly string[];
  /** As {@link OpenSkill.digest}, where the source knows it already: the same skill from two sources is shown once. */
  readonly digest?: string;
  /** What had to be repaired to read it. */
  readonly problems?: readonly Problem[];
  /**
   * It is served by a server, which may say anything. Its text is data; what its frontmatter asks for beyond that (always
   * active, approvals, servers) is granted by nobody but a user, for this content. A source that sets it fills none of those
   * fields. (Skills over MCP)
   */
  readonly served?: ServedContent;
  /**
   * Its author may not decide about the agent: `alwaysActive`, `preApprovedTools` and `servers` are what it asks for, and take
   * effect only where a user trusts it with them.
   */
  readonly untrusted?: boolean;
}

/** What a served skill consists of. */
export interface ServedContent {
  /** The label of the server: the id of the capability. */
  readonly server: string;
  /** `sha256:` and 64 hex digits over every file's URI and digest. Absent: it is not fixed, so that no consent is kept. */
  readonly hash?: string;
}

/** An MCP server that a skill brings along. */
export interface EmbeddedServer {
  /** As written: nothing in it is expanded. */
  readonly config: ServerConfig;
  /** Which of its tools are offered; `*` matches any run of characters. Default: all. */
  readonly includeTools?: readonly string[];
}

/** A file of a skill. */
export interface SkillFile {
  /** Relative to the skill's folder, with `/`. */
  readonly path: string;
  /** In bytes. */
  readonly size?: number;
  readonly mimeType?: string;
}

/** A skill with its text. */
export interface OpenSkill {
  readonly entry: SkillEntry;
  /** SKILL.md without its frontmatter. */
  readonly body: string;
  /** `sha256:` and 64 hex digits of SKILL.md as it is stored. */
  readonly digest: string;
  /** Everything else in its folder, or `dynamic` where a source cannot list it. */
  readonly files: readonly SkillFile[] | 'dynamic';
  /** The folder, for skills that lie in one: it stands for `{baseDir}`. */
  readonly folder?: string;
  /**
   * Reads one of its files.
   * @throws PatchbayError `outside-root` for a path that leaves the skill, `not-found`, `too-large`; `skill-changed` where a
   * server gives something else than it announced: nothing of the skill counts any more.
   */
  readFile(
    path: string,
    options?: { readonly signal?: AbortSignal },
  ): Promise<readonly ContentPart[]>;
}

/** Provides skills: a folder, an MCP server, an array in memory. (RFC-0051 "SkillResource") */
export interface SkillResource {
  /** Metadata of all skills. Bodies are not read. */
  listSkills(context: CompileContext): Promise<readonly SkillEntry[]>;
  /**
   * `undefined` if there is no such skill here. Re-read and verified on every call.
   * @throws PatchbayError `skill-changed` where a server gives something else than it announced
   */
  openSkill(uri: string, context: CompileContext): Promise<OpenSkill | undefined>;
  /** Cheap: asked before `openSkill` to route a URI. */
  skillExists(uri: string, context: CompileContext): Promise<boolean>;
}

/** A skill of another capability, as `peers.skills()` gives it. */
export interface PeerSkill {
  /** The capability that serves it. */
  readonly source: string;
  readonly entry: SkillEntry;
  /** See {@link SkillResource.openSkill}. */
  open(): Promise<OpenSkill | undefined>;
}

/** A skill in force. */
export interface ActiveSkill {
  readonly name: string;
  readonly source: string;
  readonly digest: string;
  readonly body: string;
  /** Who put it in force. */
  readonly by: 'model' | 'user' | 'matcher' | 'always' | 'program';
  /** A server serves it: to be shown with that origin only. */
  readonly served?: Omit<ActingSkill, 'name'>;
}
