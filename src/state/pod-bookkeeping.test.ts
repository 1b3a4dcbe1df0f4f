// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { VirtualClock } from '../base/clock.ts';
import { PodBookkeeping } from './pod-bookkeeping.ts';

const start = Date.UTC(2026, 0, 1);

function setUp() {
  const clock = new VirtualClock(start);
  return { clock, book: new PodBookkeeping(clock) };
}

test('only the first notice of a pod counts', async () => {
  const { clock, book } = setUp();
  book.acknowledge('web');
  await clock.step(1000);
  book.acknowledge('web');
  expect(book.of('web')).toEqual({ acknowledged: start });
});

test('the first decision tells how long the pod had waited for it', async () => {
  const { clock, book } = setUp();
  book.acknowledge('web');
  await clock.step(1500);
  expect(book.decide({ failed: ['web'], placed: [] })).toEqual([1500]);
  await clock.step(1000);
  expect(book.decide({ failed: [], placed: [{ uid: 'web', healthyPool: true }] })).toEqual([]);
});

test('a pod is schedulable from the first pass that placed it, until one fails', async () => {
  const { clock, book } = setUp();
  const placed = { failed: [], placed: [{ uid: 'web', healthyPool: false }] };
  book.decide(placed);
  await clock.step(1000);
  book.decide(placed);
  expect(book.of('web')).toEqual({ attempted: start, schedulable: start });
  book.decide({ failed: ['web'], placed: [] });
  expect(book.of('web')).toEqual({ attempted: start });
  await clock.step(1000);
  book.decide({ failed: [], placed: [{ uid: 'web', healthyPool: true }] });
  expect(book.of('web')).toMatchObject({ schedulable: start + 2000, schedulableOnHealthyPool: start + 2000 });
});

test('remembers the NodeClaim of a pod, and forgets the pod when it is gone', () => {
  const { book } = setUp();
  book.assign('web', 'default-abcde');
  expect(book.of('web')).toEqual({ nodeClaim: 'default-abcde' });
  book.forget('web');
  expect(book.size).toBe(0);
});
