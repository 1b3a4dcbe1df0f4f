// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { VirtualClock } from '../../base/clock.ts';
import { Batcher } from './batcher.ts';

function setUp(isMoreComing = () => false) {
  const clock = new VirtualClock();
  const batcher = new Batcher({ clock, idleMs: 1000, maxMs: 10_000, isMoreComing });
  const abort = new AbortController();
  let outcome: boolean | undefined;
  let endedAt: number | undefined;
  const wait = (): void => {
    outcome = undefined;
    const from = clock.monotonic();
    void batcher.wait(abort.signal).then((triggered) => {
      outcome = triggered;
      endedAt = clock.monotonic() - from;
    });
  };
  return { clock, batcher, abort, wait, outcome: () => outcome, endedAt: () => endedAt };
}

describe('a window', () => {
  test('does not open when nothing is triggered within a second', async () => {
    const { clock, wait, outcome } = setUp();
    wait();
    await clock.step(999);
    expect(outcome()).toBeUndefined();
    await clock.step(1);
    expect(outcome()).toBe(false);
    expect(clock.pendingTimers).toBe(0);
  });

  test('ends when nothing new came for the idle time', async () => {
    const { clock, batcher, wait, outcome, endedAt } = setUp();
    wait();
    await clock.step(500);
    batcher.trigger('a');
    await clock.step(900);
    batcher.trigger('b');
    await clock.step(5000);
    expect(outcome()).toBe(true);
    expect(endedAt()).toBe(2400);
  });

  test('is not lengthened by what it holds already', async () => {
    const { clock, batcher, wait, endedAt } = setUp();
    batcher.trigger('a');
    wait();
    await clock.step(900);
    batcher.trigger('a');
    await clock.step(5000);
    expect(endedAt()).toBe(1000);
  });

  test('is opened but not lengthened by what an earlier one held: pods that wait are told again and again', async () => {
    const { clock, batcher, wait, outcome, endedAt } = setUp();
    const pods = Array.from({ length: 20 }, (_, i) => `pod-${i}`);
    wait();
    for (const pod of pods) {
      batcher.trigger(pod);
      await clock.step(500);
    }
    await clock.step(5000);
    expect(endedAt()).toBe(10_000);
    wait();
    for (const pod of pods) {
      batcher.trigger(pod);
      await clock.step(500);
    }
    expect(outcome()).toBe(true);
    expect(endedAt()).toBe(1000);
  });

  test('is lengthened by what nobody told for a long time', async () => {
    const { clock, batcher, wait, endedAt } = setUp();
    batcher.trigger('old');
    wait();
    await clock.step(60_000);
    batcher.trigger('a');
    wait();
    await clock.step(900);
    batcher.trigger('old');
    await clock.step(5000);
    expect(endedAt()).toBe(1900);
  });

  test('ends at the latest after the longest time, however much comes', async () => {
    const { clock, batcher, wait, outcome, endedAt } = setUp();
    batcher.trigger('first');
    wait();
    for (let i = 0; outcome() === undefined && i < 100; i++) {
      await clock.step(300);
      batcher.trigger(`pod-${i}`);
    }
    expect(endedAt()).toBe(10_000);
  });

  test('stays open while more is about to come, but not longer than the longest time', async () => {
    let more = true;
    const { clock, batcher, wait, outcome, endedAt } = setUp(() => more);
    batcher.trigger('a');
    wait();
    await clock.step(3500);
    expect(outcome()).toBeUndefined();
    more = false;
    await clock.step(5000);
    expect(endedAt()).toBe(4000);
    more = true;
    batcher.trigger('b');
    wait();
    await clock.step(60_000);
    expect(endedAt()).toBe(10_000);
  });

  test('opens at once for what was triggered since the last one', async () => {
    const { clock, batcher, wait, endedAt } = setUp();
    batcher.trigger('a');
    wait();
    await clock.step(1000);
    batcher.trigger('a');
    await clock.step(60_000);
    wait();
    await clock.step(1000);
    expect(endedAt()).toBe(1000);
  });

  test('forgets what it held: the same element opens the next one', async () => {
    const { clock, batcher, wait, outcome } = setUp();
    batcher.trigger('a');
    wait();
    await clock.step(1000);
    wait();
    await clock.step(500);
    batcher.trigger('a');
    await clock.step(1000);
    expect(outcome()).toBe(true);
  });

  test('ends with its signal, and leaves no timer behind', async () => {
    const { clock, batcher, abort, wait, outcome } = setUp();
    wait();
    batcher.trigger('a');
    await clock.step(100);
    abort.abort(new Error('stop'));
    await clock.step(0);
    expect(outcome()).toBe(true);
    expect(clock.pendingTimers).toBe(0);
    wait();
    await clock.step(0);
    expect(outcome()).toBe(false);
  });
});

test('tells whoever serves it of triggers, once for each element of a window', async () => {
  const { clock, batcher, wait } = setUp();
  let told = 0;
  batcher.onTrigger(() => told++);
  expect(batcher.isTriggered).toBe(false);
  batcher.trigger('a');
  batcher.trigger('a');
  batcher.trigger('b');
  expect(told).toBe(2);
  expect(batcher.isTriggered).toBe(true);
  wait();
  await clock.step(1000);
  expect(batcher.isTriggered).toBe(false);
});
