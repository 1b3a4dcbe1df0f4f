// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { Node, Pod } from '../../kube/kinds.ts';
import type { KubeObject } from '../../kube/object.ts';
import { collections } from '../collections.ts';
import type { Facts } from '../contract.ts';
import { affinityBroken } from './affinity.ts';

const zone = 'topology.kubernetes.io/zone';
const hostname = 'kubernetes.io/hostname';

function nodeOf(name: string, at: string): Node {
  return { metadata: { name, labels: { [zone]: at, [hostname]: name } } } as unknown as Node;
}

function podOf(name: string, nodeName: string, spec: object = {}): Pod {
  return {
    metadata: { name, uid: name, namespace: 'default', labels: { app: name.split('-')[0] } },
    spec: { nodeName, containers: [], ...spec },
  } as unknown as Pod;
}

const nodes = [nodeOf('n1', 'a'), nodeOf('n2', 'a'), nodeOf('n3', 'b')];

/** What is wrong with the first pod where it is. */
function broken([pod, ...others]: [Pod, ...Pod[]], more: Readonly<Record<string, KubeObject>> = {}): string[] {
  const pods = [pod, ...others];
  const facts = {
    list: (collection: string) => (collection === collections.nodes ? nodes : pods),
    podsOn: (name: string) => pods.filter(({ spec }) => spec.nodeName === name),
    get: (collection: string) => more[collection],
  } as unknown as Facts;
  return affinityBroken(facts, pod, nodes.find(({ metadata }) => metadata.name === pod.spec.nodeName)!);
}

function podTerm(app: string, topologyKey: string): object {
  return {
    requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey, labelSelector: { matchLabels: { app } } }],
  };
}

function nodeTerm(...matchExpressions: object[]): object {
  const nodeSelectorTerms = [{ matchExpressions }];
  return { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } } };
}

test('a pod is where its node affinity allows', () => {
  for (const [operator, values, holds] of [
    ['In', ['a', 'c'], true],
    ['In', ['b'], false],
    ['NotIn', ['b'], true],
    ['NotIn', ['a'], false],
    ['Exists', undefined, true],
    ['DoesNotExist', undefined, false],
  ] as const) {
    const pod = podOf('x', 'n1', nodeTerm({ key: zone, operator, values }));
    expect(broken([pod]), operator).toHaveLength(holds ? 0 : 1);
  }
});

test('a pod that keeps away from others is not with them, nor they with it', () => {
  const apart = { affinity: { podAntiAffinity: podTerm('x', hostname) } };
  expect(broken([podOf('x-1', 'n1', apart), podOf('x-2', 'n2', apart)])).toEqual([]);
  expect(broken([podOf('x-1', 'n1', apart), podOf('x-2', 'n1')])).toHaveLength(1);
  expect(broken([podOf('x-1', 'n1'), podOf('y-1', 'n1', apart)])).toHaveLength(1);
  const zones = { affinity: { podAntiAffinity: podTerm('x', zone) } };
  expect(broken([podOf('x-1', 'n1', zones), podOf('x-2', 'n2')])).toHaveLength(1);
  expect(broken([podOf('x-1', 'n1', zones), podOf('x-2', 'n3')])).toEqual([]);
});

test('pods that will be together are, and the first of them is anywhere', () => {
  const together = { affinity: { podAffinity: podTerm('x', zone) } };
  expect(broken([podOf('x-1', 'n1', together)])).toEqual([]);
  expect(broken([podOf('x-1', 'n1', together), podOf('x-2', 'n2')])).toEqual([]);
  expect(broken([podOf('x-1', 'n1', together), podOf('x-2', 'n3')])).toHaveLength(1);
  expect(broken([podOf('y-1', 'n1', together)])).toHaveLength(1);
  // Nobody counts on a pod whose node is gone.
  expect(broken([podOf('x-1', 'n1', together), podOf('x-2', 'gone')])).toEqual([]);
});

test('a pod is in the zone of its volume', () => {
  const pod = podOf('x', 'n1', { volumes: [{ persistentVolumeClaim: { claimName: 'data' } }] });
  const claim = { metadata: { name: 'data' }, spec: { volumeName: 'v' } };
  const volumeIn = (at: string): object => ({
    metadata: { name: 'v' },
    spec: {
      nodeAffinity: {
        required: { nodeSelectorTerms: [{ matchExpressions: [{ key: zone, operator: 'In', values: [at] }] }] },
      },
    },
  });
  const storedIn = (at: string): Readonly<Record<string, KubeObject>> => ({
    [collections.volumeClaims]: claim as unknown as KubeObject,
    [collections.volumes]: volumeIn(at) as KubeObject,
  });
  expect(broken([pod], storedIn('a'))).toEqual([]);
  expect(broken([pod], storedIn('b'))).toEqual(['is on n1, and its volume v cannot be there']);
  expect(broken([pod])).toEqual([]);
});
