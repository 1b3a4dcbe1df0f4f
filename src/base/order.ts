// SPDX-License-Identifier: Apache-2.0
// Total orders: every sort in the house ends in one, so that the same input gives the same bytes.

/** Orders strings by UTF-16 code units: the same on every machine and locale. */
export function compareStrings(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** A comparison by the first of several that tells two items apart. */
export function chain<T>(...comparisons: ((a: T, b: T) => number)[]): (a: T, b: T) => number {
  return (a, b) => {
    for (const compare of comparisons) {
      const order = compare(a, b);
      if (order !== 0) return order;
    }
    return 0;
  };
}
