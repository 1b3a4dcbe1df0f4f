// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { StoreEvent } from '../../embedded/store.ts';
import { collections } from '../collections.ts';
import type { Facts } from '../contract.ts';
import { fieldsKept } from './fields.ts';

const owner = { apiVersion: 'v1', kind: 'Namespace', name: 'default', uid: 'u', blockOwnerDeletion: false };
const ours = { apiVersion: 'karpenter.sh/v1', kind: 'NodePool', name: 'anchor', uid: 'p', blockOwnerDeletion: true };

/** What the judge says when the autoscaler changes the metadata of a Node. */
function judged(before: object, after: object): string[] {
  const said: string[] = [];
  const nodeOf = (metadata: object): object => ({ kind: 'Node', metadata: { name: 'n', ...metadata } });
  const event = { type: 'MODIFIED', object: nodeOf(after), previous: nodeOf(before) } as unknown as StoreEvent;
  const change = { at: 0, by: 'karpenter-1', request: '', collection: collections.nodes, event };
  const report = { violated: (message: string) => said.push(message), checked: () => undefined };
  fieldsKept().onChange!(change, {} as Facts, report);
  return said;
}

test('what others wrote into labels and annotations stays', () => {
  expect(judged({ labels: { 'example.com/a': '1' } }, { labels: { 'example.com/a': '2' } })).toHaveLength(1);
  expect(judged({ annotations: { 'example.com/a': '1' } }, {})).toHaveLength(1);
  expect(judged({ labels: { 'karpenter.sh/nodepool': 'a' } }, { labels: {} })).toEqual([]);
});

test('finalizers of others stay, our own may go', () => {
  const both = ['karpenter.sh/termination', 'example.com/inventory'];
  expect(judged({ finalizers: both }, { finalizers: ['example.com/inventory'] })).toEqual([]);
  expect(judged({ finalizers: both }, { finalizers: ['karpenter.sh/termination'] })).toEqual([
    'finalizer example.com/inventory of Node n was taken away',
  ]);
});

test('owners that others named stay as they are', () => {
  expect(judged({ ownerReferences: [owner, ours] }, { ownerReferences: [owner] })).toEqual([]);
  expect(judged({ ownerReferences: [owner, ours] }, { ownerReferences: [ours] })).toEqual([
    'owner Namespace default of Node n was taken away or changed',
  ]);
  const changed = { ...owner, blockOwnerDeletion: true };
  expect(judged({ ownerReferences: [owner] }, { ownerReferences: [changed] })).toHaveLength(1);
});
