// SPDX-License-Identifier: Apache-2.0
import { describe, expect, expectTypeOf, test } from 'vitest';
import type { KubeObject, ResourceType } from '../kube/object.ts';
import { allCrds, apiKinds } from './crd.ts';
import type { KwokNodeClass } from './kwok-node-class.ts';
import type { nodeClaimKind } from './node-claim.ts';
import { byOverlayPrecedence } from './node-overlay.ts';
import { type NodePool, nodePoolKind } from './node-pool.ts';
import type { OpenApiSchema } from './schema.ts';
import { nodeOverlay } from './testing/objects.ts';

/** Every schema below one, with the path to it. */
function* walk(schema: OpenApiSchema, path: string): Generator<[string, OpenApiSchema]> {
  yield [path, schema];
  for (const [name, field] of Object.entries(schema.properties ?? {})) yield* walk(field, `${path}.${name}`);
  if (schema.items) yield* walk(schema.items, `${path}[]`);
  if (schema.additionalProperties) yield* walk(schema.additionalProperties, `${path}.*`);
}

describe('the CRDs', () => {
  test('are named by plural and group', () => {
    expect(allCrds().map((crd) => crd.metadata.name)).toEqual([
      'nodepools.karpenter.sh',
      'nodeclaims.karpenter.sh',
      'nodeoverlays.karpenter.sh',
      'capacitybuffers.autoscaling.x-k8s.io',
      'kwoknodeclasses.karpenter.kwok.sh',
      'clusterapinodeclasses.karpenter.cluster.x-k8s.io',
      'linodenodeclasses.karpenter.k8s.linode',
    ]);
  });

  test('are plain JSON, new on every call', () => {
    const [first] = allCrds();
    expect(JSON.parse(JSON.stringify(first))).toEqual(first);
    first!.spec.versions.length = 0;
    expect(allCrds()[0]!.spec.versions).toHaveLength(1);
  });

  test.each(apiKinds.map((kind) => [kind.kind, kind] as const))('%s explains every field and rule', (_, kind) => {
    for (const part of [kind.spec, kind.status]) {
      for (const [path, schema] of walk(part.openapi, kind.kind)) {
        const inList = path.endsWith('[]') || path.endsWith('.*');
        if (!inList || schema.properties) expect(schema.description, path).toMatch(/^[A-Z].*\.$/);
        for (const required of schema.required ?? []) expect(schema.properties, path).toHaveProperty(required);
        for (const rule of schema['x-kubernetes-validations'] ?? []) expect(rule.message, path).not.toBe('');
      }
    }
  });

  test('every pattern is a regular expression', () => {
    for (const kind of apiKinds)
      for (const [path, { pattern }] of walk(kind.spec.openapi, kind.kind))
        if (pattern) expect(() => new RegExp(pattern), path).not.toThrow();
  });

  test('a kind is a resource type of the client, with its objects', () => {
    const type: ResourceType<NodePool> = nodePoolKind;
    expect(type).toMatchObject({ group: 'karpenter.sh', version: 'v1', plural: 'nodepools', namespaced: false });
    expectTypeOf<NodePool>().toExtend<KubeObject>();
    expectTypeOf<NonNullable<typeof nodeClaimKind.object>['spec']['requirements'][number]['operator']>().toEqualTypeOf<
      'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt' | 'Gte' | 'Lte'
    >();
    expectTypeOf<KwokNodeClass>().toHaveProperty('spec').toExtend<object | undefined>();
  });
});

test('overlays go by weight, then by name backwards', () => {
  const overlays = [
    nodeOverlay({ name: 'a' }),
    nodeOverlay({ name: 'b' }),
    nodeOverlay({ name: 'c', spec: { weight: 1 } }),
    nodeOverlay({ name: 'd', spec: { weight: 10 } }),
  ];
  expect(overlays.sort(byOverlayPrecedence).map((overlay) => overlay.metadata.name)).toEqual(['d', 'c', 'b', 'a']);
});
