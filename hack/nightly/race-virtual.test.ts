// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { scenarios } from './race-scenarios.ts';
import { raceOnVirtualTime } from './race-virtual.ts';

// Upstream in its runs on a real control plane: 1.20 to 1.70 $, 43 to 93 evictions, 4.6 to 17.2 $/h at the end of the settling.
test('the guarded race is cheap and moves few pods', async () => {
  const { dollars, evictions, steps } = await raceOnVirtualTime(scenarios['guarded']!, { seed: 1 });
  const settled = steps.find(({ name }) => name === '100 pods')!;
  // What is left has pods that must not be disrupted, on machines that are small for it.
  expect(dollars).toBeLessThan(0.9);
  // Upstream moves 32 at least, and pays more than twice as much in the end.
  expect(evictions).toBeLessThan(32);
  expect(settled.dollarsPerHour).toBeLessThan(7);
  expect(settled.stableSeconds).toBeLessThan(120);
}, 300_000);

test('few pods are moved where protected ones hold large nodes beside small ones', async () => {
  const { dollars, evictions, steps } = await raceOnVirtualTime(scenarios['guarded-late']!, { seed: 2 });
  const settled = steps.find(({ name }) => name === '100 pods')!;
  // Small nodes that save little wait until they are ten minutes old, which the race does not.
  expect(dollars).toBeLessThan(1);
  expect(evictions).toBeLessThan(20);
  expect(settled.dollarsPerHour).toBeLessThan(11);
}, 300_000);

test('a minute after the scale-down the plain race is near the bound', async () => {
  const { steps, evictions } = await raceOnVirtualTime(scenarios['up-and-down']!, { seed: 1 });
  const later = steps.find(({ name }) => name === '100 pods')!.minuteLater!;
  // What 25 pods of each shape request at the cheapest rate: 25 m$ for a CPU, 1 m$ for a GB.
  const bound = 25 * (2.75 * 0.025 + (7.5 * 0.001 * 2 ** 30) / 1e9);
  expect(later.dollarsPerHour / bound).toBeLessThan(1.15);
  expect(evictions).toBeLessThan(120);
}, 300_000);
