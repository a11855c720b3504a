import type { Capability } from './capability.ts';
import { CircularCompositionError, PatchbayError } from './errors.ts';

/**
 * Everything that a capability is composed of, itself first, each with the ids that lead to it.
 * @throws CircularCompositionError where one contains itself
 * @throws PatchbayError `duplicate-id` where two in it have one id
 */
export function compositionOf(capability: Capability): readonly ComposedCapability[] {
  const found: ComposedCapability[] = [];
  const ids = new Set<string>();
  const look = (part: Capability, above: readonly Capability[]): void => {
    const path = [...above, part];
    const chain = path.map(({ id }) => id);
    if (above.includes(part)) throw new CircularCompositionError(chain);
    if (ids.has(part.id)) {
      throw new PatchbayError(
        'duplicate-id',
        `"${capability.id}" contains two capabilities with the id "${part.id}" (${chain.join(' > ')}). Give one of them another id.`,
        { source: capability.id },
      );
    }
    ids.add(part.id);
    found.push({ capability: part, parent: above.at(-1), chain });
    for (const child of part.children ?? []) look(child, path);
  };
  look(capability, []);
  return found;
}

/** A part of a composition. */
export interface ComposedCapability {
  readonly capability: Capability;
  /** Absent for the one that was looked at. */
  readonly parent: Capability | undefined;
  /** Ids from the outermost to this one: its length is the depth, the outermost counted. */
  readonly chain: readonly string[];
}
