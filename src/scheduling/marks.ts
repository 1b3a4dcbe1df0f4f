// SPDX-License-Identifier: Apache-2.0
// Which pods are done with. A pass over all of them has a byte for each; one over a few of very many must not pay for all: thousands
// of such passes ask what a cluster would be like without some node.

export class Marks {
  readonly #all: Uint8Array | undefined;
  readonly #few: Set<number> | undefined;

  /** For `some` pods of `all`. */
  constructor(all: number, some: number) {
    if (some * 8 < all) this.#few = new Set();
    else this.#all = new Uint8Array(all);
  }

  has(pod: number): boolean {
    return this.#all ? this.#all[pod] === 1 : this.#few!.has(pod);
  }

  add(pod: number): void {
    if (this.#all) this.#all[pod] = 1;
    else this.#few!.add(pod);
  }
}
