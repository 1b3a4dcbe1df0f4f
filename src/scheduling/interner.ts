// SPDX-License-Identifier: Apache-2.0
// Structures to small numbers: equal plain values get the same id, without building a text of them. A value is walked as a
// path through a trie whose edges are (state, token).
import { absent, PairTable } from './pair-table.ts';

/** Gives equal JSON values equal ids. Absent and undefined are the same; the order of keys matters, except to `walkSorted`. */
export class Interner {
  readonly #tokens = new Map<unknown, number>();
  readonly #edges = new PairTable(1024);
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
    let next = this.#edges.get(state, id);
    if (next === absent) {
      next = this.#states++;
      this.#edges.add(state, id, next);
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

  /** The state after a whole value, whatever the order of its keys. */
  walkSorted(state: number, value: unknown): number {
    if (typeof value !== 'object' || value === null) return this.step(state, value);
    if (Array.isArray(value)) {
      let at = this.step(state, '[');
      for (const item of value) at = this.walkSorted(at, item);
      return this.step(at, ']');
    }
    let at = this.step(state, '{');
    for (const key of Object.keys(value).sort()) {
      const field = (value as Record<string, unknown>)[key];
      if (field !== undefined) at = this.walkSorted(this.step(at, key), field);
    }
    return this.step(at, '}');
  }
}

/**
 * Distinct values in the order of first sight. Values are told apart by a cheap id first; only a new id is looked at closely,
 * so that the same value written in another order is still the same.
 */
export class Distinct<T> {
  readonly all: T[] = [];
  readonly #numbers = new Numbering();
  readonly #byNumber: number[] = [];
  readonly #byForm = new Map<number, number>();

  /** The place in `all` of the value with this id; `form` gives equal values equal numbers. */
  of(id: number, make: () => T, form: (value: T) => number): number {
    const number = this.#numbers.of(id);
    const known = this.#byNumber[number];
    if (known !== undefined) return known;
    const value = make();
    const exact = form(value);
    let place = this.#byForm.get(exact);
    if (place === undefined) {
      place = this.all.length;
      this.all.push(value);
      this.#byForm.set(exact, place);
    }
    this.#byNumber[number] = place;
    return place;
  }
}

/** Numbers sparse ids densely, in the order of first sight. */
export class Numbering {
  #dense = new Int32Array(1024).fill(-1);
  #size = 0;

  /** The dense id; a new one equals the former size. */
  of(sparse: number): number {
    if (sparse >= this.#dense.length) {
      const larger = new Int32Array(Math.max(sparse + 1, this.#dense.length * 2)).fill(-1);
      larger.set(this.#dense);
      this.#dense = larger;
    }
    let id = this.#dense[sparse]!;
    if (id < 0) {
      id = this.#size++;
      this.#dense[sparse] = id;
    }
    return id;
  }
}
