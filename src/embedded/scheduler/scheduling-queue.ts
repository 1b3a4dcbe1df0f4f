// SPDX-License-Identifier: Apache-2.0
// Pods that wait for a node: ready to be tried, backing off after a failure, or waiting for something to change.
import type { Clock, Timer } from '../../base/clock.ts';
import { Heap, type HeapEntry } from '../../base/heap.ts';
import type { FilterName } from './filter.ts';
import type { PodInfo } from './pod-info.ts';

interface Entry extends HeapEntry {
  pod: PodInfo;
  /** When it first came, for fairness among equals. */
  readonly order: number;
  attempts: number;
  lastTried: number;
  state: 'active' | 'backoff' | 'waiting';
  /** The filters that objected when it was last tried: only changes that concern them are worth another try. */
  rejectedBy: ReadonlySet<FilterName>;
  timer: Timer | undefined;
}

const firstBackoffMs = 1000;
const longestBackoffMs = 10_000;
/** Nothing waits for ever for a change that we may not know to matter. */
const longestWaitMs = 5 * 60_000;

/** Higher priority first, then the older pod, then the one that came first. */
function before(a: Entry, b: Entry): boolean {
  if (a.pod.priority !== b.pod.priority) return a.pod.priority > b.pod.priority;
  if (a.pod.createdMs !== b.pod.createdMs) return a.pod.createdMs < b.pod.createdMs;
  return a.order < b.order;
}

export class SchedulingQueue {
  readonly #clock: Clock;
  readonly #onReady: () => void;
  readonly #entries = new Map<string, Entry>();
  readonly #active = new Heap<Entry>(before);
  /** Those that wait for a change, apart: most changes come while thousands are ready. */
  readonly #waiting = new Set<Entry>();
  #order = 0;
  /** Counts changes, so that one that happens while a pod is being tried is not lost. */
  #moves = 0;

  /** `onReady` is called when a pod becomes ready to be tried. */
  constructor(clock: Clock, onReady: () => void) {
    this.#clock = clock;
    this.#onReady = onReady;
  }

  get size(): number {
    return this.#entries.size;
  }

  get readyCount(): number {
    return this.#active.size;
  }

  /** A number that changes when waiting pods were given another chance. */
  get moves(): number {
    return this.#moves;
  }

  /** Adds a pod, or takes note of its new version; a changed pod is tried again, after its backoff. */
  put(pod: PodInfo, changed: boolean): void {
    const entry = this.#entries.get(pod.uid);
    if (!entry) return this.#activate(this.#enter(pod));
    const queued = this.#active.remove(entry);
    entry.pod = pod;
    if (queued) this.#active.push(entry);
    else if (changed && entry.state === 'waiting') this.#retry(entry);
  }

  /** Takes back a pod that was placed and could not be bound: it is tried again after a backoff. */
  putBack(pod: PodInfo): void {
    const entry = this.#entries.get(pod.uid) ?? this.#enter(pod);
    this.#active.remove(entry);
    entry.attempts++;
    entry.lastTried = this.#clock.monotonic();
    this.#retry(entry);
  }

  remove(uid: string): void {
    const entry = this.#entries.get(uid);
    if (!entry) return;
    this.#entries.delete(uid);
    this.#active.remove(entry);
    this.#waiting.delete(entry);
    entry.timer?.cancel();
  }

  /** The next pod to try. It stays known until it is removed or put back by `failed`. */
  pop(): PodInfo | undefined {
    const entry = this.#active.pop();
    if (!entry) return undefined;
    entry.attempts++;
    entry.lastTried = this.#clock.monotonic();
    entry.state = 'waiting';
    return entry.pod;
  }

  /**
   * A try failed. With filters that objected it waits for a change that concerns them; without, or when `moves` has
   * grown since the try began, it is tried again after its backoff.
   */
  failed(uid: string, rejectedBy: ReadonlySet<FilterName>, movesBefore: number): void {
    const entry = this.#entries.get(uid);
    if (!entry || entry.state !== 'waiting') return;
    entry.rejectedBy = rejectedBy;
    if (rejectedBy.size === 0 || movesBefore !== this.#moves) return this.#retry(entry);
    this.#waiting.add(entry);
    entry.timer = this.#clock.after(longestWaitMs, () => this.#retry(entry));
  }

  /** Something changed that concerns these filters: gives the pods they rejected, and that `worthIt`, another try. */
  move(filters: readonly FilterName[], worthIt: (pod: PodInfo) => boolean = () => true): void {
    this.#moves++;
    for (const entry of this.#waiting) {
      if (!filters.some((filter) => entry.rejectedBy.has(filter))) continue;
      if (worthIt(entry.pod)) this.#retry(entry);
    }
  }

  /** As `move`, for every waiting pod that `worthIt`. */
  moveAll(worthIt: (pod: PodInfo) => boolean): void {
    this.#moves++;
    for (const entry of this.#waiting) if (worthIt(entry.pod)) this.#retry(entry);
  }

  /** Forgets every pod and its timers. */
  close(): void {
    for (const uid of this.#entries.keys()) this.remove(uid);
  }

  #enter(pod: PodInfo): Entry {
    const entry: Entry = {
      pod,
      order: this.#order++,
      attempts: 0,
      lastTried: 0,
      state: 'waiting',
      rejectedBy: new Set(),
      timer: undefined,
      heapIndex: -1,
    };
    this.#entries.set(pod.uid, entry);
    return entry;
  }

  #retry(entry: Entry): void {
    this.#waiting.delete(entry);
    entry.timer?.cancel();
    entry.timer = undefined;
    const backoff = Math.min(longestBackoffMs, firstBackoffMs * 2 ** Math.max(0, entry.attempts - 1));
    const left = entry.attempts === 0 ? 0 : entry.lastTried + backoff - this.#clock.monotonic();
    if (left <= 0) return this.#activate(entry);
    entry.state = 'backoff';
    entry.timer = this.#clock.after(left, () => this.#activate(entry));
  }

  #activate(entry: Entry): void {
    entry.timer = undefined;
    entry.state = 'active';
    this.#active.push(entry);
    this.#onReady();
  }
}
