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

test('only a change to what was written itself is an echo', async () => {
  let goes: ((object: ReplicaSet) => void) | undefined;
  const source = { addHandler: (handler: Handler) => (goes = (object) => handler.deleted(object)) };
  const own = new OwnStatus<ReplicaSet>(source, { clock: new VirtualClock() });
  expect(own.isEcho(set(2, 1), set(2, 0))).toBe(false);
  const put = (): Promise<void> => Promise.resolve();
  await own.write(set(2, 0), { replicas: 2, readyReplicas: 1 }, put);
  expect(own.isEcho(set(2, 1), set(2, 0))).toBe(true);
  expect(own.isEcho(set(2, 1), undefined)).toBe(false);
  // Somebody else's status, another size, other labels.
  expect(own.isEcho(set(2, 2), set(2, 0))).toBe(false);
  expect(own.isEcho(set(3, 1), set(2, 0))).toBe(false);
  expect(own.isEcho(set(2, 1, { a: 'b' }), set(2, 0))).toBe(false);
  goes?.(set(2, 1));
  expect(own.isEcho(set(2, 1), set(2, 0))).toBe(false);
});

test('a lean control plane writes a status that has been wrong for five seconds, and what is urgent at once', async () => {
  const clock = new VirtualClock();
  const source = { addHandler: (): void => undefined };
  const [lean, usual] = [true, false].map((isLean) => new OwnStatus<ReplicaSet>(source, { clock, lean: isLean }));
  let puts = 0;
  const put = (): Promise<number> => Promise.resolve(puts++);
  const write = async (own: OwnStatus<ReplicaSet>, of: ReplicaSet, ready: number, isUrgent?: boolean) => {
    const before = puts;
    const waitMs = await own.write(of, { replicas: 2, readyReplicas: ready }, put, isUrgent);
    return { waitMs, isWritten: puts > before };
  };
  const written = { waitMs: 0, isWritten: true };
  const waits = (waitMs: number) => ({ waitMs, isWritten: false });
  expect(await write(usual!, set(2, 0), 1)).toEqual(written);
  expect(await write(lean!, set(2, 0), 1)).toEqual(waits(5000));
  await clock.step(1500);
  expect(await write(lean!, set(2, 0), 2)).toEqual(waits(3500));
  const other = set(2, 0);
  expect(await write(lean!, { ...other, metadata: { ...other.metadata, uid: 'another' } }, 2)).toEqual(waits(5000));
  await clock.step(3500);
  expect(await write(lean!, set(2, 0), 2)).toEqual(written);
  expect(await write(lean!, set(2, 2), 1)).toEqual(waits(5000));
  expect(await write(lean!, set(2, 2), 1, true)).toEqual(written);
});

test('what came right by itself was never wrong', async () => {
  const clock = new VirtualClock();
  const own = new OwnStatus<ReplicaSet>({ addHandler: () => undefined }, { clock, lean: true });
  const put = (): Promise<void> => Promise.resolve();
  await own.write(set(2, 2), { replicas: 2, readyReplicas: 1 }, put);
  await clock.step(4000);
  expect(await own.write(set(2, 2), { replicas: 2, readyReplicas: 2 }, put)).toBe(0);
  await clock.step(4000);
  expect(await own.write(set(2, 2), { replicas: 2, readyReplicas: 1 }, put)).toBe(5000);
});

test('a status that could not be written is tried again without another wait', async () => {
  const clock = new VirtualClock();
  const own = new OwnStatus<ReplicaSet>({ addHandler: () => undefined }, { clock, lean: true });
  const wanted = { replicas: 2, readyReplicas: 2 };
  await own.write(set(2, 1), wanted, () => Promise.resolve());
  await clock.step(5000);
  await expect(own.write(set(2, 1), wanted, () => Promise.reject(new Error('conflict')))).rejects.toThrow('conflict');
  let puts = 0;
  expect(await own.write(set(2, 1), wanted, () => Promise.resolve(puts++))).toBe(0);
  expect(puts).toBe(1);
});

test('of two waits the shorter counts', () => {
  expect(sooner(undefined, 0)).toBeUndefined();
  expect(sooner({ requeueAfterMs: 10 }, 0)).toEqual({ requeueAfterMs: 10 });
  expect(sooner(undefined, 20)).toEqual({ requeueAfterMs: 20 });
  expect(sooner({ requeueAfterMs: 10 }, 20)).toEqual({ requeueAfterMs: 10 });
  expect(sooner({ requeueAfterMs: 30 }, 20)).toEqual({ requeueAfterMs: 20 });
});
