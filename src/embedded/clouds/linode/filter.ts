// SPDX-License-Identifier: Apache-2.0
// The `X-Filter` header: JSON that chooses and orders the items of a list.
import { compareStrings } from '../../../base/order.ts';
import { badRequest, type Refusal } from './refusal.ts';

type Test = (item: Readonly<Record<string, unknown>>) => boolean;

export interface Filter {
  apply<T extends object>(items: readonly T[]): readonly T[];
}

const everything: Filter = { apply: (items) => items };

/** Throws a Refusal (400) for what is not a filter. Nothing, or an empty text, chooses everything. */
export function parseFilter(text: string | undefined): Filter {
  if (text === undefined || text.trim() === '') return everything;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw badFilter('Invalid JSON');
  }
  if (!isObject(value)) throw badFilter('Invalid JSON');
  const { '+order_by': orderBy, '+order': order = 'asc', ...conditions } = value;
  if (orderBy !== undefined && typeof orderBy !== 'string') throw badFilter('+order_by must be a string');
  if (order !== 'asc' && order !== 'desc') throw badFilter('+order must be asc or desc');
  const test = allOf(conditions);
  return {
    apply(items) {
      const chosen = items.filter((item) => test(item as Record<string, unknown>));
      return orderBy === undefined ? chosen : ordered(chosen, orderBy, order);
    },
  };
}

function allOf(conditions: Readonly<Record<string, unknown>>): Test {
  const tests = Object.entries(conditions).map(([key, value]) => conditionOf(key, value));
  return (item) => tests.every((test) => test(item));
}

function conditionOf(key: string, value: unknown): Test {
  if (key === '+and' || key === '+or') {
    if (!Array.isArray(value)) throw badFilter(`${key} must be a list`);
    const tests = value.map((part: unknown) => {
      if (!isObject(part)) throw badFilter(`${key} must be a list of objects`);
      return allOf(part);
    });
    return key === '+and' ? (item) => tests.every((test) => test(item)) : (item) => tests.some((test) => test(item));
  }
  if (key.startsWith('+')) throw badFilter(`${key} is not a valid filter operator`);
  if (!isObject(value)) {
    if (Array.isArray(value)) throw badFilter(`Invalid filter for ${key}`);
    return fieldTest(key, (actual) => same(actual, value));
  }
  const tests = Object.entries(value).map(([operator, wanted]) => fieldTest(key, operatorOf(operator, wanted)));
  return (item) => tests.every((test) => test(item));
}

/** Of a list, such as tags, any item may fit. */
function fieldTest(path: string, test: (actual: unknown) => boolean): Test {
  return (item) => {
    const actual = valueAt(item, path);
    return Array.isArray(actual) ? actual.some(test) : test(actual);
  };
}

function operatorOf(operator: string, wanted: unknown): (actual: unknown) => boolean {
  switch (operator) {
    case '+eq':
      return (actual) => same(actual, wanted);
    case '+neq':
      return (actual) => !same(actual, wanted);
    case '+contains':
      if (typeof wanted !== 'string') throw badFilter('+contains needs a string');
      return (actual) => typeof actual === 'string' && actual.toLowerCase().includes(wanted.toLowerCase());
    case '+gt':
      return (actual) => compare(actual, wanted) > 0;
    case '+gte':
      return (actual) => compare(actual, wanted) >= 0;
    case '+lt':
      return (actual) => compare(actual, wanted) < 0;
    case '+lte':
      return (actual) => compare(actual, wanted) <= 0;
    default:
      throw badFilter(`${operator} is not a valid filter operator`);
  }
}

function same(actual: unknown, wanted: unknown): boolean {
  if (typeof actual === 'string' && typeof wanted === 'string') return actual.toLowerCase() === wanted.toLowerCase();
  return actual === wanted || (typeof actual === 'number' && typeof wanted === 'string' && String(actual) === wanted);
}

/** What cannot be compared is neither greater nor less. */
function compare(actual: unknown, wanted: unknown): number {
  if (typeof actual === 'number' && typeof wanted === 'number') return actual - wanted;
  if (typeof actual === 'string' && typeof wanted === 'string') return compareStrings(actual, wanted);
  return Number.NaN;
}

function ordered<T extends object>(items: readonly T[], by: string, order: 'asc' | 'desc'): T[] {
  const sign = order === 'asc' ? 1 : -1;
  return items
    .map((item, index) => ({ item, index, key: valueAt(item as Record<string, unknown>, by) }))
    .toSorted((a, b) => sign * (compare(a.key, b.key) || 0) || a.index - b.index)
    .map(({ item }) => item);
}

/** `control_plane.high_availability` looks into objects. */
function valueAt(item: Readonly<Record<string, unknown>>, path: string): unknown {
  let value: unknown = item;
  for (const part of path.split('.')) value = isObject(value) ? value[part] : undefined;
  return value;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function badFilter(reason: string): Refusal {
  return badRequest(reason, 'X-Filter');
}
