// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { labels } from '../../api/labels.ts';
import type { Pod } from '../../kube/kinds.ts';
import type { VolumeAlternatives } from '../../scheduling/volumes.ts';
import { pendingPod } from '../../state/testing/objects.ts';
import { countByZone } from './effective-zone.ts';

const zones = new Set(['a', 'b', 'c']);

function where(pod: Pod, volumes: VolumeAlternatives = []): string[] {
  return [...countByZone([pod], zones, { alternativesOf: () => volumes }).keys()];
}

function affine(...terms: { operator: string; values: string[] }[]): Pod {
  const nodeSelectorTerms = terms.map((term) => ({ matchExpressions: [{ key: labels.zone, ...term }] }));
  return pendingPod('web', {
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
  });
}

test('a pod without wishes is flexible', () => {
  expect(where(pendingPod('web'))).toEqual(['flexible']);
});

test('a pod that must be in one zone counts there', () => {
  expect(where(pendingPod('web', { nodeSelector: { [labels.zone]: 'b' } }))).toEqual(['b']);
  expect(where(affine({ operator: 'NotIn', values: ['a', 'b'] }))).toEqual(['c']);
  expect(where(affine({ operator: 'In', values: ['a'] }, { operator: 'In', values: ['b'] }))).toEqual(['flexible']);
});

test('a pod follows its volumes, and one whose wishes contradict them can go nowhere', () => {
  const inA = [[{ key: labels.zone, operator: 'In', values: ['a'] }]];
  expect(where(pendingPod('db'), inA)).toEqual(['a']);
  expect(where(pendingPod('db', { nodeSelector: { [labels.zone]: 'b' } }), inA)).toEqual(['none']);
});
