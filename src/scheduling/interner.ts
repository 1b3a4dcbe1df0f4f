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
  /** By cheap id: the place in `all`, plus one. */
  #places = new Int32Array(1024);
  readonly #byForm = new Map<number, number>();

  /** The place in `all` of the value with this id; -1 when the id is new: then `add` it. */
  place(id: number): number {
    return id < this.#places.length ? this.#places[id]! - 1 : -1;
  }

  /** The place of the value with a new id; `form` is equal for equal values. */
  add(id: number, value: T, form: number): number {
    let place = this.#byForm.get(form);
    if (place === undefined) {
      place = this.all.length;
      this.all.push(value);
      this.#byForm.set(form, place);
    }
    if (id >= this.#places.length) {
      const larger = new Int32Array(Math.max(id + 1, this.#places.length * 2));
      larger.set(this.#places);
      this.#places = larger;
    }
    this.#places[id] = place + 1;
    return place;
  }
}

/** Whether two JSON values are equal, keys in the same order. What differs only in order is not found equal. */
export function isSameValue(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (!isSameValue(a[i], b[i])) return false;
    return true;
  }
  if (Array.isArray(b)) return false;
  let fields = 0;
  for (const key in a) {
    const other = (b as Record<string, unknown>)[key];
    if (other === undefined || !isSameValue((a as Record<string, unknown>)[key], other)) return false;
    fields++;
  }
  for (const _ in b) fields--;
  return fields === 0;
}
