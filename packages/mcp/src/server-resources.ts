import {
  isResourcePart,
  PatchbayError,
  servesSkills,
  type CompileContext,
  type ContentPart,
  type Listing,
  type McpClient,
  type Problem,
  type ResourceEntry,
  type ResourceTemplate,
} from '@patchbay/protocols';

import type { ListReader } from './list-reader.ts';
import { toMcpTemplate, toMcpUri, toServerUri } from './resource-uri.ts';
import type { ServerConnections } from './server-connections.ts';
import { coveredBy } from './uri-template.ts';

/** The resources of one server, under `mcp://<id>/…`. */
export class ServerResources {
  readonly #id: string;
  readonly #server: ServerConnections;
  readonly #reader: ListReader;
  readonly #watches = new Set<() => Promise<void>>();

  constructor(id: string, server: ServerConnections, reader: ListReader) {
    this.#id = id;
    this.#server = server;
    this.#reader = reader;
  }

  async list(context: CompileContext): Promise<readonly ResourceEntry[]> {
    const { items } = await this.#resources(context);
    return items.map((entry) => ({ ...entry, uri: toMcpUri(this.#id, entry.uri) }));
  }

  async listTemplates(context: CompileContext): Promise<readonly ResourceTemplate[]> {
    const { items } = await this.#templates(context);
    return items.map((template) => ({
      ...template,
      uriTemplate: toMcpTemplate(this.#id, template.uriTemplate),
    }));
  }

  async read(uri: string, context: CompileContext): Promise<readonly ContentPart[]> {
    const serverUri = toServerUri(this.#id, uri);
    await using lease = await this.#acquire(context);
    const parts = await lease.value
      .readResource(serverUri, { signal: context.signal })
      .catch((error: unknown) => {
        throw isNotFound(error)
          ? new PatchbayError(
              'not-found',
              `The server "${this.#id}" has no resource ${serverUri}.`,
              {
                source: this.#id,
                cause: error,
              },
            )
          : error;
      });
    return parts.map((part) =>
      isResourcePart(part) ? { ...part, uri: toMcpUri(this.#id, part.uri) } : part,
    );
  }

  async exists(uri: string, context: CompileContext): Promise<boolean> {
    const serverUri = toServerUri(this.#id, uri);
    if ((await this.#resources(context)).items.some((entry) => entry.uri === serverUri))
      return true;
    const { items } = await this.#templates(context);
    return items.some(({ uriTemplate }) => coveredBy(uriTemplate, serverUri));
  }

  async watch(uri: string, context: CompileContext): Promise<() => Promise<void>> {
    const serverUri = toServerUri(this.#id, uri);
    const lease = await this.#acquire(context);
    try {
      const stop = await lease.value.watchResource?.(serverUri, { signal: context.signal });
      if (stop === undefined)
        throw new PatchbayError(
          'not-supported',
          'Whoever makes connections cannot watch resources.',
        );
      const end = async () => {
        if (!this.#watches.delete(end)) return;
        await stop();
        await lease.close();
      };
      this.#watches.add(end);
      return end;
    } catch (error) {
      await lease.close();
      throw error;
    }
  }

  /** Ends what is watched. */
  async close(): Promise<void> {
    await Promise.all([...this.#watches].map((end) => end()));
  }

  #acquire(context: CompileContext) {
    return this.#reader.acquire(this.#server.askerOf(context), context.signal);
  }

  async #resources(context: CompileContext): Promise<Listing<ResourceEntry>> {
    const listing = await this.#reader.read(
      'resources',
      this.#reader.question(context),
      async (client) => {
        const { problems, ...rest } = await client.listResources({ signal: context.signal });
        return { ...rest, problems: [...problems, ...this.#olderSkills(client, rest.items)] };
      },
    );
    this.#reader.report(listing, context);
    return listing;
  }

  /** Before there was an extension for them, skills were resources: nothing says what belongs to one, or verifies it. */
  #olderSkills({ info }: McpClient, items: readonly ResourceEntry[]): readonly Problem[] {
    const found = servesSkills(info)
      ? undefined
      : items.find(({ uri }) => uri === 'skill://index.json' || OLDER_SKILL.test(uri));
    if (found === undefined) return [];
    const message = `The server "${this.#id}" offers skills as an older draft of the Skills extension says (${found.uri.slice(0, 200)}). They cannot be verified, so that none is loaded; they can be read as resources.`;
    return [{ source: this.#id, code: 'not-supported', severity: 'warning', message }];
  }

  async #templates(context: CompileContext): Promise<Listing<ResourceTemplate>> {
    const listing = await this.#reader.read('templates', this.#reader.question(context), (client) =>
      client.listResourceTemplates({ signal: context.signal }),
    );
    this.#reader.report(listing, context);
    return listing;
  }
}

const OLDER_SKILL = /^skill:\/\/.*\/SKILL\.md$/;

/** JSON-RPC "Invalid params": the answer to a tool or resource that is not there. (MCP "Tools", "Resources", error handling) */
export const INVALID_PARAMS = -32_602;
/** How older servers say that a resource is not there. */
const NO_RESOURCE = -32_002;

/** A request for a resource has only its URI to be wrong. (MCP "Resources", error handling) */
function isNotFound(error: unknown): boolean {
  const rpcCode = PatchbayError.isInstance(error) ? error.details?.['rpcCode'] : undefined;
  return rpcCode === NO_RESOURCE || rpcCode === INVALID_PARAMS;
}
