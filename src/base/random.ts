// SPDX-License-Identifier: Apache-2.0
// Chance as something that is handed in, so that a run can be repeated from its seed.
import { randomBytes, randomUUID } from 'node:crypto';

/** The only source of chance in the house. */
export interface Random {
  /** A number in [0, 1). */
  next(): number;
  /** A whole number in [0, below). */
  int(below: number): number;
  /** A version-4 UUID. */
  uuid(): string;
  /** `length` characters of Kubernetes' name alphabet: lower-case, without vowels and look-alikes. */
  suffix(length?: number): string;
}

// The alphabet of Kubernetes' generated names: no vowels, so no words; no 0, 1, 3, which look like letters.
const suffixAlphabet = 'bcdfghjklmnpqrstvwxz2456789';

const hex: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

abstract class BaseRandom implements Random {
  abstract next(): number;
  protected abstract bytes(count: number): Uint8Array;

  int(below: number): number {
    return Math.floor(this.next() * below);
  }

  uuid(): string {
    const b = this.bytes(16);
    b[6] = (b[6]! & 0x0f) | 0x40;
    b[8] = (b[8]! & 0x3f) | 0x80;
    let text = '';
    for (let i = 0; i < 16; i++) text += i === 4 || i === 6 || i === 8 || i === 10 ? `-${hex[b[i]!]}` : hex[b[i]!];
    return text;
  }

  suffix(length = 5): string {
    let text = '';
    for (let i = 0; i < length; i++) text += suffixAlphabet[this.int(suffixAlphabet.length)];
    return text;
  }
}

/** Chance from the operating system. Bytes come in blocks: one system call serves some hundred names. */
export class SystemRandom extends BaseRandom {
  #pool: Uint8Array = new Uint8Array(0);
  #used = 0;

  protected bytes(count: number): Uint8Array {
    if (this.#used + count > this.#pool.length) {
      this.#pool = randomBytes(4096);
      this.#used = 0;
    }
    const slice = this.#pool.slice(this.#used, this.#used + count);
    this.#used += count;
    return slice;
  }

  /** Node's own: it keeps a stock of random bytes, and every create of the embedded API server wants one. */
  override uuid(): string {
    return randomUUID();
  }

  next(): number {
    const b = this.bytes(7);
    let bits = 0;
    for (let i = 0; i < 6; i++) bits = bits * 256 + b[i]!;
    // 48 + 5 bits: every double of the form k/2^53.
    return (bits * 32 + (b[6]! >> 3)) / 2 ** 53;
  }
}

/** Chance that repeats: the same seed gives the same sequence on every machine (xoshiro128**, seeded by splitmix32). */
export class SeededRandom extends BaseRandom {
  readonly #s: Uint32Array;

  constructor(seed: number) {
    super();
    let h = seed >>> 0;
    this.#s = Uint32Array.from({ length: 4 }, () => {
      h = (h + 0x9e3779b9) >>> 0;
      let t = h ^ (h >>> 16);
      t = Math.imul(t, 0x21f0aaad);
      t ^= t >>> 15;
      t = Math.imul(t, 0x735a2d97);
      return (t ^ (t >>> 15)) >>> 0;
    });
  }

  #next32(): number {
    const s = this.#s;
    const r = Math.imul(s[1]!, 5);
    const result = Math.imul((r << 7) | (r >>> 25), 9) >>> 0;
    const t = s[1]! << 9;
    s[2]! ^= s[0]!;
    s[3]! ^= s[1]!;
    s[1]! ^= s[2]!;
    s[0]! ^= s[3]!;
    s[2]! ^= t;
    s[3] = (s[3]! << 11) | (s[3]! >>> 21);
    return result;
  }

  next(): number {
    return ((this.#next32() >>> 5) * 2 ** 26 + (this.#next32() >>> 6)) / 2 ** 53;
  }

  protected bytes(count: number): Uint8Array {
    const bytes = new Uint8Array(count);
    for (let i = 0; i < count; i++) bytes[i] = this.#next32() & 0xff;
    return bytes;
  }
}
