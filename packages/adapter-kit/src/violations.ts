import type { OutputUnit } from '@cfworker/json-schema';

import { clip } from './clip.ts';
import {
  child,
  isSchemaObject,
  pointerSteps,
  resolveLocal,
  type SchemaNode,
} from './local-reference.ts';

/** More than this many help no model. */
const MAX_LINES = 20;
/** More are not looked at: what is wrong with a long list is wrong with most of it. */
const MAX_UNITS = 1000;
const MAX_VALUE = 60;

/** Keywords whose own violation only says that something inside is wrong, which has a line of its own. */
const OUTER = new Set([
  '$ref',
  '$recursiveRef',
  'additionalItems',
  'additionalProperties',
  'allOf',
  'dependencies',
  'dependentSchemas',
  'if',
  'items',
  'patternProperties',
  'prefixItems',
  'properties',
  'propertyNames',
  'unevaluatedItems',
  'unevaluatedProperties',
]);

/** One line per violation: where, what was expected, what came. */
export function violationLines(
  schema: SchemaNode,
  args: unknown,
  units: readonly OutputUnit[],
): readonly string[] {
  const cut = units.length > MAX_UNITS;
  const lines = [...new Set(linesOf({ schema, args }, units.slice(0, MAX_UNITS)))];
  if (lines.length <= MAX_LINES) return lines;
  const more = lines.length - MAX_LINES;
  return [...lines.slice(0, MAX_LINES), `… and ${cut ? `at least ${more}` : more} more`];
}

interface Checked {
  readonly schema: SchemaNode;
  readonly args: unknown;
}

function linesOf(checked: Checked, units: readonly OutputUnit[]): readonly string[] {
  const lines: string[] = [];
  let rest = units;
  while (rest.length > 0) {
    const [unit, ...others] = rest as readonly [OutputUnit, ...OutputUnit[]];
    rest = others;
    if (unit.keyword === 'anyOf' || unit.keyword === 'oneOf') {
      const inner = others.filter((other) => isInside(other, unit));
      rest = others.filter((other) => !inner.includes(other));
      lines.push(alternatives(checked, unit, inner));
    } else if (!OUTER.has(unit.keyword) || !others.some((other) => isUnder(other, unit))) {
      lines.push(...line(checked, unit));
    }
  }
  return lines;
}

/** Array elements share a keyword location, so the place in the arguments counts as well. */
function isInside(unit: OutputUnit, outer: OutputUnit): boolean {
  return unit.keywordLocation.startsWith(`${outer.keywordLocation}/`)
    ? isUnder(unit, outer)
    : // The library reports a `false` schema at its place in the arguments only.
      unit.keyword === 'false' && unit.instanceLocation.startsWith(`${outer.instanceLocation}/`);
}

function isUnder(unit: OutputUnit, outer: OutputUnit): boolean {
  return (
    unit.instanceLocation === outer.instanceLocation ||
    unit.instanceLocation.startsWith(`${outer.instanceLocation}/`)
  );
}

/** Where all alternatives differ by type only, their types; else what is wrong with each of them. */
function alternatives(checked: Checked, unit: OutputUnit, inner: readonly OutputUnit[]): string {
  const where = path(unit);
  const here = inner.filter(({ instanceLocation }) => instanceLocation === unit.instanceLocation);
  if (
    inner.length > 0 &&
    here.length === inner.length &&
    here.every(({ keyword }) => keyword === 'type')
  ) {
    return `${where}: expected ${types(here.map((each) => keywordValue(checked, each)))}, got ${came(checked, unit)}`;
  }
  const branches = groupByBranch(unit, inner);
  const each = [...branches].map(
    ([index, units]) => `(${index + 1}) ${linesOf(checked, units).join(', ')}`,
  );
  if (each.length === 0)
    return `${where}: fits more than one of the alternatives, must fit exactly one`;
  return `${where}: fits none of the alternatives: ${each.join('; ')}`;
}

function types(values: readonly unknown[]): string {
  const names = values.flat().filter((name) => typeof name === 'string');
  return [...new Set(names)].join(' or ');
}

function groupByBranch(unit: OutputUnit, inner: readonly OutputUnit[]): Map<number, OutputUnit[]> {
  const branches = new Map<number, OutputUnit[]>();
  for (const each of inner) {
    const index = Number.parseInt(each.keywordLocation.slice(unit.keywordLocation.length + 1), 10);
    const branch = Number.isNaN(index) ? 0 : index;
    branches.set(branch, [...(branches.get(branch) ?? []), each]);
  }
  return branches;
}

function line(checked: Checked, unit: OutputUnit): readonly string[] {
  const where = path(unit);
  const value = keywordValue(checked, unit);
  const got = `got ${came(checked, unit)}`;
  switch (unit.keyword) {
    case 'false':
      return [`${where}: not allowed here`];
    case 'type':
      return [`${where}: expected ${types([value])}, ${got}`];
    case 'const':
      return [`${where}: expected ${JSON.stringify(value)}, ${got}`];
    case 'enum':
      return [`${where}: expected one of ${clip(JSON.stringify(value) ?? '', 400)}, ${got}`];
    case 'required': {
      const object = resolveInstance(checked, unit);
      const missing = (Array.isArray(value) ? value : []).filter(
        (key) => isSchemaObject(object) && !Object.hasOwn(object, String(key)),
      );
      if (missing.length === 0) break;
      return missing.map((key) => `${path(unit, [String(key)])}: missing, it is required`);
    }
    case 'pattern':
      return [`${where}: expected a text that matches ${String(value)}, ${got}`];
    case 'format':
      return [`${where}: expected the format ${String(value)}, ${got}`];
    default:
  }
  return [`${where}: ${unit.error}`];
}

/** The value of the keyword that was violated, through references. */
function keywordValue({ schema }: Checked, unit: OutputUnit): SchemaNode {
  let node: SchemaNode = schema;
  for (const step of pointerSteps(unit.keywordLocation) ?? []) {
    const next = child(node, step);
    node = step === '$ref' && typeof next === 'string' ? resolveLocal(schema, next) : next;
  }
  return node;
}

function resolveInstance({ args }: Checked, unit: OutputUnit): unknown {
  return resolveLocal(args, unit.instanceLocation);
}

function path(unit: OutputUnit, more: readonly string[] = []): string {
  const steps = [...(pointerSteps(unit.instanceLocation) ?? []), ...more];
  return steps.length === 0
    ? 'arguments'
    : steps
        .map((step, index) => (/^\d+$/u.test(step) ? `[${step}]` : index === 0 ? step : `.${step}`))
        .join('');
}

function came(checked: Checked, unit: OutputUnit): string {
  const value = resolveInstance(checked, unit);
  if (value === null) return 'null';
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'string') return `the text ${JSON.stringify(clip(value, MAX_VALUE))}`;
  return `the ${typeof value} ${JSON.stringify(value)}`;
}
