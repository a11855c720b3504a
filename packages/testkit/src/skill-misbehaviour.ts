import type { Json } from '@patchbay/protocols';

import { contentsOf, fileOf, type Contents, type ServedFile } from './served-skill.ts';

/** What is wrong with a skill. */
export type SkillMisbehaviour =
  /* To be seen in its entry: */
  /** No `resources`. */
  | 'no-resources'
  /** `resources` are neither a list nor `"dynamic"`. */
  | 'odd-resources'
  /** SKILL.md is none of its files. */
  | 'no-manifest'
  /** One of its files is listed twice. */
  | 'listed-twice'
  /** A file beside its folder: `skill://secret.txt`. */
  | 'outside-folder'
  /** A file behind an encoded way out of its folder: `..%2Fsecret.txt`. */
  | 'traversal'
  /** A file of the reader's machine: `file:///etc/hostname`. */
  | 'other-scheme'
  /** Its name is not that of its folder. */
  | 'wrong-name'
  /** No description. */
  | 'no-description'
  /** Its address is not that of a SKILL.md. */
  | 'odd-uri'
  /** The whole entry is listed twice. */
  | 'repeated'
  /** Digests of another kind. */
  | 'odd-digest'
  /** No sizes, as in an early draft. */
  | 'no-size'
  /** 600 files, where nobody has to accept more than 512. */
  | 'too-many-files'
  /** A file of 17 MB, where nobody has to accept more than 16 in all. */
  | 'too-large'
  /** Who asks for it alone gets the entry of another skill. */
  | 'other-on-get'
  /** It is in the list, but who asks for it alone is told that there is no such skill. */
  | 'unknown-on-get'
  /* To be seen when it is read: */
  /** SKILL.md has another digest. */
  | 'wrong-digest'
  /** SKILL.md has another size. */
  | 'wrong-size'
  /** The frontmatter in SKILL.md has another description; size and digest are right. */
  | 'other-frontmatter'
  /** SKILL.md has no frontmatter that could be read; size and digest are right. */
  | 'broken-frontmatter'
  /** SKILL.md is no text; size and digest are right. */
  | 'binary-manifest'
  /** SKILL.md is right, each other file has another digest. */
  | 'wrong-file-digest'
  /** Every second read of a file gives something else, of the same size. */
  | 'changes'
  /** A file `run.sh` is there, and is shown in its folder, but is not in the entry. */
  | 'unlisted-file'
  /** A read is answered with a file of another address. */
  | 'other-file'
  /** Its files are not there. */
  | 'no-files'
  /** A read is not answered. */
  | 'silent'
  /** The entry says that SKILL.md is small; 17 MB come. */
  | 'huge-answer';

/** A skill before it is published. */
interface Honest {
  readonly uri: string;
  readonly root: string;
  readonly frontmatter: Readonly<Record<string, Json>>;
  readonly resources: readonly ServedFile[];
  readonly files: ReadonlyMap<string, string | Uint8Array>;
}

/** What is different in one that misbehaves. */
interface Faulty {
  readonly uri?: string;
  readonly frontmatter?: Readonly<Record<string, Json | undefined>>;
  readonly resources?: readonly object[] | string | undefined;
  readonly files?: Honest['files'];
  readonly copies?: number;
  readonly onGet?: object | undefined;
  readonly read?: (uri: string, times: number) => Contents | Promise<never> | undefined;
}

const TOO_MANY = 600;
const TOO_LARGE = 17 * 1024 * 1024;
const WRONG = `sha256:${'0'.repeat(64)}`;

const parent = ({ root }: Honest) => root.slice(0, root.lastIndexOf('/'));

/** With a file more, which is really there. */
const withFile = (skill: Honest, uri: string): Faulty => ({
  resources: [...skill.resources, fileOf(uri, 'secret')],
  files: new Map([...skill.files, [uri, 'secret']]),
});

/** With another SKILL.md, of which the entry knows. */
const withManifest = (skill: Honest, content: string | Uint8Array): Faulty => ({
  resources: skill.resources.map((file) =>
    file.uri === skill.uri ? fileOf(file.uri, content) : file,
  ),
  files: new Map([...skill.files, [skill.uri, content]]),
});

/** With something else said of SKILL.md, or of each other file. */
const saying = (
  skill: Honest,
  ofManifest: boolean,
  change: (file: ServedFile) => object,
): Faulty => ({
  resources: skill.resources.map((file) =>
    (file.uri === skill.uri) === ofManifest ? change(file) : file,
  ),
});

/** Other content of the same size, which is text if it was. */
function altered(content: string | Uint8Array): string | Uint8Array {
  const bytes = Buffer.from(content);
  const at = bytes.findLastIndex((byte) => byte < 0x80);
  if (at >= 0) bytes[at] = bytes[at]! ^ 1;
  return typeof content === 'string' ? bytes.toString() : bytes;
}

/** What each does to a skill. */
export const SKILL_FAULTS: Readonly<Record<SkillMisbehaviour, (skill: Honest) => Faulty>> = {
  'no-resources': () => ({ resources: undefined }),
  'odd-resources': () => ({ resources: 'everything' }),
  'no-manifest': ({ uri, resources }) => ({
    resources: resources.filter((file) => file.uri !== uri),
  }),
  'listed-twice': ({ resources }) => ({ resources: [...resources, ...resources.slice(0, 1)] }),
  'outside-folder': (skill) => withFile(skill, `${parent(skill)}/secret.txt`),
  traversal: (skill) => withFile(skill, `${skill.root}/..%2Fsecret.txt`),
  'other-scheme': (skill) => withFile(skill, 'file:///etc/hostname'),
  'wrong-name': ({ frontmatter }) => ({ frontmatter: { ...frontmatter, name: 'else' } }),
  'no-description': ({ frontmatter }) => ({
    frontmatter: { ...frontmatter, description: undefined },
  }),
  'odd-uri': ({ root }) => ({ uri: `${root}/README.md` }),
  repeated: () => ({ copies: 2 }),
  'odd-digest': (skill) => saying(skill, true, (file) => ({ ...file, digest: 'md5:0123' })),
  'no-size': ({ resources }) => ({
    resources: resources.map((file) => ({ ...file, size: undefined })),
  }),
  'too-many-files': ({ root, resources }) => ({
    resources: [
      ...resources,
      ...Array.from({ length: TOO_MANY }, (_, n) => fileOf(`${root}/${n}.txt`, 'x')),
    ],
  }),
  'too-large': ({ root, resources }) => ({
    resources: [...resources, { uri: `${root}/large.bin`, digest: WRONG, size: TOO_LARGE }],
  }),
  'other-on-get': ({ root, frontmatter }) => {
    const uri = `${root}-other/SKILL.md`;
    const other = { ...frontmatter, name: root.slice(root.lastIndexOf('/') + 1) + '-other' };
    return { onGet: { uri, frontmatter: other, resources: [fileOf(uri, '')] } };
  },
  'unknown-on-get': () => ({ onGet: undefined }),
  'wrong-digest': (skill) => saying(skill, true, (file) => ({ ...file, digest: WRONG })),
  'wrong-size': (skill) => saying(skill, true, (file) => ({ ...file, size: file.size + 1 })),
  'other-frontmatter': ({ frontmatter }) => ({
    frontmatter: { ...frontmatter, description: 'Something harmless.' },
  }),
  'broken-frontmatter': (skill) => withManifest(skill, '---\nname: [\n'),
  'binary-manifest': (skill) => withManifest(skill, new Uint8Array([0x2d, 0x2d, 0x2d, 0xff])),
  'wrong-file-digest': (skill) => saying(skill, false, (file) => ({ ...file, digest: WRONG })),
  changes: ({ files }) => ({
    read: (uri, times) => {
      const content = files.get(uri);
      return contentsOf(uri, content === undefined || times % 2 === 1 ? content : altered(content));
    },
  }),
  'unlisted-file': ({ root, files }) => ({
    files: new Map([...files, [`${root}/run.sh`, 'echo unlisted\n']]),
  }),
  'other-file': ({ root, files }) => ({
    read: (uri) => contentsOf(`${root}/other.md`, files.get(uri)),
  }),
  'no-files': () => ({ read: () => undefined }),
  silent: () => ({ read: () => new Promise<never>(() => undefined) }),
  'huge-answer': ({ files }) => ({
    read: (uri) => contentsOf(uri, files.has(uri) ? 'x'.repeat(TOO_LARGE) : undefined),
  }),
};
