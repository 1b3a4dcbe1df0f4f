// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { VirtualClock } from '../base/clock.ts';
import {
  BucketLimiter,
  defaultLimiter,
  ExponentialBackoff,
  linearScaleReconciles,
  reasonableLimiter,
  scaledBucket,
} from './rate-limiters.ts';

test('a backoff doubles up to its limit, for each key on its own', () => {
  const limiter = new ExponentialBackoff<string>(100, 1000);
  expect([1, 2, 3, 4, 5].map(() => limiter.when('a'))).toEqual([100, 200, 400, 800, 1000]);
  expect(limiter.when('b')).toBe(100);
  for (let i = 0; i < 2000; i++) limiter.when('a');
  expect(limiter.when('a')).toBe(1000);
  limiter.forget('a');
  expect(limiter.when('a')).toBe(100);
});

test('a bucket lets a burst through, then makes each wait behind the one before', async () => {
  const clock = new VirtualClock();
  const bucket = new BucketLimiter<string>(clock, 2, 3);
  expect([1, 2, 3, 4, 5].map(() => bucket.when())).toEqual([0, 0, 0, 500, 1000]);
  await clock.step(1000);
  expect(bucket.when()).toBe(500);
  await clock.step(1_000_000);
  expect([1, 2, 3, 4].map(() => bucket.when())).toEqual([0, 0, 0, 500]);
});

test('the standard limiters have the numbers of upstream', () => {
  expect(defaultLimiter().when('a')).toBe(5);
  const reasonable = reasonableLimiter<number>(new VirtualClock());
  const waits = Array.from({ length: 101 }, (_, i) => reasonable.when(i));
  expect(waits.slice(0, 100)).toEqual(Array(100).fill(100));
  expect(waits[100]).toBe(100);
  expect(reasonable.when(1000)).toBeCloseTo(200);
});

describe('concurrency', () => {
  test.each([
    [500, 10],
    [1000, 10],
    [1500, 26],
    [15_000, 244],
    [60_000, 1000],
    [100_000, 1000],
  ])('on %i millicores is %i', (millicores, expected) => {
    expect(linearScaleReconciles(millicores, 10, 1000)).toBe(expected);
  });

  test.each([
    [10, 10, 10, 10],
    [10, 10, 20, 20],
    [10, 100, 100, 10],
    [10, 100, 200, 20],
    [25, 100, 150, 38],
  ])('of %i a second for %i reconciles gives %i of them a bucket of %i', (minQps, minReconciles, concurrent, qps) => {
    expect(scaledBucket(minQps, minReconciles, concurrent)).toEqual({ qps, burst: qps * 10 });
  });
});
