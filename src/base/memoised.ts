// SPDX-License-Identifier: Apache-2.0

/** The same function, which works out each answer once. */
export function memoised<A extends object, B>(of: (a: A) => B): (a: A) => B {
  const known = new Map<A, B>();
  return (a) => {
    let b = known.get(a);
    if (b === undefined) {
      b = of(a);
      known.set(a, b);
    }
    return b;
  };
}
