import { readFile } from 'node:fs';

import { defineTool, type AnyCapability, type InstructionBlock } from '@patchbay/protocols';

import { capabilitySuite, type CapabilitySubject } from '../src/index.ts';
import { HANGS, prove } from './prove.ts';

const note = (text: string): InstructionBlock => ({ source: 'lamp', kind: 'static', text });
const light = defineTool({ capability: 'lamp', name: 'light', call: () => 'on' });
const dim = defineTool({ capability: 'lamp', name: 'dim', call: () => 'dim' });

const lamp = (more: Partial<AnyCapability> = {}): AnyCapability => ({
  id: 'lamp',
  tools: async () => [light, dim],
  instructions: async () => [note('There is a lamp.')],
  prepareTurn: async () => ({ hide: [] }),
  visible: () => true,
  status: () => ({ state: 'ready', since: '2026-01-01T00:00:00Z' }),
  [Symbol.asyncDispose]: async () => undefined,
  ...more,
});
const broken = (more: Partial<AnyCapability>) => (): CapabilitySubject => ({
  capability: () => lamp(more),
});
/** Answers differently each time. */
function turning<T>(...answers: readonly T[]): () => Promise<T> {
  let at = 0;
  return async () => answers[at++ % answers.length]!;
}
const reading = async () => {
  await Promise.resolve();
  readFile(import.meta.filename, () => undefined);
};

prove(capabilitySuite, () => ({ capability: lamp() }), {
  'reaches for nothing outside while it is made': {
    subject: () => ({
      capability: () => {
        void reading();
        return lamp();
      },
    }),
    says: /FSREQCALLBACK/,
  },
  'has an id, and keeps it': { subject: broken({ id: ' ' }), says: /not a text/ },
  'has every method of the protocols that it shows': {
    subject: broken({ listSkills: async () => [] }),
    says: /openSkill/,
  },
  'has children with ids of their own, and is none of them': {
    subject: () => {
      const children: AnyCapability[] = [];
      const itself = lamp({ children });
      children.push(itself);
      return { capability: () => itself };
    },
    says: /may not contain itself: lamp > lamp/,
  },
  'defines each tool, frozen, with a schema of an object': {
    subject: broken({ tools: async () => [{ ...light, definition: { ...light.definition } }] }),
    says: /not frozen/,
  },
  'names each tool by its own id and the name of the tool': {
    subject: broken({
      tools: async () => [
        { ...light, definition: Object.freeze({ ...light.definition, name: 'light' }) },
      ],
    }),
    says: /lamp__light/,
  },
  'has no two tools of one name': {
    subject: broken({ tools: async () => [light, light] }),
    says: /Its tools/,
  },
  'gives the same tools again while nothing changes': {
    subject: () => ({ capability: lamp({ tools: turning([light, dim], [dim, light]) }) }),
    says: /asked for again/,
  },
  'answers many at once as it answers one': {
    subject: () => {
      let asked = 0;
      const tools = async () => {
        const mine = ++asked;
        await Promise.resolve();
        return mine === asked ? [light] : [];
      };
      return { capability: lamp({ tools }) };
    },
    says: /one of many/,
  },
  'marks each instruction with a source, a kind and a text': {
    subject: broken({ instructions: async () => [{ ...note('x'), source: '' }] }),
    says: /source: ''/,
  },
  'keeps its static instructions, byte by byte': {
    subject: () => ({ capability: lamp({ instructions: turning([note('1')], [note('2')]) }) }),
    says: /static instructions/,
  },
  'contributes to a turn at once, also without words of the user': {
    subject: broken({ prepareTurn: ({ userText }) => Promise.resolve({ hide: [userText!] }) }),
    says: /It hides/,
  },
  'says of every scope whether it is visible': {
    subject: broken({ visible: ({ agent }) => agent as never }),
    says: /it says undefined|it says 'a/,
  },
  'says how it stands, before and after its first use': {
    subject: broken({ status: () => ({ state: 'ready', since: 'yesterday' }) }),
    says: /ISO 8601/,
  },
  'ends when nobody waits any more': {
    subject: broken({
      tools: async ({ signal }) => (signal.aborted ? new Promise(() => undefined) : [light]),
    }),
    says: HANGS,
  },
  'is disposed twice without harm, and then still answers or refuses': {
    subject: () => {
      let ended = 0;
      const dispose = async () => {
        if (++ended === 2) throw new Error('disposed already');
      };
      return { capability: lamp({ [Symbol.asyncDispose]: dispose }) };
    },
    says: /disposed already/,
  },
});
