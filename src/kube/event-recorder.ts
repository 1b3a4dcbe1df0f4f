// SPDX-License-Identifier: Apache-2.0
// Tells the user what happened, as Events on the objects it happened to. Callers never wait and never see a failure.
import type { Clock } from '../base/clock.ts';
import { planted } from '../base/defects.ts';
import { messageOf } from '../base/errors.ts';
import { apiErrorOf, isAlreadyExists, isNotFound } from './api-error.ts';
import type { KubeClient } from './client.ts';
import { EventCorrelator } from './event-correlator.ts';
import { EventMemory } from './event-memory.ts';
import { type Event, kinds } from './kinds.ts';
import { type Log, silent } from './log.ts';
import type { KubeObject } from './object.ts';
import type { ResourceClient } from './resource-client.ts';
import { formatTime } from './time.ts';

/** Something worth telling about an object. */
export interface EventToRecord {
  /** The object it is about; must name its `apiVersion` and `kind`. */
  readonly object: KubeObject;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly message: string;
  /** What makes it the same event again, beside the reason. Default: the object's UID and the message. */
  readonly dedupeValues?: readonly string[];
  /** For how long the same event is not told again, whatever it says. */
  readonly dedupeMs?: number;
  /** For how long the same words are not told again; `dedupeMs` unless that is less. */
  readonly repeatMs?: number;
  /** Shared by a class of events: what it does not let through is dropped. */
  readonly limiter?: { tryTake(): boolean };
}

export interface EventRecorderOptions {
  readonly client: KubeClient;
  readonly clock: Clock;
  readonly component?: string;
  readonly log?: Log;
  /** Events that wait to be sent at most; more are dropped. */
  readonly maxQueued?: number;
  /** Dedupe keys that are remembered at most. */
  readonly maxRemembered?: number;
  /** Called for each event that is taken in, for metrics. */
  readonly onEvent?: (event: EventToRecord) => void;
}

const defaultDedupeMs = 120_000;
/** How often another name is looked for. */
const maxRenames = 10;
const sendAttempts = 12;
const retryMs = 10_000;

/**
 * Records core/v1 Events. An event with the same reason and dedupe values within its window is dropped, and so are
 * words that were told lately; what is left is sent in order, in the background, counting up the one there is when it says the same.
 */
export class EventRecorder {
  readonly #events: ResourceClient<Event>;
  readonly #clock: Clock;
  readonly #component: string;
  readonly #log: Log;
  readonly #maxQueued: number;
  readonly #onEvent: ((event: EventToRecord) => void) | undefined;
  readonly #correlator: EventCorrelator;
  readonly #memory: EventMemory;
  readonly #queue: Event[] = [];
  readonly #stop = new AbortController();
  #sending: Promise<void> | undefined;
  #names = 0;
  #dropped = 0;

  constructor(options: EventRecorderOptions) {
    this.#events = options.client.resource(kinds.Event);
    this.#clock = options.clock;
    this.#component = options.component ?? 'karpenter';
    this.#log = options.log ?? silent;
    this.#maxQueued = options.maxQueued ?? 1000;
    this.#memory = new EventMemory(options.clock, options.maxRemembered ?? 10_000);
    this.#onEvent = options.onEvent;
    this.#correlator = new EventCorrelator(options.clock);
  }

  /** Takes events in. Returns at once and never throws. */
  publish(...events: readonly EventToRecord[]): void {
    for (const event of events) {
      try {
        this.#take(event);
      } catch (error) {
        this.#log.error('failed to take in event', { reason: event.reason, error: messageOf(error) });
      }
    }
    if (this.#queue.length > 0) this.#sending ??= this.#sendAll();
  }

  /** Resolves when everything taken in so far was sent or given up. */
  async flush(): Promise<void> {
    while (this.#sending) await this.#sending;
  }

  /** Takes in nothing more and drops what waits. */
  stop(): void {
    this.#stop.abort(new Error('the event recorder stopped'));
    this.#queue.length = 0;
  }

  #take(event: EventToRecord): void {
    if (planted('event-storm')) void this.#write(this.#eventOf(event), undefined, false).catch(() => undefined);
    if (this.#stop.signal.aborted || !this.#isNews(event)) return;
    if (event.limiter && !event.limiter.tryTake()) return;
    this.#onEvent?.(event);
    if (this.#queue.length < this.#maxQueued) this.#queue.push(this.#eventOf(event));
    else this.#dropped++;
  }

  #isNews({ object, reason, message, dedupeValues, dedupeMs = defaultDedupeMs, repeatMs = 0 }: EventToRecord): boolean {
    const values = dedupeValues ?? [object.metadata.uid ?? '', message];
    return this.#memory.isNews({ reason, values, message, dedupeMs, repeatMs });
  }

  #eventOf({ object, type, reason, message }: EventToRecord): Event {
    const { name = '', namespace, uid, resourceVersion } = object.metadata;
    const time = formatTime(this.#clock.now());
    return {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: this.#nameOf(name), namespace: namespace ?? 'default' },
      involvedObject: {
        ...(object.apiVersion ? { apiVersion: object.apiVersion } : {}),
        ...(object.kind ? { kind: object.kind } : {}),
        ...(namespace ? { namespace } : {}),
        name,
        ...(uid ? { uid } : {}),
        ...(resourceVersion ? { resourceVersion } : {}),
      },
      reason,
      message,
      type,
      count: 1,
      firstTimestamp: time,
      lastTimestamp: time,
      source: { component: this.#component },
      reportingComponent: this.#component,
      reportingInstance: '',
    };
  }

  /** As client-go names them: the object, and the time in nanoseconds. A counter keeps two in one tick apart. */
  #nameOf(object: string): string {
    const tick = BigInt(Math.floor(this.#clock.now())) * 1_000_000n;
    return `${object.slice(0, 235)}.${(tick + BigInt(this.#names++ % 1_000_000)).toString(16)}`;
  }

  async #sendAll(): Promise<void> {
    // One turn later, so that whoever publishes many at once is done first.
    await Promise.resolve();
    for (let event = this.#queue.shift(); event; event = this.#queue.shift()) await this.#send(event);
    // Together with the look at the empty queue: what is published from here on starts anew.
    this.#sending = undefined;
    if (this.#dropped > 0) this.#log.warn('dropped events, too many at once', { dropped: this.#dropped });
    this.#dropped = 0;
  }

  async #send(event: Event): Promise<void> {
    const correlated = this.#correlator.correlate(event);
    if (!correlated) return;
    const { signal } = this.#stop;
    for (let attempt = 1; !signal.aborted; attempt++) {
      try {
        this.#correlator.sent(await this.#write(correlated.event, correlated.patch, attempt > 1));
        return;
      } catch (error) {
        // A refusal is final. An unreachable server may come back, and the queue is bounded.
        const final = apiErrorOf(error) !== undefined || attempt >= sendAttempts;
        if (final && !signal.aborted) {
          this.#log.debug('failed to record event', { reason: event.reason, error: messageOf(error) });
        }
        if (final) return;
        await this.#clock.sleep(retryMs, signal).catch(() => undefined);
      }
    }
  }

  async #write(event: Event, patch: { name: string; namespace: string } | undefined, isRetry: boolean): Promise<Event> {
    const { signal } = this.#stop;
    if (patch) {
      const { count, lastTimestamp, message } = event;
      try {
        return await this.#events.patch(
          patch.name,
          { count, lastTimestamp, message },
          { namespace: patch.namespace, signal },
        );
      } catch (error) {
        // Events live for an hour; the one to count up may be gone.
        if (!isNotFound(error)) throw error;
      }
    }
    return this.#create(patch ? { ...event, count: 1, firstTimestamp: event.lastTimestamp! } : event, isRetry);
  }

  /** One of the same name came from a try before this one; or from somebody else, about a namesake in the same tick. */
  async #create(event: Event, isRetry: boolean): Promise<Event> {
    const { signal } = this.#stop;
    for (let [named, renames] = [event, 0]; ; renames++) {
      try {
        return await this.#events.create(named, { signal });
      } catch (error) {
        if (!isAlreadyExists(error)) throw error;
        if (isRetry || renames === maxRenames) return named;
        named = { ...event, metadata: { ...event.metadata, name: this.#nameOf(event.involvedObject.name ?? '') } };
      }
    }
  }
}
