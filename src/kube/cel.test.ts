// SPDX-License-Identifier: Apache-2.0
// CEL against the environment of kube-apiserver (hack/vectors/cel), and what is ours alone.

import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { deepFreeze } from '../base/freeze.ts';
import { CelError, compileCel } from './cel.ts';
import { CelDuration, CelTimestamp, CelType } from './cel-values.ts';
import { Quantity } from './quantity.ts';
import { formatTimeNanos } from './time.ts';

interface Row {
  e: string;
  r?: unknown;
  t?: string;
  error?: string;
  refused?: boolean;
}
const rows = JSON.parse(readFileSync(new URL('./cel.vectors.json', import.meta.url), 'utf8')) as Row[];

// As in hack/vectors/cel/main.go.
const self = deepFreeze({
  i: 5,
  neg: -7,
  big: 9007199254740993n,
  d: 2.5,
  whole: 4,
  s: 'hello',
  empty: '',
  t: true,
  n: null,
  ints: [3, 1, 2],
  strings: ['b', 'a', 'c'],
  none: [],
  uni: 'a😀é',
  m: { a: 1, b: 2 },
  nested: { x: { y: 'z' } },
  reqs: [
    { key: 'a', operator: 'In', values: ['x', 'y'] },
    { key: 'b', operator: 'Gt', values: ['5'], minValues: 1 },
    { key: 'c', operator: 'Exists' },
  ],
});
const schema = { type: 'object', properties: { d: { type: 'number' }, whole: { type: 'number' } } };

function plain(value: unknown): unknown {
  if (value === null) return 'null';
  if (typeof value === 'bigint') return Number(value);
  if (typeof value === 'number' && !Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  if (Array.isArray(value)) return value.map(plain);
  if (value instanceof CelTimestamp) return formatTimeNanos(value.nanos);
  if (value instanceof CelDuration) return `${Number(value.nanos) / 1e9}s`;
  if (value instanceof CelType) return value.name;
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (value instanceof Quantity) return 'opaque';
  if (typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
}

describe('an expression', () => {
  test.each(rows)('$e', ({ e, r, t, error, refused }) => {
    const run = (): unknown => compileCel(e, { schema, variables: ['self'] }).evaluate({ self });
    if (refused || error !== undefined) {
      expect(run).toThrow(CelError);
      // The words are the same, except that ours name no functions, no Go types and no causes.
      const words = /^(no such overload|got )/.exec(error ?? '')?.[0] ?? error;
      if (words !== undefined && !/semver|ip\(|cidr\(/.test(e)) expect(run).toThrow(words);
    } else if (t === 'optional_type') {
      // The result of a program is plain: an optional is its value or nothing.
      expect(plain(run())).toEqual(r === 'none' ? undefined : (r as unknown[])[0]);
    } else {
      expect(plain(run())).toEqual(r);
    }
  });
});

describe('a program', () => {
  const evaluate = (expression: string, value: unknown, from?: Parameters<typeof compileCel>[1]): unknown =>
    compileCel(expression, from).evaluate({ self: value });

  test('is refused when compiling for what no value could make right', () => {
    for (const text of [
      '',
      '1 +',
      'other',
      'nothing(self)',
      'self.nothing()',
      "self.matches('(')",
      "duration('x')",
      'has(self)',
    ]) {
      expect(() => compileCel(text), text).toThrow(CelError);
    }
    expect(() => compileCel(`${'('.repeat(300)}1${')'.repeat(300)}`)).toThrow(
      'expression recursion limit exceeded: 250',
    );
  });

  // The numbers are cel-go's, found by asking it.
  test.each([
    ['selections', (n: number) => `self${'.a'.repeat(n)}`, 250],
    ['selections from the root', (n: number) => '.self'.repeat(n), 251],
    ['indexes', (n: number) => `self${'[0]'.repeat(n)}`, 250],
    ['sums', (n: number) => `1${'+1'.repeat(n)}`, 250],
    ['sums of products', (n: number) => `1${'+1*1'.repeat(n)}`, 249],
  ])('refuses chains of %s that are too long', (_, chain, most) => {
    compileCel(chain(most));
    for (const n of [most + 1, 20_000])
      expect(() => compileCel(chain(n)), String(n)).toThrow('max recursion depth exceeded');
  });

  test('takes chains of logic and signs of any length', () => {
    expect(evaluate(`self${'&&self'.repeat(20_000)}`, true)).toBe(true);
    expect(evaluate(`self${'||self'.repeat(20_000)}`, false)).toBe(false);
    expect(evaluate(`${'!'.repeat(20_001)}self`, true)).toBe(false);
  });

  test('has the messages of cel-go', () => {
    expect(() => evaluate('self.x', {})).toThrow('no such key: x');
    expect(() => evaluate('self[2]', [1])).toThrow('index out of bounds: 2');
    expect(() => evaluate('1 / self', 0)).toThrow('division by zero');
    expect(() => evaluate('self + 1', 'a')).toThrow('no such overload');
    expect(() => evaluate('int(self)', 'x')).toThrow("type conversion error from 'string' to 'int'");
    expect(() => evaluate('self + 1', 9223372036854775807n)).toThrow('integer overflow');
  });

  test('sees numbers as the schema says', () => {
    const schemaOf = (type: string) => ({ schema: { type: 'object', properties: { x: { type } } } });
    expect(evaluate('self.x / 2 == 2', { x: 5 }, schemaOf('integer'))).toBe(true);
    expect(evaluate('self.x / 2.0 == 2.5', { x: 5 }, schemaOf('number'))).toBe(true);
    expect(() => evaluate('self.x / 2', { x: 5 }, schemaOf('number'))).toThrow('no such overload');
    expect(
      evaluate(
        'type(self.x) == int',
        { x: 5 },
        { schema: { type: 'object', properties: { x: { 'x-kubernetes-int-or-string': true } } } },
      ),
    ).toBe(true);
  });

  test('sees times, escaped names and maps as the schema says', () => {
    const properties = {
      at: { type: 'string', format: 'date-time' },
      for: { type: 'string', format: 'duration' },
      'foo-bar': { type: 'string' },
      namespace: { type: 'string' },
      a__b: { type: 'string' },
      limits: { type: 'object', additionalProperties: { type: 'number' } },
    };
    const value = {
      at: '2024-01-01T00:00:00Z',
      for: '90s',
      'foo-bar': 'x',
      namespace: 'y',
      a__b: 'z',
      limits: { 'a-b': 1 },
    };
    const run = (expression: string): unknown =>
      evaluate(expression, value, { schema: { type: 'object', properties } });
    expect(run('self.at.getFullYear()')).toBe(2024);
    expect(run("self.__for__ == duration('1m30s')")).toBe(true);
    expect(run('self.foo__dash__bar + self.__namespace__ + self.a__underscores__b')).toBe('xyz');
    expect(run("self.limits['a-b'] == 1.0 && type(self.limits['a-b']) == double")).toBe(true);
  });

  test('knows which variables it mentions', () => {
    expect(compileCel('self == oldSelf').uses('oldSelf')).toBe(true);
    expect(compileCel("self == 'oldSelf'").uses('oldSelf')).toBe(false);
    expect(compileCel('[1].all(oldSelf, oldSelf > 0)').uses('oldSelf')).toBe(false);
  });

  test('stops before a loop takes forever', () => {
    const list = Array.from({ length: 2000 }, (_, i) => i);
    expect(() => evaluate('self.all(x, self.all(y, x >= 0))', list)).toThrow(/cost limit exceeded/);
  });

  test('leaves what it is given alone and cannot reach the prototype', () => {
    const value = deepFreeze({ list: [3, 1, 2], map: { a: 1 } });
    expect(evaluate('self.list.sort() + self.list.reverse()', value)).toEqual([1, 2, 3, 2, 1, 3]);
    expect(() => evaluate('self.__proto__', value)).toThrow('no such key: __proto__');
    expect(evaluate("'__proto__' in self", value)).toBe(false);
  });

  test('any text is evaluated or refused with a CelError', () => {
    const piece = fc.constantFrom(
      'self',
      '.',
      'a',
      '(',
      ')',
      '[',
      ']',
      '1',
      "'x'",
      '+',
      '&&',
      '?',
      ':',
      'in',
      ' ',
      '{',
      '}',
      ',',
      'has',
      'all',
      '-',
      '!',
      '"',
      '2.5',
      '.?',
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        try {
          evaluate(pieces.join(''), { a: [1] });
        } catch (error) {
          expect(error).toBeInstanceOf(CelError);
        }
      }),
      { numRuns: 2000 },
    );
  });
});
