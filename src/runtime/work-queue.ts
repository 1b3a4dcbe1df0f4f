// SPDX-License-Identifier: Apache-2.0
// The queue in front of a controller: each key at most once, never handed out twice at a time, urgent ones first,
// failures later. The semantics are those of controller-runtime's priority queue over client-go's rate limiting one.
import type { Clock, Timer } from '../base/clock.ts';
import { Heap, type HeapEntry } from '../base/heap.ts';
import { Metrics } from './metrics.ts';
import { defaultLimiter, type RateLimiter } from './rate-limiters.ts';
import { QueueMetrics } from './work-queue-metrics.ts';

export interface AddOptions {
  /** Wait this long first. */
  readonly afterMs?: number;
  /** Wait as the limiter says; with `afterMs` too, the shorter of the two. */
  readonly rateLimited?: boolean;
  /** Higher goes first; 0 unless told. */
  readonly priority?: number;
}

export interface QueueItem<K> {
  readonly key: K;
  readonly priority: number;
}

export interface WorkQueueOptions<K> {
  readonly name: string;
  readonly clock: Clock;
  readonly limiter?: RateLimiter<K>;
  readonly metrics?: Metrics;
}

interface Entry<K> extends HeapEntry {
  readonly key: K;
  /** Whether it is delayed, ready or wanted again; else it is only being worked on. */
  wanted: boolean;
  /** Monotonic time since which a worker has it; undefined while none does. */
  workingSince: number | undefined;
  priority: number;
  /** Monotonic time at which a delayed entry becomes ready; undefined once it is. */
  readyAt: number | undefined;
  /** Place among entries of one priority: first ready, first served. */
  order: number;
  /** Monotonic time at which it became ready, for the latency. */
  readySince: number;
}

/**
 * A key is in one of these states: delayed (waits for its time), ready (waits for a worker), working (handed out), or
 * working and wanted again (goes to ready when its worker is done). Adding a key that waits already keeps the higher
 * priority and the earlier time. Everything happens in the caller's turn; there is one timer, and only while something
 * is delayed.
 */
export class WorkQueue<K = string> {
  readonly name: string;
  readonly #clock: Clock;
  readonly #limiter: RateLimiter<K>;
  readonly #metrics: QueueMetrics;
  /** Everything that is delayed, ready or being worked on: a key that is looked at again and again stays where it is. */
  readonly #entries = new Map<K, Entry<K>>();
  readonly #ready = new Heap<Entry<K>>(
    (a, b) => a.priority > b.priority || (a.priority === b.priority && a.order < b.order),
  );
  readonly #delayed = new Heap<Entry<K>>((a, b) => {
    const [due, other] = [a.readyAt ?? 0, b.readyAt ?? 0];
    return due < other || (due === other && a.order < b.order);
  });
  #working = 0;
  readonly #waiters: ((item: QueueItem<K> | undefined) => void)[] = [];
  readonly #listeners: (() => void)[] = [];
  #order = 0;
  #timer: { readonly timer: Timer; readonly due: number } | undefined;
  #shutDown = false;
  #drained: (() => void)[] = [];

  constructor(options: WorkQueueOptions<K>) {
    this.name = options.name;
    this.#clock = options.clock;
    this.#limiter = options.limiter ?? defaultLimiter();
    this.#metrics = new QueueMetrics(options.metrics ?? new Metrics(), options.name, () => this.#unfinished());
  }

  /** Wants `key` worked on. Ignored after shutdown. */
  add(key: K, options: AddOptions = {}): void {
    if (this.#shutDown) return;
    const waitMs = this.#waitOf(key, options);
    const now = this.#clock.monotonic();
    const readyAt = waitMs > 0 ? now + waitMs : undefined;
    if (readyAt !== undefined) this.#metrics.retried();
    const priority = options.priority ?? 0;
    const entry = this.#entries.get(key) ?? this.#enter(key);
    if (!entry.wanted) {
      entry.wanted = true;
      entry.priority = priority;
      entry.readyAt = readyAt;
      entry.order = this.#order++;
      if (readyAt === undefined) this.#makeReady(entry);
      else this.#delayed.push(entry);
    } else {
      if (priority > entry.priority) this.#raise(entry, priority);
      if (entry.readyAt !== undefined && (readyAt === undefined || readyAt < entry.readyAt)) {
        this.#delayed.remove(entry);
        entry.readyAt = readyAt;
        if (readyAt === undefined) this.#makeReady(entry);
        else this.#delayed.push(entry);
      }
    }
    this.#arm();
    this.#serve();
  }

  addAfter(key: K, afterMs: number, priority = 0): void {
    this.add(key, { afterMs, priority });
  }

  addRateLimited(key: K, priority = 0): void {
    this.add(key, { rateLimited: true, priority });
  }

  /** The key's run of failures is over: its next one waits as if it were the first. */
  forget(key: K): void {
    this.#limiter.forget(key);
  }

  numRequeues(key: K): number {
    return this.#limiter.numRequeues(key);
  }

  /** Hands out the first ready key, or undefined. Whoever takes one calls `done` with it, whatever happens. */
  take(): QueueItem<K> | undefined {
    const entry = this.#ready.pop();
    if (!entry) return undefined;
    const now = this.#clock.monotonic();
    entry.wanted = false;
    entry.workingSince = now;
    this.#working++;
    this.#metrics.taken(entry.priority, now - entry.readySince);
    return { key: entry.key, priority: entry.priority };
  }

  /** As `take`, but waits for a key; undefined when the queue has shut down and has nothing left to hand out. */
  get(): Promise<QueueItem<K> | undefined> {
    const item = this.take();
    if (item || this.#shutDown) return Promise.resolve(item);
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  /** Ends the work on a key. If it was wanted meanwhile, it is ready again. */
  done(key: K): void {
    const entry = this.#entries.get(key);
    if (entry?.workingSince === undefined) return;
    this.#metrics.worked(this.#clock.monotonic() - entry.workingSince);
    entry.workingSince = undefined;
    this.#working--;
    if (!entry.wanted) this.#entries.delete(key);
    else if (entry.readyAt === undefined) this.#ready.push(entry);
    this.#serve();
    this.#settleDrain();
  }

  /** Calls `listener` whenever `take` may have something to give, and at shutdown. */
  onReady(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Keys waiting for a worker; those that are delayed or being worked on do not count. */
  get length(): number {
    return this.#ready.size;
  }

  /** Keys being worked on. */
  get working(): number {
    return this.#working;
  }

  /** Keys waiting for their time. */
  get delayed(): number {
    return this.#delayed.size;
  }

  get shuttingDown(): boolean {
    return this.#shutDown;
  }

  /**
   * Takes nothing in any more and drops what is delayed. With `drain`, what is ready or wanted again is still handed
   * out; without, it is dropped. Resolves when nothing is being worked on any more.
   */
  shutDown(options: { readonly drain?: boolean } = {}): Promise<void> {
    this.#shutDown = true;
    for (const entry of this.#entries.values()) {
      if (!entry.wanted) continue;
      const keep = options.drain === true && entry.readyAt === undefined;
      if (!keep) this.#discard(entry);
    }
    this.#timer?.timer.cancel();
    this.#timer = undefined;
    this.#serve();
    return new Promise((resolve) => {
      this.#drained.push(resolve);
      this.#settleDrain();
    });
  }

  #waitOf(key: K, options: AddOptions): number {
    // Whole milliseconds: a timer must never ring a hair before its key is due.
    const afterMs = Math.ceil(options.afterMs ?? 0);
    if (!options.rateLimited) return afterMs;
    const limitedMs = Math.ceil(this.#limiter.when(key));
    return afterMs > 0 ? Math.min(afterMs, limitedMs) : limitedMs;
  }

  #enter(key: K): Entry<K> {
    const entry: Entry<K> = {
      key,
      wanted: false,
      workingSince: undefined,
      priority: 0,
      readyAt: undefined,
      order: 0,
      readySince: 0,
      heapIndex: -1,
    };
    this.#entries.set(key, entry);
    return entry;
  }

  #makeReady(entry: Entry<K>): void {
    entry.readyAt = undefined;
    entry.order = this.#order++;
    entry.readySince = this.#clock.monotonic();
    this.#metrics.added(entry.priority);
    // A key that is being worked on waits for its worker: `done` moves it.
    if (entry.workingSince === undefined) this.#ready.push(entry);
  }

  #raise(entry: Entry<K>, priority: number): void {
    const wasReady = this.#ready.remove(entry);
    if (entry.readyAt === undefined) this.#metrics.reprioritized(entry.priority, priority);
    entry.priority = priority;
    if (wasReady) this.#ready.push(entry);
  }

  #discard(entry: Entry<K>): void {
    entry.wanted = false;
    if (entry.workingSince === undefined) this.#entries.delete(entry.key);
    this.#delayed.remove(entry);
    this.#ready.remove(entry);
    if (entry.readyAt === undefined) this.#metrics.dropped(entry.priority);
  }

  /** Sets the one timer to the earliest delayed key. */
  #arm(): void {
    const due = this.#delayed.peek()?.readyAt;
    if (this.#timer?.due === due) return;
    this.#timer?.timer.cancel();
    this.#timer = undefined;
    if (due === undefined) return;
    const timer = this.#clock.after(due - this.#clock.monotonic(), () => this.#ring());
    this.#timer = { timer, due };
  }

  #ring(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    for (let next = this.#delayed.peek(); next && (next.readyAt ?? 0) <= now; next = this.#delayed.peek()) {
      this.#delayed.remove(next);
      this.#makeReady(next);
    }
    this.#arm();
    this.#serve();
  }

  /** Gives ready keys to those who wait, and tells the listeners. */
  #serve(): void {
    while (this.#waiters.length > 0) {
      const item = this.take();
      if (!item && !this.#shutDown) break;
      this.#waiters.shift()!(item);
    }
    if (this.#ready.size > 0 || this.#shutDown) for (const listener of this.#listeners) listener();
  }

  #settleDrain(): void {
    if (!this.#shutDown || this.#entries.size > 0) return;
    const drained = this.#drained;
    this.#drained = [];
    this.#metrics.close();
    for (const resolve of drained) resolve();
  }

  #unfinished(): { totalMs: number; longestMs: number } {
    const now = this.#clock.monotonic();
    let totalMs = 0;
    let longestMs = 0;
    for (const { workingSince: since = now } of this.#entries.values()) {
      totalMs += now - since;
      longestMs = Math.max(longestMs, now - since);
    }
    return { totalMs, longestMs };
  }
}
