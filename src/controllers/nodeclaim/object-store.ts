// SPDX-License-Identifier: Apache-2.0
// The objects of one kind as this process knows them: the informer's copy, or what the process wrote itself for as long
// as that copy lags behind. Whoever reads here never acts on a state that it has changed already.
import { deepFreeze } from '../../base/freeze.ts';
import { ignoreNotFound, isConflict } from '../../kube/api-error.ts';
import type { Informer } from '../../kube/informer.ts';
import { createMergePatch } from '../../kube/merge-patch.ts';
import { type KubeObject, keyOf, type ResourceType } from '../../kube/object.ts';
import type { ResourceClient } from '../../kube/resource-client.ts';
import type { Cluster } from '../../runtime/clusters.ts';

export interface StoreWriteOptions {
  readonly signal: AbortSignal;
  /** Refuse with a conflict unless the object is still the one that was read. Lists are always written so. */
  readonly lock?: boolean;
}

/**
 * Reads and writes the objects of a cluster-scoped kind. Writes are merge patches: fields that nobody changed are left
 * to whoever owns them. A write gives what is stored now, or undefined when the object is gone.
 */
export class ObjectStore<T extends KubeObject> {
  readonly informer: Informer<T>;
  readonly #resource: ResourceClient<T>;
  /** What was written and not seen by the informer yet. */
  readonly #written = new Map<string, T>();

  constructor(cluster: Cluster, type: ResourceType<T>, options: { tolerateMissing?: boolean } = {}) {
    this.informer = cluster.informers.get(type, options);
    this.#resource = cluster.client.resource(type);
    this.informer.addHandler({
      added: (object) => this.#saw(object),
      updated: (object) => this.#saw(object),
      deleted: (object) => void this.#written.delete(keyOf(object)),
    });
  }

  /** The newest state known. */
  get(name: string): T | undefined {
    return this.#written.get(name) ?? this.informer.get(name);
  }

  /** The newest states known of all objects. */
  list(): T[] {
    return this.informer.list().map((object) => this.#written.get(keyOf(object)) ?? object);
  }

  /** Writes what differs between two versions of an object, its status left out. */
  patch(before: T, after: T, options: StoreWriteOptions): Promise<T | undefined> {
    return this.#patch(before, createMergePatch(withoutStatus(before), withoutStatus(after)), options);
  }

  /** Writes what differs between the statuses of two versions of an object. */
  patchStatus(before: T, after: T, options: StoreWriteOptions): Promise<T | undefined> {
    const patch = createMergePatch({ status: statusOf(before) }, { status: statusOf(after) });
    return this.#patch(before, patch, options, 'status');
  }

  /** Asks for this very object to be deleted, not for another of its name. Gives false when it was gone already. */
  async delete(object: T, signal: AbortSignal): Promise<boolean> {
    const { name = '', uid } = object.metadata;
    const deletion = this.#resource.delete(name, { signal, ...(uid ? { preconditions: { uid } } : {}) });
    const left = await ignoreNotFound(deletion.then((rest) => ({ rest })));
    if (left?.rest) this.#remember(left.rest);
    return left !== undefined;
  }

  /** The object as the API server has it now, past every cache. */
  read(name: string, signal: AbortSignal): Promise<T | undefined> {
    return ignoreNotFound(this.#resource.get(name, { signal }));
  }

  /** All objects as the API server has them now. Throws when it does not serve the kind. */
  async readAll(signal: AbortSignal): Promise<readonly T[]> {
    return (await this.#resource.listAll({ signal })).items;
  }

  async #patch(
    before: T,
    patch: Record<string, unknown>,
    options: StoreWriteOptions,
    subresource?: string,
  ): Promise<T | undefined> {
    if (Object.keys(patch).length === 0) return before;
    const { name = '', resourceVersion } = before.metadata;
    // A merge patch replaces a list as a whole: what somebody else added meanwhile must not get lost.
    if (options.lock || hasList(patch)) {
      patch['metadata'] = { ...(patch['metadata'] as object | undefined), resourceVersion };
    }
    const { signal } = options;
    try {
      const stored = await ignoreNotFound(
        this.#resource.patch(name, patch, { signal, ...(subresource ? { subresource } : {}) }),
      );
      if (stored) this.#remember(stored);
      return stored;
    } catch (error) {
      if (isConflict(error)) await this.#catchUp(name, signal);
      throw error;
    }
  }

  /** The informer lags behind: the next try would meet the same conflict. */
  async #catchUp(name: string, signal: AbortSignal): Promise<void> {
    const newest = await this.read(name, signal).catch(() => undefined);
    if (newest) this.#remember(newest);
  }

  #remember(object: T): void {
    const seen = this.informer.get(keyOf(object));
    // The event may have come before the answer: then the informer knows better, also that it is gone.
    if (seen && seen.metadata.uid === object.metadata.uid && isNewer(object, seen)) {
      this.#written.set(keyOf(object), deepFreeze(object));
    }
  }

  #saw(object: T): void {
    const written = this.#written.get(keyOf(object));
    if (!written) return;
    if (written.metadata.uid !== object.metadata.uid || !isNewer(written, object)) {
      this.#written.delete(keyOf(object));
    }
  }
}

/**
 * Whether `a` is a later state than `b` of the same object. Kubernetes guarantees since 1.35 what has always been so:
 * resource versions are whole numbers that grow. Of others nothing is known, so nothing is claimed.
 */
function isNewer(a: KubeObject, b: KubeObject): boolean {
  const [left, right] = [a.metadata.resourceVersion ?? '', b.metadata.resourceVersion ?? ''];
  if (!/^[0-9]{1,30}$/.test(left) || !/^[0-9]{1,30}$/.test(right)) return false;
  return BigInt(left) > BigInt(right);
}

function statusOf(object: KubeObject): unknown {
  return (object as { status?: unknown }).status;
}

function withoutStatus(object: KubeObject): object {
  const { status: _, ...rest } = object as KubeObject & { status?: unknown };
  return rest;
}

function hasList(value: unknown): boolean {
  if (Array.isArray(value)) return true;
  return typeof value === 'object' && value !== null && Object.values(value).some(hasList);
}
