// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type TestWorld, testWorld } from '../controllers/testing/world.ts';
import type { Pod, ReplicaSet, Service } from '../kube/kinds.ts';
import { DefaultSpread } from './default-spread.ts';
import { ownedBy, pendingPod } from './testing/objects.ts';

const constraint = {
  maxSkew: 1,
  topologyKey: 'topology.kubernetes.io/zone',
  whenUnsatisfiable: 'DoNotSchedule',
} as const;

let world: TestWorld;
let spread: DefaultSpread;

beforeEach(async () => {
  world = await testWorld();
  spread = DefaultSpread.of(world.clusters.workload, [constraint])!;
  await world.until(() => spread.hasRead);
});
afterEach(() => world.close());

function web(name: string): Pod {
  const pod = ownedBy(pendingPod(name), 'apps/v1', 'ReplicaSet', 'web');
  return { ...pod, metadata: { ...pod.metadata, labels: { app: 'web', tier: 'front' } } };
}

const service: Service = {
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'front', namespace: 'default' },
  spec: { selector: { tier: 'front' }, ports: [{ port: 80 }] },
};
const replicaSet: ReplicaSet = {
  apiVersion: 'apps/v1',
  kind: 'ReplicaSet',
  metadata: { name: 'web', namespace: 'default' },
  spec: {
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'main', image: 'app' }] } },
  },
};

function constraintsOf(pod: Pod): unknown {
  return spread.applyTo([pod])[0]?.spec.topologySpreadConstraints;
}

test('without constraints nothing is watched', () => {
  expect(DefaultSpread.of(world.clusters.workload, [])).toBeUndefined();
});

test('a pod is spread from those that its Services and its owner select with it', async () => {
  await world.apply(service, replicaSet);
  await world.settle();
  expect(constraintsOf(web('web-1'))).toEqual([
    {
      ...constraint,
      labelSelector: {
        matchLabels: { tier: 'front' },
        matchExpressions: [{ key: 'app', operator: 'In', values: ['web'] }],
      },
    },
  ]);
});

test('a pod that brings constraints keeps its own', async () => {
  await world.apply(replicaSet);
  await world.settle();
  const own = [{ ...constraint, maxSkew: 5, labelSelector: {} }];
  const pod = web('web-1');
  expect(constraintsOf({ ...pod, spec: { ...pod.spec, topologySpreadConstraints: own } })).toEqual(own);
});

test('a pod that nobody selects is left alone', () => {
  expect(constraintsOf(pendingPod('lonely'))).toBeUndefined();
});
