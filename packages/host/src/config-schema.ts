import { z } from 'zod';

import { EntrySchema, type McpServerEntry } from './server-entry.ts';

/** Names to keep and names to leave out; `*` matches any run of characters. `exclude` wins. */
export interface NamePatterns {
  readonly include?: readonly string[] | undefined;
  readonly exclude?: readonly string[] | undefined;
}

/** Folders beside the usual ones; `defaults: false` leaves the usual ones out. */
export interface FolderConfig {
  readonly folders?: readonly string[] | undefined;
  readonly defaults?: boolean | undefined;
}

/** What one agent, by its path, has for itself and may see. Its sub-agents have and see no more than that. */
export interface AgentConfig {
  /** Servers that only this agent and its sub-agents see. */
  readonly mcp_servers?: Readonly<Record<string, McpServerEntry>> | undefined;
  /** Skills that only they see (`folders`), and which of all skills they see, by name. */
  readonly skills?:
    | (NamePatterns & { readonly folders?: readonly string[] | undefined })
    | undefined;
  /** Which tools they see, by the name a model sees: `github__*`. */
  readonly tools?: NamePatterns | undefined;
}

/** A configuration as a program gives it: the same shape as `patchbay.yaml`. */
export interface HostConfig {
  /** Servers by the id under which their tools appear. Entries as in `.mcp.json`. */
  readonly mcp_servers?: Readonly<Record<string, McpServerEntry>> | undefined;
  /** Skill folders. */
  readonly skills?: FolderConfig | undefined;
  /** Command folders. */
  readonly commands?: FolderConfig | undefined;
  readonly extensions?:
    | {
        /** How many levels of capabilities inside capabilities are usual; more is a warning. Default 3. */
        readonly max_composition_depth?: number | undefined;
      }
    | undefined;
  /** By the agent's path: `coder`, `coder/researcher`. */
  readonly agents?: Readonly<Record<string, AgentConfig>> | undefined;
}

const names = z.array(z.string());
const folders = z.strictObject({ folders: names.optional(), defaults: z.boolean().optional() });
const patterns = { include: names.optional(), exclude: names.optional() };

type Sections = { readonly [K in keyof HostConfig]-?: z.ZodType<HostConfig[K]> };

function sectionsWith(servers: z.ZodType<Readonly<Record<string, McpServerEntry>>>): Sections {
  return {
    mcp_servers: servers
      .optional()
      .describe('MCP servers by the id under which their tools appear.'),
    skills: folders
      .optional()
      .describe('Skill folders; defaults: false leaves the usual ones out.'),
    commands: folders
      .optional()
      .describe('Command folders; defaults: false leaves the usual ones out.'),
    extensions: z.strictObject({ max_composition_depth: z.int().positive().optional() }).optional(),
    agents: z
      .record(
        z.string().min(1),
        z.strictObject({
          mcp_servers: servers.optional(),
          skills: z.strictObject({ ...patterns, folders: names.optional() }).optional(),
          tools: z.strictObject(patterns).optional(),
        }),
      )
      .optional()
      .describe('By the path of an agent: what it has for itself, and which names it may see.'),
  };
}

/** The sections of `patchbay.yaml`. What servers say is not looked at here: a broken one disables itself only. */
export const SECTIONS: Sections = sectionsWith(z.record(z.string(), z.custom<McpServerEntry>()));

/** `patchbay.yaml` for editors: what `patchbay.schema.json` is made of. */
export function configSchema(): object {
  const servers = z.record(z.string(), EntrySchema) as z.ZodType;
  const whole = z.strictObject(
    sectionsWith(servers as z.ZodType<Readonly<Record<string, McpServerEntry>>>),
  );
  return z.toJSONSchema(whole, { io: 'input', target: 'draft-7' });
}
