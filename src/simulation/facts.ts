// SPDX-License-Identifier: Apache-2.0
import type { VirtualClock } from '../base/clock.ts';
import type { Store } from '../embedded/store.ts';
import type { Pod } from '../kube/kinds.ts';
import type { KubeObject } from '../kube/object.ts';
import { collections } from './collections.ts';
import type { Facts, SimulatedCloud } from './contract.ts';

/** The truth: what is stored, and what is in the books. */
export class StoreFacts implements Facts {
  readonly clouds: readonly SimulatedCloud[];
  readonly #clock: VirtualClock;
  readonly #stores: readonly Store[];
  /** Faults that are on. */
  #faults = 0;
  #calmSince: number;

  constructor(clock: VirtualClock, stores: readonly Store[], clouds: readonly SimulatedCloud[]) {
    this.#clock = clock;
    this.#stores = stores;
    this.clouds = clouds;
    this.#calmSince = clock.now();
  }

  get now(): number {
    return this.#clock.now();
  }

  get calmSince(): number | undefined {
    return this.#faults > 0 ? undefined : this.#calmSince;
  }

  faultBegan(): void {
    this.#faults++;
  }

  faultEnded(): void {
    this.#faults--;
    this.#calmSince = this.#clock.now();
  }

  get<T extends KubeObject>(collection: string, namespace: string, name: string): T | undefined {
    for (const store of this.#stores) {
      const found = store.collection(collection).get(namespace, name);
      if (found) return found as T;
    }
    return undefined;
  }

  podsOn(node: string): readonly Pod[] {
    return this.#stores.flatMap(
      (store) => (store.collection(collections.pods).listByIndex('spec.nodeName', node)?.items ?? []) as readonly Pod[],
    );
  }

  list<T extends KubeObject>(collection: string): readonly T[] {
    const [first, ...others] = this.#stores.map((store) => store.collection(collection).list().items as readonly T[]);
    return others.some(({ length }) => length > 0) ? [first ?? [], ...others].flat() : (first ?? []);
  }
}
