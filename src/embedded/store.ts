// SPDX-License-Identifier: Apache-2.0
// The database of the embedded API server: one revision counter, one collection per kind, and the history that lets a
// watch resume. Everything in it is deep-frozen plain JSON, so readers and watchers share one object.
import { deepFreeze } from '../base/freeze.ts';
import { compareStrings } from '../base/order.ts';
import type { KubeObject } from '../kube/object.ts';

export type StoreEventType = 'ADDED' | 'MODIFIED' | 'DELETED';

/** One change. Events of a collection form a list, so a watcher is a pointer into it and costs a write nothing. */
export interface StoreEvent {
  readonly type: StoreEventType;
  readonly revision: number;
  /** Position in the collection's history. */
  readonly sequence: number;
  /** The object after the change; for DELETED its last state, under the revision of the deletion. */
  readonly object: KubeObject;
  /** The object before the change; absent for ADDED. */
  readonly previous: KubeObject | undefined;
  next: StoreEvent | undefined;
  /** Serialised lines shared by all watchers that send this event the same way. */
  lines: Map<string, Buffer> | undefined;
}

/** Computes the value of an indexed field; '' when the field is not set. */
export type FieldIndexer = (object: KubeObject) => string;

export interface CollectionOptions {
  /** Fields that lists may select by without a scan. */
  readonly indexes?: Readonly<Record<string, FieldIndexer>>;
}

export interface StoreOptions {
  /** How many changes each collection remembers for watches that resume. */
  readonly history?: number;
  /** How many changes a watcher may lag behind before it is cut off. */
  readonly maxLag?: number;
}

/** What a collection holds at one revision, in key order. */
export interface Snapshot {
  readonly revision: number;
  readonly items: readonly KubeObject[];
}

interface Entry {
  readonly key: string;
  readonly name: string;
  object: KubeObject;
  removed: boolean;
}

/** The objects of one namespace (or all cluster-scoped ones); its order is repaired only when somebody lists. */
class Bucket {
  readonly entries = new Map<string, Entry>();
  #sorted: Entry[] = [];
  #added: Entry[] = [];
  #holes = false;

  add(entry: Entry): void {
    this.entries.set(entry.name, entry);
    this.#added.push(entry);
  }

  remove(entry: Entry): void {
    this.entries.delete(entry.name);
    entry.removed = true;
    this.#holes = true;
  }

  inOrder(): readonly Entry[] {
    if (this.#holes) {
      this.#sorted = this.#sorted.filter((entry) => !entry.removed);
      this.#added = this.#added.filter((entry) => !entry.removed);
      this.#holes = false;
    }
    if (this.#added.length > 0) {
      this.#sorted = mergeSorted(
        this.#sorted,
        this.#added.sort((a, b) => compareStrings(a.name, b.name)),
      );
      this.#added = [];
    }
    return this.#sorted;
  }
}

/** Where a watcher stands. `next` is synchronous; whoever asks is told when there may be more. */
export interface Cursor {
  /** The next change, or undefined when there is none yet or the cursor is closed or expired. */
  next(): StoreEvent | undefined;
  /** Resolves once `next` has something to say, or the cursor was closed or expired. */
  wait(): Promise<void>;
  /** Calls back each time something was added, or the cursor was closed or expired: within the writer's turn, so keep it short. */
  onMore(callback: () => void): void;
  /** The watcher was too slow and lost its place. */
  readonly expired: boolean;
  readonly closed: boolean;
  close(): void;
}

class CollectionCursor implements Cursor {
  #at: StoreEvent | undefined;
  #waiting: PromiseWithResolvers<void> | undefined;
  #told: (() => void) | undefined;
  #expired = false;
  #finishing = false;
  readonly #onClose: (cursor: CollectionCursor) => void;

  constructor(at: StoreEvent, onClose: (cursor: CollectionCursor) => void) {
    this.#at = at;
    this.#onClose = onClose;
  }

  get expired(): boolean {
    return this.#expired;
  }

  get closed(): boolean {
    return this.#at === undefined;
  }

  get sequence(): number {
    return this.#at?.sequence ?? Number.POSITIVE_INFINITY;
  }

  next(): StoreEvent | undefined {
    const event = this.#at?.next;
    if (event) this.#at = event;
    else if (this.#finishing) this.close();
    return event;
  }

  wait(): Promise<void> {
    if (!this.#at || this.#at.next || this.#finishing) return Promise.resolve();
    this.#waiting ??= Promise.withResolvers<void>();
    return this.#waiting.promise;
  }

  onMore(callback: () => void): void {
    this.#told = callback;
  }

  wake(): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    waiting?.resolve();
    this.#told?.();
  }

  /** Nothing more will come: what is left can still be read. */
  finish(): void {
    this.#finishing = true;
    this.wake();
  }

  expire(): void {
    this.#expired = true;
    this.close();
  }

  close(): void {
    if (!this.#at) return;
    this.#at = undefined;
    this.#onClose(this);
    this.wake();
  }
}

/** All objects of one kind. */
export class Collection {
  readonly name: string;
  readonly #store: Store;
  readonly #history: number;
  readonly #maxLag: number;
  readonly #buckets = new Map<string, Bucket>();
  readonly #indexes: readonly { field: string; of: FieldIndexer; values: Map<string, Set<Entry>> }[];
  readonly #cursors = new Set<CollectionCursor>();
  #size = 0;
  /** The newest event that is no longer in the history: the list starts behind it. */
  #oldest: StoreEvent;
  #newest: StoreEvent;
  #compacted = 0;
  #namespaces: readonly string[] | undefined;
  #snapshot: Snapshot | undefined;

  constructor(store: Store, name: string, options: CollectionOptions, limits: Required<StoreOptions>) {
    this.#store = store;
    this.name = name;
    this.#history = limits.history;
    this.#maxLag = limits.maxLag;
    this.#indexes = Object.entries(options.indexes ?? {}).map(([field, of]) => ({ field, of, values: new Map() }));
    this.#newest = {
      type: 'ADDED',
      revision: store.revision,
      sequence: 0,
      object: { metadata: {} },
      previous: undefined,
      next: undefined,
      lines: undefined,
    };
    this.#oldest = this.#newest;
  }

  get size(): number {
    return this.#size;
  }

  get(namespace: string, name: string): KubeObject | undefined {
    return this.#buckets.get(namespace)?.entries.get(name)?.object;
  }

  /**
   * Stores a new object under the next revision and returns it frozen. The store takes the object over: the caller
   * must not keep a mutable reference. The name must be free.
   */
  insert(namespace: string, name: string, object: KubeObject): KubeObject {
    let bucket = this.#buckets.get(namespace);
    if (!bucket) {
      bucket = new Bucket();
      this.#buckets.set(namespace, bucket);
      this.#namespaces = undefined;
    }
    const frozen = this.#stamp(object);
    const entry: Entry = { key: `${namespace}/${name}`, name, object: frozen, removed: false };
    bucket.add(entry);
    this.#size++;
    for (const index of this.#indexes) addToIndex(index.values, index.of(frozen), entry);
    this.#append('ADDED', frozen, undefined);
    return frozen;
  }

  /** Replaces a stored object under the next revision and returns it frozen. The object is taken over. */
  replace(namespace: string, name: string, object: KubeObject): KubeObject {
    const entry = this.#buckets.get(namespace)!.entries.get(name)!;
    const previous = entry.object;
    const frozen = this.#stamp(object);
    entry.object = frozen;
    for (const index of this.#indexes) {
      const before = index.of(previous);
      const after = index.of(frozen);
      if (before === after) continue;
      removeFromIndex(index.values, before, entry);
      addToIndex(index.values, after, entry);
    }
    this.#append('MODIFIED', frozen, previous);
    return frozen;
  }

  /** Removes a stored object and returns its last state (or `final`, if given) under the revision of the removal. */
  remove(namespace: string, name: string, final?: KubeObject): KubeObject {
    const bucket = this.#buckets.get(namespace)!;
    const entry = bucket.entries.get(name)!;
    const previous = entry.object;
    bucket.remove(entry);
    if (bucket.entries.size === 0) {
      this.#buckets.delete(namespace);
      this.#namespaces = undefined;
    }
    this.#size--;
    for (const index of this.#indexes) removeFromIndex(index.values, index.of(previous), entry);
    const state = final ?? previous;
    const last = this.#stamp({ ...state, metadata: { ...state.metadata } });
    this.#append('DELETED', last, previous);
    return last;
  }

  /** All objects, or those of one namespace, in key order. Arrays are frozen; those of unchanged collections are shared. */
  list(namespace?: string): Snapshot {
    const revision = this.#store.revision;
    if (namespace !== undefined) {
      const bucket = this.#buckets.get(namespace);
      return { revision, items: Object.freeze(bucket ? bucket.inOrder().map((entry) => entry.object) : []) };
    }
    if (this.#snapshot) return { revision, items: this.#snapshot.items };
    const items: KubeObject[] = [];
    for (const bucket of this.#inNamespaceOrder()) for (const entry of bucket.inOrder()) items.push(entry.object);
    this.#snapshot = { revision, items: Object.freeze(items) };
    return this.#snapshot;
  }

  /** All objects as they were at a revision, in key order; undefined when that is no longer in the history. */
  listAt(revision: number): readonly KubeObject[] | undefined {
    const cursor = this.watch(revision);
    if (!cursor) return undefined;
    const objects = new Map(this.list().items.map((object) => [keyOf(object), object]));
    const seen = new Set<string>();
    for (let event = cursor.next(); event; event = cursor.next()) {
      const key = keyOf(event.object);
      if (seen.has(key)) continue;
      seen.add(key);
      if (event.previous) objects.set(key, event.previous);
      else objects.delete(key);
    }
    cursor.close();
    return [...objects].sort(([a], [b]) => compareStrings(a, b)).map(([, object]) => object);
  }

  /** The objects whose indexed field has this value, in key order, or undefined when the field has no index. */
  listByIndex(field: string, value: string): Snapshot | undefined {
    const index = this.#indexes.find((candidate) => candidate.field === field);
    if (!index) return undefined;
    const entries = [...(index.values.get(value) ?? [])].sort((a, b) => compareStrings(a.key, b.key));
    return { revision: this.#store.revision, items: entries.map((entry) => entry.object) };
  }

  /** The oldest revision a watch may start after. */
  get compactedRevision(): number {
    return Math.max(this.#oldest.revision, this.#compacted);
  }

  /** Starts watching after `revision` (undefined: after now). Undefined when that is no longer in the history. */
  watch(revision?: number): Cursor | undefined {
    let at = this.#newest;
    if (revision !== undefined && revision < this.compactedRevision) return undefined;
    if (revision !== undefined && revision < at.revision) {
      at = this.#oldest;
      while (at.next && at.next.revision <= revision) at = at.next;
    }
    const cursor = new CollectionCursor(at, (closed) => this.#cursors.delete(closed));
    this.#cursors.add(cursor);
    return cursor;
  }

  /** Forgets all history, as compaction does: watches that are open go on, older ones cannot resume. */
  compact(): void {
    this.#oldest = this.#newest;
    this.#compacted = this.#store.revision;
  }

  /** Ends every watch once it has told what happened until now. */
  finishWatches(): void {
    for (const cursor of this.#cursors) cursor.finish();
  }

  /** Ends every watch. */
  closeWatches(): void {
    for (const cursor of this.#cursors) cursor.close();
  }

  #inNamespaceOrder(): Bucket[] {
    // The order of keys `namespace/name`: the slash takes part in it ("a-b/x" comes before "a/x").
    this.#namespaces ??= [...this.#buckets.keys()].sort((a, b) => compareStrings(`${a}/`, `${b}/`));
    return this.#namespaces.map((namespace) => this.#buckets.get(namespace)!);
  }

  #stamp(object: KubeObject): KubeObject {
    object.metadata.resourceVersion = String(this.#store.advance());
    return deepFreeze(object);
  }

  #append(type: StoreEventType, object: KubeObject, previous: KubeObject | undefined): void {
    this.#snapshot = undefined;
    const sequence = this.#newest.sequence + 1;
    const event: StoreEvent = {
      type,
      revision: this.#store.revision,
      sequence,
      object,
      previous,
      next: undefined,
      lines: undefined,
    };
    this.#newest.next = event;
    this.#newest = event;
    if (sequence - this.#oldest.sequence > this.#history) this.#oldest = this.#oldest.next!;
    // A pointer into the list keeps all that follows alive: cut off those who do not move, now and then.
    if (sequence % 1024 === 0) this.#cutOffLaggards();
    for (const cursor of this.#cursors) cursor.wake();
    this.#store.notify(this, event);
  }

  #cutOffLaggards(): void {
    for (const cursor of this.#cursors) {
      if (this.#newest.sequence - cursor.sequence > this.#maxLag) cursor.expire();
    }
  }
}

/** Called right after each change, within the writer's turn: keep it short and never write from it. */
export type StoreListener = (collection: Collection, event: StoreEvent) => void;

/** The collections and the revision they share. All operations are synchronous, so each request is atomic. */
export class Store {
  #revision = 1;
  readonly #collections = new Map<string, Collection>();
  readonly #listeners = new Set<StoreListener>();
  readonly #limits: Required<StoreOptions>;

  constructor(options: StoreOptions = {}) {
    this.#limits = { history: options.history ?? 4096, maxLag: options.maxLag ?? 65_536 };
  }

  /** The revision of the latest change. */
  get revision(): number {
    return this.#revision;
  }

  /** Takes the next revision; only collections call it. */
  advance(): number {
    return ++this.#revision;
  }

  notify(collection: Collection, event: StoreEvent): void {
    for (const listener of this.#listeners) listener(collection, event);
  }

  /** The collection of that name, created on first use. */
  collection(name: string, options: CollectionOptions = {}): Collection {
    let collection = this.#collections.get(name);
    if (!collection) {
      collection = new Collection(this, name, options, this.#limits);
      this.#collections.set(name, collection);
    }
    return collection;
  }

  collections(): Iterable<Collection> {
    return this.#collections.values();
  }

  /** Removes a collection and ends its watches. */
  drop(name: string): void {
    this.#collections.get(name)?.finishWatches();
    this.#collections.delete(name);
  }

  /** Hears of every change of every collection until the returned function is called. */
  listen(listener: StoreListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  close(): void {
    for (const collection of this.#collections.values()) collection.closeWatches();
    this.#listeners.clear();
  }
}

function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace ?? ''}/${metadata.name ?? ''}`;
}

function mergeSorted(left: readonly Entry[], right: readonly Entry[]): Entry[] {
  if (left.length === 0) return [...right];
  const merged: Entry[] = [];
  const total = left.length + right.length;
  let i = 0;
  let j = 0;
  for (let at = 0; at < total; at++) {
    const fromLeft = j >= right.length || (i < left.length && left[i]!.name < right[j]!.name);
    merged.push(fromLeft ? left[i++]! : right[j++]!);
  }
  return merged;
}

function addToIndex(values: Map<string, Set<Entry>>, value: string, entry: Entry): void {
  const entries = values.get(value);
  if (entries) entries.add(entry);
  else values.set(value, new Set([entry]));
}

function removeFromIndex(values: Map<string, Set<Entry>>, value: string, entry: Entry): void {
  const entries = values.get(value);
  entries?.delete(entry);
  if (entries?.size === 0) values.delete(value);
}
