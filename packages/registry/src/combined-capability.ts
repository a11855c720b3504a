import { compositionOf, type AnyCapability, type Capability } from '@patchbay/protocols';

/**
 * Several capabilities as one: registered, hidden, replaced and closed together. Each keeps its id, and so the names of
 * its tools; tools, instructions, skills, commands, resources and changes of all come together in the views that see it,
 * and what one fails at is missing alone. (RFC-0051 "CombinedToolsetCapability")
 */
export class CombinedCapability implements Capability {
  readonly id: string;
  readonly children: readonly AnyCapability[];

  /**
   * @throws CircularCompositionError if one of them contains itself
   * @throws PatchbayError `duplicate-id` if two have one id
   */
  constructor(id: string, children: readonly AnyCapability[]) {
    this.id = id;
    this.children = Object.freeze([...children]);
    compositionOf(this);
  }
}
