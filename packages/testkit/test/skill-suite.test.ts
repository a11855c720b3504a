import {
  PatchbayError,
  sha256Hex,
  textResult,
  type OpenSkill,
  type SkillEntry,
  type SkillResource,
} from '@patchbay/protocols';

import { skillSuite, type SkillSubject } from '../src/index.ts';
import { HANGS, prove } from './prove.ts';

const ENTRY: SkillEntry = {
  uri: 'skill://greet/SKILL.md',
  name: 'greet',
  description: 'Greets.',
  origin: 'memory',
};
const FILES: Readonly<Record<string, string>> = { 'notes/more.md': 'More.' };
const SECRET = textResult('secret').content;

const open: OpenSkill = {
  entry: ENTRY,
  body: 'Say hello.',
  digest: `sha256:${sha256Hex('Say hello.')}`,
  files: [{ path: 'notes/more.md' }],
  readFile: async (path) => {
    if (path.includes('..') || /^[/\\]|^[A-Za-z]:/.test(path)) {
      throw new PatchbayError('outside-root', `${path} leads outside.`);
    }
    const text = FILES[path];
    if (text === undefined) throw new PatchbayError('not-found', `There is no ${path}.`);
    return textResult(text).content;
  },
};

const source = (more: Partial<SkillResource> = {}): SkillSubject => ({
  capability: {
    id: 'memory',
    listSkills: async () => [ENTRY],
    openSkill: async (uri) => (uri === ENTRY.uri ? open : undefined),
    skillExists: async (uri) => uri === ENTRY.uri,
    ...more,
  },
});
const broken = (more: Partial<SkillResource>) => () => source(more);
const opening = (more: Partial<OpenSkill>) =>
  broken({ openSkill: async (uri) => (uri === ENTRY.uri ? { ...open, ...more } : undefined) });

prove(skillSuite, () => source(), {
  'lists its skills with URI, name, description and origin': {
    subject: broken({ listSkills: async () => [{ ...ENTRY, description: '' }] }),
    says: /Incomplete/,
  },
  'lists no URI twice': {
    subject: broken({ listSkills: async () => [ENTRY, { ...ENTRY, name: 'again' }] }),
    says: /URIs of its skills/,
  },
  'lists the same again while nothing changes': {
    subject: () => {
      let asked = 0;
      return source({ listSkills: async () => [{ ...ENTRY, description: `Asked ${++asked}` }] });
    },
    says: /again/,
  },
  'opens each skill that it lists, as it lists it': {
    subject: opening({ body: '---\nname: greet\n---\nSay hello.' }),
    says: /frontmatter/,
  },
  'gives each text a SHA-256, the same one as long as the text is the same': {
    subject: opening({ digest: 'md5:1' }),
    says: /The digest of greet/,
  },
  'says of each skill that it lists that it exists, and of no other': {
    subject: broken({ skillExists: async () => true }),
    says: /exists/,
  },
  'opens nothing that it does not have, and does not fail for it': {
    subject: broken({
      openSkill: async (uri) => {
        if (uri === ENTRY.uri) return open;
        throw new PatchbayError('not-found', 'There is no such skill.');
      },
    }),
    says: /no such skill/,
  },
  'reads each file that it names': {
    subject: opening({ files: [{ path: 'notes/gone.md' }] }),
    says: /gone/,
  },
  'reads nothing outside of a skill': {
    subject: opening({
      readFile: async (path) => (path.includes('%') ? SECRET : open.readFile(path)),
    }),
    says: /%2e%2e/,
  },
  'says `not-found` of a file that a skill does not have': {
    subject: opening({ readFile: async () => SECRET }),
    says: /not there/,
  },
  'ends when nobody waits any more': {
    subject: broken({
      listSkills: async ({ signal }) => (signal.aborted ? new Promise(() => undefined) : [ENTRY]),
    }),
    says: HANGS,
  },
});
