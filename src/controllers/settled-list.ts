// SPDX-License-Identifier: Apache-2.0
// Objects report all day long that nothing changed. Whoever rests while nothing changes must not take that for a change.
import { type KubeObject, keyOf } from '../kube/object.ts';

/** Tells lists of objects that differ only in what does not matter from others. */
export class SettledList<T extends KubeObject> {
  readonly #isAlike: (before: T, after: T) => boolean;
  #list: readonly T[] = [];
  /** The list that was asked about last. */
  #asked: readonly T[] = [];
  /** As they were told of last. */
  #byKey = new Map<string, T>();

  constructor(isAlike: (before: T, after: T) => boolean) {
    this.#isAlike = isAlike;
  }

  /** The list as it was when something that matters last changed: the same object until then. */
  settled(list: readonly T[]): readonly T[] {
    if (list === this.#asked) return this.#list;
    this.#asked = list;
    if (list.length === this.#list.length && list.every((object) => this.#isKnown(object))) return this.#list;
    this.#list = list;
    this.#byKey = new Map(list.map((object) => [keyOf(object), object]));
    return list;
  }

  #isKnown(object: T): boolean {
    const key = keyOf(object);
    const known = this.#byKey.get(key);
    if (known === object) return true;
    if (known === undefined || !this.#isAlike(known, object)) return false;
    this.#byKey.set(key, object);
    return true;
  }
}
