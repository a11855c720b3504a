import {
  compositionOf,
  exposedToolName,
  isToolSource,
  missingMethods,
  RESERVED_TOOL_NAMES,
  toolsFromSource,
  type AnyCapability,
  type CompileContext,
  type Scope,
  type Tool,
} from '@patchbay/protocols';

import { testContext } from '../compile-context.ts';
import { ensure, ensureEqual, ensureSettles, isText, show, within } from '../expectation.ts';
import { watchIo } from '../io-watch.ts';
import type { Ended, Suite } from '../requirement.ts';

/** What {@link capabilitySuite} looks at. */
export interface CapabilitySubject extends Ended {
  /** Where making the subject needs files or servers of its own, a function: then only what it does is watched for I/O. */
  readonly capability: AnyCapability | (() => AnyCapability);
}

const SCOPES: readonly Scope[] = [
  {},
  { session: 'suite' },
  { session: 'suite', agent: 'a/b' },
  { session: 'suite', agent: 'a', turn: '1' },
];

/** What every capability does, whatever it provides. (DESIGN "Rules of behaviour", `Capability`) */
export const capabilitySuite: Suite<CapabilitySubject> = {
  contract: 'Capability',
  requirements: [
    {
      name: 'reaches for nothing outside while it is made',
      check: async (subject, making) => {
        const { value, reached } = await watchIo(() => made(subject));
        await end(value);
        ensureEqual(reached, [], 'What its constructor opened');
        if (typeof subject.capability === 'function') return;
        ensureEqual(
          making.reached,
          [],
          'What `create` opened (if that was for the test, give `capability` as a function)',
        );
      },
    },
    requires('has an id, and keeps it', async (capability) => {
      const { id } = capability;
      ensure(isText(id), `The id is ${show(id)}, not a text`);
      await toolsOf(capability, testContext());
      ensureEqual(capability.id, id, 'Its id after it was used');
    }),
    requires('has every method of the protocols that it shows', async (capability) => {
      ensureEqual(missingMethods(capability), [], 'Missing methods');
    }),
    requires('has children with ids of their own, and is none of them', async (capability) => {
      for (const { capability: part } of compositionOf(capability))
        ensure(isText(part.id), `The id of one of its children is ${show(part.id)}, not a text`);
    }),
    requires('defines each tool, frozen, with a schema of an object', async (capability) => {
      for (const { definition } of await toolsOf(capability, testContext())) {
        ensure(Object.isFrozen(definition), `The definition of ${definition.name} is not frozen`);
        ensureEqual(
          definition.inputSchema['type'],
          'object',
          `The top of the schema of ${definition.name}`,
        );
      }
    }),
    requires('names each tool by its own id and the name of the tool', async (capability) => {
      for (const { id, definition } of await toolsOf(capability, testContext())) {
        if (RESERVED_TOOL_NAMES.includes(definition.name)) continue;
        ensureEqual(definition.name, exposedToolName(id), 'The name that a model sees');
        ensureEqual(id.capability, capability.id, `The capability of ${definition.name}`);
      }
    }),
    requires('has no two tools of one name', async (capability) => {
      const names = (await toolsOf(capability, testContext())).map(nameOf);
      ensureEqual(names.toSorted(), [...new Set(names)].toSorted(), 'Its tools');
    }),
    requires('gives the same tools again while nothing changes', async (capability) => {
      const definitions = async () =>
        (await toolsOf(capability, testContext())).map(({ definition }) => definition);
      ensureEqual(await definitions(), await definitions(), 'Its tools, asked for again');
    }),
    requires('answers many at once as it answers one', async (capability) => {
      const one = (await toolsOf(capability, testContext())).map(nameOf);
      const many = await within(
        Promise.all(SCOPES.map(() => toolsOf(capability, testContext()))),
        'Listing its tools for several at once',
      );
      for (const tools of many) ensureEqual(tools.map(nameOf), one, 'Its tools, for one of many');
    }),
    requires('marks each instruction with a source, a kind and a text', async (capability) => {
      for (const block of (await capability.instructions?.(testContext())) ?? []) {
        const kind = block.kind === 'static' || block.kind === 'dynamic';
        ensure(kind && isText(block.source) && typeof block.text === 'string', show(block));
      }
    }),
    requires('keeps its static instructions, byte by byte', async (capability) => {
      const texts = async () =>
        ((await capability.instructions?.(testContext())) ?? [])
          .filter(({ kind }) => kind === 'static')
          .map(({ text }) => text);
      ensureEqual(await texts(), await texts(), 'Its static instructions, asked for again');
    }),
    requires(
      'contributes to a turn at once, also without words of the user',
      async (capability) => {
        for (const userText of [undefined, 'hello']) {
          const turn = { ...testContext(), turnId: 'turn-1', userText };
          const given = await within(
            Promise.resolve(capability.prepareTurn?.(turn)),
            'prepareTurn',
            1_000,
          );
          ensure((given?.hide ?? []).every(isText), `It hides ${show(given?.hide)}`);
        }
      },
    ),
    requires('says of every scope whether it is visible', async (capability) => {
      for (const scope of SCOPES) {
        const visible = capability.visible?.(scope) ?? true;
        ensure(typeof visible === 'boolean', `For ${show(scope)} it says ${show(visible)}`);
      }
    }),
    requires('says how it stands, before and after its first use', async (capability) => {
      const states = [capability.status?.()];
      await toolsOf(capability, testContext());
      states.push(capability.status?.());
      for (const status of states) {
        if (status === undefined) continue;
        const { state, since, retryAt } = status;
        ensure(isText(state), `Its state is ${show(state)}`);
        for (const time of [since, retryAt]) {
          const iso = time === undefined || !Number.isNaN(Date.parse(time));
          ensure(iso, `${show(time)} is no ISO 8601 time`);
        }
      }
    }),
    requires('ends when nobody waits any more', async (capability) => {
      const context = testContext({ signal: AbortSignal.abort() });
      await ensureSettles(toolsOf(capability, context), 'Listing its tools for nobody');
      await ensureSettles(
        Promise.resolve(capability.instructions?.(context)),
        'Giving its instructions to nobody',
      );
    }),
    requires(
      'is disposed twice without harm, and then still answers or refuses',
      async (capability) => {
        await toolsOf(capability, testContext());
        await within(end(capability), 'Disposing it');
        await within(end(capability), 'Disposing it again');
        await ensureSettles(toolsOf(capability, testContext()), 'Listing its tools after its end');
      },
    ),
  ],
};

/** A requirement on a capability; it is disposed when it was checked. */
function requires(
  name: string,
  check: (capability: AnyCapability) => Promise<void>,
): (typeof capabilitySuite.requirements)[number] {
  return {
    name,
    check: async (subject) => {
      const capability = made(subject);
      try {
        await check(capability);
      } finally {
        await end(capability);
      }
    },
  };
}

const made = ({ capability }: CapabilitySubject): AnyCapability =>
  typeof capability === 'function' ? capability() : capability;

const end = async (capability: AnyCapability): Promise<void> =>
  await capability[Symbol.asyncDispose]?.();

const nameOf = ({ definition }: Tool): string => definition.name;

/** Its tools as a registry takes them. */
async function toolsOf(
  capability: AnyCapability,
  context: CompileContext,
): Promise<readonly Tool[]> {
  if (capability.tools !== undefined) return await capability.tools(context);
  if (!isToolSource(capability)) return [];
  const definitions = await capability.listTools(context);
  return toolsFromSource(capability.id, capability, definitions, new WeakMap());
}
