import type { Client, Transport } from '@modelcontextprotocol/client';
import type { Skill, SkillsClient } from '@modelcontextprotocol/client/ext/skills';
import {
  PatchbayError,
  type Listing,
  type ServedFileContent,
  type ServedSkill,
} from '@patchbay/protocols';

import { MAX_TIMER_MS } from './pause.ts';
import { warning } from './warning.ts';
import { isObject } from './wire-content.ts';
import { MAX_NAMED, readAllPages, type WireList } from './wire-lists.ts';

/** What a host has to accept, and what is refused above it. (Skills over MCP, "Limits") */
const MAX_FILES = 512;
const MAX_BYTES: number = 16 * 1024 * 1024;
const EXTENSION = 'io.modelcontextprotocol/skills';
const INVALID_PARAMS = -32_602;
/** How older servers say that a resource is not there. */
const NO_RESOURCE = -32_002;

/** Sends a request to the server. */
export type Ask = (
  method: string,
  params: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
) => Promise<unknown>;

/** Entries as they came: each is judged by the official client, and one that is there twice is refused twice. */
const listOf = (): WireList<object> => {
  const keys = new Map<object, string>();
  return {
    method: 'skills/list',
    field: 'skills',
    key: (entry) => {
      const key = keys.get(entry) ?? String(keys.size);
      keys.set(entry, key);
      return key;
    },
    read: (entry) => entry,
  };
};

/** All skills of a server. `page` asks for one page. */
export async function listServedSkills(
  page: (cursor: string | undefined) => Promise<unknown>,
  source: string,
): Promise<Listing<ServedSkill>> {
  const { items, problems, ...hints } = await readAllPages(listOf(), page, source);
  // The official client refuses a list without an end as a whole: it is shown one page of what was read.
  const read = await judge(
    async () => ({ skills: items }),
    (skills, options) => skills.list({}, options),
  );
  const refused: (readonly [string, string])[] = read.invalid.map(({ index, uri, reason }) => [
    uri ?? `number ${index + 1}`,
    isDraft(items[index])
      ? 'it follows an older draft of the Skills extension, without the sizes of its files, and cannot be verified'
      : reason,
  ]);
  const skills = read.skills.map(toServedSkill).filter((skill) => {
    const over = overLimit(skill);
    if (over !== undefined) refused.push([skill.uri, over]);
    return over === undefined;
  });
  const named = refused
    .slice(0, MAX_NAMED)
    .map(([uri, why]) =>
      warning(source, `skills/list: ${JSON.stringify(uri.slice(0, 200))} is left out: ${why}.`),
    );
  if (refused.length > MAX_NAMED)
    named.push(
      warning(source, `skills/list: ${refused.length - MAX_NAMED} more entries are left out.`),
    );
  return { ...hints, items: skills, problems: [...problems, ...named] };
}

/** See `McpClient.getSkill`. */
export async function getServedSkill(
  ask: Ask,
  uri: string,
  signal: AbortSignal | undefined,
): Promise<ServedSkill | undefined> {
  try {
    const { skill } = await judge(ask, (skills, options) => skills.get(uri, options), signal);
    const served = toServedSkill(skill);
    const over = overLimit(served);
    if (over !== undefined) throw new PatchbayError('too-large', `${uri} is refused: ${over}.`);
    return served;
  } catch (error) {
    if (!PatchbayError.isInstance(error)) throw invalid(uri, error);
    if (error.details?.['rpcCode'] === INVALID_PARAMS) return undefined;
    throw error;
  }
}

/** See `McpClient.readSkill`. */
export async function readServedSkill(
  ask: Ask,
  skill: ServedSkill,
  reference: string | undefined,
  signal: AbortSignal | undefined,
): Promise<ServedFileContent> {
  const entry = skill as Skill;
  const read = judge(ask, (skills, options) => skills.read(entry, reference, options), signal);
  const { uri, mimeType, bytes, body } = await read.catch((error: unknown) => {
    if (!PatchbayError.isInstance(error)) throw notAsAnnounced(skill, reference, error);
    throw isMissing(error) ? notServed(skill, error) : error;
  });
  if (bytes.length > MAX_BYTES) {
    throw new PatchbayError('too-large', `${uri} has more than ${MAX_BYTES} bytes.`, {
      details: { limit: MAX_BYTES },
    });
  }
  return {
    uri,
    bytes,
    ...(mimeType === undefined ? {} : { mimeType }),
    ...(body === undefined ? {} : { body }),
  };
}

interface Options {
  readonly signal?: AbortSignal;
  readonly timeout: number;
}

/**
 * Lets the skills client of the official SDK judge what a server answers. It takes nothing but a client of the SDK, so it gets
 * one without a server behind it: what that asks is asked over the connection that is there, with its limits and its recovery.
 * What the connection throws is thrown as it is.
 */
async function judge<T>(
  ask: Ask,
  use: (skills: SkillsClient, options: Options) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const [sdk, { SkillsClient: Judge }] = await Promise.all([
    import('@modelcontextprotocol/client'),
    import('@modelcontextprotocol/client/ext/skills'),
  ]);
  const client: Client = new sdk.Client(
    { name: 'patchbay', version: '0' },
    { versionNegotiation: { mode: 'legacy' } },
  );
  const ended = new AbortController();
  const until = signal === undefined ? ended.signal : AbortSignal.any([signal, ended.signal]);
  let failure: { readonly error: unknown } | undefined;
  const transport: Transport = {
    start: async () => undefined,
    close: async () => transport.onclose?.(),
    send: async (message) => {
      if (!('method' in message) || !('id' in message)) return;
      const { id, method, params = {} } = message;
      const answer =
        method === 'initialize' ? Promise.resolve(handshake(params)) : ask(method, params, until);
      void answer.then(
        (result) =>
          transport.onmessage?.({ jsonrpc: '2.0', id, result: isObject(result) ? result : {} }),
        (error: unknown) => {
          failure = { error };
          transport.onmessage?.({ jsonrpc: '2.0', id, error: { code: 0, message: 'refused' } });
        },
      );
    },
  };
  await client.connect(transport);
  try {
    const skills = new Judge(client, { skipInvalid: true });
    return await use(skills, {
      timeout: MAX_TIMER_MS,
      ...(signal === undefined ? {} : { signal }),
    });
  } catch (error) {
    if (signal?.aborted === true)
      throw new PatchbayError('aborted', 'Reading a skill was aborted.', { cause: signal.reason });
    throw failure === undefined ? error : failure.error;
  } finally {
    ended.abort();
    await client.close();
  }
}

const handshake = (params: Readonly<Record<string, unknown>>) => ({
  protocolVersion: params['protocolVersion'],
  capabilities: { resources: {}, extensions: { [EXTENSION]: {} } },
  serverInfo: { name: 'served skills', version: '0' },
});

/** Exactly what is used: what else an entry says is nobody's business. */
function toServedSkill({ uri, frontmatter, resources }: Skill): ServedSkill {
  if (resources === 'dynamic') return { uri, frontmatter, resources };
  const files = resources.map((file) => ({ uri: file.uri, digest: file.digest, size: file.size }));
  return { uri, frontmatter, resources: files };
}

function overLimit({ resources }: ServedSkill): string | undefined {
  if (resources === 'dynamic') return undefined;
  if (resources.length > MAX_FILES)
    return `it has ${resources.length} files, which are more than ${MAX_FILES}`;
  const bytes = resources.reduce((sum, { size }) => sum + size, 0);
  return bytes > MAX_BYTES ? `it has ${bytes} bytes, which are more than ${MAX_BYTES}` : undefined;
}

/** Files without a size, as before the extension was final. */
function isDraft(entry: object | undefined): boolean {
  const resources: unknown = isObject(entry) ? entry['resources'] : undefined;
  return (
    Array.isArray(resources) &&
    resources.length > 0 &&
    resources.every((file) => isObject(file) && file['size'] === undefined)
  );
}

function notAsAnnounced(
  { uri }: ServedSkill,
  reference: string | undefined,
  cause: unknown,
): PatchbayError {
  const { reason, message } = cause as { readonly reason?: unknown; readonly message?: unknown };
  if (reason === 'unlisted') {
    return new PatchbayError(
      'not-found',
      `The skill ${uri} has no file ${JSON.stringify(reference?.slice(0, 200))}.`,
      { cause, details: { reason, uri } },
    );
  }
  return new PatchbayError(
    'skill-changed',
    `${uri} is not what its server announced, and nothing of it is used: ${String(message)}`,
    { cause, details: { uri, ...(typeof reason === 'string' ? { reason } : {}) } },
  );
}

/** The server says that it does not have a file which it announced. A request for a resource has only its URI to be wrong. */
const isMissing = ({ details }: PatchbayError): boolean =>
  details?.['rpcCode'] === INVALID_PARAMS || details?.['rpcCode'] === NO_RESOURCE;

const notServed = ({ uri }: ServedSkill, cause: PatchbayError): PatchbayError =>
  new PatchbayError(
    'skill-changed',
    `${uri} is not what its server announced, and nothing of it is used: ${cause.message}`,
    { cause, details: { ...cause.details, uri, reason: 'missing' } },
  );

const invalid = (uri: string, cause: unknown): PatchbayError =>
  new PatchbayError(
    'skill-changed',
    `The server's answer about ${uri} breaks the rules of the Skills extension: ${cause instanceof Error ? cause.message : String(cause)}`,
    { cause, details: { uri } },
  );
