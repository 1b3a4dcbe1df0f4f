// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { StoreEvent } from '../../embedded/store.ts';
import { collections } from '../collections.ts';
import type { Facts } from '../contract.ts';
import type { Fleet } from '../process/fleet.ts';
import { keptForPods } from './nominations.ts';

const now = 10 * 60_000;
const resources = { requests: { cpu: '1' } };
const waiting = { metadata: { name: 'web', namespace: 'default', uid: 'pod' }, spec: { containers: [{ resources }] } };
const status = {
  conditions: [{ type: 'Ready', status: 'True' }],
  allocatable: { cpu: '4', memory: '8Gi', pods: '110' },
};
const ready = { metadata: { name: 'node' }, spec: { providerID: 'cloud://a' }, status };
const claim = { metadata: { name: 'claim', uid: 'uid' }, status: { providerID: 'cloud://a' } };
const empty = { type: 'DisruptionReason', status: 'True', reason: 'Empty' };

interface Story {
  readonly pod?: object;
  readonly node?: object;
  /** Who told the pod where to go. */
  readonly by?: string;
  readonly resumedAt?: number;
  /** Where it was told to go later. */
  readonly later?: string;
}

/** What the judge says when a node goes as empty that a pod was told to wait for. */
function judged({ pod = waiting, node = ready, by = 'karpenter-1', resumedAt = 0, later }: Story): string[] {
  const clock = { skewMs: 0, correctedAt: Number.NEGATIVE_INFINITY };
  const fleet = { alive: [{ name: 'karpenter-1', isHung: false, resumedAt, clock }] } as unknown as Fleet;
  const judge = keptForPods({ fleet });
  const said: string[] = [];
  const facts = {
    now,
    list: (of: string) => (of === collections.pods ? [pod] : of === collections.nodes ? [node] : [claim]),
    podsOn: () => [],
  } as unknown as Facts;
  const told = (who: string, collection: string, type: StoreEvent['type'], object: object, previous?: object): void =>
    judge.onChange!(
      { at: now, by: who, request: '', collection, event: { type, object, previous } as StoreEvent },
      facts,
      { violated: (message) => said.push(message), checked: () => undefined },
    );
  for (const place of ['nodeclaim/claim', ...(later === undefined ? [] : [later])]) {
    const message = `Pod should schedule on: ${place}`;
    told(by, collections.events, 'ADDED', { reason: 'Nominated', message, involvedObject: { uid: 'pod' } });
  }
  if ('nodeName' in (pod as typeof waiting).spec) told('cluster', collections.pods, 'MODIFIED', pod);
  const marked = { ...claim, status: { ...claim.status, conditions: [empty] } };
  told('karpenter-1', collections.claims, 'MODIFIED', marked, claim);
  return said;
}

test('a node does not go as empty while a pod waits that was told to go there', () => {
  expect(judged({})).toEqual(['NodeClaim claim goes (Empty), and default/web was told to wait for it']);
});

test('a pod that runs, or could not run there, keeps no node', () => {
  expect(judged({ pod: { ...waiting, spec: { ...waiting.spec, nodeName: 'other' } } })).toEqual([]);
  const large = { containers: [{ resources: { requests: { cpu: '5' } } }] };
  expect(judged({ pod: { ...waiting, spec: large } })).toEqual([]);
  const taints = [{ key: 'example.com/mine', effect: 'NoSchedule' }];
  expect(judged({ node: { ...ready, spec: { ...ready.spec, taints } } })).toEqual([]);
  expect(judged({ node: { ...ready, spec: { ...ready.spec, unschedulable: true } } })).toEqual([]);
});

test('a process answers for what it said itself, and not right after it hung', () => {
  expect(judged({ by: 'karpenter-0' })).toEqual([]);
  expect(judged({ resumedAt: now - 1000 })).toEqual([]);
});

test('a pod that was planned onto a node that is there keeps only that, if it was made for it', () => {
  expect(judged({ later: 'nodeclaim/other, node/other' })).toEqual([]);
  expect(judged({ later: 'nodeclaim/claim, node/node' })).toHaveLength(1);
});
