// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { commandTimeoutMs } from './command-timeout.ts';

test('a command has ten minutes, more while many machines are on their way, and an hour at most', () => {
  expect([1, 7_500, 15_000, 100_000].map((machines) => commandTimeoutMs(machines) / 60_000)).toEqual([10, 10, 20, 60]);
});
