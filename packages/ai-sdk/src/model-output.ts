import { planResult, type PlannedMedia, type PlanOptions } from '@patchbay/adapter-kit';
import type { ToolResult } from '@patchbay/protocols';
import type { Tool } from 'ai';

import type { Major } from './major.ts';

type ToModelOutput = NonNullable<Tool['toModelOutput']>;
export type ModelOutput = Awaited<ReturnType<ToModelOutput>>;

/**
 * What a model reads of a result that was kept whole: also one that comes back from a stored conversation, whatever has
 * become of it there. Never throws: the AI SDK would end the run.
 */
export function modelOutput(
  output: unknown,
  options: PlanOptions,
  major: Major,
  report: (problem: string) => void = () => undefined,
): ModelOutput {
  const { text, media, isError, problems } = planResult(asResult(output), options);
  problems.forEach((problem) => report(problem));
  if (isError) return { type: 'error-text', value: text };
  if (media.length === 0) return { type: 'text', value: text };
  const parts = media.map(major.isSeven ? filePart : dataPart);
  // The parts of 6 are not in the types of 7, and the other way round.
  return { type: 'content', value: [{ type: 'text', text }, ...parts] } as ModelOutput;
}

function filePart({ data, mimeType, name }: PlannedMedia): object {
  return { type: 'file', mediaType: mimeType, data: { type: 'data', data }, ...filename(name) };
}

function dataPart({ kind, data, mimeType, name }: PlannedMedia): object {
  return kind === 'image'
    ? { type: 'image-data', data, mediaType: mimeType }
    : { type: 'file-data', data, mediaType: mimeType, ...filename(name) };
}

function filename(name: string | undefined): object {
  return name === undefined ? {} : { filename: name };
}

function asResult(output: unknown): ToolResult {
  if (typeof output === 'string') return { content: [{ type: 'text', text: output }] };
  return isResult(output) ? output : { content: [], structuredContent: output };
}

/** Told from what a program has typed by its blocks. */
function isResult(output: unknown): output is ToolResult {
  const content: unknown =
    typeof output === 'object' && output !== null ? (output as ToolResult).content : undefined;
  const isBlock = (block: unknown) =>
    typeof block === 'object' &&
    block !== null &&
    'type' in block &&
    typeof block.type === 'string';
  return Array.isArray(content) && content.every(isBlock);
}
