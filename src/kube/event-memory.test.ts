// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { VirtualClock } from '../base/clock.ts';
import { EventMemory, type Telling } from './event-memory.ts';

const minute = 60_000;
const says = (message: string, more: Partial<Telling> = {}): Telling => ({
  reason: 'DisruptionBlocked',
  values: ['u1'],
  message,
  dedupeMs: 2 * minute,
  repeatMs: 30 * minute,
  ...more,
});

test('the same words wait longer than others', async () => {
  const clock = new VirtualClock();
  const memory = new EventMemory(clock, 100);
  expect(memory.isNews(says('pod a'))).toBe(true);
  await clock.step(minute);
  expect(memory.isNews(says('pod b'))).toBe(false);
  await clock.step(minute);
  expect(memory.isNews(says('pod a'))).toBe(false);
  expect(memory.isNews(says('pod b'))).toBe(true);
  await clock.step(2 * minute);
  // To and fro is no news.
  expect([memory.isNews(says('pod a')), memory.isNews(says('pod b'))]).toEqual([false, false]);
  await clock.step(26 * minute);
  expect(memory.isNews(says('pod b'))).toBe(false);
  expect(memory.isNews(says('pod a'))).toBe(true);
});

test('what is blocked for good is told every half an hour', async () => {
  const clock = new VirtualClock();
  const memory = new EventMemory(clock, 100);
  let told = 0;
  for (let passed = 0; passed < 180; passed++) {
    if (memory.isNews(says('pod a'))) told++;
    await clock.step(minute);
  }
  expect(told).toBe(6);
});

test('each object has its own peace', () => {
  const memory = new EventMemory(new VirtualClock(), 100);
  expect(memory.isNews(says('pod a'))).toBe(true);
  expect(memory.isNews(says('pod a', { values: ['u2'] }))).toBe(true);
  expect(memory.isNews(says('pod a', { reason: 'Unconsolidatable' }))).toBe(true);
  expect(memory.isNews(says('pod a', { reason: 'disruptionblocked' }))).toBe(false);
});

test('without a window of its own, words make no difference', async () => {
  const clock = new VirtualClock();
  const memory = new EventMemory(clock, 100);
  const repeated = says('a', { repeatMs: 0 });
  expect([memory.isNews(repeated), memory.isNews(repeated)]).toEqual([true, false]);
  await clock.step(2 * minute);
  expect(memory.isNews(repeated)).toBe(true);
});

test('who never says the same twice is heard every two minutes, and not remembered for ever', async () => {
  const clock = new VirtualClock();
  const memory = new EventMemory(clock, 100);
  for (let i = 0; i < 12; i++) {
    expect(memory.isNews(says(`pod ${i}`))).toBe(true);
    await clock.step(2 * minute);
  }
  expect(memory.isNews(says('pod 11'))).toBe(false);
  expect(memory.isNews(says('pod 0'))).toBe(true);
});

test('of too many, what ran out is forgotten first, then what was told first', async () => {
  const clock = new VirtualClock();
  const memory = new EventMemory(clock, 20);
  for (let i = 0; i < 10; i++) memory.isNews(says('a', { values: [`old ${i}`], repeatMs: 0 }));
  await clock.step(3 * minute);
  for (let i = 0; i < 20; i++) memory.isNews(says('a', { values: [`u${i}`] }));
  expect(memory.isNews(says('a', { values: ['u0'] }))).toBe(false);
  memory.isNews(says('a', { values: ['one more'] }));
  expect(memory.isNews(says('a', { values: ['u19'] }))).toBe(false);
  expect(memory.isNews(says('a', { values: ['u0'] }))).toBe(true);
});
