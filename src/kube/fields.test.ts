// SPDX-License-Identifier: Apache-2.0

import { describe, expect, test } from 'vitest';
import { parseFieldSelector } from './fields.ts';
import { SelectorError } from './labels.ts';

const pod: Record<string, string> = { 'status.phase': 'Running', 'spec.nodeName': '', odd: 'a,b=c\\' };
const get = (path: string): string => pod[path] ?? '';

describe('a field selector', () => {
  test.each([
    ['', true],
    [',', true],
    ['=,!=', true],
    ['status.phase=Running', true],
    ['status.phase==Running,spec.nodeName=', true],
    ['status.phase!=Running', false],
    ['spec.nodeName!=', false],
    ['odd=a\\,b\\=c\\\\', true],
  ])('%j is %j', (text, expected) => {
    const selector = parseFieldSelector(text);
    expect(selector.matches(get)).toBe(expected);
    expect(parseFieldSelector(selector.toString()).requirements).toEqual(selector.requirements);
  });

  test.each([
    ['foo', "invalid selector: 'foo'; can't understand 'foo'"],
    ['a=b=c', 'invalid field selector: unescaped character in value: 61'],
    ['a=\\x', 'invalid field selector: invalid escape sequence: \\x'],
    ['a=b\\', 'invalid field selector: invalid escape sequence: \\'],
  ])('refuses %j', (text, message) => {
    expect(() => parseFieldSelector(text)).toThrow(new SelectorError(message));
  });
});
