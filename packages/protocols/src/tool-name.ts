import { sha256Hex } from './sha256.ts';

/** Who provides a tool, and what it calls it. */
export interface ToolId {
  /** The id of the capability. */
  readonly capability: string;
  /** The tool's name as its source knows it. */
  readonly name: string;
}

const MAX_LENGTH = 64;
const HASH_DIGITS = 8;

/** Names of patchbay's own tools: they are shown bare, and nothing else may take them. */
export const RESERVED_TOOL_NAMES: readonly string[] = Object.freeze([
  'list_skills',
  'activate_skill',
  'read_skill_file',
]);

/**
 * The name under which a model sees a tool: `<capability>__<tool>`, at most 64 characters of `[A-Za-z0-9_-]`.
 *
 * A pure function of the two names, so that a tool keeps its name whatever else joins or leaves. Where a character had
 * to be replaced, where the result would be too long, or where the capability's id could be confused with the separator
 * (it contains `__` or ends in `_`), the name is cut to 55 characters and carries 8 hex digits of
 * SHA-256(capability NUL tool). (DESIGN "Names")
 */
export function exposedToolName(id: ToolId): string {
  const plain = `${id.capability}__${id.name}`;
  const ambiguous = id.capability.includes('__') || id.capability.endsWith('_');
  const fits = plain.length <= MAX_LENGTH && id.name !== '' && !ambiguous;
  if (fits && /^[A-Za-z0-9_-]*$/.test(plain)) return plain;
  const safe = plain.replaceAll(/[^A-Za-z0-9_-]/gu, '_');
  const hash = sha256Hex(`${id.capability}\0${id.name}`).slice(0, HASH_DIGITS);
  return `${safe.slice(0, MAX_LENGTH - HASH_DIGITS - 1)}_${hash}`;
}
