// SPDX-License-Identifier: Apache-2.0
import { beforeEach, describe, expect, test } from 'vitest';
import { VirtualClock } from '../../base/clock.ts';
import { aPod } from '../testing/objects.ts';
import type { FilterName } from './filter.ts';
import { type PodInfo, podInfo } from './pod-info.ts';
import { SchedulingQueue } from './scheduling-queue.ts';

let clock: VirtualClock;
let queue: SchedulingQueue;
let woken: number;
beforeEach(() => {
  clock = new VirtualClock();
  woken = 0;
  queue = new SchedulingQueue(clock, () => woken++);
});

const info = (name: string, priority = 0): PodInfo => podInfo(aPod(name, { spec: { priority } }));
const add = (...pods: PodInfo[]): void => {
  for (const pod of pods) queue.put(pod, false);
};
/** Takes the next pod and fails it, because of the filters given. */
const fail = (...filters: FilterName[]): string | undefined => {
  const pod = queue.pop();
  if (pod) queue.failed(pod.uid, new Set(filters), queue.moves);
  return pod?.name;
};

describe('the scheduling queue', () => {
  test('gives out the most important first, then the one that came first', () => {
    add(info('a'), info('b'), info('urgent', 10));
    expect([queue.pop()?.name, queue.pop()?.name, queue.pop()?.name, queue.pop()]).toEqual([
      'urgent',
      'a',
      'b',
      undefined,
    ]);
  });

  test('keeps a pod that fits nowhere until a change that concerns its filters', async () => {
    add(info('a'));
    fail('NodeResourcesFit');
    await clock.step(60_000);
    queue.move(['NodePorts']);
    expect(queue.pop()).toBeUndefined();
    queue.move(['NodeResourcesFit']);
    expect(queue.pop()?.name).toBe('a');
  });

  test('asks whether a change is worth another try', async () => {
    add(info('a'), info('b'));
    fail('NodeResourcesFit');
    fail('NodeResourcesFit');
    await clock.step(60_000);
    queue.moveAll((pod) => pod.name === 'b');
    expect([queue.pop()?.name, queue.pop()]).toEqual(['b', undefined]);
  });

  test('backs off longer with every failure, up to ten seconds', async () => {
    add(info('a'));
    const waits: number[] = [];
    for (let attempt = 0; attempt < 6; attempt++) {
      fail('NodeResourcesFit');
      queue.move(['NodeResourcesFit']);
      const before = clock.now();
      while (queue.readyCount === 0) await clock.step(clock.nextDue()! - clock.now());
      waits.push(clock.now() - before);
    }
    expect(waits).toEqual([1000, 2000, 4000, 8000, 10_000, 10_000]);
  });

  test('does not lose a change that happened while the pod was being tried', async () => {
    add(info('a'));
    const before = queue.moves;
    const pod = queue.pop()!;
    queue.move(['NodeResourcesFit']);
    queue.failed(pod.uid, new Set(['NodeResourcesFit']), before);
    await clock.step(1000);
    expect(queue.pop()?.name).toBe('a');
  });

  test('tries again after five minutes whatever happens', async () => {
    add(info('a'));
    fail('NodeResourcesFit');
    await clock.step(299_000);
    expect(queue.readyCount).toBe(0);
    await clock.step(1000);
    expect(queue.readyCount).toBe(1);
  });

  test('tries a changed pod again, forgets one that is removed, and leaves no timer behind', async () => {
    add(info('a'), info('b'));
    fail('NodeAffinity');
    queue.put(info('a', 5), true);
    await clock.step(1000);
    expect(queue.pop()?.priority).toBe(5);
    queue.remove('default-b');
    expect(queue.pop()).toBeUndefined();
    queue.failed('default-a', new Set(['NodeAffinity']), queue.moves);
    queue.close();
    expect([queue.size, clock.pendingTimers]).toEqual([0, 0]);
    expect(woken).toBe(3);
  });
});
