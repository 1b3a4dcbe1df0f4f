// SPDX-License-Identifier: Apache-2.0

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  formatDuration,
  formatMicroTime,
  formatTime,
  parseDuration,
  parseDurationNanos,
  parseTime,
  TimeError,
} from './time.ts';

describe('a time', () => {
  test('is written in whole seconds, a micro time in microseconds', () => {
    expect(formatTime(0)).toBe('1970-01-01T00:00:00Z');
    expect(formatTime(1_767_225_600_999)).toBe('2026-01-01T00:00:00Z');
    expect(formatMicroTime(1_767_225_600_001)).toBe('2026-01-01T00:00:00.001000Z');
    expect(formatMicroTime(1_767_225_600_001, 42)).toBe('2026-01-01T00:00:00.001042Z');
    expect(formatMicroTime(-1)).toBe('1969-12-31T23:59:59.999000Z');
    expect(() => formatTime(Number.NaN)).toThrow(TimeError);
  });

  test.each([
    ['2026-01-01T00:00:00Z', 1_767_225_600_000],
    ['2026-01-01T00:00:00.5Z', 1_767_225_600_500],
    ['2026-01-01T00:00:00.123456789Z', 1_767_225_600_123],
    ['2026-01-01T02:30:00+02:30', 1_767_225_600_000],
    ['2025-12-31T23:00:00-01:00', 1_767_225_600_000],
    ['0001-01-01T00:00:00Z', -62_135_596_800_000],
    ['2024-02-29T00:00:00Z', 1_709_164_800_000],
  ])('%s is read', (text, ms) => {
    expect(parseTime(text)).toBe(ms);
  });

  test.each([
    '',
    'now',
    '2026-01-01',
    '2026-01-01 00:00:00Z',
    '2026-01-01T00:00:00',
    '2026-01-01t00:00:00z',
    '2026-1-1T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-02-29T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-01-01T00:60:00Z',
    '2026-01-01T00:00:60Z',
    '2026-01-01T00:00:00.Z',
    '2026-01-01T00:00:00Z\n',
  ])('%j is refused', (text) => {
    expect(() => parseTime(text)).toThrow(TimeError);
  });

  test('what is written reads back', () => {
    fc.assert(
      fc.property(fc.integer({ min: -62_135_596_800_000, max: 253_402_300_799_999 }), (ms) => {
        expect(parseTime(formatTime(ms))).toBe(Math.floor(ms / 1000) * 1000);
        expect(parseTime(formatMicroTime(ms))).toBe(ms);
      }),
    );
  });
});

describe('a duration', () => {
  test.each([
    ['0', 0],
    ['0s', 0],
    ['1h2m3.5s', 3_723_500],
    ['300ms', 300],
    ['-1.5h', -5_400_000],
    ['+5m', 300_000],
    ['1h60m', 7_200_000],
    ['.5s', 500],
    ['1.s', 1000],
    ['1us', 0.001],
    ['1µs', 0.001],
    ['2540400h', 9_145_440_000_000],
  ])('%s is %d ms', (text, ms) => {
    expect(parseDuration(text)).toBe(ms);
  });

  test.each([
    ['', 'time: invalid duration ""'],
    ['-', 'time: invalid duration "-"'],
    ['3', 'time: missing unit in duration "3"'],
    ['s', 'time: invalid duration "s"'],
    ['.s', 'time: invalid duration ".s"'],
    ['5d', 'time: unknown unit "d" in duration "5d"'],
    ['5m ', 'time: unknown unit "m " in duration "5m "'],
    ['1h-5m', 'time: unknown unit "h-" in duration "1h-5m"'],
    ['2562048h', 'time: invalid duration "2562048h"'],
    ['Never', 'time: invalid duration "Never"'],
    ['9223372036854775809', 'time: invalid duration "9223372036854775809"'],
    ['5µ', 'time: unknown unit "\\xc2\\xb5" in duration "5\\xc2\\xb5"'],
  ])('%j is refused', (text, message) => {
    expect(() => parseDuration(text)).toThrow(message);
  });

  test.each([
    [0, '0s'],
    [0.000001, '1ns'],
    [0.0015, '1.5µs'],
    [1.5, '1.5ms'],
    [1000, '1s'],
    [90_000, '1m30s'],
    [3_600_000, '1h0m0s'],
    [-3_723_500, '-1h2m3.5s'],
  ])('%d ms is written %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
  });

  test('what is written reads back', () => {
    fc.assert(
      fc.property(fc.integer({ min: -1e12, max: 1e12 }), (ms) => {
        expect(parseDuration(formatDuration(ms))).toBe(ms);
      }),
    );
    expect(parseDurationNanos('2562047h47m16.854775807s')).toBe(2n ** 63n - 1n);
  });
});
