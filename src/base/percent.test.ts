// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { percentEncoded } from './percent.ts';

test('any text can be encoded', () => {
  expect(percentEncoded('a/b ü')).toBe('a%2Fb%20%C3%BC');
  expect(percentEncoded('a\uD800b')).toBe('a%EF%BF%BDb');
});
