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

test('a node that is gone was to be empty by then: the last of its pods are deleted without asking', () => {
  const judge = podsMovedGently();
  const said: string[] = [];
  const report = { violated: (message: string) => said.push(message), checked: () => undefined };
  const tell = (collection: string, event: object, at: number, request = ''): void =>
    judge.onChange!(
      { at, by: 'karpenter-1', request, collection, event: event as StoreEvent },
      { get: () => undefined, now: at, calmSince: 0 } as unknown as Facts,
      report,
    );
  const annotations = { 'karpenter.sh/nodeclaim-termination-timestamp': formatTime(now) };
  const claim = { metadata: { annotations }, status: { providerID: 'fake://1' } };
  tell(collections.claims, { type: 'MODIFIED', object: claim }, now - minute);
  const node = { metadata: { name: 'node' }, spec: { providerID: 'fake://1' } };
  tell(collections.nodes, { type: 'DELETED', object: node }, now + 1000);
  const end = (nodeName: string): void => {
    const metadata = { namespace: 'default', name: 'web', annotations: { 'karpenter.sh/do-not-disrupt': 'true' } };
    const previous = { metadata, spec: { nodeName }, status: { phase: 'Running' } };
    const going = { deletionTimestamp: formatTime(now), deletionGracePeriodSeconds: 0 };
    const object = { ...previous, metadata: { ...metadata, ...going } };
    const request = 'DELETE /api/v1/namespaces/default/pods/web';
    tell(collections.pods, { type: 'MODIFIED', previous, object }, now + 1100, request);
  };
  end('node');
  expect(said).toEqual([]);
  end('another');
  expect(said).not.toEqual([]);
});
