import { Validator, type SchemaDraft } from '@cfworker/json-schema';
import {
  problemFrom,
  toPatchbayError,
  type ArgumentCheck,
  type ArgumentValidator,
  type JsonSchema,
  type Problem,
} from '@patchbay/protocols';

import { isSchemaObject } from './local-reference.ts';
import { createProblemReport } from './problem-report.ts';
import { violationLines } from './violations.ts';

/** What {@link createArgumentValidator} takes. */
export interface ArgumentValidatorOptions {
  /**
   * Told once about each schema that cannot be compiled, or that throws while it checks (an invalid pattern, a reference
   * that leads nowhere). Default: a warning. `source` is the schema's title; `schema` is the object, for whoever knows the tool it belongs to.
   */
  readonly onProblem?: (problem: Problem, schema: JsonSchema) => void;
}

const FITS: ArgumentCheck = Object.freeze({ ok: true });

/**
 * Checks arguments against JSON Schemas (drafts 4, 7, 2019-09 and 2020-12 by `$schema`; 2020-12 where it says nothing).
 * A schema is compiled once per object, at first use, without generating code; references outside of it are not fetched.
 * A schema that cannot be used lets everything pass: who provides the tool checks too.
 */
export function createArgumentValidator(options: ArgumentValidatorOptions = {}): ArgumentValidator {
  const compiled = new WeakMap<JsonSchema, Validator | 'unusable'>();
  const reported = new WeakSet<JsonSchema>();
  const { onProblem = createProblemReport() } = options;

  const report = (schema: JsonSchema, thrown: unknown) => {
    if (reported.has(schema)) return;
    reported.add(schema);
    const title = typeof schema['title'] === 'string' ? schema['title'] : 'input schema';
    const error = toPatchbayError(thrown, 'schema-unusable', {
      what: 'The schema of the arguments cannot be used, so they are passed on unchecked',
    });
    onProblem(
      { ...problemFrom(title, error), severity: 'warning', message: firstLine(error.message) },
      schema,
    );
  };

  const compile = (schema: JsonSchema): Validator | 'unusable' => {
    let validator = compiled.get(schema);
    if (validator === undefined) {
      try {
        // A copy: the library writes into the schemas that it is given.
        validator = new Validator(structuredClone(schema), draftOf(schema), false);
      } catch (error) {
        report(schema, error);
        validator = 'unusable';
      }
      compiled.set(schema, validator);
    }
    return validator;
  };

  return {
    validate(schema, args) {
      if (!isSchemaObject(schema)) return FITS;
      const validator = compile(schema);
      if (validator === 'unusable') return FITS;
      const plain = asJson(args);
      if (plain === undefined)
        return { ok: false, violations: ['arguments: expected plain JSON values'] };
      try {
        const { valid, errors } = validator.validate(plain.value);
        return valid
          ? FITS
          : { ok: false, violations: violationLines(schema, plain.value, errors) };
      } catch (error) {
        report(schema, error);
        return FITS;
      }
    },
  };
}

function draftOf(schema: JsonSchema): SchemaDraft {
  const uri = typeof schema['$schema'] === 'string' ? schema['$schema'] : '';
  if (uri.includes('draft-04')) return '4';
  if (uri.includes('draft-06') || uri.includes('draft-07')) return '7';
  if (uri.includes('2019-09')) return '2019-09';
  return '2020-12';
}

/** As it would travel: members that are `undefined` are left out. The value itself where nothing has to be left out. */
function asJson(args: unknown): { readonly value: unknown } | undefined {
  if (isPlain(args)) return { value: args };
  try {
    return { value: JSON.parse(JSON.stringify(args) ?? 'null') as unknown };
  } catch {
    return undefined;
  }
}

function isPlain(value: unknown): boolean {
  if (value === null) return true;
  if (typeof value === 'object') return Object.values(value).every(isPlain);
  return typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value);
}

const firstLine = (text: string) => text.split('\n', 1)[0]!;
