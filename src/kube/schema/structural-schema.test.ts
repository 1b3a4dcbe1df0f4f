// SPDX-License-Identifier: Apache-2.0
// Structural schemas against what a real kube-apiserver answered (hack/vectors/schema).

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { deepFreeze } from '../../base/freeze.ts';
import { fieldErrorBody, fieldErrorReason, type JsonSchema, SchemaError, StructuralSchema } from './index.ts';

interface Row {
  spec: Record<string, unknown>;
  old?: Record<string, unknown>;
  unknown?: string[];
  result?: unknown;
  causes?: string[];
}
const vectors = JSON.parse(readFileSync(new URL('./schema.vectors.json', import.meta.url), 'utf8')) as {
  schema: JsonSchema;
  cases: Row[];
};
const schema = new StructuralSchema({ type: 'object', properties: { spec: vectors.schema } });
const rows = vectors.cases.map((row) => ({
  ...row,
  name: `${JSON.stringify(row.spec)} ${JSON.stringify(row.old) ?? ''}`,
}));

function admitted(spec: unknown): { value: unknown; unknown: string[] } {
  const { value, unknown } = schema.prune(
    deepFreeze({ apiVersion: 'v1', kind: 'Thing', metadata: { name: 'x' }, spec }),
  );
  return { value: schema.default(deepFreeze(value)), unknown };
}

describe('a spec', () => {
  test('the schema itself is fine', () => {
    expect(schema.problems).toEqual([]);
    expect(rows.length).toBeGreaterThan(180);
  });

  test.each(rows)('$name', ({ spec, old, unknown = [], result, causes = [] }) => {
    const now = admitted(spec);
    expect(now.unknown.toSorted()).toEqual(unknown.toSorted());
    const errors = schema.validate(now.value, old === undefined ? undefined : admitted(old).value);
    const said = errors.map((error) => `${error.field} | ${fieldErrorReason(error.type)} | ${fieldErrorBody(error)}`);
    expect([...new Set(said)].toSorted()).toEqual([...new Set(causes)].toSorted());
    if (result !== undefined) expect((now.value as { spec: unknown }).spec).toEqual(result);
  });
});

describe('a schema', () => {
  test('that does not compile says so, and its rules fail', () => {
    const broken = new StructuralSchema({
      type: 'object',
      properties: {
        a: { type: 'string', pattern: '(' },
        b: { type: 'string', 'x-kubernetes-validations': [{ rule: 'self ==' }, { rule: 'other' }] },
      },
    });
    expect(broken.problems.map(({ field }) => field)).toEqual([
      'properties[a].pattern',
      'properties[b].x-kubernetes-validations[0].rule',
      'properties[b].x-kubernetes-validations[1].rule',
    ]);
    expect(broken.validate({ b: 'x' }).map(({ detail }) => detail)[1]).toBe(
      "rule compile error: undeclared reference to 'other' (in container '')",
    );
    expect(broken.validate({ a: 'x' })[0]?.detail).toMatch(/^a in body should match '\(, but pattern is invalid: /);
  });

  test('treats names of the prototype as data', () => {
    const plain = new StructuralSchema({
      type: 'object',
      properties: { spec: { type: 'object' } },
      required: ['constructor'],
    });
    const value = JSON.parse('{"spec":{"__proto__":1,"constructor":2},"toString":3}') as unknown;
    expect(plain.prune(value).unknown).toEqual(['spec.__proto__', 'spec.constructor', 'toString']);
    expect(plain.validate({})).toEqual([{ field: 'constructor', type: 'Required', value: '', detail: '' }]);
    const open = new StructuralSchema({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true });
    expect(JSON.stringify(open.default(open.prune(value).value))).toBe(JSON.stringify(value));
  });

  test('refuses what is nested too deeply with an error of its own', () => {
    const open = new StructuralSchema({ type: 'object', 'x-kubernetes-preserve-unknown-fields': true });
    const deep = JSON.parse(`${'{"a":'.repeat(200_000)}1${'}'.repeat(200_000)}`) as unknown;
    expect(() => open.prune(deep)).toThrow(SchemaError);
    expect(() => open.default(deep)).toThrow(SchemaError);
  });

  test('keeps what embedded resources carry', () => {
    const holder = new StructuralSchema({
      type: 'object',
      properties: {
        object: { type: 'object', 'x-kubernetes-embedded-resource': true, properties: { spec: { type: 'object' } } },
      },
    });
    const { value, unknown } = holder.prune({
      object: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x' }, spec: {}, other: 1 },
    });
    expect(value).toEqual({ object: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x' }, spec: {} } });
    expect(unknown).toEqual(['object.other']);
  });

  test('looks at the status alone when only that is written', () => {
    const both = new StructuralSchema({
      type: 'object',
      properties: {
        spec: { type: 'object', required: ['a'] },
        status: { type: 'object', properties: { n: { type: 'integer', minimum: 0 } } },
      },
    });
    expect(both.validateStatus({ spec: {}, status: { n: 1 } }, { spec: {} })).toEqual([]);
    expect(both.validateStatus({ spec: {} }, { spec: {} })).toEqual([]);
    expect(both.validateStatus({ spec: {}, status: { n: -1 } }, { spec: {} })).toEqual([
      { field: 'status.n', type: 'Invalid', value: -1, detail: 'n in body should be greater than or equal to 0' },
    ]);
    expect(both.validateStatus({ spec: {}, status: 5 }, { spec: {} })[0]?.field).toBe('status');
  });

  test('lets an update keep what has become invalid', () => {
    const strict = new StructuralSchema({
      type: 'object',
      properties: {
        a: { type: 'string', maxLength: 3 },
        b: { type: 'integer', 'x-kubernetes-validations': [{ rule: 'self > 10' }] },
        c: { type: 'string' },
      },
    });
    const old = { a: 'long', b: 1, c: 'x' };
    expect(strict.validate(old)).toHaveLength(2);
    expect(strict.validate({ ...old, c: 'y' }, old)).toEqual([]);
    expect(strict.validate({ ...old, a: 'longer' }, old)).toHaveLength(2);
    expect(strict.validate({ ...old, b: 2 }, old)).toHaveLength(1);
  });
});
