import { dereference, validate, type OutputUnit, type SchemaDraft } from '@cfworker/json-schema';
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

/** Deeper ones are copied by whoever copies JSON, or refused. */
const MAX_DEPTH = 500;
const FITS: ArgumentCheck = Object.freeze({ ok: true });

const TOO_LARGE: ArgumentCheck = Object.freeze({
  ok: false,
  violations: Object.freeze(['arguments: too many values, or too deeply nested, to be checked']),
});

/**
 * Checks arguments against JSON Schemas (drafts 4, 7, 2019-09 and 2020-12 by `$schema`; 2020-12 where it says nothing).
 * A schema is compiled once per object, at first use, without generating code; references outside of it are not fetched.
 * A schema that cannot be used lets everything pass: who provides the tool checks too. Arguments that are too large to be
 * checked (a hundred thousand wrong values, hundreds of levels) do not pass.
 */
export function createArgumentValidator(options: ArgumentValidatorOptions = {}): ArgumentValidator {
  const compiled = new WeakMap<JsonSchema, Check | 'unusable'>();
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

  const compile = (schema: JsonSchema): Check | 'unusable' => {
    let check = compiled.get(schema);
    if (check === undefined) {
      try {
        check = checkOf(schema);
      } catch (error) {
        report(schema, error);
        check = 'unusable';
      }
      compiled.set(schema, check);
    }
    return check;
  };

  return {
    validate(schema, args) {
      if (!isSchemaObject(schema)) return FITS;
      const check = compile(schema);
      if (check === 'unusable') return FITS;
      const plain = asJson(args);
      if (plain === undefined)
        return { ok: false, violations: ['arguments: expected plain JSON values'] };
      try {
        const first = check(plain.value, 'first');
        if (first.length === 0) return FITS;
        const units = allUnits(check, plain.value) ?? first;
        return { ok: false, violations: violationLines(schema, plain.value, units) };
      } catch (error) {
        if (error instanceof RangeError && !isSmall(plain.value)) return TOO_LARGE;
        report(schema, error);
        return FITS;
      }
    },
  };
}

/** What is wrong; `first` looks no further than it has to. */
type Check = (value: unknown, howMany: 'first' | 'all') => readonly OutputUnit[];

function checkOf(schema: JsonSchema): Check {
  // A copy: the library writes into the schemas that it is given.
  const copy = structuredClone(schema);
  const lookup = dereference(copy);
  const draft = draftOf(schema);
  return (value, howMany) => {
    const { valid, errors } = validate(value, copy, draft, lookup, howMany === 'first');
    return valid ? [] : errors;
  };
}

/** The library gives up where there are more than fit on its stack. */
function allUnits(check: Check, value: unknown): readonly OutputUnit[] | undefined {
  try {
    return check(value, 'all');
  } catch {
    return undefined;
  }
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

function isPlain(value: unknown, depth = 0): boolean {
  if (value === null) return true;
  if (typeof value === 'object')
    return depth < MAX_DEPTH && Object.values(value).every((each) => isPlain(each, depth + 1));
  return typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value);
}

/** Where a check of so few values does not end, its schema is why. */
function isSmall(value: unknown): boolean {
  let left = 1000;
  const fits = (each: unknown, depth: number): boolean =>
    typeof each !== 'object' ||
    each === null ||
    (depth < 30 && Object.values(each).every((inner) => --left > 0 && fits(inner, depth + 1)));
  return fits(value, 0);
}

const firstLine = (text: string) => text.split('\n', 1)[0]!;
