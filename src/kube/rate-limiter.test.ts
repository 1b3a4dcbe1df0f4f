// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { VirtualClock } from '../base/clock.ts';
import { TokenBucket } from './rate-limiter.ts';

describe('TokenBucket', () => {
  test('lets a burst through at once, then its rate', async () => {
    const clock = new VirtualClock();
    const bucket = new TokenBucket({ qps: 10, burst: 3, clock });
    const times: number[] = [];
    for (let i = 0; i < 6; i++) void bucket.take().then(() => times.push(clock.monotonic()));
    await clock.step(1000);
    expect(times).toEqual([0, 0, 0, 100, 200, 300]);
  });

  test('fills up while nobody asks, but not beyond its burst', async () => {
    const clock = new VirtualClock();
    const bucket = new TokenBucket({ qps: 10, burst: 2, clock });
    expect([bucket.tryTake(), bucket.tryTake(), bucket.tryTake()]).toEqual([true, true, false]);
    await clock.step(10_000);
    expect([bucket.tryTake(), bucket.tryTake(), bucket.tryTake()]).toEqual([true, true, false]);
  });

  test('serves in order, also against those who only try', async () => {
    const clock = new VirtualClock();
    const bucket = new TokenBucket({ qps: 1, burst: 1, clock });
    const order: string[] = [];
    for (const name of ['a', 'b', 'c']) void bucket.take().then(() => order.push(name));
    await clock.step(1000);
    expect(order).toEqual(['a', 'b']);
    expect(bucket.tryTake()).toBe(false);
    expect(bucket.waiting).toBe(1);
    await clock.step(1000);
    expect(order).toEqual(['a', 'b', 'c']);
  });

  test('a token that is there already belongs to who waits, not to who comes by', async () => {
    const clock = new VirtualClock();
    const bucket = new TokenBucket({ qps: 0.7, burst: 1, clock });
    await bucket.take();
    let served = false;
    void bucket.take().then(() => (served = true));
    // The token comes after 1428.6 ms, the timer for it fires at 1429.
    await clock.step(1428.8);
    expect([served, bucket.tryTake()]).toEqual([false, false]);
    await clock.step(1);
    expect(served).toBe(true);
  });

  test('a waiter that gives up takes no token', async () => {
    const clock = new VirtualClock();
    const bucket = new TokenBucket({ qps: 1, burst: 1, clock });
    await bucket.take();
    const stop = new AbortController();
    const given = bucket.take(stop.signal);
    const served: number[] = [];
    void bucket.take().then(() => served.push(clock.monotonic()));
    stop.abort(new Error('enough'));
    await expect(given).rejects.toThrow('enough');
    await clock.step(5000);
    expect(served).toEqual([1000]);
    await expect(bucket.take(stop.signal)).rejects.toThrow('enough');
    expect(clock.nextDue()).toBeUndefined();
  });

  test('refuses rates that make no sense', () => {
    const clock = new VirtualClock();
    expect(() => new TokenBucket({ qps: 0, burst: 1, clock })).toThrow(RangeError);
    expect(() => new TokenBucket({ qps: Number.NaN, burst: 1, clock })).toThrow(RangeError);
    expect(() => new TokenBucket({ qps: 1, burst: 0, clock })).toThrow(RangeError);
  });

  test('never gives more than burst + rate × time, and keeps nobody waiting for ever', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 5000 }).map((n) => n / 7),
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 1, max: 60 }),
        async (qps, burst, takers) => {
          const clock = new VirtualClock();
          const bucket = new TokenBucket({ qps, burst, clock });
          const times: number[] = [];
          for (let i = 0; i < takers; i++) void bucket.take().then(() => times.push(clock.monotonic()));
          await clock.step((takers / qps) * 1000 + takers * 2);
          expect(times.length).toBe(takers);
          times.forEach((time, i) => expect(i + 1).toBeLessThanOrEqual(burst + (time / 1000) * qps + 1e-6));
        },
      ),
      { numRuns: 50 },
    );
  });
});
