// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { PoolHealth } from './pool-health.ts';

test('a pool is unhealthy when half of its last four registrations failed', () => {
  const health = new PoolHealth();
  expect(health.of('p')).toBe('unknown');
  health.record('p', false);
  expect(health.of('p')).toBe('healthy');
  expect(health.after('p', false)).toBe('unhealthy');
  // Asking changes nothing.
  expect(health.of('p')).toBe('healthy');
  health.record('p', false);
  expect(health.of('p')).toBe('unhealthy');
  health.record('p', true);
  health.record('p', true);
  expect(health.of('p')).toBe('unhealthy');
  health.record('p', true);
  expect(health.of('p')).toBe('healthy');
});

test('work about one pool is done one after the other, also after a failure', async () => {
  const health = new PoolHealth();
  const done: string[] = [];
  const gate = Promise.withResolvers<void>();
  const first = health.inTurn('p', async () => {
    await gate.promise;
    done.push('first');
    throw new Error('no');
  });
  const second = health.inTurn('p', () => Promise.resolve(void done.push('second')));
  await health.inTurn('other', () => Promise.resolve(void done.push('other')));
  gate.resolve();
  await expect(first).rejects.toThrow('no');
  await second;
  expect(done).toEqual(['other', 'first', 'second']);
});

test('pools are judged apart, and can begin anew', () => {
  const health = new PoolHealth();
  health.reset('a', 'unhealthy');
  health.reset('b', 'healthy');
  expect([health.of('a'), health.of('b')]).toEqual(['unhealthy', 'healthy']);
  health.reset('a', 'unknown');
  health.forget('b');
  expect([health.of('a'), health.of('b')]).toEqual(['unknown', 'unknown']);
});
