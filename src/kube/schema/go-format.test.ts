// SPDX-License-Identifier: Apache-2.0

import { describe, expect, test } from 'vitest';
import { goFloat, goJson, goQuote, goValue } from './go-format.ts';

describe('as Go prints it', () => {
  test.each([
    ['abc', '"abc"'],
    ['a"b\\c', '"a\\"b\\\\c"'],
    ['\n\t\u0007\u0001\u007f', '"\\n\\t\\a\\x01\\x7f"'],
    ['é😀', '"é😀"'],
    ['\u200b\u{e0001}', '"\\u200b\\U000e0001"'],
    ['\ud800', '"\ufffd"'],
  ])('%j quoted', (text, quoted) => {
    expect(goQuote(text)).toBe(quoted);
  });

  test('JSON has its keys sorted and is safe in HTML', () => {
    expect(goJson({ b: '<&>', a: [1, { d: 1, c: 2 }] })).toBe('{"a":[1,{"c":2,"d":1}],"b":"\\u003c\\u0026\\u003e"}');
  });

  test('a struct keeps the order of its fields', () => {
    const struct = new Map<string, unknown>([
      ['B', { b: 1, a: null }],
      ['A', '>'],
    ]);
    expect(goJson(struct)).toBe('{"B":{"a":null,"b":1},"A":"\\u003e"}');
  });

  test('values', () => {
    expect(goValue({ b: [1, 'x', null], a: { c: true } })).toBe('map[a:map[c:true] b:[1 x <nil>]]');
  });

  test.each([
    [1.5, '1.5'],
    [100000, '100000'],
    [1000000, '1e+06'],
    [123456789.125, '1.23456789125e+08'],
    [0.0001, '0.0001'],
    [0.00001, '1e-05'],
    [-2.5e-10, '-2.5e-10'],
    [0, '0'],
    [Number.NaN, 'NaN'],
    [Number.NEGATIVE_INFINITY, '-Inf'],
  ])('%d', (value, text) => {
    expect(goFloat(value)).toBe(text);
  });
});
