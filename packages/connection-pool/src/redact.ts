import type { ServerConfig } from '@patchbay/protocols';

import { isStdio } from './connection-key.ts';

/** Shorter values are no secrets, and would black out half of every text. */
const MIN_LENGTH = 6;

/** Blacks out configured environment and header values in text that is shown: a stderr tail, an error. */
export function makeRedactor(
  config: ServerConfig,
  headers: Readonly<Record<string, string>>,
): (text: string) => string {
  const environment = isStdio(config) ? Object.values(config.env ?? {}) : [];
  const tokens = Object.values(headers).flatMap((value) => [value, value.replace(/^\w+\s+/, '')]);
  const secrets = [...new Set([...environment, ...tokens])]
    .filter((value) => value.length >= MIN_LENGTH)
    .toSorted((a, b) => b.length - a.length);
  return (text) => secrets.reduce((shown, secret) => shown.replaceAll(secret, '***'), text);
}
