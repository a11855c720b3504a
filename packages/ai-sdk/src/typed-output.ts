import { isTextPart, type ToolResult } from '@patchbay/protocols';
import type { FlexibleSchema, InferSchema, Schema, Tool, ToolSet } from 'ai';

import { ToolCallError } from './tool-call-error.ts';

/** By the name that a model sees: what the structured content of a tool's results is. Of Zod, Valibot, ArkType or `jsonSchema()`. */
export type OutputSchemas = Readonly<Record<string, FlexibleSchema>>;

/** The tools of {@link OutputSchemas} as static ones of the AI SDK: their results are of these types. */
export type TypedTools<OUTPUTS extends OutputSchemas> = {
  [NAME in keyof OUTPUTS]: Tool<Record<string, unknown>, InferSchema<OUTPUTS[NAME]>>;
};

/** The tools that a program knows by name. Where it knows none: some tools. */
export type KnownTools<OWN extends ToolSet, OUTPUTS extends OutputSchemas> = Extract<
  string extends keyof OWN
    ? string extends keyof OUTPUTS
      ? ToolSet
      : TypedTools<OUTPUTS>
    : string extends keyof OUTPUTS
      ? OWN
      : OWN & TypedTools<OUTPUTS>,
  ToolSet
>;

/** The structured content as the schema gives it; text that is JSON stands in where there is none. */
export async function typedOutput(
  schema: FlexibleSchema,
  result: ToolResult,
  { name, source }: { readonly name: string; readonly source: string | undefined },
): Promise<unknown> {
  const checked = await check(schema, result.structuredContent ?? parsed(result));
  if ('value' in checked) return checked.value;
  const text = `The result of ${name} is not what the program expects: ${checked.why}`;
  throw new ToolCallError(text, { result, source });
}

function parsed({ content }: ToolResult): unknown {
  const text = content
    .filter(isTextPart)
    .map((part) => part.text)
    .join('');
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

type Checked = { readonly value: unknown } | { readonly why: string };

interface Standard {
  readonly '~standard': {
    validate(value: unknown): Outcome | Promise<Outcome>;
  };
}
type Outcome =
  | { readonly value: unknown; readonly issues?: undefined }
  | {
      readonly issues: readonly { readonly message: string; readonly path?: readonly unknown[] }[];
    };

/** What `asSchema()` of the AI SDK does; by hand, because only types are taken from a peer. */
async function check(flexible: FlexibleSchema, value: unknown): Promise<Checked> {
  const isLazy = typeof flexible === 'function' && !('~standard' in flexible);
  const schema = (isLazy ? (flexible as () => unknown)() : flexible) as Standard | Schema;
  if ('~standard' in schema) {
    const { issues, ...outcome } = await schema['~standard'].validate(value);
    return issues === undefined
      ? (outcome as Checked)
      : {
          why: issues
            .map(({ message, path = [] }) => [...path.map(keyOf), message].join(': '))
            .join('; '),
        };
  }
  const outcome = await schema.validate?.(value);
  if (outcome === undefined) return { value };
  return outcome.success ? { value: outcome.value } : { why: outcome.error.message };
}

const keyOf = (segment: unknown): string =>
  String(
    typeof segment === 'object' && segment !== null && 'key' in segment ? segment.key : segment,
  );
