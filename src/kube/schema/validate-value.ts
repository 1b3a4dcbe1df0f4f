// SPDX-License-Identifier: Apache-2.0
// Values against a schema, without CEL: what kube-openapi checks, in its words.

import { deepEqual } from '../../base/freeze.ts';
import { RegexpError } from '../regexp.ts';
import { correlate } from './correlate.ts';
import type { FieldError } from './field-error.ts';
import { goFloat, goJson } from './go-format.ts';
import type { SchemaNode } from './schema-node.ts';

type Report = (error: FieldError) => void;

/**
 * Reports what is wrong with a value. `old` is the value it replaces: what did not change is not reported, so that a schema can be made
 * stricter without locking up the objects that are there.
 */
export function validateValue(node: SchemaNode, value: unknown, old: unknown, path: string, report: Report): void {
  // The same: whatever is wrong with it would not be reported. Most of what a status is written to stays as it was.
  if (old !== undefined && deepEqual(value, old)) return;
  const errors: FieldError[] = [];
  const collect = (error: FieldError): void => {
    errors.push(error);
  };
  checkType(node, value, path, collect);
  if (value !== null) {
    checkCombinations(node, value, path, collect);
    if (typeof value === 'string') checkText(node, value, path, collect);
    else if (typeof value === 'number') checkNumber(node, value, path, collect);
  }
  checkEnum(node, value, path, collect);
  if (Array.isArray(value)) checkList(node, value, old, path, collect);
  else if (typeof value === 'object' && value !== null) {
    checkObject(node, value as Record<string, unknown>, old, path, collect);
  }
  for (const error of errors) report(error);
}

/** Whether the value has nothing wrong with it. */
function errorsOf(node: SchemaNode, value: unknown, path: string): FieldError[] {
  const errors: FieldError[] = [];
  validateValue(node, value, undefined, path, (error) => errors.push(error));
  return errors;
}

function jsonType(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) && Math.abs(value) < 2 ** 63 ? 'integer' : 'number';
  return typeof value;
}

const goFormats: Readonly<Record<string, string>> = { integer: 'int64', number: 'float64' };

function checkType(node: SchemaNode, value: unknown, path: string, report: Report): void {
  const { types, format } = node;
  const type = jsonType(value);
  if (types.length === 0 || types.includes(type) || (type === 'integer' && types.includes('number'))) return;
  if (type === 'null' && node.nullable) return;
  // With a format, the API server names formats where it otherwise names types.
  const byFormat = format !== undefined && !['string', 'array', 'null'].includes(type);
  const [wanted, got] = byFormat ? [format, goFormats[type] ?? ''] : [types.join(','), type];
  report({
    field: named(path),
    type: 'Type',
    value: got,
    detail: `${path} in body must be of type ${wanted}: "${got}"`,
  });
}

function named(path: string): string {
  return path === '' ? '<nil>' : path;
}

function invalid(path: string, value: unknown, problem: string): FieldError {
  return { field: named(path), type: 'Invalid', value, detail: `${path} in body ${problem}` };
}

/** How many texts of a node are remembered, and how long one may be. */
const maxTexts = 1000;
const maxTextLength = 100;

function checkText(node: SchemaNode, value: string, path: string, report: Report): void {
  if (node.pattern === undefined && node.checkFormat === undefined) return checkString(node, value, path, report);
  if (node.goodTexts.has(value)) return;
  let isGood = value.length <= maxTextLength;
  checkString(node, value, path, (error) => {
    isGood = false;
    report(error);
  });
  if (!isGood) return;
  if (node.goodTexts.size >= maxTexts) node.goodTexts.clear();
  node.goodTexts.add(value);
}

function checkString(node: SchemaNode, value: string, path: string, report: Report): void {
  const { minLength, maxLength, pattern } = node.schema;
  if (maxLength !== undefined && value.length > maxLength && codePoints(value) > maxLength) {
    const detail = `may not be more than ${maxLength} byte${maxLength === 1 ? '' : 's'}`;
    report({ field: named(path), type: 'Too long', detail, value: '<value omitted>' });
  } else if (minLength !== undefined && value.length < minLength * 2 && codePoints(value) < minLength) {
    report(invalid(path, value, `should be at least ${minLength} chars long`));
  } else if (node.pattern instanceof RegexpError) {
    report(invalid(path, value, `should match '${pattern}, but pattern is invalid: ${node.pattern.message}'`));
  } else if (node.pattern !== undefined && !node.pattern.test(value)) {
    report(invalid(path, value, `should match '${pattern}'`));
  }
  if (node.checkFormat !== undefined && !node.checkFormat(value)) {
    const detail = `${path} in body must be of type ${node.format}: ${JSON.stringify(value)}`;
    report({ field: named(path), type: 'Type', value, detail });
  }
}

function codePoints(text: string): number {
  return /[\ud800-\udfff]/.test(text) ? Array.from(text).length : text.length;
}

function checkNumber(node: SchemaNode, value: number, path: string, report: Report): void {
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum, multipleOf } = node.schema;
  checkRange(node, value, path, report);
  const show = jsonType(value) === 'integer' ? String : goFloat;
  if (multipleOf !== undefined && !isMultiple(value, multipleOf)) {
    report(invalid(path, value, `should be a multiple of ${show(multipleOf)}`));
  }
  if (maximum !== undefined && (exclusiveMaximum ? value >= maximum : value > maximum)) {
    report(invalid(path, value, `should be less than ${exclusiveMaximum ? '' : 'or equal to '}${show(maximum)}`));
  }
  if (minimum !== undefined && (exclusiveMinimum ? value <= minimum : value < minimum)) {
    report(invalid(path, value, `should be greater than ${exclusiveMinimum ? '' : 'or equal to '}${show(minimum)}`));
  }
}

/** Whether the number fits its type and format. The API server reports this without the field. */
function checkRange({ types, format }: SchemaNode, value: number, path: string, report: Report): void {
  if (types.length !== 1) return;
  const type = types[0] ?? '';
  const fits =
    type === 'integer'
      ? jsonType(value) === 'integer' && (format !== 'int32' || (value <= 2147483647 && value >= -2147483648))
      : format !== 'float' || Math.abs(value) <= 3.4028234663852886e38;
  if (fits) return;
  const kind = format === undefined ? `${type} (default format)` : `${type} with format ${format}`;
  report({ field: '<nil>', type: 'Invalid', value: '', detail: `Checked value must be of type ${kind} in ${path}` });
}

function isMultiple(value: number, factor: number): boolean {
  if (Number.isInteger(value) && Number.isInteger(factor)) return value % factor === 0;
  const quotient = factor < 1 ? (1 / factor) * value : value / factor;
  return Math.abs(quotient - Math.round(quotient)) < 1e-9;
}

function checkEnum({ schema }: SchemaNode, value: unknown, path: string, report: Report): void {
  const allowed = schema.enum;
  if (allowed === undefined || allowed.some((item) => item === value || deepEqual(item, value))) return;
  const supported = allowed.map((item) => JSON.stringify(typeof item === 'string' ? item : goJson(item)));
  const detail = allowed.length === 0 ? '' : `supported values: ${supported.join(', ')}`;
  report({ field: named(path), type: 'Unsupported value', value, detail });
}

function checkList(node: SchemaNode, value: unknown[], old: unknown, path: string, report: Report): void {
  const { minItems, maxItems, uniqueItems } = node.schema;
  if (node.items !== undefined) {
    const oldItems = correlate(node, old);
    for (const [i, item] of value.entries()) validateValue(node.items, item, oldItems(item), `${path}[${i}]`, report);
  }
  if (minItems !== undefined && value.length < minItems) {
    report(invalid(path, value.length, `should have at least ${minItems} items`));
  }
  if (maxItems !== undefined && value.length > maxItems) report(tooMany(path, value.length, maxItems));
  if (uniqueItems && value.some((item, i) => value.slice(0, i).some((earlier) => deepEqual(earlier, item)))) {
    report(invalid(path, '', "shouldn't contain duplicates"));
  }
}

function tooMany(path: string, actual: number, max: number): FieldError {
  const detail = `must have at most ${max} item${max === 1 ? '' : 's'}`;
  return { field: named(path), type: 'Too many', value: actual, detail };
}

function checkObject(
  node: SchemaNode,
  value: Record<string, unknown>,
  old: unknown,
  path: string,
  report: Report,
): void {
  const { minProperties, maxProperties, additionalProperties } = node.schema;
  const keys = Object.keys(value);
  if (minProperties !== undefined && keys.length < minProperties) {
    report(invalid(path, keys.length, `should have at least ${minProperties} properties`));
  }
  if (maxProperties !== undefined && keys.length > maxProperties) report(tooMany(path, keys.length, maxProperties));
  const before = correlate(node, old);
  for (const key of keys) {
    const child = node.of(key);
    const at = path === '' ? key : `${path}.${key}`;
    if (child !== undefined) validateValue(child, value[key], before(key), at, report);
    else if (additionalProperties === false) {
      const detail = `${path}.${key} in body is a forbidden property`;
      report({ field: named(path), type: 'Invalid', value: key, detail });
    }
  }
  for (const key of node.required) {
    if (!Object.hasOwn(value, key) || value[key] === undefined) {
      report({ field: path === '' ? key : `${path}.${key}`, type: 'Required', value: '', detail: '' });
    }
  }
}

function checkCombinations(node: SchemaNode, value: unknown, path: string, report: Report): void {
  const composite = (problem: string): void => {
    report({ field: '<nil>', type: 'Invalid', value: '', detail: `${JSON.stringify(path)} must ${problem}` });
  };
  if (node.anyOf.length > 0) {
    const failures = node.anyOf.map((inner) => errorsOf(inner, value, path));
    if (failures.every((errors) => errors.length > 0)) {
      composite('validate at least one schema (anyOf)');
      for (const error of fewest(failures)) report(error);
    }
  }
  if (node.oneOf.length > 0) {
    const failures = node.oneOf.map((inner) => errorsOf(inner, value, path));
    const valid = failures.filter((errors) => errors.length === 0).length;
    if (valid !== 1) {
      composite(
        `validate one and only one schema (oneOf). Found ${valid === 0 ? 'none valid' : `${valid} valid alternatives`}`,
      );
      if (valid === 0) for (const error of fewest(failures)) report(error);
    }
  }
  if (node.allOf.length > 0) {
    const failures = node.allOf.map((inner) => errorsOf(inner, value, path));
    for (const error of failures.flat()) report(error);
    const valid = failures.filter((errors) => errors.length === 0).length;
    if (valid < failures.length) composite(`validate all the schemas (allOf)${valid === 0 ? '. None validated' : ''}`);
  }
  if (node.not !== undefined && errorsOf(node.not, value, path).length === 0)
    composite('not validate the schema (not)');
}

/** The alternative that came closest. */
function fewest(failures: readonly FieldError[][]): readonly FieldError[] {
  const distance = (errors: readonly FieldError[]): number => errors.filter(({ field }) => field !== '<nil>').length;
  return failures.reduce((best, errors) => (distance(errors) < distance(best) ? errors : best));
}
