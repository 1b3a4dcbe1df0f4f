// SPDX-License-Identifier: Apache-2.0

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  compileLabelSelector,
  everything,
  isQualifiedName,
  isValidLabelValue,
  nothing,
  parseLabelSelector,
  SelectorError,
} from './labels.ts';

describe('a label selector of the API', () => {
  test('missing matches nothing, empty matches everything', () => {
    expect(compileLabelSelector(undefined)).toBe(nothing);
    expect(compileLabelSelector(null).matches({ a: 'b' })).toBe(false);
    expect(compileLabelSelector({}).matches(undefined)).toBe(true);
    expect(compileLabelSelector({ matchLabels: {}, matchExpressions: [] })).toBe(everything);
  });

  test('all its requirements must hold', () => {
    const selector = compileLabelSelector({
      matchLabels: { app: 'web' },
      matchExpressions: [
        { key: 'tier', operator: 'In', values: ['a', 'b'] },
        { key: 'old', operator: 'DoesNotExist' },
        { key: 'zone', operator: 'NotIn', values: ['x'] },
      ],
    });
    expect(selector.matches({ app: 'web', tier: 'b' })).toBe(true);
    expect(selector.matches({ app: 'web', tier: 'b', zone: 'x' })).toBe(false);
    expect(selector.matches({ app: 'web', tier: 'b', old: '' })).toBe(false);
    expect(selector.matches({ tier: 'b' })).toBe(false);
    expect(selector.toString()).toBe('app=web,!old,tier in (a,b),zone notin (x)');
  });

  test('names of the prototype are keys like others', () => {
    const exists = compileLabelSelector({ matchExpressions: [{ key: 'constructor', operator: 'Exists' }] });
    expect(exists.matches({})).toBe(false);
    expect(exists.matches({ constructor: 'x' } as unknown as Record<string, string>)).toBe(true);
  });

  test.each([
    [{ key: 'a', operator: 'Foo' }, '"Foo" is not a valid label selector operator'],
    [
      { key: 'a', operator: 'In', values: [] },
      "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
    ],
    [
      { key: 'a', operator: 'Exists', values: ['b'] },
      'values: Invalid value: ["b"]: values set must be empty for exists and does not exist',
    ],
    [{ key: '', operator: 'Exists' }, 'key: Invalid value: "": name part must be non-empty; name part must consist of'],
    [
      { key: 'a', operator: 'In', values: ['-'] },
      'values[0][a]: Invalid value: "-": a valid label must be an empty string or consist of',
    ],
  ])('refuses %j', (expression, message) => {
    expect(() => compileLabelSelector({ matchExpressions: [expression] })).toThrow(SelectorError);
    expect(() => compileLabelSelector({ matchExpressions: [expression] })).toThrow(message);
  });
});

describe('the text form', () => {
  test.each([
    ['', {}, true],
    ['a', { a: '' }, true],
    ['!a', { a: '' }, false],
    ['a=b', { a: 'b' }, true],
    ['a==b', { a: 'c' }, false],
    ['a!=b', {}, true],
    ['a=', { a: '' }, true],
    [' a in ( b , c ) , !d ', { a: 'c' }, true],
    ['a notin (b)', { a: 'b' }, false],
    ['a in ()', { a: '' }, true],
    ['a in (,b)', { a: '' }, true],
    ['in in (in,notin)', { in: 'notin' }, true],
    ['a>1', { a: '2' }, true],
    ['a>1', { a: '9223372036854775808' }, false],
    ['a<1', { a: '-5' }, true],
    ['a<1', { a: 'x' }, false],
    ['example.com/a=b', { 'example.com/a': 'b' }, true],
  ])('%j on %j is %j', (text, labels, expected) => {
    expect(parseLabelSelector(text).matches(labels as unknown as Record<string, string>)).toBe(expected);
  });

  test.each([
    ['a b', "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"],
    ['a=b c', "found 'c', expected: ',' or 'end of string'"],
    ['a=b,', "found '', expected: identifier after ','"],
    [',a', "found ',', expected: !, identifier, or 'end of string'"],
    ['!', "unable to parse requirement: found '', expected: identifier"],
    ['!a=b', "found '=', expected: ',' or 'end of string'"],
    ['a in b', "unable to parse requirement: found 'b' expected: '('"],
    ['a in (b', "unable to parse requirement: found '', expected: ',' or ')'"],
    ['a in (b,', "unable to parse requirement: found '', expected: ',', or identifier"],
    ['a in (=', "unable to parse requirement: found '=', expected: ',', ')' or identifier"],
    ['a==(', "unable to parse requirement: found '(', expected: identifier"],
    [
      'a>x',
      "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
    ],
    [
      'a^b',
      'unable to parse requirement: <nil>: Invalid value: "a^b": name part must consist of alphanumeric characters',
    ],
    ['a=b$', 'unable to parse requirement: values[0][a]: Invalid value: "b$": a valid label must be'],
  ])('refuses %j', (text, message) => {
    expect(() => parseLabelSelector(text)).toThrow(message);
  });

  const word = fc.stringMatching(/^[a-z]([-a-z0-9_.]{0,5}[a-z0-9])?$/);
  const requirement = fc.oneof(
    word,
    word.map((w) => `!${w}`),
    fc.tuple(word, fc.constantFrom('=', '==', '!='), word).map((p) => p.join('')),
    fc
      .tuple(word, fc.constantFrom('in', 'notin'), fc.uniqueArray(word, { minLength: 1, maxLength: 4 }))
      .map(([k, o, v]) => `${k} ${o} (${v.join(',')})`),
    fc.tuple(word, fc.constantFrom('<', '>'), fc.nat()).map((p) => p.join('')),
  );

  test('what is printed reads back the same', () => {
    fc.assert(
      fc.property(fc.array(requirement, { maxLength: 5 }), (parts) => {
        const selector = parseLabelSelector(parts.join(','));
        expect(parseLabelSelector(selector.toString()).toString()).toBe(selector.toString());
        expect(selector.requirements.length).toBe(parts.length);
      }),
    );
  });

  test('any text is either read or refused with a SelectorError', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom('a', 'b', ',', '=', '!', '(', ')', '<', '>', ' ', 'in', '\t', '$', '/') }),
        (text) => {
          try {
            parseLabelSelector(text);
          } catch (error) {
            expect(error).toBeInstanceOf(SelectorError);
          }
        },
      ),
    );
  });
});

describe('names', () => {
  test('keys', () => {
    for (const key of ['a', 'A-b_c.d', 'example.com/a', 'a'.repeat(63), `${'a'.repeat(253)}/x`])
      expect(isQualifiedName(key)).toEqual([]);
    expect(isQualifiedName('a/b/c')[0]).toMatch(/^a valid label key must consist of/);
    expect(isQualifiedName('/b')).toEqual(['prefix part must be non-empty']);
    expect(isQualifiedName('Ex/b')[0]).toMatch(/^prefix part a lowercase RFC 1123 subdomain must/);
    expect(isQualifiedName('a'.repeat(64))).toEqual(['name part must be no more than 63 bytes']);
    expect(isQualifiedName('a b')).toEqual([
      "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
    ]);
  });

  test('a long prefix is judged in no time', () => {
    expect(isQualifiedName(`${'a-'.repeat(100_000)}/b`)).toHaveLength(2);
  });

  test('values', () => {
    for (const value of ['', 'a', '1', 'a.b_c-d']) expect(isValidLabelValue(value)).toEqual([]);
    expect(isValidLabelValue('a'.repeat(64))).toEqual(['must be no more than 63 bytes']);
    expect(isValidLabelValue('é'.repeat(32))).toHaveLength(2);
    expect(isValidLabelValue('a\n')).toHaveLength(1);
  });
});
