// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { KeyedLock } from './shared-call.ts';

test('work on the same key is done one after the other, also what comes when the first is done', async () => {
  const lock = new KeyedLock();
  const log: string[] = [];
  const ends = new Map<string, () => void>();
  const hold = (name: string): Promise<void> =>
    lock.hold('key', async () => {
      log.push(`${name} begins`);
      await new Promise<void>((resolve) => ends.set(name, resolve));
      log.push(`${name} ends`);
    });
  const first = hold('first');
  const second = hold('second');
  await Promise.resolve();
  ends.get('first')!();
  await first;
  const third = hold('third');
  await new Promise((resolve) => setImmediate(resolve));
  expect(log).toEqual(['first begins', 'first ends', 'second begins']);
  ends.get('second')!();
  await second;
  await new Promise((resolve) => setImmediate(resolve));
  ends.get('third')!();
  await third;
  expect(log.slice(3)).toEqual(['second ends', 'third begins', 'third ends']);
});
