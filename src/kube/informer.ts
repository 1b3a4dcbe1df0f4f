// SPDX-License-Identifier: Apache-2.0
// The local copy of a collection, with indexes, and callbacks for its changes.
import { type Clock, RealClock } from '../base/clock.ts';
import { planted } from '../base/defects.ts';
import { messageOf } from '../base/errors.ts';
import { deepEqual, deepFreeze } from '../base/freeze.ts';
import { compareStrings } from '../base/order.ts';
import { type Random, SystemRandom } from '../base/random.ts';
import type { KubeClient } from './client.ts';
import { type Log, silent } from './log.ts';
import { type KubeObject, keyOf, type ResourceType, type WatchEvent } from './object.ts';
import { Reflector } from './reflector.ts';

/** Callbacks for changes. They run in the order they were added, synchronously; what they throw is logged. */
export interface InformerHandler<T extends KubeObject> {
  added?(object: T): void;
  updated?(object: T, old: T): void;
  /** `stale` when the deletion itself was missed: the object is the last state seen, not the last there was. */
  deleted?(object: T, stale: boolean): void;
}

/** The values under which an object is found; none when it gives undefined or an empty list. */
export type IndexFunction<T> = (object: T) => string | readonly string[] | undefined;

export interface InformerOptions<T extends KubeObject> {
  readonly client: KubeClient;
  readonly type: ResourceType<T>;
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly indexes?: Readonly<Record<string, IndexFunction<T>>> | undefined;
  /**
   * What is kept of an object; `old` is what is kept of it so far, for parts that are still the same. Must not change its
   * arguments. Default: everything but `managedFields`.
   */
  readonly transform?: ((object: T, old: T | undefined) => T) | undefined;
  /** A kind that is not served counts as an empty collection until it is. */
  readonly tolerateMissing?: boolean | undefined;
  /** The server is in this process: its watch ends with the server only. */
  readonly isDirect?: boolean | undefined;
  readonly clock?: Clock;
  readonly random?: Random;
  readonly log?: Log;
}

/**
 * A collection of the API server, kept in memory and in step. Objects are deep-frozen: clone before changing. An object
 * that did not change keeps its identity, also over a new list. Objects are kept under `keyOf`.
 */
export class Informer<T extends KubeObject> {
  readonly type: ResourceType<T>;
  readonly #options: InformerOptions<T>;
  readonly #log: Log;
  readonly #objects = new Map<string, T>();
  readonly #indexes = new Map<string, Index<T>>();
  readonly #handlers = new Set<InformerHandler<T>>();
  readonly #synced = Promise.withResolvers<void>();
  #hasSynced = false;
  #running: Promise<void> | undefined;
  #snapshot: readonly T[] | undefined;

  constructor(options: InformerOptions<T>) {
    this.type = options.type;
    this.#options = options;
    this.#log = options.log ?? silent;
    for (const [name, values] of Object.entries(options.indexes ?? {})) this.addIndex(name, values);
  }

  /** Starts to follow the collection; it goes on until the signal aborts. A second call changes nothing. */
  start(signal: AbortSignal): void {
    const { client, type, namespace, labelSelector, fieldSelector, tolerateMissing, isDirect } = this.#options;
    const { clock = new RealClock(), random = new SystemRandom(), transform = withoutManagedFields } = this.#options;
    if (this.#running) return;
    const reflector = new Reflector<T>(
      {
        client,
        type,
        namespace,
        labelSelector,
        fieldSelector,
        tolerateMissing,
        isDirect,
        clock,
        random,
        log: this.#log,
        keep: (object) => transform(object, this.#objects.get(keyOf(object))),
      },
      { replace: (items) => this.#replace(items), apply: (event) => this.#apply(event) },
    );
    // Whoever waits for the first list must not wait for ever. Nobody has to wait, though.
    this.#synced.promise.catch(() => undefined);
    this.#running = reflector
      .run(signal)
      .then(() => this.#synced.reject(new Error(`the informer of ${this.type.kind} stopped before its first list`)));
  }

  /** Resolves once it has stopped after its signal aborted. */
  stopped(): Promise<void> {
    return this.#running ?? Promise.resolve();
  }

  /** Whether the first list is in and every handler has seen it. */
  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  /** Resolves when `hasSynced`; rejects when the informer stops or, with its reason, the signal aborts first. */
  waitForSync(signal?: AbortSignal): Promise<void> {
    if (this.#hasSynced || !signal) return this.#synced.promise;
    return new Promise((resolve, reject) => {
      const onAbort = (): void => reject(signal.reason as Error);
      if (signal.aborted) return onAbort();
      signal.addEventListener('abort', onAbort, { once: true });
      this.#synced.promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
    });
  }

  get size(): number {
    return this.#objects.size;
  }

  /** The object under `ns/name`, or `name` for cluster-scoped kinds. */
  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  /** All objects, in the order they were first seen. The same array until something changes. */
  list(): readonly T[] {
    this.#snapshot ??= Object.freeze([...this.#objects.values()]);
    return this.#snapshot;
  }

  /** The objects that the index function gave `value` for. Throws when there is no such index. */
  byIndex(name: string, value: string): T[] {
    const index = this.#indexes.get(name);
    if (!index) throw new Error(`the informer of ${this.type.kind} has no index "${name}"`);
    return index.find(value);
  }

  /** Adds an index over what is there and what will come. An index of that name is replaced. */
  addIndex(name: string, values: IndexFunction<T>): void {
    const index = new Index(values);
    for (const [key, object] of this.#objects) this.#guard('index', () => index.add(key, object));
    this.#indexes.set(name, index);
  }

  /** Adds callbacks; what is there already is `added` to them at once. Returns a function that takes them off. */
  addHandler(handler: InformerHandler<T>): () => void {
    this.#handlers.add(handler);
    for (const object of this.list()) this.#guard('added', () => handler.added?.(object));
    return () => void this.#handlers.delete(handler);
  }

  #replace(items: readonly T[]): void {
    const present = new Set(items.map(keyOf));
    const gone = [...this.#objects.keys()]
      .filter((key) => !present.has(key) && !planted('misses-deletions'))
      .sort(compareStrings);
    for (const key of gone) this.#remove(key, this.#objects.get(key)!, true);
    for (const item of items) this.#put(item);
    if (!this.#hasSynced) {
      this.#hasSynced = true;
      this.#synced.resolve();
    }
  }

  #apply(event: WatchEvent<T>): void {
    if (event.type !== 'DELETED') return this.#put(event.object);
    const key = keyOf(event.object);
    const known = this.#objects.get(key);
    if (known) this.#remove(key, deepFreeze(event.object), false);
  }

  #put(incoming: T): void {
    const key = keyOf(incoming);
    const old = this.#objects.get(key);
    if (old && unchanged(old, incoming)) return;
    const object = deepFreeze(incoming);
    if (old && old.metadata.uid !== object.metadata.uid) {
      // Deleted and made again under the same name: two objects, and the end of the first was missed.
      this.#remove(key, old, true);
      return this.#put(incoming);
    }
    this.#snapshot = undefined;
    this.#objects.set(key, object);
    for (const index of this.#indexes.values()) this.#guard('index', () => index.put(key, object, old));
    // Not by `#guard`: many handlers hear of each change, and a closure for each of them costs more than most do.
    for (const handler of this.#handlers) {
      try {
        if (old) handler.updated?.(object, old);
        else handler.added?.(object);
      } catch (error) {
        this.#failed(old ? 'updated' : 'added', error);
      }
    }
  }

  #remove(key: string, last: T, stale: boolean): void {
    const known = this.#objects.get(key)!;
    this.#snapshot = undefined;
    this.#objects.delete(key);
    for (const index of this.#indexes.values()) this.#guard('index', () => index.remove(key, known));
    for (const handler of this.#handlers) this.#guard('deleted', () => handler.deleted?.(last, stale));
  }

  /** Somebody else's code: one bad handler or index function must not stop the others or the watch. */
  #guard(what: string, call: () => void): void {
    try {
      call();
    } catch (error) {
      this.#failed(what, error);
    }
  }

  #failed(what: string, error: unknown): void {
    this.#log.error('handler of an informer failed', { kind: this.type.kind, handler: what, error: messageOf(error) });
  }
}

/** The objects under each value of an index function. */
class Index<T> {
  readonly #values: IndexFunction<T>;
  readonly #byValue = new Map<string, Map<string, T>>();

  constructor(values: IndexFunction<T>) {
    this.#values = values;
  }

  find(value: string): T[] {
    return [...(this.#byValue.get(value)?.values() ?? [])];
  }

  /** In place of `old`, if there was one. */
  put(key: string, object: T, old: T | undefined): void {
    // Mostly nothing moves: taking it out and in again would cost more than all the rest.
    if (old && isSame(this.#values(old), this.#values(object))) return this.add(key, object);
    if (old) this.remove(key, old);
    this.add(key, object);
  }

  add(key: string, object: T): void {
    for (const value of this.#valuesOf(object)) {
      const objects = this.#byValue.get(value);
      if (objects) objects.set(key, object);
      else this.#byValue.set(value, new Map([[key, object]]));
    }
  }

  remove(key: string, object: T): void {
    for (const value of this.#valuesOf(object)) {
      const objects = this.#byValue.get(value);
      objects?.delete(key);
      if (objects?.size === 0) this.#byValue.delete(value);
    }
  }

  #valuesOf(object: T): readonly string[] {
    const values = this.#values(object);
    return values === undefined ? [] : typeof values === 'string' ? [values] : values;
  }
}

function isSame(a: ReturnType<IndexFunction<unknown>>, b: ReturnType<IndexFunction<unknown>>): boolean {
  return a === b || (typeof a === 'object' && deepEqual(a, b));
}

/** The same state of the same object. Versions are only ever compared for equality. */
function unchanged<T extends KubeObject>(old: T, incoming: T): boolean {
  const a = old.metadata;
  const b = incoming.metadata;
  if (a.resourceVersion === undefined || a.resourceVersion === '') return deepEqual(old, incoming);
  return a.resourceVersion === b.resourceVersion && a.uid === b.uid;
}

/** An object without the record of who wrote which field: often half its size, and of no use to a reader. */
function withoutManagedFields<T extends KubeObject>(object: T): T {
  if (object.metadata.managedFields === undefined) return object;
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}
