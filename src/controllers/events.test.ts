// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { VirtualClock } from '../base/clock.ts';
import { pod } from '../state/testing/objects.ts';
import { conditionEvent, eventKinds, eventOf, nominationLimiter } from './events.ts';

test('reasons are single words in CamelCase, as alerts expect them', () => {
  for (const { reason } of Object.values(eventKinds)) expect(reason).toMatch(/^([A-Z][a-z]+)+$/);
});

test('the same kind of event about the same object is one event, whatever it says', () => {
  const first = eventOf(eventKinds.failedScheduling, pod('web'), 'no room');
  const second = eventOf(eventKinds.failedScheduling, pod('web'), 'still no room');
  expect(first).toMatchObject({ reason: 'FailedScheduling', type: 'Warning', dedupeMs: 300_000 });
  expect(first.dedupeValues).toEqual(second.dedupeValues);
});

test('the same is not told twice within two minutes, unless its kind says how long', () => {
  expect([eventKinds.nominated.dedupeMs, eventKinds.unconsolidatable.dedupeMs]).toEqual([120_000, 900_000]);
  expect(eventKinds.failedDraining.dedupeMs).toBe(120_000);
});

test('what stands for hours is told again while the cluster still remembers, and not in each window', () => {
  const standing = Object.values(eventKinds).filter(({ dedupeMs, repeatMs }) => repeatMs !== dedupeMs);
  expect(new Set(standing.map(({ reason }) => reason))).toEqual(
    new Set(['DisruptionBlocked', 'Unconsolidatable', 'NodeRepairBlocked', 'DoNotDisruptUntil']),
  );
  for (const { repeatMs } of standing) expect(repeatMs).toBe(1_800_000);
});

test('a change of condition is told under the name of the condition', () => {
  expect(conditionEvent('Launched')).toMatchObject({ reason: 'Launched', type: 'Normal' });
});

test('nominations go out ten at once, then five a second', async () => {
  const clock = new VirtualClock();
  const limiter = nominationLimiter(clock);
  const taken = (): number => Array.from({ length: 100 }, () => limiter.tryTake()).filter(Boolean).length;
  expect(taken()).toBe(10);
  await clock.step(1000);
  expect(taken()).toBe(5);
});
