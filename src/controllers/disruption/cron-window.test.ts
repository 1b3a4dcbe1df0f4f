// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { CronError, isInWindow } from './cron-window.ts';

const hour = 3_600_000;

/** Whether `schedule` with a duration of eight hours holds at a time. */
function holds(schedule: string, at: string, durationMs = 8 * hour): boolean {
  return isInWindow({ schedule, durationMs }, Date.parse(at));
}

describe('a window of a schedule', () => {
  const workday = '0 9 * * mon-fri';

  test('opens with the hit and ends with the duration, both instants included', () => {
    expect(holds(workday, '2026-01-05T08:59:59.999Z')).toBe(false);
    expect(holds(workday, '2026-01-05T09:00:00Z')).toBe(true);
    expect(holds(workday, '2026-01-05T17:00:00Z')).toBe(true);
    expect(holds(workday, '2026-01-05T17:00:00.001Z')).toBe(false);
  });

  test('does not open on days that are not meant', () => {
    expect(holds(workday, '2026-01-04T12:00:00Z')).toBe(false);
  });

  test('is the same in whatever order moments are asked about', () => {
    const at = (minutes: number): string => new Date(Date.UTC(2026, 0, 5) + minutes * 60_000 + 500).toISOString();
    const minutes = Array.from({ length: 60 }, (_, i) => i * 47);
    const forth = minutes.map((m) => holds('30 */5 * * *', at(m), 90 * 60_000));
    const back = minutes.toReversed().map((m) => holds('30 */5 * * *', at(m), 90 * 60_000));
    const open = minutes.map((m) => [0, 5, 10, 15, 20].some((h) => m % 1440 >= h * 60 + 30 && m % 1440 < h * 60 + 120));
    expect(forth).toEqual(open);
    expect(back.toReversed()).toEqual(open);
  });

  test('goes on over midnight', () => {
    expect(holds('0 22 * * *', '2026-01-05T05:00:00Z')).toBe(true);
  });

  test('never closes when hits come sooner than it ends', () => {
    expect(holds('@hourly', '2026-01-05T05:59:59Z', 2 * hour)).toBe(true);
    expect(holds('* * * * *', '2026-01-05T05:59:59.500Z', 60_000)).toBe(true);
  });

  test.each([
    ['@annually', '2026-01-01T00:30:00Z'],
    ['@yearly', '2026-01-01T00:30:00Z'],
    ['@monthly', '2026-02-01T00:30:00Z'],
    ['@weekly', '2026-01-04T00:30:00Z'],
    ['@daily', '2026-01-09T00:30:00Z'],
    ['@midnight', '2026-01-09T00:30:00Z'],
    ['@hourly', '2026-01-09T13:30:00Z'],
    ['5/15 13 * * *', '2026-01-09T13:50:00Z'],
    ['0 13 ? JAN *', '2026-01-09T13:10:00Z'],
    ['0 13 1 * fri', '2026-01-09T13:10:00Z'],
  ])('of %s is open at %s', (schedule, at) => {
    expect(holds(schedule, at, hour)).toBe(true);
  });

  test('of a day that never comes never opens', () => {
    expect(holds('0 0 31 2 *', '2026-03-03T00:30:00Z')).toBe(false);
  });

  test.each([
    '',
    'now',
    '@every 1h',
    '61 * * * *',
    '* * * *',
    '0 * * * * *',
    '0 0 L * *',
    'TZ=UTC 0 9 * * *',
    'x * * * *',
  ])('cannot be read from %j', (schedule) => {
    expect(() => holds(schedule, '2026-01-05T09:00:00Z')).toThrow(CronError);
  });
});
