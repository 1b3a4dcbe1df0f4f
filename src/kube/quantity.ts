// SPDX-License-Identifier: Apache-2.0
// Exact resource quantities ("500m", "1.5Gi", "12e6"): what apimachinery's resource.Quantity is, on whole nano units.

import { KarpenterError } from '../base/errors.ts';

export type QuantityFormat = 'BinarySI' | 'DecimalSI' | 'DecimalExponent';

/** The text is not a quantity. The message is the one of the Kubernetes API. */
export class QuantityError extends KarpenterError {
  constructor(message: string, text: string) {
    super('KRP_QUANTITY_INVALID', message, { details: { text } });
  }
}

const formatWrong = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const numericWrong = 'unable to parse numeric part of quantity';
const suffixWrong = "unable to parse quantity's suffix";

// sign, leading zeros, digits, fraction, suffix
const shape = /^([+-]?)0*([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)$/;

const nanoExponent = 9;
const nanoPerUnit = 1_000_000_000n;
const maxBinaryNano = (2n ** 63n - 1n) * nanoPerUnit;
/** Go keeps any 32-bit exponent unexpanded; nobody means more than this, and an expanded one must not eat the memory. */
const maxExponent = 10_000;
/** Longest run of digits we multiply out: longer input is an attack, not an amount. */
const maxDigits = 10_000;

interface Suffix {
  readonly format: QuantityFormat;
  readonly exponent: number;
}

const suffixes: ReadonlyMap<string, Suffix> = new Map<string, Suffix>([
  ['n', { format: 'DecimalSI', exponent: -9 }],
  ['u', { format: 'DecimalSI', exponent: -6 }],
  ['m', { format: 'DecimalSI', exponent: -3 }],
  ['', { format: 'DecimalSI', exponent: 0 }],
  ['k', { format: 'DecimalSI', exponent: 3 }],
  ['M', { format: 'DecimalSI', exponent: 6 }],
  ['G', { format: 'DecimalSI', exponent: 9 }],
  ['T', { format: 'DecimalSI', exponent: 12 }],
  ['P', { format: 'DecimalSI', exponent: 15 }],
  ['E', { format: 'DecimalSI', exponent: 18 }],
  ['Ki', { format: 'BinarySI', exponent: 10 }],
  ['Mi', { format: 'BinarySI', exponent: 20 }],
  ['Gi', { format: 'BinarySI', exponent: 30 }],
  ['Ti', { format: 'BinarySI', exponent: 40 }],
  ['Pi', { format: 'BinarySI', exponent: 50 }],
  ['Ei', { format: 'BinarySI', exponent: 60 }],
]);
const decimalNames = new Map(
  [...suffixes].filter(([, s]) => s.format === 'DecimalSI').map(([n, s]) => [s.exponent, n]),
);
const binaryNames = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'] as const;

// Specs repeat a few texts ("100m", "1Gi") without end; quantities never change, so they can be shared.
const cache = new Map<string, Quantity>();
const maxCached = 4096;

/**
 * An exact amount with the format it was written in. Immutable. Amounts are whole nano units: what is finer is rounded away from zero
 * while parsing, as Kubernetes does. There is no upper bound for decimal amounts; binary ones are capped at ±(2^63-1).
 */
export class Quantity {
  static readonly zero: Quantity = new Quantity(0n, 'DecimalSI');

  readonly nano: bigint;
  readonly format: QuantityFormat;
  #text: string | undefined;

  private constructor(nano: bigint, format: QuantityFormat, text?: string) {
    this.nano = nano;
    this.format = format;
    this.#text = text;
  }

  /** Parses what a manifest may hold. Throws QuantityError with the API server's message. */
  static parse(text: string | number): Quantity {
    const source = typeof text === 'number' ? String(text).replace('e+', 'e') : text;
    const known = cache.get(source);
    if (known !== undefined) return known;
    const parsed = parseText(source);
    if (cache.size >= maxCached) cache.clear();
    if (source.length <= 32) cache.set(source, parsed);
    return parsed;
  }

  /** `undefined` where `parse` would throw, and for what is neither a string nor a number. */
  static tryParse(value: unknown): Quantity | undefined {
    if (typeof value !== 'string' && typeof value !== 'number') return undefined;
    try {
      return Quantity.parse(value);
    } catch (error) {
      if (error instanceof QuantityError) return undefined;
      throw error;
    }
  }

  static fromNano(nano: bigint, format: QuantityFormat = 'DecimalSI'): Quantity {
    return new Quantity(nano, format);
  }

  /** For the parser: `text` is what the amount prints as. */
  static withText(nano: bigint, format: QuantityFormat, text: string | undefined): Quantity {
    return new Quantity(nano, format, text);
  }

  /** Like Go's: a zero takes over the format of what is added. */
  add(other: Quantity): Quantity {
    return new Quantity(this.nano + other.nano, this.nano === 0n ? other.format : this.format);
  }

  sub(other: Quantity): Quantity {
    return new Quantity(this.nano - other.nano, this.nano === 0n ? other.format : this.format);
  }

  neg(): Quantity {
    return new Quantity(-this.nano, this.format);
  }

  /** Negative, zero or positive. Formats do not matter. */
  cmp(other: Quantity): number {
    return this.nano < other.nano ? -1 : this.nano > other.nano ? 1 : 0;
  }

  equals(other: Quantity): boolean {
    return this.nano === other.nano;
  }

  isZero(): boolean {
    return this.nano === 0n;
  }

  sign(): number {
    return this.nano < 0n ? -1 : this.nano > 0n ? 1 : 0;
  }

  /** Whole units, rounded away from zero. */
  value(): bigint {
    return divideAwayFromZero(this.nano, nanoPerUnit);
  }

  /** Thousandths, rounded away from zero. */
  milliValue(): bigint {
    return divideAwayFromZero(this.nano, 1_000_000n);
  }

  /** The nearest double. */
  toNumber(): number {
    const fraction = this.nano % nanoPerUnit;
    if (fraction === 0n) return Number(this.nano / nanoPerUnit);
    // Both operands are exact here, so the division rounds once.
    if (this.nano <= BigInt(Number.MAX_SAFE_INTEGER) && this.nano >= BigInt(Number.MIN_SAFE_INTEGER)) {
      return Number(this.nano) / 1e9;
    }
    return Number(`${this.nano}e-9`);
  }

  /** The canonical form: no fraction, the largest suffix that keeps the amount exact, in the format it was written in. */
  toString(): string {
    this.#text ??= render(this.nano, this.format);
    return this.#text;
  }

  toJSON(): string {
    return this.toString();
  }
}

/** The canonical form of what stands in a JSON document; surrounding white space is allowed there. Throws QuantityError. */
export function canonicalQuantity(text: string | number): string {
  return Quantity.parse(typeof text === 'string' ? text.trim() : text).toString();
}

function parseText(text: string): Quantity {
  if (text === '' || text.length > maxDigits) throw new QuantityError(formatWrong, text.slice(0, 64));
  const parts = shape.exec(text);
  if (parts === null) throw new QuantityError(formatWrong, text);
  const sign = parts[1] ?? '';
  const whole = parts[2] || '0';
  const fraction = parts[3] ?? '';
  const suffix = interpretSuffix(parts[4] ?? '', text);
  const digits = whole + fraction;
  const mantissa = BigInt(digits);
  const magnitude =
    suffix.format === 'BinarySI'
      ? scaleToNano(mantissa << BigInt(suffix.exponent), -fraction.length)
      : scaleToNano(mantissa, suffix.exponent - fraction.length);

  if (!fitsInt64(whole, fraction, suffix)) return beyondInt64(text, parts, magnitude, suffix.format);
  const kept = isWrittenCanonically(mantissa, digits, fraction.length, suffix) ? text : undefined;
  return Quantity.withText(sign === '-' ? -magnitude : magnitude, suffix.format, kept);
}

/** Go's slow path: it wants a digit in what was written, caps binary amounts and shows small ones as decimal. */
function beyondInt64(text: string, parts: RegExpExecArray, magnitude: bigint, format: QuantityFormat): Quantity {
  const number = text.slice(0, text.length - (parts[4]?.length ?? 0));
  if (!/[0-9]/.test(number)) throw new QuantityError(numericWrong, text);
  const binary = format === 'BinarySI';
  const capped = binary && magnitude > maxBinaryNano ? maxBinaryNano : magnitude;
  const tiny = binary && capped > 0n && capped < nanoPerUnit;
  return Quantity.withText(parts[1] === '-' ? -capped : capped, tiny ? 'DecimalSI' : format, undefined);
}

function interpretSuffix(suffix: string, text: string): Suffix {
  const known = suffixes.get(suffix);
  if (known !== undefined) return known;
  const exponent = /^[eE]([+-]?[0-9]+)$/.exec(suffix)?.[1];
  if (exponent === undefined) throw new QuantityError(suffixWrong, text);
  const value = Number(exponent);
  if (Math.abs(value) > maxExponent) throw new QuantityError(suffixWrong, text);
  return { format: 'DecimalExponent', exponent: value };
}

/** `mantissa × 10^exponent` in nano units; what is finer rounds up (mantissa is never negative). */
function scaleToNano(mantissa: bigint, exponent: number): bigint {
  const shift = exponent + nanoExponent;
  return shift >= 0 ? mantissa * powerOfTen(shift) : divideAwayFromZero(mantissa, powerOfTen(-shift));
}

const tens = Array.from({ length: 40 }, (_, i) => 10n ** BigInt(i));

function powerOfTen(exponent: number): bigint {
  return tens[exponent] ?? 10n ** BigInt(exponent);
}

function divideAwayFromZero(amount: bigint, divisor: bigint): bigint {
  const quotient = amount / divisor;
  if (quotient * divisor === amount) return quotient;
  return amount < 0n ? quotient - 1n : quotient + 1n;
}

/** Whether Go would parse this on its int64 path; only there does it keep the text it was given. */
function fitsInt64(whole: string, fraction: string, suffix: Suffix): boolean {
  if (suffix.format !== 'BinarySI') {
    return whole.length + fraction.length <= 18 && suffix.exponent - fraction.length >= -nanoExponent;
  }
  return fraction.length === 0 && 14 - whole.length - Math.trunc((suffix.exponent * 3) / 10) >= 0;
}

/** Go's cheap test for "already canonical", with its generosity: `1.500` and `+5` stay as they are. */
function isWrittenCanonically(mantissa: bigint, digits: string, fractionLength: number, suffix: Suffix): boolean {
  if (suffix.format === 'BinarySI') return (mantissa & 7n) !== 0n;
  return (suffix.exponent - fractionLength) % 3 === 0 && !digits.endsWith('000') && !digits.startsWith('0');
}

function render(nano: bigint, format: QuantityFormat): string {
  if (nano === 0n) return '0';
  const wholeBinary =
    format === 'BinarySI' && nano % nanoPerUnit === 0n && (nano >= 1024n * nanoPerUnit || nano <= -1024n * nanoPerUnit);
  if (wholeBinary) {
    let amount = nano / nanoPerUnit;
    let step = 0;
    while (step < binaryNames.length - 1 && amount % 1024n === 0n) {
      amount /= 1024n;
      step++;
    }
    return `${amount}${binaryNames[step] ?? ''}`;
  }
  let amount = nano;
  let exponent = -nanoExponent;
  // Beyond E there is no suffix: Go prints none at all there and loses the amount; we stop at E.
  const largest = format === 'DecimalExponent' ? Number.POSITIVE_INFINITY : 18;
  while (exponent < largest && amount % 1000n === 0n) {
    amount /= 1000n;
    exponent += 3;
  }
  if (format === 'DecimalExponent') return exponent === 0 ? `${amount}` : `${amount}e${exponent}`;
  return `${amount}${decimalNames.get(exponent) ?? ''}`;
}
