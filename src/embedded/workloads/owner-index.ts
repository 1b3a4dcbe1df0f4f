// SPDX-License-Identifier: Apache-2.0
// Objects by the uid of their controller, and those without one by namespace: no controller scans a whole cache.
import type { KubeObject } from '../../kube/object.ts';
import type { ChangeSource } from '../../runtime/controller.ts';
import { controllerOf } from './ownership.ts';

/** The index of each source: whoever asks for one shares it. */
const indexes = new WeakMap<object, unknown>();

/** The objects of a source by their owners. */
export function ownerIndex<T extends KubeObject>(source: ChangeSource<T>): OwnerIndex<T> {
  let index = indexes.get(source) as OwnerIndex<T> | undefined;
  if (!index) {
    index = new OwnerIndex(source);
    indexes.set(source, index);
  }
  return index;
}

export class OwnerIndex<T extends KubeObject> {
  readonly #byOwner = new Map<string, Map<string, T>>();
  readonly #orphans = new Map<string, Map<string, T>>();

  constructor(source: ChangeSource<T>) {
    source.addHandler({
      added: (object) => this.#put(object),
      updated: (object, old) => {
        this.#drop(old);
        this.#put(object);
      },
      deleted: (object) => this.#drop(object),
    });
  }

  /** What the owner with this uid controls, in the order it was first seen. */
  ownedBy(uid: string): T[] {
    return [...(this.#byOwner.get(uid)?.values() ?? [])];
  }

  /** What an owner could claim: its own and the orphans of its namespace. */
  candidates(owner: KubeObject): T[] {
    const orphans = this.#orphans.get(owner.metadata.namespace ?? '');
    return [...this.ownedBy(owner.metadata.uid!), ...(orphans?.values() ?? [])];
  }

  /** One of the owner's objects by its uid. */
  get(ownerUid: string, uid: string): T | undefined {
    return this.#byOwner.get(ownerUid)?.get(uid);
  }

  #bucketOf(object: T): [Map<string, Map<string, T>>, string] {
    const owner = controllerOf(object);
    return owner ? [this.#byOwner, owner.uid] : [this.#orphans, object.metadata.namespace ?? ''];
  }

  #put(object: T): void {
    const [buckets, key] = this.#bucketOf(object);
    let bucket = buckets.get(key);
    if (!bucket) {
      bucket = new Map();
      buckets.set(key, bucket);
    }
    bucket.set(object.metadata.uid!, object);
  }

  #drop(object: T): void {
    const [buckets, key] = this.#bucketOf(object);
    const bucket = buckets.get(key);
    bucket?.delete(object.metadata.uid!);
    if (bucket?.size === 0) buckets.delete(key);
  }
}
