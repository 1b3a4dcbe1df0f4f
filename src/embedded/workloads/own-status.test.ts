// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { VirtualClock } from '../../base/clock.ts';
import type { ReplicaSet } from '../../kube/kinds.ts';
import { OwnStatus, sooner } from './own-status.ts';

interface Handler {
  deleted(object: ReplicaSet): void;
}

function set(replicas: number, ready: number, labels: Record<string, string> = {}): ReplicaSet {
  return {
    metadata: { name: 'web', uid: 'u', resourceVersion: String(ready), labels },
    spec: { replicas, selector: {}, template: {} },
    status: { replicas, readyReplicas: ready },
  } as unknown as ReplicaSet;
}

test('only a change to what was written itself is an echo', () => {
  let goes: ((object: ReplicaSet) => void) | undefined;
  const source = { addHandler: (handler: Handler) => (goes = (object) => handler.deleted(object)) };
  const own = new OwnStatus<ReplicaSet>(source, { clock: new VirtualClock() });
  expect(own.isEcho(set(2, 1), set(2, 0))).toBe(false);
  own.note(set(2, 0), { replicas: 2, readyReplicas: 1 });
  expect(own.isEcho(set(2, 1), set(2, 0))).toBe(true);
  expect(own.isEcho(set(2, 1), undefined)).toBe(false);
  // Somebody else's status, another size, other labels.
  expect(own.isEcho(set(2, 2), set(2, 0))).toBe(false);
  expect(own.isEcho(set(3, 1), set(2, 0))).toBe(false);
  expect(own.isEcho(set(2, 1, { a: 'b' }), set(2, 0))).toBe(false);
  goes?.(set(2, 1));
  expect(own.isEcho(set(2, 1), set(2, 0))).toBe(false);
});

test('a lean control plane writes the status of a set again after five seconds, and that of another at once', async () => {
  const clock = new VirtualClock();
  const source = { addHandler: (): void => undefined };
  const [lean, usual] = [
    new OwnStatus<ReplicaSet>(source, { clock, lean: true }),
    new OwnStatus<ReplicaSet>(source, { clock }),
  ];
  expect(lean.waitMs(set(2, 0))).toBe(0);
  for (const own of [lean, usual]) own.note(set(2, 0), { replicas: 2, readyReplicas: 1 });
  await clock.step(1500);
  expect(lean.waitMs(set(2, 1))).toBe(3500);
  expect(usual.waitMs(set(2, 1))).toBe(0);
  const other = set(2, 1);
  expect(lean.waitMs({ ...other, metadata: { ...other.metadata, uid: 'another' } })).toBe(0);
  await clock.step(3500);
  expect(lean.waitMs(set(2, 1))).toBe(0);
});

test('of two waits the shorter counts', () => {
  expect(sooner(undefined, 0)).toBeUndefined();
  expect(sooner({ requeueAfterMs: 10 }, 0)).toEqual({ requeueAfterMs: 10 });
  expect(sooner(undefined, 20)).toEqual({ requeueAfterMs: 20 });
  expect(sooner({ requeueAfterMs: 10 }, 20)).toEqual({ requeueAfterMs: 10 });
  expect(sooner({ requeueAfterMs: 30 }, 20)).toEqual({ requeueAfterMs: 20 });
});
