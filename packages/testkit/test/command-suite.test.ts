import {
  PatchbayError,
  textResult,
  type CommandEntry,
  type CommandResource,
} from '@patchbay/protocols';

import { commandSuite, type CommandSubject } from '../src/index.ts';
import { HANGS, prove } from './prove.ts';

const REVIEW: CommandEntry = {
  name: 'review',
  description: 'Reviews a file.',
  origin: 'memory',
  kind: 'file',
  arguments: [{ name: 'path', required: true }],
};
const message = { role: 'user', content: textResult('Review.').content } as const;

const getCommand: CommandResource['getCommand'] = async (name, { named }) => {
  if (name !== 'review') throw new PatchbayError('not-found', `There is no /${name}.`);
  if (named['path'] === undefined) throw new PatchbayError('command-arguments', 'Which path?');
  return { messages: [message] };
};

const source = (more: Partial<CommandResource> = {}): CommandSubject => ({
  capability: {
    id: 'memory',
    listCommands: async () => [REVIEW],
    getCommand,
    completeArgument: async () => ['src/main.ts'],
    ...more,
  },
});
const broken = (more: Partial<CommandResource>) => () => source(more);

prove(commandSuite, () => source(), {
  'lists its commands with name, description, origin and kind, without a slash': {
    subject: broken({ listCommands: async () => [{ ...REVIEW, name: '/review' }] }),
    says: /typed as one word/,
  },
  'lists no name twice, and the same again while nothing changes': {
    subject: broken({ listCommands: async () => [REVIEW, REVIEW] }),
    says: /names of its commands/,
  },
  'turns each command that it lists into messages': {
    subject: broken({ getCommand: async () => ({ messages: [] }) }),
    says: /gives no message/,
  },
  'says `not-found` of a command that it does not have': {
    subject: broken({ getCommand: async () => ({ messages: [message] }) }),
    says: /expected a rejection/,
  },
  'says `command-arguments` when a required argument is missing': {
    subject: broken({ getCommand: async () => ({ messages: [message] }) }),
    says: /without its arguments/,
  },
  'completes an argument with texts, one that it does not know with none': {
    subject: broken({ completeArgument: async () => [undefined as never] }),
    says: /undefined/,
  },
  'ends when nobody waits any more': {
    subject: broken({ getCommand: () => new Promise(() => undefined) }),
    says: HANGS,
  },
});
