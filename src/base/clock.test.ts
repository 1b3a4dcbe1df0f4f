// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test, vi } from 'vitest';
import { RealClock, settle, VirtualClock } from './clock.ts';

describe('the virtual clock', () => {
  test('starts at a date that is the same for everybody, and stands still', () => {
    const clock = new VirtualClock();
    expect([clock.now(), clock.monotonic()]).toEqual([Date.UTC(2026, 0, 1), 0]);
  });

  test('fires timers at their own instants, in order, those of one instant as they were set', async () => {
    const clock = new VirtualClock(0);
    const fired: string[] = [];
    const note = (name: string) => (): void => void fired.push(`${name}@${clock.now()}`);
    clock.after(20, note('c'));
    clock.after(10, note('a'));
    clock.after(10, note('b'));
    clock.after(30, note('d'));
    await clock.step(25);
    expect(fired).toEqual(['a@10', 'b@10', 'c@20']);
    expect([clock.now(), clock.nextDue()]).toEqual([25, 30]);
  });

  test('lets those who wait for a timer go on before the next one fires', async () => {
    const clock = new VirtualClock(0);
    const fired: string[] = [];
    clock.after(20, () => fired.push('timer'));
    void (async () => {
      await clock.sleep(10);
      await Promise.resolve();
      fired.push('sleeper');
      await clock.sleep(5);
      fired.push(`again@${clock.now()}`);
    })();
    await clock.step(20);
    expect(fired).toEqual(['sleeper', 'again@15', 'timer']);
  });

  test('never fires in the turn that sets the timer', async () => {
    const clock = new VirtualClock();
    let fired = false;
    clock.after(0, () => (fired = true));
    expect(fired).toBe(false);
    await clock.step(0);
    expect(fired).toBe(true);
  });

  test('forgets a cancelled timer at once, and bears a cancel after it fired', async () => {
    const clock = new VirtualClock();
    const fired: string[] = [];
    const early = clock.after(1, () => fired.push('early'));
    const late = clock.after(1_000_000, () => fired.push('late'));
    late.cancel();
    expect(clock.pendingTimers).toBe(1);
    await clock.step(5);
    early.cancel();
    late.cancel();
    expect([fired, clock.pendingTimers, clock.nextDue()]).toEqual([['early'], 0, undefined]);
  });

  test('takes a wait below zero as none and refuses one that is no number', async () => {
    const clock = new VirtualClock(0);
    let at = -1;
    clock.after(-5, () => (at = clock.now()));
    await clock.step(0);
    expect(at).toBe(0);
    expect(() => clock.after(Number.NaN, () => undefined)).toThrow(RangeError);
  });

  test('runs until something holds, and says when it never will', async () => {
    const clock = new VirtualClock(0);
    let count = 0;
    const tick = (): void => {
      count++;
      clock.after(10, tick);
    };
    tick();
    await clock.until(() => count === 5);
    expect(clock.now()).toBe(40);
    await expect(clock.until(() => false, 100)).rejects.toThrow('within 100 ms');
    await expect(new VirtualClock().until(() => false)).rejects.toThrow('nothing is scheduled');
  });
});

describe.each([
  ['real', () => new RealClock()],
  ['virtual', () => new VirtualClock()],
] as const)('sleep on the %s clock', (_name, make) => {
  test('rejects with the reason of an abort, before or during, and leaves no timer', async () => {
    const clock = make();
    const reason = new Error('enough');
    await expect(clock.sleep(1000, AbortSignal.abort(reason))).rejects.toBe(reason);
    const abort = new AbortController();
    const sleep = clock.sleep(1_000_000, abort.signal);
    abort.abort(reason);
    await expect(sleep).rejects.toBe(reason);
    if (clock instanceof VirtualClock) expect(clock.pendingTimers).toBe(0);
  });

  test('takes its listener off the signal when it is over', async () => {
    const clock = make();
    const { signal } = new AbortController();
    const removed = vi.spyOn(signal, 'removeEventListener');
    const sleep = clock.sleep(1, signal);
    if (clock instanceof VirtualClock) await clock.step(1);
    await sleep;
    expect(removed).toHaveBeenCalledOnce();
  });
});

describe('the real clock', () => {
  test('follows the machine', async () => {
    const clock = new RealClock();
    const started = clock.monotonic();
    expect(Math.abs(clock.now() - Date.now())).toBeLessThan(1000);
    await clock.sleep(5);
    expect(clock.monotonic() - started).toBeGreaterThan(3);
  });

  test('can be cancelled, also in the middle of a very long wait', async () => {
    vi.useFakeTimers();
    try {
      const clock = new RealClock();
      let fired = 0;
      const forty = 40 * 24 * 3_600_000;
      clock.after(forty, () => fired++);
      const cancelled = clock.after(forty, () => fired++);
      await vi.advanceTimersByTimeAsync(30 * 24 * 3_600_000);
      cancelled.cancel();
      expect(fired).toBe(0);
      await vi.advanceTimersByTimeAsync(10 * 24 * 3_600_000);
      expect(fired).toBe(1);
    } finally {
      vi.useRealTimers();
    }
  });

  test('lets others have a turn', async () => {
    let turned = false;
    setImmediate(() => (turned = true));
    await new RealClock().breathe();
    expect(turned).toBe(true);
  });
});

test('settling runs everything that is ready', async () => {
  let steps = 0;
  void (async () => {
    for (let i = 0; i < 1000; i++) {
      await Promise.resolve();
      steps++;
    }
  })();
  await settle();
  expect(steps).toBe(1000);
});
