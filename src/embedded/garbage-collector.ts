// SPDX-License-Identifier: Apache-2.0
// Owner references: when an owner goes, so do its dependents, before it, after it, or not at all, as its delete asked.
import type { Clock, Timer } from '../base/clock.ts';
import { percentEncoded } from '../base/percent.ts';
import type { KubeObject, OwnerReference } from '../kube/object.ts';
import { collectionPath } from '../kube/paths.ts';
import type { Registry } from './registry.ts';
import type { Resource } from './resource.ts';
import { foregroundFinalizer, orphanFinalizer } from './rest/delete.ts';
import { type ApiRequest, type ApiResponse, systemUser } from './rest/request.ts';
import type { Collection, Store, StoreEvent } from './store.ts';

/** Where an object is. */
interface Place {
  readonly collection: Collection;
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** How many objects are looked at before others get a turn. */
const batch = 500;

type State = 'solid' | 'dangling' | 'waiting';

/** Watches every collection; acts after the writer's turn. */
export class GarbageCollector {
  readonly #store: Store;
  readonly #registry: Registry;
  readonly #clock: Clock;
  readonly #send: (request: ApiRequest) => ApiResponse;
  /** Dependents by the uid of their owner. */
  readonly #dependents = new Map<string, Map<string, Place>>();
  readonly #queue = new Map<string, Place>();
  #running = false;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(store: Store, registry: Registry, clock: Clock, send: (request: ApiRequest) => ApiResponse) {
    this.#store = store;
    this.#registry = registry;
    this.#clock = clock;
    this.#send = send;
    store.listen((collection, event) => this.#observe(collection, event));
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#queue.clear();
  }

  #observe(collection: Collection, event: StoreEvent): void {
    const owners = event.object.metadata.ownerReferences;
    const before = event.previous?.metadata.ownerReferences;
    const { uid, namespace = '' } = event.object.metadata;
    if (owners !== before || event.type === 'DELETED') this.#index(collection, event, owners, before);
    if (event.type === 'DELETED') {
      const orphaned = this.#dependents.get(uid!);
      if (orphaned) for (const place of orphaned.values()) this.#enqueue(place);
      // Owners that wait for this one to go.
      for (const owner of owners ?? []) this.#enqueueOwner(owner, namespace);
      return;
    }
    const { deletionTimestamp, finalizers } = event.object.metadata;
    const winding =
      deletionTimestamp !== undefined &&
      finalizers?.some((finalizer) => finalizer === foregroundFinalizer || finalizer === orphanFinalizer);
    // Most objects come with owners that are there: nothing to do until one of those goes, which is an event of its own.
    const unowned = owners && owners !== before && !this.#allSolid(owners, namespace);
    if (unowned || winding) this.#enqueue(placeOf(collection, event.object));
    if (before && owners !== before) {
      for (const owner of before) this.#enqueueOwner(owner, namespace);
    }
  }

  #index(
    collection: Collection,
    event: StoreEvent,
    owners: readonly OwnerReference[] | undefined,
    before: readonly OwnerReference[] | undefined,
  ): void {
    const uid = event.object.metadata.uid!;
    for (const owner of before ?? []) {
      const places = this.#dependents.get(owner.uid);
      places?.delete(uid);
      if (places?.size === 0) this.#dependents.delete(owner.uid);
    }
    if (event.type === 'DELETED') return;
    for (const owner of owners ?? []) {
      let places = this.#dependents.get(owner.uid);
      if (!places) {
        places = new Map();
        this.#dependents.set(owner.uid, places);
      }
      places.set(uid, placeOf(collection, event.object));
    }
  }

  #enqueueOwner(owner: OwnerReference, namespace: string): void {
    const found = this.#find(owner, namespace);
    if (typeof found === 'object') this.#enqueue(found.place);
  }

  #enqueue(place: Place): void {
    if (this.#stopped) return;
    this.#queue.set(place.uid, place);
    if (this.#running) return;
    this.#running = true;
    void Promise.resolve().then(() => this.#run());
  }

  #run(): void {
    let left = batch;
    for (const [uid, place] of this.#queue) {
      if (left-- === 0) break;
      this.#queue.delete(uid);
      this.#process(place);
    }
    this.#running = this.#queue.size > 0 && !this.#stopped;
    if (this.#running) this.#timer = this.#clock.after(0, () => this.#run());
  }

  #process(place: Place): void {
    const object = place.collection.get(place.namespace, place.name);
    const resource = object && this.#resourceOf(object);
    if (!object || !resource || object.metadata.uid !== place.uid) return;
    if (object.metadata.deletionTimestamp !== undefined) {
      if (object.metadata.finalizers?.includes(orphanFinalizer)) this.#orphan(resource, object);
      else if (object.metadata.finalizers?.includes(foregroundFinalizer)) this.#deleteInForeground(resource, object);
      return;
    }
    this.#checkOwners(resource, object);
  }

  #checkOwners(resource: Resource, object: KubeObject): void {
    const owners = object.metadata.ownerReferences ?? [];
    if (owners.length === 0) return;
    const states = owners.map((owner) => this.#stateOf(owner, object.metadata.namespace ?? ''));
    if (states.includes('solid')) {
      const kept = owners.filter((_, i) => states[i] === 'solid');
      if (kept.length < owners.length) this.#patch(resource, object, { ownerReferences: kept });
      return;
    }
    const hasDependents = this.#dependents.has(object.metadata.uid!);
    const policy = states.includes('waiting') && hasDependents ? 'Foreground' : this.#policyOf(object);
    this.#request(resource, object, 'DELETE', {
      preconditions: { uid: object.metadata.uid },
      propagationPolicy: policy,
    });
  }

  #allSolid(owners: readonly OwnerReference[], namespace: string): boolean {
    for (const owner of owners) if (this.#stateOf(owner, namespace) !== 'solid') return false;
    return true;
  }

  #policyOf(object: KubeObject): string {
    if (object.metadata.finalizers?.includes(orphanFinalizer)) return 'Orphan';
    return object.metadata.finalizers?.includes(foregroundFinalizer) ? 'Foreground' : 'Background';
  }

  #stateOf(owner: OwnerReference, namespace: string): State {
    const found = this.#find(owner, namespace);
    // A kind we do not serve may come back: nothing is deleted on a guess.
    if (found === 'unknown') return 'solid';
    if (found === 'absent') return 'dangling';
    const { deletionTimestamp, finalizers } = found.object.metadata;
    return deletionTimestamp !== undefined && finalizers?.includes(foregroundFinalizer) ? 'waiting' : 'solid';
  }

  #find(owner: OwnerReference, namespace: string): { object: KubeObject; place: Place } | 'unknown' | 'absent' {
    const group = owner.apiVersion.includes('/') ? owner.apiVersion.split('/')[0]! : '';
    const resource = this.#registry.findKind(group, owner.kind);
    if (!resource) return 'unknown';
    // An owner in a namespace cannot own what is in none.
    if (resource.namespaced && namespace === '') return 'unknown';
    const collection = this.#collectionOf(resource);
    const object = collection.get(resource.namespaced ? namespace : '', owner.name);
    if (!object || object.metadata.uid !== owner.uid) return 'absent';
    return { object, place: placeOf(collection, object) };
  }

  /** Lets the dependents stay, without their owner. */
  #orphan(resource: Resource, object: KubeObject): void {
    const dependents = Array.from(this.#dependents.get(object.metadata.uid!)?.values() ?? []);
    for (const place of dependents) {
      const dependent = place.collection.get(place.namespace, place.name);
      const kind = dependent && this.#resourceOf(dependent);
      if (!dependent || !kind) continue;
      const kept = (dependent.metadata.ownerReferences ?? []).filter((owner) => owner.uid !== object.metadata.uid);
      this.#patch(kind, dependent, { ownerReferences: kept });
    }
    this.#dropFinalizer(resource, object, orphanFinalizer);
  }

  /** Waits for those dependents that block the owner, and sees that all of them go. */
  #deleteInForeground(resource: Resource, object: KubeObject): void {
    let blocked = false;
    for (const place of this.#dependents.get(object.metadata.uid!)?.values() ?? []) {
      const dependent = place.collection.get(place.namespace, place.name);
      const reference = dependent?.metadata.ownerReferences?.find((owner) => owner.uid === object.metadata.uid);
      if (!dependent || !reference) continue;
      if (reference.blockOwnerDeletion) blocked = true;
      if (dependent.metadata.deletionTimestamp === undefined) this.#enqueue(place);
    }
    if (!blocked) this.#dropFinalizer(resource, object, foregroundFinalizer);
  }

  #dropFinalizer(resource: Resource, object: KubeObject, finalizer: string): void {
    const finalizers = (object.metadata.finalizers ?? []).filter((other) => other !== finalizer);
    this.#patch(resource, object, { finalizers });
  }

  #patch(resource: Resource, object: KubeObject, metadata: object): void {
    this.#request(resource, object, 'PATCH', { metadata: { uid: object.metadata.uid, ...metadata } });
  }

  #request(resource: Resource, object: KubeObject, method: string, body: unknown): void {
    const type = { ...resource, version: resource.storageVersion };
    const path = `${collectionPath(type, object.metadata.namespace)}/${percentEncoded(object.metadata.name!)}`;
    this.#send({
      method,
      path,
      query: {},
      body,
      ownsBody: true,
      contentType: 'application/merge-patch+json',
      user: systemUser,
    });
  }

  #resourceOf(object: KubeObject): Resource | undefined {
    const apiVersion = object.apiVersion ?? '';
    const group = apiVersion.includes('/') ? apiVersion.split('/')[0]! : '';
    return this.#registry.findKind(group, object.kind ?? '');
  }

  #collectionOf(resource: Resource): Collection {
    return this.#store.collection(resource.id);
  }
}

function placeOf(collection: Collection, object: KubeObject): Place {
  return {
    collection,
    namespace: object.metadata.namespace ?? '',
    name: object.metadata.name!,
    uid: object.metadata.uid!,
  };
}
