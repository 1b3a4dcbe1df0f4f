// SPDX-License-Identifier: Apache-2.0
// A hash table from two small whole numbers to one. A Map would need a double or a text as its key, and is several times slower.

export class PairTable {
  #a: Int32Array;
  #b: Int32Array;
  #value: Int32Array;
  #mask: number;
  #size = 0;

  constructor(capacity = 64) {
    this.#mask = capacity - 1;
    this.#a = new Int32Array(capacity).fill(-1);
    this.#b = new Int32Array(capacity);
    this.#value = new Int32Array(capacity);
  }

  /** The value of a pair; -2 when there is none. `a` is never negative. */
  get(a: number, b: number): number {
    const as = this.#a;
    const bs = this.#b;
    const mask = this.#mask;
    for (let at = slot(a, b) & mask; ; at = (at + 1) & mask) {
      const found = as[at]!;
      if (found === a && bs[at] === b) return this.#value[at]!;
      if (found === -1) return absent;
    }
  }

  /** Adds a pair that is not there yet. */
  add(a: number, b: number, value: number): void {
    if (++this.#size * 2 > this.#mask) this.#grow();
    this.#put(a, b, value);
  }

  #put(a: number, b: number, value: number): void {
    let at = slot(a, b) & this.#mask;
    while (this.#a[at] !== -1) at = (at + 1) & this.#mask;
    this.#a[at] = a;
    this.#b[at] = b;
    this.#value[at] = value;
  }

  #grow(): void {
    const [a, b, value] = [this.#a, this.#b, this.#value];
    const capacity = a.length * 4;
    this.#mask = capacity - 1;
    this.#a = new Int32Array(capacity).fill(-1);
    this.#b = new Int32Array(capacity);
    this.#value = new Int32Array(capacity);
    for (let i = 0; i < a.length; i++) if (a[i] !== -1) this.#put(a[i]!, b[i]!, value[i]!);
  }
}

/** What `get` says of a pair that was never added. */
export const absent = -2;

function slot(a: number, b: number): number {
  let hash = Math.imul(a, 0x9e3779b1) ^ Math.imul(b, 0x85ebca6b);
  hash ^= hash >>> 15;
  return Math.imul(hash, 0x2c1b3c6d) >>> 8;
}
