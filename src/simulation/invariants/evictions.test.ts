// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { StoreEvent } from '../../embedded/store.ts';
import { formatTime } from '../../kube/time.ts';
import { collections } from '../collections.ts';
import type { Facts } from '../contract.ts';
import { podsMovedGently } from './evictions.ts';

const minute = 60_000;
const now = 120 * minute;

/** What the judge says of the eviction of a pod that began so long ago and is protected for twenty minutes. */
function judged(ageMs: number, isBroken: boolean): string[] {
  const said: string[] = [];
  const pod = {
    metadata: { namespace: 'default', name: 'web', annotations: { 'karpenter.sh/do-not-disrupt': '20m' } },
    spec: { nodeName: 'node' },
    status: { phase: 'Running', startTime: formatTime(now - ageMs) },
  };
  const going = { deletionTimestamp: formatTime(now + 30_000), deletionGracePeriodSeconds: 30 };
  const object = { ...pod, metadata: { ...pod.metadata, ...going } };
  const facts = { get: () => undefined, now, calmSince: isBroken ? undefined : 0 } as unknown as Facts;
  podsMovedGently().onChange!(
    {
      at: now,
      by: 'karpenter-1',
      request: 'POST /api/v1/namespaces/default/pods/web/eviction',
      collection: collections.pods,
      event: { type: 'MODIFIED', object, previous: pod } as unknown as StoreEvent,
    },
    facts,
    { violated: (message) => said.push(message), checked: () => undefined },
  );
  return said;
}

test('a pod is left alone while it is protected', () => {
  expect(judged(19 * minute, false)).toHaveLength(1);
  expect(judged(20 * minute + 1000, false)).toEqual([]);
});

test('by a clock that is ahead its protection is over sooner, though not by half of it', () => {
  expect(judged(19 * minute, true)).toEqual([]);
  expect(judged(10 * minute, true)).toHaveLength(1);
});
