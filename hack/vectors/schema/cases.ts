// SPDX-License-Identifier: Apache-2.0
// A schema with everything we claim to understand, and specs that hit each part of it.
import type { JsonSchema } from '../../../src/kube/schema/index.ts';

const rule = (text: string, more: object = {}): JsonSchema => ({
  'x-kubernetes-validations': [{ rule: text, ...more }],
});
const text: JsonSchema = { type: 'string' };
const int: JsonSchema = { type: 'integer' };

export const specSchema: JsonSchema = {
  type: 'object',
  required: ['must'],
  properties: {
    must: { type: 'boolean' },
    weight: { ...int, format: 'int32', minimum: 1, maximum: 100 },
    long: { ...int, format: 'int64' },
    plain: int,
    ratio: { type: 'number', exclusiveMinimum: true, minimum: 0, maximum: 1000000 },
    even: { ...int, multipleOf: 2 },
    half: { type: 'number', multipleOf: 0.5 },
    below: { ...int, exclusiveMaximum: true, maximum: 10 },
    name: { ...text, minLength: 2, maxLength: 5, pattern: '^[a-z]+$' },
    color: { ...text, enum: ['red', 'green'] },
    level: { ...int, enum: [1, 2] },
    at: { ...text, format: 'date-time' },
    day: { ...text, format: 'date' },
    wait: { ...text, format: 'duration' },
    id: { ...text, format: 'uuid' },
    address: { ...text, format: 'ipv4' },
    block: { ...text, format: 'cidr' },
    link: { ...text, format: 'uri' },
    data: { ...text, format: 'byte' },
    mail: { ...text, format: 'email' },
    host: { ...text, format: 'hostname' },
    short: { ...text, format: 'k8s-short-name' },
    odd: { ...text, format: 'no-such-format' },
    port: {
      'x-kubernetes-int-or-string': true,
      anyOf: [{ type: 'integer' }, { type: 'string' }],
      pattern: '^[0-9]+%?$',
    },
    maybe: { ...text, nullable: true },
    never: text,
    counted: { ...int, default: 7 },
    nothing: { ...text, default: 'x' },
    list: { type: 'array', minItems: 1, maxItems: 3, items: { ...text, maxLength: 3 } },
    set: { type: 'array', 'x-kubernetes-list-type': 'set', items: text },
    map: {
      type: 'array',
      maxItems: 20,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['key'],
      items: {
        type: 'object',
        required: ['key'],
        properties: {
          key: text,
          value: { ...text, maxLength: 20, default: 'd', ...rule('self == oldSelf', { message: 'value is fixed' }) },
        },
      },
    },
    pairs: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['a', 'b'],
      items: { type: 'object', required: ['a', 'b'], properties: { a: text, b: int } },
    },
    limits: {
      type: 'object',
      minProperties: 1,
      maxProperties: 2,
      additionalProperties: {
        'x-kubernetes-int-or-string': true,
        anyOf: [{ type: 'integer' }, { type: 'string' }],
        pattern: '^[0-9]+$',
      },
    },
    labels: {
      type: 'object',
      maxProperties: 20,
      additionalProperties: { ...text, maxLength: 3, ...rule("self != 'bad'", { message: 'bad is bad' }) },
    },
    anything: {
      type: 'object',
      'x-kubernetes-preserve-unknown-fields': true,
      properties: { known: { type: 'object', properties: { a: text } } },
    },
    nested: {
      type: 'object',
      properties: { deep: { type: 'object', required: ['leaf'], properties: { leaf: { ...int, default: 3 } } } },
    },
    defaulted: {
      type: 'object',
      default: {},
      properties: {
        a: { ...text, default: 'a' },
        b: { type: 'array', items: { type: 'object', properties: { c: { ...int, default: 1 } } } },
      },
    },
    either: { type: 'object', properties: { a: text, b: text }, oneOf: [{ required: ['a'] }, { required: ['b'] }] },
    some: { type: 'object', properties: { a: text, b: text }, anyOf: [{ required: ['a'] }, { required: ['b'] }] },
    all: { type: 'object', properties: { a: text, b: text }, allOf: [{ required: ['a'] }, { required: ['b'] }] },
    no: { type: 'object', properties: { a: text }, not: { required: ['a'] } },
    ruled: {
      type: 'object',
      properties: { min: int, max: int, name: text, list: { type: 'array', maxItems: 10, items: int } },
      'x-kubernetes-validations': [
        { rule: 'self.min <= self.max', message: 'min must not exceed max' },
        {
          rule: "!has(self.name) || self.name != 'x'",
          reason: 'FieldValueForbidden',
          fieldPath: '.name',
          message: 'x is forbidden',
        },
        { rule: "!has(self.name) || self.name != 'y'", messageExpression: "'bad name: ' + self.name" },
        { rule: '!has(self.list) || self.list.all(i, i > 0)' },
        { rule: "!has(self.name) || self.name != 'z'", reason: 'FieldValueRequired', message: 'z wants more' },
      ],
    },
    code: { ...text, ...rule("self.startsWith('c')", { message: 'must start with c' }) },
    fixed: { ...text, ...rule('self == oldSelf', { message: 'is immutable' }) },
    size: { ...int, ...rule('self >= oldSelf', { message: 'cannot shrink' }) },
    once: {
      ...text,
      ...rule("oldSelf.hasValue() || self == 'first'", { optionalOldSelf: true, message: 'must start as first' }),
    },
    double: { type: 'number', ...rule('self / 2.0 >= 1.0', { message: 'too small' }) },
    when: { ...text, format: 'date-time', ...rule("self > timestamp('2024-01-01T00:00:00Z')", { message: 'too old' }) },
    fails: { type: 'object', properties: { a: text }, ...rule("self.a == 'x'", { message: 'a is x' }) },
  },
};

export interface Case {
  readonly name: string;
  readonly spec: Record<string, unknown>;
  readonly old?: Record<string, unknown>;
}

const one = (spec: Record<string, unknown>, old?: Record<string, unknown>): Case => ({
  name: `${JSON.stringify(spec)}${old === undefined ? '' : ` after ${JSON.stringify(old)}`}`.slice(0, 120),
  spec: { must: true, ...spec },
  ...(old === undefined ? {} : { old: { must: true, ...old } }),
});

const values: Record<string, unknown[]> = {
  must: ['yes', null, 1],
  weight: [1, 100, 0, 101, 'x', 1.5, true, 3000000000, null],
  long: [9007199254740991, 1.5, 'x'],
  plain: [1, 1.5, 'x', [], {}],
  ratio: [0.5, 0, -1, 1000001, 2000000.5, 'x', 1],
  even: [2, 3],
  // Not 2: the API server cuts the factor down to a whole number for whole values, and says that 0 is not positive.
  half: [1.5, 1.3],
  below: [9, 10],
  name: ['ab', 'a', 'abcdef', 'ab1', '', 'ÄÄÄÄÄÄ', 5, null],
  color: ['red', 'blue', '', 5],
  level: [1, 3, '1'],
  at: ['2024-01-01T00:00:00Z', '2024-01-01', 'x', 5, '2024-01-01t00:00:00z', '2024-13-01T00:00:00Z'],
  day: ['2024-01-01', '2024-1-1', '2024-01-01T00:00:00Z'],
  wait: ['1h', '5 minutes', 'x', ''],
  id: ['123e4567-e89b-12d3-a456-426614174000', 'x'],
  address: ['10.0.0.1', '10.0.0.256', '::1'],
  block: ['10.0.0.0/8', '10.0.0.0/33', '10.0.0.0'],
  link: ['https://example.com/x', 'x', '/path'],
  data: ['aGVsbG8=', 'x!'],
  mail: ['a@b.c', 'x'],
  host: ['example.com', '-x', 'a_b'],
  short: ['abc', 'Abc', 'a.b'],
  odd: ['anything'],
  port: [80, '80%', 'x', true, 1.5, null],
  maybe: [null, 'x', 5],
  never: [null, 'x'],
  counted: [null, 8],
  list: [['a'], [], ['a', 'b', 'c', 'd'], ['abcd'], [5], [null], 'x'],
  set: [
    ['a', 'b'],
    ['a', 'b', 'a', 'b', 'a'],
  ],
  map: [
    [{ key: 'a' }, { key: 'b', value: 'v' }],
    [{ key: 'a' }, { key: 'a' }],
    [{ value: 'v' }],
    ['x'],
    [{ key: 'a', extra: 1 }],
  ],
  pairs: [
    [
      { a: 'x', b: 1 },
      { a: 'x', b: 2 },
    ],
    [
      { a: 'x', b: 1 },
      { b: 1, a: 'x' },
    ],
  ],
  limits: [{ cpu: 1 }, {}, { a: 1, b: 2, c: 3 }, { cpu: 'x' }, { cpu: true }, { cpu: 1.5 }],
  labels: [{ a: 'b' }, { a: 'long' }, { a: 5 }, { a: 'bad' }, { 'a.b/c': 'bad' }, { a: null }],
  anything: [{ x: { y: 1 } }, { known: { a: 'b', c: 'd' } }, 5],
  nested: [{ deep: {} }, { deep: null }, { deep: { leaf: null } }, { deep: { leaf: 'x' } }, { shallow: 1 }],
  defaulted: [{}, { a: 'z' }, { b: [{}, { c: 5 }, { d: 6 }] }, null],
  either: [{ a: 'x' }, {}, { a: 'x', b: 'y' }],
  some: [{ a: 'x', b: 'y' }, {}],
  all: [{ a: 'x', b: 'y' }, { a: 'x' }, {}],
  no: [{}, { a: 'x' }],
  ruled: [
    { min: 1, max: 2 },
    { min: 3, max: 2 },
    { min: 1, max: 2, name: 'x' },
    { min: 1, max: 2, name: 'y' },
    { min: 1, max: 2, name: 'z' },
    { min: 1, max: 2, list: [1, 0] },
    { min: 1 },
    { min: 3, max: 2, name: 'x', list: [0] },
  ],
  code: ['cat', 'dog'],
  fixed: ['x'],
  size: [1],
  once: ['first', 'second'],
  double: [2, 1.5],
  when: ['2025-01-01T00:00:00Z', '2023-01-01T00:00:00Z'],
  fails: [{}, { a: 'x' }, { a: 'y' }],
  unknown: [1],
};

export const cases: readonly Case[] = [
  ...Object.entries(values).flatMap(([field, list]) => list.map((value) => one({ [field]: value }))),
  one({ weight: 0, name: 'A', color: 'blue' }),
  one({ weight: 'x', code: 'dog' }),
  one({ name: 'a', code: 'dog' }),
  one({ fixed: 'a' }, { fixed: 'a' }),
  one({ fixed: 'b' }, { fixed: 'a' }),
  one({ fixed: 'b' }, {}),
  one({}, { fixed: 'a' }),
  one({ size: 2 }, { size: 1 }),
  one({ size: 1 }, { size: 2 }),
  one({ once: 'second' }, { once: 'first' }),
  one({ once: 'second' }, {}),
  one(
    {
      map: [
        { key: 'b', value: 'w' },
        { key: 'a', value: 'v' },
      ],
    },
    { map: [{ key: 'a', value: 'v' }] },
  ),
  one({ map: [{ key: 'a', value: 'w' }] }, { map: [{ key: 'a', value: 'v' }] }),
  one({ weight: 0 }, { weight: 5 }),
];
