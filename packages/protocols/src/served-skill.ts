import type { ServerInfo } from './connection.ts';

/**
 * A skill as a server announces it, checked for what can be checked without reading it. (Skills over MCP, SEP-2640)
 */
export interface ServedSkill {
  /** Of its SKILL.md; the last folder in it is the skill's name. */
  readonly uri: string;
  /** As the server says; `name` and `description` are text. Data of others. */
  readonly frontmatter: Readonly<Record<string, unknown>>;
  /** Every file of it, SKILL.md too; `dynamic`: they are made when they are asked for, and cannot be verified. */
  readonly resources: readonly ServedFile[] | 'dynamic';
}

/** A file of a served skill, as the server announces it. */
export interface ServedFile {
  readonly uri: string;
  /** `sha256:` and 64 hex digits of its bytes. */
  readonly digest: string;
  /** In bytes. */
  readonly size: number;
}

/** A file of a served skill as it was read, and is what was announced. */
export interface ServedFileContent {
  readonly uri: string;
  readonly mimeType?: string;
  /** Exactly what the digest is of. */
  readonly bytes: Uint8Array;
  /** SKILL.md only: what follows its frontmatter. */
  readonly body?: string;
}

/** Whether a server announces that it serves skills. Where it does not, nothing that it has is a skill. */
export function servesSkills({ capabilities }: Pick<ServerInfo, 'capabilities'>): boolean {
  const { extensions } = capabilities as {
    readonly extensions?: Readonly<Record<string, unknown>> | null;
  };
  const declared = extensions?.['io.modelcontextprotocol/skills'];
  return typeof declared === 'object' && declared !== null && !Array.isArray(declared);
}
