// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readJsonText } from './json-text.ts';

test.each([
  ['hello', "invalid character 'h' looking for beginning of value"],
  ['', 'unexpected end of JSON input'],
  ['{"a":1', 'unexpected end of JSON input'],
  ['{"a":1} x', "invalid character 'x' after top-level value"],
  ['{"a" 1}', "invalid character '1' after object key"],
  ['{a:1}', "invalid character 'a' looking for beginning of object key string"],
  ['{"a":1,}', "invalid character '}' looking for beginning of object key string"],
  ['{"a":1 "b"}', `invalid character '"' after object key:value pair`],
  ['[1 2]', "invalid character '2' after array element"],
  ['[1,]', "invalid character ']' looking for beginning of value"],
  ['trux', "invalid character 'x' in literal true (expecting 'e')"],
  ['"\\x"', "invalid character 'x' in string escape code"],
  ['"a\nb"', "invalid character '\\n' in string literal"],
  ['-', 'unexpected end of JSON input'],
])('says of %j what Go says', (text, problem) => {
  expect(readJsonText(text).problem).toBe(problem);
});

test('keys that come twice are named by their path', () => {
  const text = '{"a":{"b":1,"b":2},"c":[{},{"d":1,"e":{},"d":2}],"a":0}';
  expect(readJsonText(text)).toEqual({ problem: undefined, duplicates: ['a.b', 'c[1].d', 'a'] });
});

test('whatever JSON.parse takes is taken, and nothing else', () => {
  const piece = fc.constantFrom('{', '}', '[', ']', ',', ':', '"a"', '"b"', '1', '-', 'true', 'null', ' ', '"\\u00e9"');
  const texts = fc.oneof(
    fc.json(),
    fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join('')),
  );
  fc.assert(
    fc.property(texts, (text) => {
      let valid = true;
      try {
        JSON.parse(text);
      } catch {
        valid = false;
      }
      expect(readJsonText(text).problem === undefined).toBe(valid);
    }),
    { numRuns: 2000 },
  );
});
