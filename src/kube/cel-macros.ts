// SPDX-License-Identifier: Apache-2.0
// The macros of CEL that loop: what each makes of the steps of its loop.

import { bool, CelError, celCompare, isMap, mapGet, mapKeys, noSuchOverload } from './cel-values.ts';

/** One turn of a loop. */
interface Step {
  readonly item: unknown;
  readonly value: unknown;
  readonly key: unknown;
}
/** What a step says when its filter does. */
export const skipped: unique symbol = Symbol('skipped');
/** Makes the result of a loop from its steps. */
export type Collect = (length: number, step: (i: number) => Step | typeof skipped) => unknown;

export const collectMapped: Collect = (length, step) => {
  const list: unknown[] = [];
  for (let i = 0; i < length; i++) {
    const result = step(i);
    if (result !== skipped) list.push(result.value);
  }
  return list;
};

/** `all` and `exists`: the deciding item wins over items that fail. */
const quantify =
  (deciding: boolean): Collect =>
  (length, step) => {
    let failure: unknown;
    for (let i = 0; i < length; i++) {
      try {
        const result = step(i);
        if (result !== skipped && bool(result.value) === deciding) return deciding;
      } catch (error) {
        if (!(error instanceof CelError)) throw error;
        failure ??= error;
      }
    }
    if (failure !== undefined) throw failure;
    return !deciding;
  };

const existsOne: Collect = (length, step) => {
  let count = 0;
  for (let i = 0; i < length; i++) {
    const result = step(i);
    if (result !== skipped && bool(result.value)) count++;
  }
  return count === 1;
};

const filterItems: Collect = (length, step) => {
  const list: unknown[] = [];
  for (let i = 0; i < length; i++) {
    const result = step(i);
    if (result !== skipped && bool(result.value)) list.push(result.item);
  }
  return list;
};

const transformMap: Collect = (length, step) => {
  const map = new Map<unknown, unknown>();
  for (let i = 0; i < length; i++) {
    const result = step(i);
    if (result !== skipped) map.set(result.key, result.value);
  }
  return map;
};

const transformMapEntry: Collect = (length, step) => {
  const map = new Map<unknown, unknown>();
  for (let i = 0; i < length; i++) {
    const result = step(i);
    if (result === skipped) continue;
    if (!isMap(result.value)) throw noSuchOverload();
    for (const key of mapKeys(result.value)) {
      if (map.has(key)) throw new CelError(`insert failed: key ${String(key)} already exists`);
      map.set(key, mapGet(result.value, key));
    }
  }
  return map;
};

const sortBy: Collect = (length, step) => {
  const steps: Step[] = [];
  for (let i = 0; i < length; i++) {
    const result = step(i);
    if (result !== skipped) steps.push(result);
  }
  return steps.sort((a, b) => celCompare(a.value, b.value)).map(({ item }) => item);
};

/** By name and number of arguments; with three or more, the first two name variables. */
export const collectors: ReadonlyMap<string, Collect> = new Map([
  ['all/2', quantify(false)],
  ['exists/2', quantify(true)],
  ['exists_one/2', existsOne],
  ['existsOne/2', existsOne],
  ['filter/2', filterItems],
  ['map/2', collectMapped],
  ['sortBy/2', sortBy],
  ['all/3', quantify(false)],
  ['exists/3', quantify(true)],
  ['exists_one/3', existsOne],
  ['existsOne/3', existsOne],
  ['transformList/3', collectMapped],
  ['transformList/4', collectMapped],
  ['transformMap/3', transformMap],
  ['transformMap/4', transformMap],
  ['transformMapEntry/3', transformMapEntry],
  ['transformMapEntry/4', transformMapEntry],
]);
