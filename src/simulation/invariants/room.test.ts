// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { StoreEvent } from '../../embedded/store.ts';
import { formatTime } from '../../kube/time.ts';
import { collections } from '../collections.ts';
import type { Facts } from '../contract.ts';
import { roomForAll } from './room.ts';

const hour = 3_600_000;

interface Story {
  /** CPUs of the pods that the machine is bought for, and of each daemon. */
  readonly pods: readonly string[];
  readonly daemons: readonly string[];
  /** How long the daemons have been there when it is bought. */
  readonly daemonsMs?: number;
  /** Whether something was broken all that time. */
  readonly isBroken?: boolean;
  /** From the purchase until the pods are told. */
  readonly toldMs?: number;
}

const asking = (cpu: string) => ({ containers: [{ resources: { requests: { cpu } } }] });

/** What the judge says of a machine with four CPUs. */
function judged({ pods, daemons, daemonsMs = hour, isBroken = false, toldMs = 20 }: Story): string[] {
  const judge = roomForAll();
  const said: string[] = [];
  const creationTimestamp = formatTime(2 * hour - daemonsMs);
  const facts = {
    get: (_: string, __: string, name: string) => ({
      metadata: { name, uid: name },
      spec: asking(pods[Number(name)]!),
    }),
    list: () =>
      daemons.map((cpu, i) => ({
        metadata: { uid: `daemon-${i}`, creationTimestamp },
        spec: { template: { spec: asking(cpu) } },
      })),
    now: 2 * hour - 1000,
    calmSince: isBroken ? undefined : hour,
  } as unknown as Facts;
  judge.onMinute!(facts, { violated: (message) => said.push(message), checked: () => undefined });
  const told = (at: number, collection: string, type: StoreEvent['type'], object: object): void =>
    judge.onChange!({ at, by: 'karpenter-1', request: '', collection, event: { type, object } as StoreEvent }, facts, {
      violated: (message) => said.push(message),
      checked: () => undefined,
    });
  const claim = { metadata: { name: 'claim' } };
  told(2 * hour, collections.claims, 'ADDED', claim);
  for (const i of pods.keys()) {
    const involvedObject = { namespace: 'default', name: String(i), uid: String(i) };
    const message = 'Pod should schedule on: nodeclaim/claim';
    const event = { reason: 'Nominated', message, involvedObject };
    // Whoever says it twice means it once.
    for (const _ of [1, 2]) told(2 * hour + toldMs, collections.events, 'ADDED', event);
  }
  const launched = { ...claim, status: { allocatable: { cpu: '4', memory: '8Gi' } } };
  told(2 * hour + 10_000, collections.claims, 'MODIFIED', launched);
  return said;
}

test('a machine has room for the pods it was bought for and for the daemons', () => {
  expect(judged({ pods: ['2', '1500m'], daemons: ['500m'] })).toEqual([]);
  expect(judged({ pods: ['2', '1500m'], daemons: ['500m', '100m'] })).toEqual([
    'NodeClaim claim got 4 cpu, and its 2 pods and daemons ask for 4.1',
  ]);
});

test('daemons that could not be seen, and pods that were told later, do not count', () => {
  expect(judged({ pods: ['3900m'], daemons: ['1'], daemonsMs: 10_000 })).toEqual([]);
  expect(judged({ pods: ['3900m'], daemons: ['1'], toldMs: 8000 })).toEqual([]);
});

test('a DaemonSet that came while the API was away may not have been seen for a quarter of an hour', () => {
  const story = { pods: ['3900m'], daemons: ['1'], isBroken: true };
  expect(judged({ ...story, daemonsMs: 7 * 60_000 })).toEqual([]);
  expect(judged({ ...story, daemonsMs: 16 * 60_000 })).toHaveLength(1);
  expect(judged({ ...story, daemonsMs: 7 * 60_000, isBroken: false })).toHaveLength(1);
});
