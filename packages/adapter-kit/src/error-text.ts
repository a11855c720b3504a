import { PatchbayError } from '@patchbay/protocols';

import { clip } from './clip.ts';

/** Longer ones help no model; the whole error is kept as it is. */
const MAX_LENGTH = 2000;

/** What to do, for a model, where the message of the error alone does not say it. */
const ADVICE: ReadonlyMap<string, string> = new Map([
  ['invalid-arguments', 'Correct the arguments and call the tool again.'],
  [
    'outcome-unknown',
    'It may have run, or may not. Find out what is the case before you call it again.',
  ],
  ['timeout', 'It took too long and was given up. It may still have had an effect.'],
  ['aborted', 'It was cancelled. It may have had an effect all the same.'],
  ['approval-denied', 'Do not try it again; go on without it, or ask the user.'],
  ['approval-required', 'Go on without it, or ask the user.'],
  ['tool-hidden', 'Use another tool.'],
  ['unavailable', 'Go on without it, or try again later.'],
  ['connection-lost', 'Go on without it, or try again later.'],
  ['connect-failed', 'Go on without it, or try again later.'],
  ['authorization-required', 'Go on without it, and tell the user that it waits for a login.'],
  ['authorization-failed', 'Go on without it, or try again later.'],
]);

/**
 * The one text that a model reads of an error that a call was rejected with. Begins with `Error:`; no stack, no cause,
 * no credentials that stand in URLs or headers.
 */
export function errorText(error: unknown): string {
  const text = `Error: ${clip(withoutSecrets(said(error)), MAX_LENGTH)}`;
  const advice = PatchbayError.isInstance(error) ? ADVICE.get(error.code) : undefined;
  return advice === undefined ? text : `${text}\n${advice}`;
}

function said(error: unknown): string {
  const message =
    error instanceof Error || PatchbayError.isInstance(error) ? error.message : asText(error);
  if (!PatchbayError.isInstance(error))
    return withoutStack(message) || 'The tool failed without saying why.';
  const violations = error.details?.['violations'];
  if (error.code !== 'invalid-arguments' || !Array.isArray(violations))
    return withoutStack(error.message);
  const tool = error.details?.['tool'];
  const of = typeof tool === 'string' ? ` for ${tool}` : '';
  return [`Invalid arguments${of}:`, ...violations.map((line) => `- ${String(line)}`)].join('\n');
}

function asText(thrown: unknown): string {
  return typeof thrown === 'string' ? thrown : '';
}

/** Some put the stack into the message. */
function withoutStack(message: string): string {
  return message.replaceAll(/^\s+at .*(?:\n|$)/gmu, '').trim();
}

function withoutSecrets(text: string): string {
  return text
    .replaceAll(/(?<=:\/\/)[^\s/@]+@/gu, '***@')
    .replaceAll(/\b(bearer|basic)\s+[\w.~+/=-]{6,}/giu, '$1 ***')
    .replaceAll(
      /([?&](?:[\w-]*(?:token|key|secret|password|signature|sig)))=[^\s&#"']+/giu,
      '$1=***',
    );
}
