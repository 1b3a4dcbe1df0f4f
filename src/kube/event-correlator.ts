// SPDX-License-Identifier: Apache-2.0
// Keeps events from drowning each other, by the rules of client-go's correlator: the same event again counts up the one
// there is, many like it become one, and one object cannot flood the rest.
import type { Clock } from '../base/clock.ts';
import type { Event } from './kinds.ts';
import { TokenBucket } from './rate-limiter.ts';
import { formatTime } from './time.ts';

/** What to do with an event: `create` it, or raise the count of the one at `patch`. */
export interface Correlated {
  readonly event: Event;
  readonly patch?: { readonly name: string; readonly namespace: string };
}

interface Known {
  name: string;
  namespace: string;
  count: number;
  firstTimestamp: string;
}

interface Similar {
  readonly messages: Set<string>;
  lastSeen: number;
}

const combinedPrefix = '(combined from similar events): ';
const similarLimit = 10;
const similarWindowMs = 600_000;
const spamBurst = 25;
const spamQps = 1 / 300;

/** Holds at most `capacity` entries of each kind; the least recently used go first. */
export class EventCorrelator {
  readonly #clock: Clock;
  readonly #known: LruMap<Known>;
  readonly #similar: LruMap<Similar>;
  readonly #spam: LruMap<TokenBucket>;

  constructor(clock: Clock, capacity = 4096) {
    this.#clock = clock;
    this.#known = new LruMap(capacity);
    this.#similar = new LruMap(capacity);
    this.#spam = new LruMap(capacity);
  }

  /** What to send for `event`; undefined when its object has had more than its share. */
  correlate(event: Event): Correlated | undefined {
    const combined = this.#combine(event);
    if (!this.#allowed(combined.event)) return undefined;
    const { event: final, key } = combined;
    const known = this.#known.get(key);
    if (!known) return { event: final };
    const count = known.count + 1;
    return {
      event: { ...final, count, firstTimestamp: known.firstTimestamp },
      patch: { name: known.name, namespace: known.namespace },
    };
  }

  /** Remembers what the server holds now, so that the next one like it counts it up. */
  sent(event: Event): void {
    const { name = '', namespace = '' } = event.metadata;
    const firstTimestamp = event.firstTimestamp ?? formatTime(this.#clock.now());
    this.#known.set(identityOf(event), { name, namespace, count: event.count ?? 1, firstTimestamp });
  }

  /** More than ten different messages for one reason within ten minutes become one event. */
  #combine(event: Event): { event: Event; key: string } {
    const group = groupOf(event);
    const now = this.#clock.monotonic();
    let similar = this.#similar.get(group);
    if (!similar || now - similar.lastSeen > similarWindowMs) {
      similar = { messages: new Set(), lastSeen: now };
      this.#similar.set(group, similar);
    }
    similar.lastSeen = now;
    if (similar.messages.size < similarLimit) similar.messages.add(event.message ?? '');
    const known = similar.messages.has(event.message ?? '');
    if (known) return { event, key: identityOf(event, group) };
    const combined = { ...event, message: `${combinedPrefix}${event.message}` };
    return { event: combined, key: identityOf(combined, group) };
  }

  #allowed(event: Event): boolean {
    const { namespace, kind, name, uid } = event.involvedObject;
    const key = `${event.source?.component}\0${kind}\0${namespace}\0${name}\0${uid}`;
    let bucket = this.#spam.get(key);
    if (!bucket) {
      bucket = new TokenBucket({ qps: spamQps, burst: spamBurst, clock: this.#clock });
      this.#spam.set(key, bucket);
    }
    return bucket.tryTake();
  }
}

/** Everything but the message. None of it holds a NUL. */
function groupOf(event: Event): string {
  const { kind, namespace, name, uid, apiVersion, fieldPath } = event.involvedObject;
  const object = `${kind}\0${namespace}\0${name}\0${uid}\0${apiVersion}\0${fieldPath}`;
  return `${event.source?.component}\0${object}\0${event.type}\0${event.reason}`;
}

/** What makes two events the same one. Combined events are one whatever they say. */
function identityOf(event: Event, group = groupOf(event)): string {
  const message = event.message?.startsWith(combinedPrefix) ? combinedPrefix : event.message;
  return `${group}\0${message}`;
}

/** A map that forgets what was not used for longest. */
class LruMap<V> {
  readonly #capacity: number;
  readonly #entries = new Map<string, V>();

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get(key: string): V | undefined {
    const value = this.#entries.get(key);
    if (value !== undefined) {
      this.#entries.delete(key);
      this.#entries.set(key, value);
    }
    return value;
  }

  set(key: string, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size > this.#capacity) this.#entries.delete(this.#entries.keys().next().value!);
  }
}
