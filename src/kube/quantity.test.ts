// SPDX-License-Identifier: Apache-2.0
// Quantities against apimachinery's verdicts (hack/vectors/quantity) and against the laws of arithmetic.

import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { canonicalQuantity, Quantity, QuantityError, type QuantityFormat } from './quantity.ts';

type Row =
  | [text: string, error: number]
  | [text: string, canonical: string, format: string, value: string, milli: string];
const rows = JSON.parse(readFileSync(new URL('./quantity.vectors.json', import.meta.url), 'utf8')) as Row[];
const errors = [/^quantities must match/, /^unable to parse numeric part/, /^unable to parse quantity's suffix/];
const formats: Record<string, QuantityFormat> = { I: 'BinarySI', S: 'DecimalSI', E: 'DecimalExponent' };

/** Where Go runs out of suffixes it prints the bare mantissa ("1000E" becomes "1"): the one place where we differ on purpose. */
const beyondExa = (text: string, canonical: string): boolean =>
  /^[+-]?[0-9]+$/.test(canonical) && Quantity.parse(canonical).cmp(Quantity.parse(text)) !== 0;

describe('a quantity', () => {
  test('reads every text as Go does', () => {
    expect(rows.length).toBeGreaterThanOrEqual(3000);
    let lost = 0;
    for (const row of rows) {
      const [text] = row;
      if (row.length === 2) {
        const expected = errors[row[1]];
        if (expected === undefined) throw new Error(`bad vector ${JSON.stringify(row)}`);
        expect(() => Quantity.parse(text), text).toThrow(expected);
        expect(Quantity.tryParse(text), text).toBeUndefined();
        continue;
      }
      const [, canonical, format, value, milli] = row;
      const quantity = Quantity.parse(text);
      expect(quantity.format, text).toBe(formats[format]);
      const whole = value || canonical;
      expect(String(quantity.value()), text).toBe(BigInt(whole).toString());
      expect(String(quantity.milliValue()), text).toBe(milli || `${BigInt(whole)}${BigInt(whole) === 0n ? '' : '000'}`);
      if (beyondExa(text, canonical)) lost++;
      else expect(quantity.toString(), text).toBe(canonical);
    }
    expect(lost).toBeLessThan(60);
  });

  test('prints what is beyond exa so that it can be read again', () => {
    expect(Quantity.parse('1000E').toString()).toBe('1000E');
    expect(Quantity.parse('10000000000000000000000').toString()).toBe('10000E');
  });

  test('takes numbers, and white space where a document allows it', () => {
    expect(Quantity.parse(0.1).toString()).toBe('100m');
    expect(Quantity.parse(2).toString()).toBe('2');
    expect(Quantity.parse(1e21).toString()).toBe('1e21');
    expect(canonicalQuantity(' 1500m ')).toBe('1500m');
    expect(canonicalQuantity('0.5Gi')).toBe('512Mi');
    expect(canonicalQuantity('1000m')).toBe('1');
    expect(() => Quantity.parse(' 1')).toThrow(QuantityError);
    for (const value of [undefined, null, true, {}, [], Number.NaN, Number.POSITIVE_INFINITY]) {
      expect(Quantity.tryParse(value)).toBeUndefined();
    }
  });

  test('refuses texts made to eat memory', () => {
    expect(() => Quantity.parse('1e2000000000')).toThrow(QuantityError);
    expect(() => Quantity.parse('1e-2000000000')).toThrow(QuantityError);
    expect(() => Quantity.parse('9'.repeat(1_000_000))).toThrow(QuantityError);
  });

  test('becomes the nearest double', () => {
    for (const [text, number] of [
      ['100m', 0.1],
      ['16Gi', 17179869184],
      ['-1.5', -1.5],
      ['123456789012345678.5', 123456789012345680],
      ['1n', 1e-9],
    ] as const) {
      expect(Quantity.parse(text).toNumber()).toBe(number);
    }
  });

  test('a zero takes over the format of what is added to it', () => {
    expect(Quantity.zero.add(Quantity.parse('2048')).toString()).toBe('2048');
    expect(Quantity.zero.add(Quantity.parse('2Ki')).toString()).toBe('2Ki');
    expect(Quantity.parse('1Gi').add(Quantity.parse('100m')).toString()).toBe('1073741824100m');
    expect(Quantity.parse('1Gi').sub(Quantity.parse('1Gi')).toString()).toBe('0');
    expect(Quantity.parse('1Ki').neg().toString()).toBe('-1Ki');
  });
});

describe('laws', () => {
  const format = fc.constantFrom<QuantityFormat>('BinarySI', 'DecimalSI', 'DecimalExponent');
  const quantity = fc
    .tuple(
      fc.oneof(
        fc.bigInt(-(2n ** 90n), 2n ** 90n),
        fc.bigInt(-5000n, 5000n).map((n) => n * 1_024_000_000_000n),
      ),
      format,
    )
    .map(([nano, f]) => Quantity.fromNano(nano, f));

  test('what is printed reads back as the same amount', () => {
    fc.assert(
      fc.property(quantity, (q) => {
        const again = Quantity.parse(q.toString());
        // A binary amount too big for an int64 is capped by the parser, as in Go.
        if (q.format === 'BinarySI' && (q.nano > 2n ** 63n * 10n ** 9n || q.nano < -(2n ** 63n) * 10n ** 9n)) return;
        expect(again.nano).toBe(q.nano);
        expect(again.toString()).toBe(q.toString());
      }),
    );
  });

  test('subtraction undoes addition, and order agrees with it', () => {
    fc.assert(
      fc.property(quantity, quantity, (a, b) => {
        expect(a.add(b).sub(b).equals(a)).toBe(true);
        expect(a.add(b).equals(b.add(a))).toBe(true);
        expect(Math.sign(a.cmp(b))).toBe(a.sub(b).sign());
        expect(a.cmp(b) + b.cmp(a)).toBe(0);
      }),
    );
  });

  test('rounding goes away from zero and by less than one', () => {
    fc.assert(
      fc.property(quantity, (q) => {
        const over = q.value() * 1_000_000_000n - q.nano;
        expect(q.nano < 0n ? -over : over).toBeGreaterThanOrEqual(0n);
        expect(q.nano < 0n ? -over : over).toBeLessThan(1_000_000_000n);
      }),
    );
  });
});
