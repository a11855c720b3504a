import type { Capability, OpenSkill, SkillEntry, SkillResource } from '@patchbay/protocols';

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

/** What {@link skillSuite} looks at: a source with at least one skill, and at least one file in one of them. */
export interface SkillSubject extends Ended {
  readonly capability: Pick<Capability, 'id'> & SkillResource;
}

/** Paths that leave a skill's folder, however they are written. */
const OUTSIDE: readonly string[] = [
  '..',
  '../secret',
  'a/../../secret',
  './../secret',
  '/etc/hosts',
  '..\\secret',
  'C:\\secret',
];

/** Spellings that must not lead outside, whatever the answer is called. */
const DISGUISED: readonly string[] = ['%2e%2e/secret', '..%2fsecret', 'a\0/../../secret'];

const UNKNOWN = 'skill://patchbay-suite-knows-no-such-skill/SKILL.md';

/** What every source of skills does. (DESIGN "Skills" and "Trust", `SkillResource`) */
export const skillSuite: Suite<SkillSubject> = {
  contract: 'SkillResource',
  requirements: [
    {
      name: 'lists its skills with URI, name, description and origin',
      check: async ({ capability }) => {
        for (const entry of await listed(capability)) {
          const { uri, name, description, origin } = entry;
          ensure([uri, name, description, origin].every(isText), `Incomplete: ${show(entry)}`);
          ensure(URL.canParse(uri), `${show(uri)} is no URI`);
        }
      },
    },
    {
      name: 'lists no URI twice',
      check: async ({ capability }) => {
        const uris = (await listed(capability)).map(({ uri }) => uri);
        ensureEqual(uris, [...new Set(uris)], 'The URIs of its skills');
      },
    },
    {
      name: 'lists the same again while nothing changes',
      check: async ({ capability }) => {
        ensureEqual(await listed(capability), await listed(capability), 'Its skills, again');
      },
    },
    {
      name: 'opens each skill that it lists, as it lists it',
      check: async ({ capability }) => {
        for (const { entry, skill } of await opened(capability)) {
          ensureEqual(skill.entry.uri, entry.uri, 'The URI of the opened skill');
          ensureEqual(skill.entry.name, entry.name, 'The name of the opened skill');
          ensure(typeof skill.body === 'string', `The body of ${entry.name} is no text`);
          ensure(!/^\uFEFF?---\r?\n/.test(skill.body), `The body of ${entry.name} has frontmatter`);
        }
      },
    },
    {
      name: 'gives each text a SHA-256, the same one as long as the text is the same',
      check: async ({ capability }) => {
        const again = await opened(capability);
        for (const [at, { entry, skill }] of (await opened(capability)).entries()) {
          ensure(
            /^sha256:[0-9a-f]{64}$/.test(skill.digest),
            `The digest of ${entry.name} is ${show(skill.digest)}`,
          );
          ensureEqual(again[at]?.skill.digest, skill.digest, `The digest of ${entry.name}, again`);
        }
      },
    },
    {
      name: 'says of each skill that it lists that it exists, and of no other',
      check: async ({ capability }) => {
        for (const { uri } of await listed(capability)) {
          ensureEqual(await capability.skillExists(uri, testContext()), true, `${uri} exists`);
        }
        for (const uri of [UNKNOWN, 'no URI at all', '']) {
          ensureEqual(await capability.skillExists(uri, testContext()), false, `${uri} exists`);
        }
      },
    },
    {
      name: 'opens nothing that it does not have, and does not fail for it',
      check: async ({ capability }) => {
        for (const uri of [UNKNOWN, 'no URI at all', '']) {
          const skill = await capability.openSkill(uri, testContext());
          ensureEqual(skill, undefined, `The skill ${show(uri)}`);
        }
      },
    },
    {
      name: 'reads each file that it names',
      check: async ({ capability }) => {
        for (const { entry, skill } of await opened(capability)) {
          if (skill.files === 'dynamic') continue;
          for (const { path } of skill.files) {
            const parts = await within(skill.readFile(path), `Reading ${path}`);
            ensure(parts.length > 0, `${path} of ${entry.name} has no content`);
          }
        }
      },
    },
    {
      name: 'reads nothing outside of a skill',
      check: async ({ capability }) => {
        for (const { skill } of await opened(capability)) {
          for (const path of OUTSIDE) {
            const reading = skill.readFile(path);
            await ensureRejects(reading, `Reading ${show(path)}`, 'outside-root', 'not-found');
          }
          for (const path of DISGUISED) {
            await ensureRejects(skill.readFile(path), `Reading ${show(path)}`);
          }
        }
      },
    },
    {
      name: 'says `not-found` of a file that a skill does not have',
      check: async ({ capability }) => {
        for (const { skill } of await opened(capability)) {
          await ensureRejects(
            skill.readFile('patchbay-suite/no-such-file.md'),
            'Reading a file that is not there',
            'not-found',
          );
        }
      },
    },
    {
      name: 'ends when nobody waits any more',
      check: async ({ capability }) => {
        const context = testContext({ signal: AbortSignal.abort() });
        await ensureSettles(capability.listSkills(context), 'Listing for nobody');
        await ensureSettles(capability.openSkill(UNKNOWN, context), 'Opening for nobody');
        for (const { skill } of await opened(capability)) {
          await ensureSettles(
            skill.readFile('SKILL.md', { signal: AbortSignal.abort() }),
            'Reading for nobody',
          );
        }
      },
    },
  ],
};

async function listed(capability: SkillResource): Promise<readonly SkillEntry[]> {
  const entries = await within(capability.listSkills(testContext()), 'Listing its skills');
  ensure(entries.length > 0, 'It lists no skill: make one with at least one for this suite.');
  return entries;
}

async function opened(
  capability: SkillResource,
): Promise<readonly { readonly entry: SkillEntry; readonly skill: OpenSkill }[]> {
  return await Promise.all(
    (await listed(capability)).map(async (entry) => {
      const skill = await within(capability.openSkill(entry.uri, testContext()), 'Opening a skill');
      ensure(skill !== undefined, `It lists ${entry.uri}, but does not open it`);
      return { entry, skill };
    }),
  );
}
