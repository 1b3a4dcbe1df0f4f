// SPDX-License-Identifier: Apache-2.0
import { beforeEach, describe, expect, test } from 'vitest';
import { VirtualClock } from '../../base/clock.ts';
import { ProcessClock } from './process-clock.ts';

let world: VirtualClock;
let clock: ProcessClock;
let fired: string[];
beforeEach(() => {
  world = new VirtualClock();
  clock = new ProcessClock(world);
  fired = [];
});

function set(ms: number, name: string) {
  return clock.after(ms, () => fired.push(name));
}

describe('the clock of a process', () => {
  test('fires timers in their order and forgets them', async () => {
    set(20, 'b');
    set(10, 'a');
    set(30, 'c');
    expect(clock.pendingTimers).toBe(3);
    await world.step(20);
    expect(fired).toEqual(['a', 'b']);
    expect(clock.pendingTimers).toBe(1);
    await world.step(10);
    expect(fired).toEqual(['a', 'b', 'c']);
    expect(clock.pendingTimers).toBe(0);
  });

  test('a timer that is cancelled, also twice or too late, takes no other with it', async () => {
    const [a, b] = [set(10, 'a'), set(20, 'b'), set(30, 'c')];
    a.cancel();
    a.cancel();
    expect(clock.pendingTimers).toBe(2);
    await world.step(20);
    b.cancel();
    expect(clock.pendingTimers).toBe(1);
    await world.step(10);
    expect(fired).toEqual(['b', 'c']);
    expect(world.pendingTimers).toBe(0);
  });

  test('what falls due while it hangs fires when it goes on, unless it was cancelled', async () => {
    set(10, 'a');
    const b = set(20, 'b');
    set(50, 'c');
    clock.hang();
    await world.step(30);
    expect(fired).toEqual([]);
    b.cancel();
    clock.resume();
    expect(fired).toEqual(['a']);
    await world.step(20);
    expect(fired).toEqual(['a', 'c']);
  });

  test('nothing fires after its end, not even what was held', async () => {
    set(10, 'a');
    set(50, 'b');
    clock.hang();
    await world.step(20);
    clock.die();
    clock.resume();
    set(10, 'c').cancel();
    set(10, 'd');
    await world.step(100);
    expect(fired).toEqual([]);
    expect(clock.pendingTimers).toBe(0);
    expect(world.pendingTimers).toBe(0);
  });

  test('an end in the middle of what was held spares the rest', async () => {
    clock.after(10, () => clock.die());
    set(20, 'b');
    clock.hang();
    await world.step(30);
    clock.resume();
    expect(fired).toEqual([]);
  });
});
