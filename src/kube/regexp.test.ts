// SPDX-License-Identifier: Apache-2.0

import { describe, expect, test } from 'vitest';
import { compileRegexp, RegexpError } from './regexp.ts';

describe('a pattern of Go', () => {
  test('is not anchored, and compiled once', () => {
    expect(compileRegexp('b').test('abc')).toBe(true);
    expect(compileRegexp('^b').test('abc')).toBe(false);
    expect(compileRegexp('^b')).toBe(compileRegexp('^b'));
  });

  test('knows the syntax of RE2 and no other', () => {
    expect(compileRegexp('(?i)^\\pL+$').test('Éa')).toBe(true);
    expect(compileRegexp('^[[:alpha:]]+$').test('ab')).toBe(true);
    for (const pattern of ['(?=a)', '(a)\\1', '(', '[a', 'a**'])
      expect(() => compileRegexp(pattern), pattern).toThrow(RegexpError);
  });

  test('takes linear time where a backtracking engine would not come back', () => {
    expect(compileRegexp('^(a+)+$').test(`${'a'.repeat(5000)}b`)).toBe(false);
  });
});
