// SPDX-License-Identifier: Apache-2.0
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { worldArgv } from './world-flags.ts';

test('V8 knows the flags of processes that simulate, and those of their parent stay', () => {
  expect(worldArgv(['--no-warnings'])[0]).toBe('--no-warnings');
  // Fails for a flag that it does not know.
  expect(execFileSync(process.execPath, [...worldArgv([]), '-p', '1 + 1'], { encoding: 'utf8' })).toBe('2\n');
});
