// SPDX-License-Identifier: Apache-2.0
import { afterEach, expect, test } from 'vitest';
import { labels } from '../../api/labels.ts';
import type { Pod, PodSpec } from '../../kube/kinds.ts';
import type { VolumeAlternatives } from '../../scheduling/volumes.ts';
import { pendingPod } from '../../state/testing/objects.ts';
import { countByZone } from './effective-zone.ts';
import { type RunningPods, ZoneRules } from './zone-rules.ts';

const zones = new Set(['a', 'b', 'c']);
let running: RunningPods = { nodes: () => [], namespaces: [] };
afterEach(() => {
  running = { nodes: () => [], namespaces: [] };
});

/** A node in each zone with so many pods `app=web`. */
function run(counts: Readonly<Record<string, number>>): void {
  const nodes = Object.entries(counts).map(([zone, count]) => ({
    labels: { [labels.zone]: zone },
    runningPods: () => Array.from({ length: count }, () => labelled({})),
  }));
  running = { nodes: () => nodes as never, namespaces: [] };
}

function labelled(spec: Partial<PodSpec>): Pod {
  const pod = pendingPod('web', spec);
  return { ...pod, metadata: { ...pod.metadata, labels: { app: 'web' } } };
}

const term = { topologyKey: labels.zone, labelSelector: { matchLabels: { app: 'web' } } };

function where(pod: Pod, volumes: VolumeAlternatives = []): string[] {
  return [...countByZone([pod], zones, { alternativesOf: () => volumes }, new ZoneRules(running)).keys()];
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

test.each([
  [{ a: 1, b: 1, c: 1 }, 'flexible'],
  [{ a: 2, b: 2, c: 1 }, 'c'],
  [{ a: 2, b: 1, c: 1 }, 'flexible'],
])('a pod that must be spread goes where the running ones %o leave room: %s', (counts, zone) => {
  run(counts);
  const spread = { ...term, maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule' as const };
  expect(where(labelled({ topologySpreadConstraints: [spread] }))).toEqual([zone]);
  const soft = { ...spread, whenUnsatisfiable: 'ScheduleAnyway' as const };
  expect(where(labelled({ topologySpreadConstraints: [soft] }))).toEqual(['flexible']);
});

test('a spread over more zones than there are keeps to empty ones', () => {
  run({ a: 1 });
  const spread = { ...term, maxSkew: 1, minDomains: 4, whenUnsatisfiable: 'DoNotSchedule' as const };
  expect(where(labelled({ topologySpreadConstraints: [spread] }))).toEqual(['flexible']);
  run({ a: 1, b: 1, c: 1 });
  expect(where(labelled({ topologySpreadConstraints: [spread] }))).toEqual(['none']);
});

test('a pod goes where the pods it follows are, and away from those it avoids', () => {
  const rule = { requiredDuringSchedulingIgnoredDuringExecution: [term] };
  expect(where(labelled({ affinity: { podAffinity: rule } }))).toEqual(['flexible']);
  expect(where(pendingPod('db', { affinity: { podAffinity: rule } }))).toEqual(['none']);
  run({ b: 2 });
  expect(where(labelled({ affinity: { podAffinity: rule } }))).toEqual(['b']);
  run({ a: 1, c: 1 });
  expect(where(labelled({ affinity: { podAntiAffinity: rule } }))).toEqual(['b']);
});

test('a selector that cannot be read narrows nothing', () => {
  const labelSelector = { matchExpressions: [{ key: 'a', operator: 'Nearly' as 'In' }] };
  const rule = { requiredDuringSchedulingIgnoredDuringExecution: [{ ...term, labelSelector }] };
  expect(where(labelled({ affinity: { podAffinity: rule } }))).toEqual(['flexible']);
});
