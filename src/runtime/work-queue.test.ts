// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { settle, VirtualClock } from '../base/clock.ts';
import { Metrics } from './metrics.ts';
import { BucketLimiter, ExponentialBackoff, MaxOfLimiter } from './rate-limiters.ts';
import { WorkQueue } from './work-queue.ts';

function makeQueue(limiter = new ExponentialBackoff<string>(100, 1000)) {
  const clock = new VirtualClock();
  const metrics = new Metrics();
  const queue = new WorkQueue<string>({ name: 'pods', clock, metrics, limiter });
  const takeAll = (): string[] => {
    const keys: string[] = [];
    for (let item = queue.take(); item; item = queue.take()) keys.push(item.key);
    return keys;
  };
  return { clock, metrics, queue, takeAll };
}

describe('a key', () => {
  test('that is added twice is handed out once', () => {
    const { queue, takeAll } = makeQueue();
    queue.add('a');
    queue.add('b');
    queue.add('a');
    expect(takeAll()).toEqual(['a', 'b']);
  });

  test('that is added while being worked on comes back when the work is done, once', () => {
    const { queue, takeAll } = makeQueue();
    queue.add('a');
    queue.take();
    queue.add('a');
    queue.add('a');
    expect(takeAll()).toEqual([]);
    queue.done('a');
    expect(takeAll()).toEqual(['a']);
    queue.done('a');
    expect(takeAll()).toEqual([]);
  });

  test('that is added with a delay comes when its time has come', async () => {
    const { clock, queue, takeAll } = makeQueue();
    queue.addAfter('a', 1000);
    await clock.step(999);
    expect(takeAll()).toEqual([]);
    await clock.step(1);
    expect(takeAll()).toEqual(['a']);
  });

  test('that is delayed twice keeps the earlier time', async () => {
    const { clock, queue, takeAll } = makeQueue();
    queue.addAfter('a', 1000);
    queue.addAfter('a', 100);
    queue.addAfter('a', 5000);
    await clock.step(100);
    expect(takeAll()).toEqual(['a']);
    queue.done('a');
    await clock.step(10_000);
    expect(takeAll()).toEqual([]);
  });

  test('that is delayed and then added at once does not wait', () => {
    const { clock, queue, takeAll } = makeQueue();
    queue.addAfter('a', 1000);
    queue.add('a');
    expect(takeAll()).toEqual(['a']);
    expect(clock.pendingTimers).toBe(0);
  });

  test('that is due while being worked on waits for its worker', async () => {
    const { clock, queue, takeAll } = makeQueue();
    queue.add('a');
    queue.take();
    queue.addAfter('a', 100);
    await clock.step(200);
    expect(takeAll()).toEqual([]);
    queue.done('a');
    expect(takeAll()).toEqual(['a']);
  });

  test('that is delayed while being worked on still waits when the work is done earlier', async () => {
    const { clock, queue, takeAll } = makeQueue();
    queue.add('a');
    queue.take();
    queue.addAfter('a', 100);
    queue.done('a');
    expect(takeAll()).toEqual([]);
    await clock.step(100);
    expect(takeAll()).toEqual(['a']);
  });

  test('that nobody took is not harmed by a stray done', () => {
    const { queue, takeAll } = makeQueue();
    queue.add('a');
    queue.done('a');
    expect(takeAll()).toEqual(['a']);
  });
});

describe('priority', () => {
  test('goes before age, age decides within one priority', () => {
    const { queue, takeAll } = makeQueue();
    queue.add('late', { priority: -100 });
    queue.add('first');
    queue.add('second');
    queue.add('urgent', { priority: 10 });
    expect(takeAll()).toEqual(['urgent', 'first', 'second', 'late']);
  });

  test('of a waiting key only ever rises', () => {
    const { queue, takeAll } = makeQueue();
    queue.add('a');
    queue.add('b');
    queue.add('b', { priority: 1 });
    queue.add('b', { priority: -1 });
    expect(takeAll()).toEqual(['b', 'a']);
  });

  test('of a delayed key counts once it is due', async () => {
    const { clock, queue, takeAll } = makeQueue();
    queue.addAfter('urgent', 50, 5);
    queue.add('a');
    await clock.step(50);
    expect(takeAll()).toEqual(['urgent', 'a']);
  });
});

describe('failures', () => {
  test('of a key double its wait up to the limit, and forgetting starts over', async () => {
    const { clock, queue } = makeQueue();
    const waits: number[] = [];
    for (let i = 0; i < 5; i++) {
      const from = clock.now();
      queue.addRateLimited('a');
      await clock.until(() => queue.length === 1);
      waits.push(clock.now() - from);
      queue.take();
      queue.done('a');
    }
    expect(waits).toEqual([100, 200, 400, 800, 1000]);
    expect(queue.numRequeues('a')).toBe(5);
    queue.forget('a');
    expect(queue.numRequeues('a')).toBe(0);
  });

  test('of many keys are also held back by the bucket over all of them', async () => {
    const clock = new VirtualClock();
    const limiter = new MaxOfLimiter<string>(new ExponentialBackoff(10, 1000), new BucketLimiter(clock, 10, 2));
    expect(['a', 'b', 'c', 'd'].map((key) => limiter.when(key))).toEqual([10, 10, 100, 200]);
    await clock.step(10_000);
    expect(limiter.when('e')).toBe(10);
    expect(limiter.when('a')).toBe(20);
  });

  test('with a delay of their own wait for the shorter of the two', async () => {
    const { clock, queue, takeAll } = makeQueue();
    queue.add('a', { rateLimited: true, afterMs: 30 });
    await clock.step(30);
    expect(takeAll()).toEqual(['a']);
  });
});

describe('a worker', () => {
  test('that waits gets the next key as soon as there is one', async () => {
    const { queue } = makeQueue();
    const next = queue.get();
    queue.add('a');
    expect(await next).toEqual({ key: 'a', priority: 0 });
  });

  test('that waits is sent home at shutdown', async () => {
    const { queue } = makeQueue();
    const next = queue.get();
    await queue.shutDown();
    expect(await next).toBeUndefined();
    expect(await queue.get()).toBeUndefined();
  });
});

describe('shutdown', () => {
  test('drops what waits, and is over when the last worker is done', async () => {
    const { clock, queue, takeAll } = makeQueue();
    queue.add('a');
    queue.take();
    queue.add('a');
    queue.add('b');
    queue.addAfter('c', 1000);
    let over = false;
    const down = queue.shutDown().then(() => (over = true));
    await settle();
    expect(over).toBe(false);
    expect(takeAll()).toEqual([]);
    queue.done('a');
    await down;
    expect(takeAll()).toEqual([]);
    expect(clock.pendingTimers).toBe(0);
    queue.add('d');
    expect(takeAll()).toEqual([]);
  });

  test('with drain hands out what is ready and wanted again, not what is delayed', async () => {
    const { queue, takeAll } = makeQueue();
    queue.add('a');
    queue.take();
    queue.add('a');
    queue.add('b');
    queue.addAfter('c', 1000);
    const down = queue.shutDown({ drain: true });
    expect(takeAll()).toEqual(['b']);
    queue.done('b');
    queue.done('a');
    expect(takeAll()).toEqual(['a']);
    queue.done('a');
    await down;
    expect(await queue.get()).toBeUndefined();
  });
});

test('metrics tell depth, adds, retries, waits and what is unfinished', async () => {
  const { clock, metrics, queue } = makeQueue();
  const labels = { name: 'pods', controller: 'pods' };
  queue.add('a');
  queue.add('a');
  queue.add('b', { priority: 7 });
  queue.addAfter('c', 1000);
  expect(await metrics.value('workqueue_depth', { ...labels, priority: '0' })).toBe(1);
  expect(await metrics.value('workqueue_depth', { ...labels, priority: '7' })).toBe(1);
  expect(await metrics.value('workqueue_adds_total', labels)).toBe(2);
  expect(await metrics.value('workqueue_retries_total', labels)).toBe(1);
  queue.take();
  await clock.step(3000);
  queue.take();
  await clock.step(1000);
  expect(await metrics.value('workqueue_unfinished_work_seconds', labels)).toBe(5);
  expect(await metrics.value('workqueue_longest_running_processor_seconds', labels)).toBe(4);
  queue.done('b');
  expect(await metrics.value('workqueue_work_duration_seconds', labels)).toBe(1);
  expect(await metrics.value('workqueue_queue_duration_seconds', labels)).toBe(2);
  const down = queue.shutDown();
  queue.done('a');
  await down;
  expect(await metrics.value('workqueue_depth', { ...labels, priority: '0' })).toBe(0);
});

test('whatever happens, a key is in one place and never lost (against a simple model)', () => {
  type Step = ['add' | 'later' | 'take' | 'done', number, number];
  const step = fc.tuple(
    fc.constantFrom('add', 'later', 'take', 'done') as fc.Arbitrary<Step[0]>,
    fc.nat(3),
    fc.integer({ min: -1, max: 1 }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { queue } = makeQueue();
      const wanted = new Map<string, number>();
      const delayed = new Map<string, number>();
      const working = new Set<string>();
      for (const [what, number, priority] of steps) {
        const key = `k${number}`;
        if (what === 'add') {
          queue.add(key, { priority });
          wanted.set(key, Math.max(priority, wanted.get(key) ?? -9, delayed.get(key) ?? -9));
          delayed.delete(key);
        } else if (what === 'later') {
          queue.addAfter(key, 1000, priority);
          const target = wanted.has(key) ? wanted : delayed;
          target.set(key, Math.max(priority, target.get(key) ?? -9));
        } else if (what === 'take') {
          const free = [...wanted].filter(([k]) => !working.has(k));
          const item = queue.take();
          expect(item !== undefined).toBe(free.length > 0);
          if (!item) continue;
          expect(item.priority).toBe(wanted.get(item.key));
          expect(item.priority).toBe(Math.max(...free.map(([, p]) => p)));
          expect(working.has(item.key)).toBe(false);
          wanted.delete(item.key);
          working.add(item.key);
        } else if (working.delete(key)) queue.done(key);
        expect([queue.length, queue.delayed, queue.working]).toEqual([
          [...wanted.keys()].filter((k) => !working.has(k)).length,
          delayed.size,
          working.size,
        ]);
      }
    }),
  );
});
