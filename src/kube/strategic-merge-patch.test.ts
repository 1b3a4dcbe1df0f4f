// SPDX-License-Identifier: Apache-2.0
// Strategic merge patch against apimachinery's verdicts (hack/vectors/strategic-merge-patch).

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { deepFreeze } from '../base/freeze.ts';
import { PatchError } from './patch-error.ts';
import { patchSchemaFor } from './patch-schemas.ts';
import { applyStrategicMergePatch, type PatchSchema } from './strategic-merge-patch.ts';

interface Vector {
  kind: string;
  document: unknown;
  patch: unknown;
  result?: unknown;
  error?: string;
}
const vectors = JSON.parse(
  readFileSync(new URL('./strategic-merge-patch.vectors.json', import.meta.url), 'utf8'),
) as Vector[];

function schemaOf(kind: string): PatchSchema {
  const [group = '', version = '', name = ''] = kind.split('/');
  const schema = patchSchemaFor(group, version, name);
  if (schema === undefined) throw new Error(`no schema for ${kind}`);
  return schema;
}

describe('a strategic merge patch', () => {
  test('does what Go does', () => {
    expect(vectors.length).toBeGreaterThan(100);
    for (const vector of vectors) {
      deepFreeze(vector);
      const { kind, document, patch, result, error } = vector;
      const apply = (): unknown => applyStrategicMergePatch(document, patch, schemaOf(kind));
      if (error === undefined) expect(apply(), JSON.stringify(patch)).toStrictEqual(result);
      else
        expect(apply, JSON.stringify(patch)).toThrow(
          new PatchError(error, error.startsWith('invalid patch format') ? 400 : 500),
        );
    }
  });

  test('is not for custom resources', () => {
    expect(patchSchemaFor('karpenter.sh', 'v1', 'NodePool')).toBeUndefined();
    expect(patchSchemaFor('rbac.authorization.k8s.io', 'v1', 'ClusterRole')?.has('metadata')).toBe(true);
  });

  test('keeps names of the prototype as data', () => {
    const patch = JSON.parse('{"metadata":{"annotations":{"__proto__":"a","constructor":"b"}}}') as unknown;
    const result = applyStrategicMergePatch({ metadata: { annotations: { c: 'd' } } }, patch, schemaOf('/v1/Pod'));
    expect(JSON.stringify(result)).toBe('{"metadata":{"annotations":{"c":"d","__proto__":"a","constructor":"b"}}}');
    expect(({} as Record<string, unknown>)['a']).toBeUndefined();
  });

  test('refuses what is no object, and what is nested too deeply', () => {
    expect(() => applyStrategicMergePatch({}, [], schemaOf('/v1/Pod'))).toThrow(PatchError);
    expect(() => applyStrategicMergePatch({}, null, schemaOf('/v1/Pod'))).toThrow(PatchError);
    const deep = JSON.parse(`${'{"a":'.repeat(200_000)}1${'}'.repeat(200_000)}`) as unknown;
    expect(() => applyStrategicMergePatch({}, deep, schemaOf('/v1/Pod'))).toThrow(PatchError);
  });
});
