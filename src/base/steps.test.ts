// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { VirtualClock } from './clock.ts';
import { finish, finishInSlices, type Steps } from './steps.ts';

/** Counts to `count`, and tells each step. */
function* counting(count: number, onStep = (): void => undefined): Steps<number> {
  for (let i = 0; i < count; i++) {
    onStep();
    yield;
  }
  return count;
}

test('steps run to their end at once', () => {
  expect(finish(counting(5))).toBe(5);
});

test('work that is quick does not pause', async () => {
  expect(await finishInSlices(counting(5), new VirtualClock(), 10)).toEqual({ result: 5, paused: false });
});

test('work that takes long lets others have their turn after each slice', async () => {
  const clock = new VirtualClock();
  let [now, turns] = [0, 0];
  clock.monotonic = () => now;
  clock.breathe = async () => void turns++;
  const work = counting(10, () => void (now += 4));
  expect(await finishInSlices(work, clock, 10)).toEqual({ result: 10, paused: true });
  expect(turns).toBe(3);
});
