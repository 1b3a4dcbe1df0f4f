// SPDX-License-Identifier: Apache-2.0

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { deepFreeze } from '../base/freeze.ts';
import { applyMergePatch, createMergePatch } from './merge-patch.ts';
import { PatchError, withoutNulls } from './patch-error.ts';

describe('a merge patch', () => {
  // The examples of RFC 7386 whose patch is an object.
  test.each([
    [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
    [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
    [{ a: 'b' }, { a: null }, {}],
    [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
    [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
    [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
    [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
    [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
    [{ e: null }, { a: 1 }, { e: null, a: 1 }],
    [[1, 2], { a: 'b', c: null }, { a: 'b' }],
    [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
  ])('%j and %j give %j', (document, patch, result) => {
    expect(applyMergePatch(deepFreeze(document), deepFreeze(patch))).toStrictEqual(result);
  });

  test('shares what it leaves alone with the document', () => {
    const document = deepFreeze({ spec: { a: [1] }, status: { b: { c: 1 }, d: [{ e: 1 }] } });
    const result = applyMergePatch(document, { status: { b: { c: 2 } } }) as typeof document;
    expect(result).toEqual({ spec: { a: [1] }, status: { b: { c: 2 }, d: [{ e: 1 }] } });
    expect(result.spec).toBe(document.spec);
    expect(result.status.d).toBe(document.status.d);
  });

  test('must be an object', () => {
    for (const patch of [null, 1, 'x', []]) expect(() => applyMergePatch({}, patch)).toThrow(PatchError);
  });

  test('keeps names of the prototype as data', () => {
    const patch = JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}') as unknown;
    expect(JSON.stringify(applyMergePatch({}, patch))).toBe(JSON.stringify(patch));
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });

  test('made from two documents turns one into the other', () => {
    const document = fc.dictionary(fc.string(), fc.jsonValue());
    fc.assert(
      fc.property(document, document, (from, to) => {
        const left = withoutNulls(JSON.parse(JSON.stringify(from)));
        const right = withoutNulls(JSON.parse(JSON.stringify(to)));
        const patch = createMergePatch(left, right);
        expect(applyMergePatch(left, patch)).toEqual(right);
        expect(createMergePatch(right, right)).toEqual({});
      }),
    );
  });

  test('is as small as it can be', () => {
    expect(createMergePatch({ a: { b: 1, c: 2 }, d: [1] }, { a: { b: 1, c: 3 }, d: [1] })).toEqual({ a: { c: 3 } });
    expect(createMergePatch({ a: 1 }, {})).toEqual({ a: null });
    expect(createMergePatch({}, { a: {} })).toEqual({ a: {} });
  });
});
