// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { DurationError, durationMs, durationNanos } from './duration.ts';

describe('durations', () => {
  test.each([
    ['0s', 0],
    ['90s', 90_000],
    ['1h30m', 5_400_000],
    ['720h', 2_592_000_000],
    ['1m1h1m', 3_720_000],
    ['0000000000000000000000001s', 1000],
  ])('%s is %d ms', (text, ms) => {
    expect(durationMs(text)).toBe(ms);
  });

  test('Never and absent do not happen', () => {
    expect(durationMs('Never')).toBeUndefined();
    expect(durationMs(undefined)).toBeUndefined();
  });

  test.each(['', '1', 'h', '1.5h', '-1h', '1d', '1h ', 'never', '1ms'])('%j is refused', (text) => {
    expect(() => durationNanos(text)).toThrow(DurationError);
  });

  test('the longest is what 63 bits of nanoseconds hold', () => {
    expect(durationNanos('9223372036s')).toBe(9_223_372_036_000_000_000n);
    expect(() => durationNanos('9223372037s')).toThrow('longer than 292 years');
    expect(() => durationNanos(`${'9'.repeat(1_000_000)}h`)).toThrow('longer than 292 years');
  });

  test('parts add up', () => {
    const part = fc.tuple(fc.nat(10_000), fc.constantFrom('h', 'm', 's'));
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 5 }), (parts) => {
        const seconds = { h: 3600, m: 60, s: 1 } as Record<string, number>;
        const sum = parts.reduce((all, [n, unit]) => all + n * seconds[unit]!, 0);
        expect(durationMs(parts.map(([n, unit]) => `${n}${unit}`).join(''))).toBe(sum * 1000);
      }),
    );
  });
});
