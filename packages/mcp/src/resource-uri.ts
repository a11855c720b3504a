import { PatchbayError } from '@patchbay/protocols';

/** The canonical URI of a server's resource: `mcp://<capability>/<percent-encoded URI of the server>`. */
export function toMcpUri(capability: string, serverUri: string): string {
  return `mcp://${encodeURIComponent(capability)}/${encodeURIComponent(serverUri)}`;
}

/** A server's template in canonical form: what is fixed is encoded, its expressions stay. */
export function toMcpTemplate(capability: string, serverTemplate: string): string {
  const pieces = serverTemplate.split(/(\{[^}]*\})/);
  const encoded = pieces.map((piece) =>
    piece.startsWith('{') ? piece : encodeURIComponent(piece),
  );
  return `${toMcpUri(capability, '')}${encoded.join('')}`;
}

/**
 * The server's own URI.
 * @throws PatchbayError `invalid-uri`
 */
export function toServerUri(capability: string, uri: string): string {
  const prefix = `mcp://${encodeURIComponent(capability)}/`;
  if (uri.startsWith(prefix)) {
    try {
      return decodeURIComponent(uri.slice(prefix.length));
    } catch (cause) {
      throw new PatchbayError('invalid-uri', `${uri} is not percent-encoded correctly.`, {
        cause,
        source: capability,
      });
    }
  }
  throw new PatchbayError(
    'invalid-uri',
    `${uri} is not a resource of "${capability}"; its resources begin with ${prefix}.`,
    {
      source: capability,
    },
  );
}
