import { readdir, stat } from 'node:fs/promises';
import { join, sep } from 'node:path';

import { readConfined } from '@patchbay/files';
import type { ContentPart, SkillFile } from '@patchbay/protocols';

const MAX_LISTED_FILES = 50;
const MAX_RESOURCE_BYTES = 10 * 1024 * 1024;

/** The files of a skill beside its SKILL.md, the nearest first; at most 50. Links are not listed, but can be read. */
export async function listSkillFiles(root: string): Promise<readonly SkillFile[]> {
  const files: SkillFile[] = [];
  const folders = [''];
  for (
    let at = folders.shift();
    at !== undefined && files.length < MAX_LISTED_FILES;
    at = folders.shift()
  ) {
    const entries = await readdir(join(root, at), { withFileTypes: true }).catch(() => []);
    for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = at === '' ? entry.name : `${at}/${entry.name}`;
      if (entry.isDirectory() && !entry.name.startsWith('.') && entry.name !== 'node_modules')
        folders.push(path);
      if (!entry.isFile() || (at === '' && /^skill\.md$/i.test(entry.name))) continue;
      if (files.length >= MAX_LISTED_FILES) break;
      const size = await stat(join(root, path)).then(
        ({ size: bytes }) => ({ size: bytes }),
        () => ({}),
      );
      files.push({ path, ...size });
    }
  }
  return files;
}

/**
 * A file of a skill: text where it is UTF-8, otherwise what its ending says.
 * @throws PatchbayError `outside-root`, `not-found`, `too-large`
 */
export async function readSkillFile(
  root: string,
  path: string,
  options: { readonly signal?: AbortSignal } = {},
): Promise<readonly ContentPart[]> {
  const bytes = await readConfined(root, path.split('/').join(sep), {
    ...options,
    maxBytes: MAX_RESOURCE_BYTES,
  });
  const name = path.split('/').at(-1)!;
  const text = textOf(bytes);
  if (text !== undefined) return [{ type: 'text', text }];
  const mimeType = MIME_TYPES[name.split('.').at(-1)!.toLowerCase()] ?? 'application/octet-stream';
  const type = mimeType.startsWith('image/')
    ? 'image'
    : mimeType.startsWith('audio/')
      ? 'audio'
      : 'file';
  return [{ type, data: bytes.toString('base64'), mimeType, name }];
}

function textOf(bytes: Buffer): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

const MIME_TYPES: Readonly<Record<string, string>> = {
  gif: 'image/gif',
  jpeg: 'image/jpeg',
  jpg: 'image/jpeg',
  mp3: 'audio/mpeg',
  pdf: 'application/pdf',
  png: 'image/png',
  wav: 'audio/wav',
  webp: 'image/webp',
  zip: 'application/zip',
};
