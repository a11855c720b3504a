import type { CompileContext } from './capability.ts';
import type { ContentPart } from './content.ts';
import type { ToolSource } from './tool.ts';

/** A resource as a list shows it. (MCP `resources/list`) */
export interface ResourceEntry {
  readonly uri: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  readonly size?: number;
  readonly meta?: Readonly<Record<string, unknown>>;
}

/** A family of resources. (RFC 6570 template) */
export interface ResourceTemplate {
  readonly uriTemplate: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  readonly meta?: Readonly<Record<string, unknown>>;
}

/** Provides things that can be read by URI. */
export interface ResourceProvider {
  /** URI schemes that it answers for, without `:`. Default: `mcp`, as `mcp://<capability id>/<percent-encoded URI>`. */
  readonly uriSchemes?: readonly string[];
  listResources(context: CompileContext): Promise<readonly ResourceEntry[]>;
  listResourceTemplates?(context: CompileContext): Promise<readonly ResourceTemplate[]>;
  /** @throws PatchbayError `not-found` */
  readResource(uri: string, context: CompileContext): Promise<readonly ContentPart[]>;
  /** Cheap: asked before `readResource` to route a URI. */
  resourceExists(uri: string, context: CompileContext): Promise<boolean>;
  /**
   * From now on updates of a resource are told: `resource_updated` with its URI. Returns what ends it.
   * @throws PatchbayError `not-supported`
   */
  watchResource?(uri: string, context: CompileContext): Promise<() => Promise<void>>;
}

/** What an MCP server is. (RFC-0051 "McpResource") */
export type McpResource = ToolSource & ResourceProvider;
