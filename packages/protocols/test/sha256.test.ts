import { createHash } from 'node:crypto';

import { sha256Hex } from '@patchbay/protocols';
import { expect, it } from 'vitest';

it('agrees with node:crypto for every length around the block borders', () => {
  for (let length = 0; length < 200; length++) {
    const text = Array.from({ length }, (_, i) =>
      String.fromCodePoint(33 + ((i * 7 + length) % 90)),
    ).join('');
    expect(sha256Hex(text)).toBe(createHash('sha256').update(text).digest('hex'));
  }
});

it('hashes UTF-8', () => {
  const text = 'Grüße, 世界 🌍 \0 end';
  expect(sha256Hex(text)).toBe(createHash('sha256').update(text).digest('hex'));
});
