// SPDX-License-Identifier: Apache-2.0
// The resources that matter in a pass, each in its own unit, as doubles that hold whole numbers exactly.
// The unit is the greatest common divisor of all requests: sums of requests are whole, and what is available may be
// rounded down to whole units without changing what fits.

/** Largest whole number a double holds with all smaller ones. */
const largest = 2 ** 53 - 1;
const largestWhole = BigInt(largest);

export interface Shape {
  readonly amounts: ReadonlyMap<string, bigint>;
  /** How many units of each resource of the axis; Infinity for what no node can have. */
  units: Float64Array;
}

export class Axis {
  readonly names: readonly string[];
  readonly #units: readonly bigint[];
  /** The same to the nearest double. */
  readonly #near: Float64Array;

  constructor(shapes: readonly { readonly amounts: ReadonlyMap<string, bigint> }[]) {
    const units = new Map<string, bigint>([['pods', 1_000_000_000n]]);
    for (const { amounts } of shapes) {
      for (const [name, nano] of amounts) {
        if (nano > 0n) units.set(name, gcd(nano, units.get(name) ?? 0n));
      }
    }
    this.names = [...units.keys()].sort();
    this.#units = this.names.map((name) => units.get(name)!);
    this.#near = Float64Array.from(this.#units, Number);
  }

  get size(): number {
    return this.names.length;
  }

  /** A request in units. */
  request(amounts: ReadonlyMap<string, bigint>): Float64Array {
    return Float64Array.from(this.names, (name, i) => {
      const units = (amounts.get(name) ?? 0n) / this.#units[i]!;
      return units > largestWhole ? Number.POSITIVE_INFINITY : Number(units);
    });
  }

  /** What is available, in whole units, rounded down; -1 for less than nothing. */
  available(amounts: ReadonlyMap<string, bigint>): Float64Array {
    const units = new Float64Array(this.names.length);
    this.fillAvailable(amounts, units, 0);
    return units;
  }

  /** Writes what is available to `units` from `at` on; says of how many of the amounts. */
  fillAvailable(amounts: ReadonlyMap<string, bigint>, units: Float64Array, at: number): number {
    const { names } = this;
    let known = 0;
    for (let i = 0; i < names.length; i++) {
      const nano = amounts.get(names[i]!);
      if (nano === undefined) continue;
      known++;
      units[at + i] = this.#wholeUnits(nano, i);
    }
    return known;
  }

  /** How many whole units an amount has; -1 when it is negative. Doubles answer it as a rule: big numbers are slow. */
  #wholeUnits(nano: bigint, resource: number): number {
    const near = Number(nano);
    if (near < 0) return -1;
    const parts = near / this.#near[resource]!;
    const whole = Math.floor(parts);
    // Both are exact below: the quotient cannot be rounded up to a whole number.
    if (near <= largest) return whole;
    // Else it is off by less than a millionth here.
    if (parts < 2 ** 30 && parts - whole > 1e-6 && parts - whole < 1 - 1e-6) return whole;
    const exact = nano / this.#units[resource]!;
    return exact > largestWhole ? largest : Number(exact);
  }

  /** Units of one resource in nano units. */
  nano(resource: number, units: number): bigint {
    return BigInt(units) * this.#units[resource]!;
  }

  /** Back to nano units. */
  amounts(units: Float64Array): Map<string, bigint> {
    const amounts = new Map<string, bigint>();
    for (let i = 0; i < units.length; i++)
      if (units[i]! > 0) amounts.set(this.names[i]!, BigInt(units[i]!) * this.#units[i]!);
    return amounts;
  }
}

function gcd(a: bigint, b: bigint): bigint {
  let [x, y] = [a, b];
  // Most requests are small multiples of the unit so far: one division settles it.
  if (y !== 0n && x % y === 0n) return y;
  while (y !== 0n) [x, y] = [y, x % y];
  return x;
}
