import type {
  Capability,
  CommandArguments,
  CommandEntry,
  CommandResource,
} from '@patchbay/protocols';
import { ExtensionRegistry } from '@patchbay/registry';
import fc from 'fast-check';
import { expect, it } from 'vitest';

/** Printed, so that a run can be repeated: `SEED=… vitest run`. */
const seed = Number(process.env['SEED'] ?? Date.now() % 2 ** 31);
console.log(`properties of slash commands: seed ${seed}`);

const word = fc.oneof(
  fc.string({ unit: fc.constantFrom('"', "'", '\\', ' ', '\n', 'a', '=', '-', '$', '`') }),
  fc.string({ unit: 'grapheme' }),
);

/** A command that gives back what it got, and completes anything to `offered`. */
function echo(names: readonly string[], offered: { value: string }) {
  const got: CommandArguments[] = [];
  const capability: Capability & CommandResource = {
    id: 'echo',
    listCommands: async () =>
      names.map((name): CommandEntry => ({
        name,
        description: '',
        origin: '',
        kind: 'test',
        arguments: [{ name: 'a' }, { name: 'b' }],
      })),
    getCommand: async (name, args) => {
      got.push(args);
      return { messages: [{ role: 'user', content: [{ type: 'text', text: name }] }] };
    },
    completeArgument: async () => [offered.value],
  };
  return { capability, got };
}

it('what completion offers is, typed in, the value that was offered', async () => {
  await using registry = new ExtensionRegistry();
  const offered = { value: '' };
  const { capability, got } = echo(['x'], offered);
  registry.register(capability);
  const { commands } = registry.view();
  await fc.assert(
    fc.asyncProperty(word, word, async (first, second) => {
      offered.value = first;
      const [line] = await commands.complete('/x ');
      offered.value = second;
      const [whole] = await commands.complete(`${line} `);
      expect(await commands.resolve(whole!)).toMatchObject({ ok: true });
      expect(got.pop()!.positional).toEqual([first, second]);
    }),
    { seed },
  );
});

it('any line is resolved, refused or a plain message, and nothing of its text is lost', async () => {
  await using registry = new ExtensionRegistry();
  const { capability, got } = echo(['x'], { value: '' });
  registry.register(capability);
  const { commands } = registry.view();
  await fc.assert(
    fc.asyncProperty(word, word, async (head, tail) => {
      await commands.resolve(`/${head}`);
      await commands.complete(`/${head}`);
      await commands.complete(`/x ${tail}`);
      got.length = 0;
      expect(await commands.resolve(`/x ${tail}`)).toMatchObject({ ok: true });
      expect(got[0]!.raw.trim()).toBe(tail.trim());
    }),
    { seed },
  );
});

it('whatever commands are called, each can be typed under a name of its own', async () => {
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(word, { maxLength: 6 }), async (names) => {
      await using registry = new ExtensionRegistry({ onProblem: () => undefined });
      registry.register(echo(names, { value: '' }).capability);
      const { commands } = registry.view();
      const listed = await commands.list();
      const reached = await Promise.all(listed.map(({ name }) => commands.resolve(`/${name}`)));
      expect(new Set(reached.map((one) => one?.ok === true && one.name))).toEqual(new Set(names));
    }),
    { seed },
  );
});
