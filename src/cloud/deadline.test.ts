// SPDX-License-Identifier: Apache-2.0
import { beforeEach, expect, test, vi } from 'vitest';
import { VirtualClock } from '../base/clock.ts';
import { CloudTimeoutError, withDeadline } from './deadline.ts';

let clock: VirtualClock;
let options: Omit<Parameters<typeof withDeadline>[0], 'signal'>;
beforeEach(() => {
  clock = new VirtualClock();
  options = { clock, ms: 1000, what: 'Create of a cloud' };
});

test('a call that does not end in time fails, and is told', async () => {
  let told: AbortSignal | undefined;
  const { signal } = new AbortController();
  const call = withDeadline({ ...options, signal }, (inner) => {
    told = inner;
    return new Promise<never>(() => undefined);
  });
  const failed = expect(call).rejects.toThrow(CloudTimeoutError);
  await clock.step(1000);
  await failed;
  expect(told?.aborted).toBe(true);
});

test('nothing is asked of a cloud once the program ends', async () => {
  const call = vi.fn(() => Promise.resolve(1));
  const signal = AbortSignal.abort(new Error('over'));
  await expect(withDeadline({ ...options, signal }, call)).rejects.toThrow('over');
  expect(call).not.toHaveBeenCalled();
});

test('a call that throws at once leaves no timer behind', async () => {
  const { signal } = new AbortController();
  const broken = (): Promise<never> => {
    throw new Error('broken');
  };
  await expect(withDeadline({ ...options, signal }, broken)).rejects.toThrow('broken');
  expect(clock.pendingTimers).toBe(0);
});
