// SPDX-License-Identifier: Apache-2.0
// Objects report all day long that nothing changed. Whoever rests while nothing changes must not take that for a change.
import { type KubeObject, keyOf } from '../kube/object.ts';

/** Tells lists of objects that differ only in what does not matter from others. */
export class SettledList<T extends KubeObject> {
  readonly #isAlike: (before: T, after: T) => boolean;
  #list: readonly T[] = [];
  /** The list that was asked about last: it differs from `#list` in nothing that matters. */
  #asked: readonly T[] = [];

  constructor(isAlike: (before: T, after: T) => boolean) {
    this.#isAlike = isAlike;
  }

  /** The list as it was when something that matters last changed: the same object until then. */
  settled(list: readonly T[]): readonly T[] {
    const before = this.#asked;
    if (list === before) return this.#list;
    this.#asked = list;
    if (this.#areAlike(before, list)) return this.#list;
    this.#list = list;
    return list;
  }

  /** An object keeps its place in the lists of an informer for as long as it is there: mostly none is looked up. */
  #areAlike(before: readonly T[], after: readonly T[]): boolean {
    if (after.length !== before.length) return false;
    for (let i = 0; i < after.length; i++) {
      const [was, is] = [before[i]!, after[i]!];
      if (was === is) continue;
      if (keyOf(was) !== keyOf(is)) return this.#areAlikeByKey(before, after);
      if (!this.#isAlike(was, is)) return false;
    }
    return true;
  }

  #areAlikeByKey(before: readonly T[], after: readonly T[]): boolean {
    const byKey = new Map(before.map((object) => [keyOf(object), object]));
    return after.every((is) => {
      const was = byKey.get(keyOf(is));
      return was !== undefined && (was === is || this.#isAlike(was, is));
    });
  }
}
