// SPDX-License-Identifier: Apache-2.0
// A binary heap whose entries know their place, so that any of them can be taken out again at once.

/** What an entry carries for the heap. Start it at -1; a heap writes it, nobody else. */
export interface HeapEntry {
  heapIndex: number;
}

/** Entries in the order of `before`, which must be a strict total order. An entry is in at most one heap at a time. */
export class Heap<E extends HeapEntry> {
  readonly #entries: E[] = [];
  readonly #before: (a: E, b: E) => boolean;

  constructor(before: (a: E, b: E) => boolean) {
    this.#before = before;
  }

  get size(): number {
    return this.#entries.length;
  }

  /** The first entry, or undefined when empty. */
  peek(): E | undefined {
    return this.#entries[0];
  }

  push(entry: E): void {
    entry.heapIndex = this.#entries.length;
    this.#entries.push(entry);
    this.#rise(entry.heapIndex);
  }

  /** Takes the first entry out. */
  pop(): E | undefined {
    const first = this.#entries[0];
    if (first) this.remove(first);
    return first;
  }

  /** Takes an entry out; says whether it was in. */
  remove(entry: E): boolean {
    const index = entry.heapIndex;
    if (this.#entries[index] !== entry) return false;
    const last = this.#entries.pop()!;
    if (last !== entry) {
      this.#place(last, index);
      this.#rise(index);
      this.#sink(last.heapIndex);
    }
    entry.heapIndex = -1;
    return true;
  }

  #place(entry: E, index: number): void {
    this.#entries[index] = entry;
    entry.heapIndex = index;
  }

  #rise(from: number): void {
    const entry = this.#entries[from]!;
    let index = from;
    while (index > 0) {
      const parent = this.#entries[(index - 1) >> 1]!;
      if (!this.#before(entry, parent)) break;
      const above = parent.heapIndex;
      this.#place(parent, index);
      index = above;
    }
    this.#place(entry, index);
  }

  #sink(from: number): void {
    const entry = this.#entries[from]!;
    let index = from;
    for (;;) {
      let child = this.#entries[2 * index + 1];
      if (!child) break;
      const right = this.#entries[2 * index + 2];
      if (right && this.#before(right, child)) child = right;
      if (!this.#before(child, entry)) break;
      const below = child.heapIndex;
      this.#place(child, index);
      index = below;
    }
    this.#place(entry, index);
  }
}
