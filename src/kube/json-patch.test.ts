// SPDX-License-Identifier: Apache-2.0

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { deepFreeze } from '../base/freeze.ts';
import { applyJsonPatch, createJsonPatch } from './json-patch.ts';
import { PatchError } from './patch-error.ts';

const apply = (document: unknown, ...operations: unknown[]): unknown =>
  applyJsonPatch(deepFreeze(document), deepFreeze(operations));

describe('a JSON patch', () => {
  test.each([
    ['adds a key', {}, { op: 'add', path: '/a', value: 1 }, { a: 1 }],
    ['adds over a key', { a: 1 }, { op: 'add', path: '/a', value: 2 }, { a: 2 }],
    ['adds an item', { a: [1, 3] }, { op: 'add', path: '/a/1', value: 2 }, { a: [1, 2, 3] }],
    ['adds at the end by number', { a: [1] }, { op: 'add', path: '/a/1', value: 2 }, { a: [1, 2] }],
    ['adds at the end', { a: [1] }, { op: 'add', path: '/a/-', value: 2 }, { a: [1, 2] }],
    ['adds counted from the end', { a: [1, 2] }, { op: 'add', path: '/a/-1', value: 3 }, { a: [1, 2, 3] }],
    ['adds null when there is no value', {}, { op: 'add', path: '/a' }, { a: null }],
    ['removes a key', { a: 1, b: 2 }, { op: 'remove', path: '/a' }, { b: 2 }],
    ['removes an item', { a: [1, 2] }, { op: 'remove', path: '/a/0' }, { a: [2] }],
    ['replaces a key', { a: { b: 1 } }, { op: 'replace', path: '/a/b', value: 2 }, { a: { b: 2 } }],
    ['replaces a key that is not there', {}, { op: 'replace', path: '/a', value: 2 }, { a: 2 }],
    ['replaces the whole', { a: 1 }, { op: 'replace', path: '', value: { b: 1 } }, { b: 1 }],
    ['moves', { a: { b: 1 } }, { op: 'move', from: '/a/b', path: '/c' }, { a: {}, c: 1 }],
    ['copies', { a: { b: 1 } }, { op: 'copy', from: '/a', path: '/c' }, { a: { b: 1 }, c: { b: 1 } }],
    ['tests', { a: { b: [1] } }, { op: 'test', path: '/a', value: { b: [1] } }, { a: { b: [1] } }],
    ['tests for nothing', {}, { op: 'test', path: '/a', value: null }, {}],
    ['unescapes', { 'a/b': { 'm~n': 1 } }, { op: 'remove', path: '/a~1b/m~0n' }, { 'a/b': {} }],
    ['unescapes ~01 once', { '~1': 1 }, { op: 'remove', path: '/~01' }, {}],
    ['knows the empty key', { '': 1 }, { op: 'replace', path: '/', value: 2 }, { '': 2 }],
  ])('%s', (_, document, operation, result) => {
    expect(apply(document, operation)).toStrictEqual(result);
  });

  test.each([
    [{ op: 'add', path: '/x/y', value: 1 }, 'add operation does not apply: doc is missing path: "/x/y": missing value'],
    [
      { op: 'add', path: '/l/9', value: 1 },
      "error in add for path: '/l/9': Unable to access invalid index: 9: invalid index referenced",
    ],
    [
      { op: 'add', path: '/l/x', value: 1 },
      "error in add for path: '/l/x': value was not a proper array index: 'x': strconv.Atoi: parsing \"x\": invalid syntax",
    ],
    [{ op: 'add', value: 1 }, 'add operation failed to decode path: missing value'],
    [{ op: 'add', path: '', value: {} }, 'add operation does not apply: doc is missing path: "": missing value'],
    [
      { op: 'remove', path: '/x' },
      "error in remove for path: '/x': Unable to remove nonexistent key: x: missing value",
    ],
    [
      { op: 'remove', path: '/l/5' },
      "error in remove for path: '/l/5': Unable to access invalid index: 5: invalid index referenced",
    ],
    [
      { op: 'replace', path: '/l/5', value: 1 },
      'replace operation does not apply: doc is missing key: /l/5: missing value',
    ],
    [
      { op: 'replace', path: '/s/t', value: 1 },
      'replace operation does not apply: doc is missing path: /s/t: missing value',
    ],
    [{ op: 'test', path: '/s', value: 'u' }, 'testing value /s failed: test failed'],
    [{ op: 'move', path: '/s' }, 'move operation failed to decode from: operation, missing from field: missing value'],
    [
      { op: 'copy', from: '/n/o', path: '/s' },
      'copy operation does not apply: doc is missing from path: /n/o: missing value',
    ],
    [{ op: 'frob', path: '/s' }, 'Unexpected kind: frob'],
    [{}, 'Unexpected kind: unknown'],
  ])('%j does not apply', (operation, message) => {
    expect(() => apply({ l: [1], s: 't' }, operation)).toThrow(new PatchError(message, 422));
  });

  test('must be a list of objects, and not too long', () => {
    for (const patch of [null, {}, 'x', [1], [null]]) expect(() => applyJsonPatch({}, patch)).toThrow(PatchError);
    const many = Array.from({ length: 10_001 }, () => ({ op: 'test', path: '/a', value: null }));
    expect(() => applyJsonPatch({}, many)).toThrow(/allowed maximum operations in a JSON patch is 10000, got 10001/);
  });

  test('copies of copies end before the memory does', () => {
    const bomb = Array.from({ length: 100 }, (_, i) => ({ op: 'copy', from: '/a', path: `/a/${i}` }));
    expect(() => applyJsonPatch({ a: { x: 'y'.repeat(100) } }, bomb)).toThrow(/accumulated size increase of copy/);
  });

  test('cannot reach the prototype', () => {
    expect(() => apply({}, { op: 'add', path: '/__proto__/polluted', value: 1 })).toThrow(PatchError);
    expect(() => apply({}, { op: 'add', path: '/constructor/prototype/polluted', value: 1 })).toThrow(PatchError);
    const result = apply({}, { op: 'add', path: '/__proto__', value: { polluted: 1 } });
    expect(JSON.stringify(result)).toBe('{"__proto__":{"polluted":1}}');
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  test('made from two documents turns one into the other', () => {
    const document = fc.dictionary(fc.string(), fc.jsonValue());
    fc.assert(
      fc.property(document, document, (from, to) => {
        const left = JSON.parse(JSON.stringify(from)) as unknown;
        const right = JSON.parse(JSON.stringify(to)) as unknown;
        expect(JSON.stringify(sorted(applyJsonPatch(left, createJsonPatch(left, right))))).toBe(
          JSON.stringify(sorted(right)),
        );
      }),
    );
  });
});

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, inner]) => [key, sorted(inner)]);
}
