// SPDX-License-Identifier: Apache-2.0
// Structures to small numbers: equal plain values get the same id, without building a text of them. A value is walked as a
// path through a trie whose edges are (state, token).

/** Gives equal JSON values equal ids. Absent and undefined are the same; the order of keys matters (a different order only costs sharing). */
export class Interner {
  readonly #tokens = new Map<unknown, number>();
  readonly #edges = new Map<number, number>();
  #states = 1;

  /** The state after `state` when `token` (a string, number, boolean or null) comes next. Start with 0. */
  step(state: number, token: unknown): number {
    let id = this.#tokens.get(token);
    if (id === undefined) {
      id = this.#tokens.size;
      this.#tokens.set(token, id);
    }
    return this.join(state, id);
  }

  /** Like `step` with a number that is not a token: an id of another interner, a length. */
  join(state: number, id: number): number {
    // Two numbers below 2^26 in one double.
    const edge = state * 67_108_864 + id;
    let next = this.#edges.get(edge);
    if (next === undefined) {
      next = this.#states++;
      this.#edges.set(edge, next);
    }
    return next;
  }

  /** The state after a whole value. */
  walk(state: number, value: unknown): number {
    if (typeof value !== 'object' || value === null) return this.step(state, value);
    if (Array.isArray(value)) {
      let at = this.step(state, '[');
      for (const item of value) at = this.walk(at, item);
      return this.step(at, ']');
    }
    let at = this.step(state, '{');
    for (const key in value) {
      const field = (value as Record<string, unknown>)[key];
      if (field === undefined) continue;
      at = this.walk(this.step(at, key), field);
    }
    return this.step(at, '}');
  }
}

/** Numbers sparse ids densely, in the order of first sight. */
export class Numbering {
  readonly #dense = new Map<number, number>();

  /** The dense id, and whether it was seen for the first time (then it equals the former size). */
  of(sparse: number): number {
    let id = this.#dense.get(sparse);
    if (id === undefined) {
      id = this.#dense.size;
      this.#dense.set(sparse, id);
    }
    return id;
  }

  get size(): number {
    return this.#dense.size;
  }
}
