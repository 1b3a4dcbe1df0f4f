// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { deepClone, deepEqual, deepFreeze } from './freeze.ts';

describe('a frozen value', () => {
  test('cannot be changed at any depth', () => {
    const value = deepFreeze({ a: [{ b: 1 }], c: { d: 'x' } });
    expect(() => (value.a[0]!.b = 2)).toThrow(TypeError);
    expect(() => value.a.push({ b: 3 })).toThrow(TypeError);
    expect(() => (value.c.d = 'y')).toThrow(TypeError);
  });

  test('is frozen also below a part that was frozen by hand before', () => {
    const shared = deepFreeze({ deep: { er: 1 } });
    const value = deepFreeze({ shared, own: [1] });
    expect(Object.isFrozen(value.shared.deep)).toBe(true);
    expect(Object.isFrozen(value.own)).toBe(true);
  });

  test('may be no object at all', () => {
    expect([deepFreeze(null), deepFreeze(1), deepFreeze('x'), deepFreeze(undefined)]).toEqual([
      null,
      1,
      'x',
      undefined,
    ]);
  });
});

describe('a clone', () => {
  test('equals its original, shares nothing with it and can be changed', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const original = deepFreeze(structuredClone(value));
        const copy = deepClone(original);
        expect(copy).toEqual(original);
        expect(deepEqual(copy, original)).toBe(true);
        if (typeof copy === 'object' && copy !== null) expect(Object.isFrozen(copy)).toBe(false);
      }),
    );
  });

  test('keeps a key named __proto__ as data', () => {
    const hostile = JSON.parse('{"__proto__": {"polluted": true}, "a": 1}') as Record<string, unknown>;
    const copy = deepClone(hostile);
    expect(Object.keys(copy)).toEqual(['__proto__', 'a']);
    expect((copy as { polluted?: boolean }).polluted).toBeUndefined();
    expect(deepEqual(copy, hostile)).toBe(true);
  });
});

describe('equality', () => {
  test.each([
    [{ a: 1, b: 2 }, { b: 2, a: 1 }, true],
    [{ a: 1, b: undefined }, { a: 1 }, true],
    [{ a: 1 }, { a: 1, b: undefined }, true],
    [{ a: undefined }, { b: 1 }, false],
    [{ a: 1 }, { b: 1 }, false],
    [{ a: null }, {}, false],
    [[1, 2], [2, 1], false],
    [[1], { 0: 1 }, false],
    [{ 0: 1 }, [1], false],
    [[], {}, false],
    [null, {}, false],
    [null, undefined, false],
    ['1', 1, false],
    [0, -0, true],
  ])('of %j and %j is %s', (a, b, equal) => {
    expect(deepEqual(a, b)).toBe(equal);
    expect(deepEqual(b, a)).toBe(equal);
  });

  test('does not take inherited names for keys', () => {
    expect(deepEqual({ toString: undefined, a: 1 }, { a: 1 })).toBe(true);
    expect(deepEqual(JSON.parse('{"constructor": 1}'), {})).toBe(false);
    expect(deepEqual({}, JSON.parse('{"__proto__": {}}'))).toBe(false);
    expect(deepEqual(JSON.parse('{"__proto__": {}, "a": 1}'), { b: 1, a: 1 })).toBe(false);
  });
});
