import type {
  Capability,
  CommandArguments,
  CommandEntry,
  CommandResource,
} from '@patchbay/protocols';

import { testContext } from '../compile-context.ts';
import {
  ensure,
  ensureEqual,
  ensureRejects,
  ensureSettles,
  isText,
  show,
  within,
} from '../expectation.ts';
import type { Ended, Suite } from '../requirement.ts';

/** What {@link commandSuite} looks at: a source with at least one command. */
export interface CommandSubject extends Ended {
  readonly capability: Pick<Capability, 'id'> & CommandResource;
  /** A value for every required argument. Default: `value`. */
  readonly values?: Readonly<Record<string, string>>;
}

const NOTHING: CommandArguments = { raw: '', positional: [], named: {} };

/** What every source of slash commands does. (RFC-0051 "CommandResource") */
export const commandSuite: Suite<CommandSubject> = {
  contract: 'CommandResource',
  requirements: [
    {
      name: 'lists its commands with name, description, origin and kind, without a slash',
      check: async ({ capability }) => {
        for (const entry of await listed(capability)) {
          const { name, description, origin, kind } = entry;
          ensure([name, origin, kind].every(isText), `Incomplete: ${show(entry)}`);
          ensure(typeof description === 'string', `${name} has no description`);
          ensure(/^[^\s/]+$/.test(name), `${show(name)} cannot be typed as one word`);
        }
      },
    },
    {
      name: 'lists no name twice, and the same again while nothing changes',
      check: async ({ capability }) => {
        const entries = await listed(capability);
        const names = entries.map(({ name }) => name);
        ensureEqual(names, [...new Set(names)], 'The names of its commands');
        ensureEqual(await listed(capability), entries, 'Its commands, asked for again');
      },
    },
    {
      name: 'turns each command that it lists into messages',
      check: async ({ capability, values = {} }) => {
        for (const entry of await listed(capability)) {
          const { messages } = await within(
            capability.getCommand(entry.name, filled(entry, values), testContext()),
            `/${entry.name}`,
          );
          ensure(messages.length > 0, `/${entry.name} gives no message`);
          for (const { role, content } of messages) {
            const known = role === 'user' || role === 'assistant';
            ensure(known && content.length > 0, `/${entry.name} gives ${show({ role, content })}`);
          }
        }
      },
    },
    {
      name: 'says `not-found` of a command that it does not have',
      check: async ({ capability }) => {
        await ensureRejects(
          capability.getCommand('patchbay-suite-unknown', NOTHING, testContext()),
          'A command that is not there',
          'not-found',
        );
      },
    },
    {
      name: 'says `command-arguments` when a required argument is missing',
      check: async ({ capability }) => {
        for (const { name, arguments: declared = [] } of await listed(capability)) {
          if (!declared.some(({ required }) => required === true)) continue;
          await ensureRejects(
            capability.getCommand(name, NOTHING, testContext()),
            `/${name} without its arguments`,
            'command-arguments',
          );
        }
      },
    },
    {
      name: 'completes an argument with texts, one that it does not know with none',
      check: async ({ capability }) => {
        const [first] = await listed(capability);
        ensure(first !== undefined, 'There is no command');
        for (const argument of [first.arguments?.[0]?.name, 'patchbay-suite-unknown']) {
          if (argument === undefined) continue;
          const found = await within(
            Promise.resolve(capability.completeArgument?.(first.name, argument, '', testContext())),
            `Completing ${argument}`,
          );
          ensure(
            (found ?? []).every((value) => typeof value === 'string'),
            show(found),
          );
        }
      },
    },
    {
      name: 'ends when nobody waits any more',
      check: async ({ capability }) => {
        const context = testContext({ signal: AbortSignal.abort() });
        await ensureSettles(capability.listCommands(context), 'Listing for nobody');
        await ensureSettles(capability.getCommand('x', NOTHING, context), 'A command for nobody');
      },
    },
  ],
};

async function listed(capability: CommandResource): Promise<readonly CommandEntry[]> {
  const entries = await within(capability.listCommands(testContext()), 'Listing its commands');
  ensure(entries.length > 0, 'It lists no command: make one with at least one for this suite.');
  return entries;
}

/** What a user would have typed to give every required argument. */
function filled(
  { arguments: declared = [] }: CommandEntry,
  values: Readonly<Record<string, string>>,
): CommandArguments {
  const named = Object.fromEntries(
    declared
      .filter(({ required }) => required === true)
      .map(({ name }) => [name, values[name] ?? 'value']),
  );
  return {
    raw: Object.entries(named)
      .map(([name, value]) => `${name}=${value}`)
      .join(' '),
    positional: Object.values(named),
    named,
  };
}
