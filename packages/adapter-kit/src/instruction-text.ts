import type { InstructionBlock } from '@patchbay/protocols';

/** Instructions as text for a system prompt. The first stays the same for as long as its sources do. */
export interface InstructionText {
  readonly static: string;
  readonly dynamic: string;
}

/** The blocks of each kind, in their order, with an empty line between them. Empty blocks are left out. */
export function instructionText(blocks: readonly InstructionBlock[]): InstructionText {
  const ofKind = (isStatic: boolean) =>
    blocks
      .filter(({ kind }) => (kind === 'static') === isStatic)
      .map(({ text }) => text.trim())
      .filter((text) => text !== '')
      .join('\n\n');
  return { static: ofKind(true), dynamic: ofKind(false) };
}
