// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { toV1 } from './convert.ts';

/** Word for word as the guide of the Cluster API provider has it. */
const guide = {
  apiVersion: 'karpenter.sh/v1beta1',
  kind: 'NodePool',
  metadata: { name: 'default' },
  spec: {
    template: {
      spec: {
        requirements: [{ key: 'kubernetes.io/arch', operator: 'In', values: ['amd64'] }],
        nodeClassRef: {
          apiVersion: 'karpenter.cluster.x-k8s.io/v1alpha1',
          kind: 'ClusterAPINodeClass',
          name: 'default',
        },
      },
    },
  },
};

const withDisruption = (disruption: object): unknown =>
  (toV1({ ...guide, spec: { ...guide.spec, disruption } }).object as unknown as { spec: { disruption: unknown } }).spec
    .disruption;

describe('a NodePool of v1beta1', () => {
  test("of the guide keeps its meaning, v1beta1's month of life included", () => {
    expect(toV1(guide)).toEqual({
      notes: [],
      object: {
        apiVersion: 'karpenter.sh/v1',
        kind: 'NodePool',
        metadata: { name: 'default' },
        spec: {
          template: {
            spec: {
              requirements: [{ key: 'kubernetes.io/arch', operator: 'In', values: ['amd64'] }],
              nodeClassRef: { group: 'karpenter.cluster.x-k8s.io', kind: 'ClusterAPINodeClass', name: 'default' },
              expireAfter: '720h',
            },
          },
        },
      },
    });
  });

  test('has its times where v1 looks for them', () => {
    const { spec } = toV1({ ...guide, spec: { ...guide.spec, disruption: { expireAfter: 'Never' } } })
      .object as unknown as {
      spec: { template: { spec: { expireAfter: string } } };
    };
    expect(spec.template.spec.expireAfter).toBe('Never');
    expect(withDisruption({ expireAfter: 'Never' })).toEqual({
      consolidationPolicy: 'WhenEmptyOrUnderutilized',
      consolidateAfter: '0s',
    });
    expect(withDisruption({ consolidationPolicy: 'WhenUnderutilized', budgets: [{ nodes: '1' }] })).toEqual({
      consolidationPolicy: 'WhenEmptyOrUnderutilized',
      consolidateAfter: '0s',
      budgets: [{ nodes: '1' }],
    });
    expect(withDisruption({ consolidationPolicy: 'WhenEmpty', consolidateAfter: '30s' })).toEqual({
      consolidationPolicy: 'WhenEmpty',
      consolidateAfter: '30s',
    });
  });

  test('says what v1 has no place for', () => {
    const template = { spec: { ...guide.spec.template.spec, kubelet: { maxPods: 20 }, resources: {} } };
    const { object, notes } = toV1({ ...guide, spec: { template } });
    expect(notes).toEqual([
      'spec.template.spec.kubelet was left out: v1 has it in the NodeClass. It was {"maxPods":20}',
    ]);
    expect(JSON.stringify(object)).not.toMatch(/kubelet|resources/);
  });

  test('leaves behind what the old controller wrote', () => {
    const annotations = { 'karpenter.sh/nodepool-hash': '1', 'karpenter.sh/nodepool-hash-version': 'v2', own: 'x' };
    const { object } = toV1({ ...guide, metadata: { name: 'default', annotations }, status: { resources: {} } });
    expect(object).toMatchObject({ metadata: { name: 'default', annotations: { own: 'x' } } });
    expect(object).not.toHaveProperty('status');
  });

  test('without an apiVersion in its reference is told to name the group', () => {
    const template = { spec: { nodeClassRef: { kind: 'X', name: 'y' } } };
    expect(toV1({ ...guide, spec: { template } }).notes).toEqual([
      'spec.template.spec.nodeClassRef says no apiVersion: v1 needs a group, which is yours to fill in',
    ]);
  });
});

test.each([{ spec: null }, { metadata: 'x' }, { spec: { template: { spec: { nodeClassRef: null } } } }])(
  'what is not what it should be (%o) is for an API server to refuse',
  (wrong) => {
    for (const kind of ['NodePool', 'NodeClaim']) {
      expect(toV1({ ...guide, ...wrong, kind }).object).toMatchObject({ apiVersion: 'karpenter.sh/v1', kind });
    }
  },
);

test('a NodeClaim of v1beta1 keeps what it asks for', () => {
  const resources = { requests: { cpu: '1' } };
  const { nodeClassRef } = guide.spec.template.spec;
  const spec = { requirements: [], resources, nodeClassRef, kubelet: { maxPods: 1 } };
  const { object, notes } = toV1({ ...guide, kind: 'NodeClaim', spec });
  expect(object['spec']).toEqual({
    requirements: [],
    resources,
    nodeClassRef: { group: 'karpenter.cluster.x-k8s.io', kind: 'ClusterAPINodeClass', name: 'default' },
  });
  expect(notes).toHaveLength(1);
});

test('whatever else there is stays as it is', () => {
  const other = { apiVersion: 'karpenter.sh/v1', kind: 'NodePool', spec: { status: 1 } };
  expect(toV1(other)).toEqual({ object: other, notes: [] });
});
