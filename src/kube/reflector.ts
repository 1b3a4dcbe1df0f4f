// SPDX-License-Identifier: Apache-2.0
// Keeps a copy of a collection in step with the API server: list, then watch, for ever, whatever goes wrong.
import type { Clock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import type { Random } from '../base/random.ts';
import { apiErrorOf, isGone, isNotFound } from './api-error.ts';
import { Backoff } from './backoff.ts';
import type { KubeClient } from './client.ts';
import type { Log } from './log.ts';
import type { KubeObject, ResourceType, WatchEvent } from './object.ts';
import type { ResourceClient } from './resource-client.ts';

/** Where a reflector puts what it sees. */
export interface ReflectorSink<T extends KubeObject> {
  /** The whole collection as of now. */
  replace(items: readonly T[]): void;
  /** One change, in order. Never a bookmark or an error. */
  apply(event: WatchEvent<T>): void;
}

export interface ReflectorOptions<T extends KubeObject> {
  readonly client: KubeClient;
  readonly type: ResourceType<T>;
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** A kind that is not served (its CRD is not installed) counts as an empty collection until it is. */
  readonly tolerateMissing?: boolean | undefined;
  /** What is kept of each object, in lists and events. */
  readonly keep?: ((object: T) => T) | undefined;
  /**
   * Nothing lies between it and the server: a watch that nobody can cut unseen is not begun anew every few minutes, and needs no
   * bookmarks to begin anew from.
   */
  readonly isDirect?: boolean | undefined;
}

// A watch that ends sooner was no success, however it ended: without a pause, it would be a hot loop.
const shortestWatchMs = 1000;
const backoffBaseMs = 800;
const backoffMaxMs = 15_000;
// How often to look again for a kind that is not served.
const missingRetryMs = 5000;

interface Failure {
  /** Not before this long. */
  readonly waitMs: number;
  /** Whether the pause grows each time it happens again. */
  readonly backsOff: 'always' | 'when short' | 'never';
}

const cleanEnd: Failure = { waitMs: 0, backsOff: 'when short' };

/**
 * Runs until its signal aborts; errors are logged and tried again with growing, jittered pauses. A watch goes on from
 * the last version seen (bookmarks move it on quiet collections); when that is gone, the collection is listed anew.
 * Versions are never compared or interpreted.
 */
export class Reflector<T extends KubeObject> {
  readonly #options: ReflectorOptions<T>;
  readonly #resource: ResourceClient<T>;
  readonly #sink: ReflectorSink<T>;
  readonly #backoff: Backoff;
  /** Where to go on watching; undefined when a list is needed. */
  #version: string | undefined;
  #missing = false;

  constructor(options: ReflectorOptions<T>, sink: ReflectorSink<T>) {
    this.#options = options;
    this.#resource = options.client.resource(options.type);
    this.#sink = sink;
    this.#backoff = new Backoff({ baseMs: backoffBaseMs, maxMs: backoffMaxMs, random: options.random });
  }

  /** Resolves when the signal aborts; never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      const started = clock.monotonic();
      let failure: Failure | undefined;
      try {
        if (this.#version === undefined) await this.#list(signal);
        await this.#watch(signal);
      } catch (error) {
        if (signal.aborted) return;
        failure = this.#noted(error);
      }
      const lastedLong = clock.monotonic() - started >= shortestWatchMs;
      if (lastedLong) this.#backoff.reset();
      const { waitMs, backsOff } = failure ?? cleanEnd;
      const growing = backsOff === 'always' || (backsOff === 'when short' && !lastedLong);
      const pauseMs = Math.max(waitMs, growing ? this.#backoff.next() : 0);
      // Only the signal ends a sleep early, and then the loop ends.
      if (pauseMs > 0) await clock.sleep(pauseMs, signal).catch(() => undefined);
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const list = await this.#resource.listAll({ ...this.#selection(), signal, keep: this.#options.keep });
    if (signal.aborted) return;
    this.#missing = false;
    this.#sink.replace(list.items);
    this.#version = list.metadata.resourceVersion ?? '';
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { isDirect, random } = this.#options;
    const watch = await this.#resource.watch({
      ...this.#selection(),
      resourceVersion: this.#version,
      // Spread over five minutes: the watches of many informers do not end together.
      ...(isDirect ? {} : { allowWatchBookmarks: true, timeoutSeconds: 300 + random.int(300) }),
      signal,
    });
    // Aborted while the watch was being opened: nobody would tell the listener below.
    if (signal.aborted) return watch.close();
    const onAbort = (): void => watch.close();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      for await (const event of watch) {
        if (signal.aborted) return;
        if (event.type !== 'BOOKMARK') this.#sink.apply(this.#kept(event));
        this.#version = event.object.metadata.resourceVersion ?? this.#version;
      }
    } finally {
      signal.removeEventListener('abort', onAbort);
      watch.close();
    }
  }

  #kept(event: WatchEvent<T>): WatchEvent<T> {
    const kept = this.#options.keep?.(event.object) ?? event.object;
    return kept === event.object ? event : { ...event, object: kept };
  }

  /** Logs what went wrong and says what follows from it. */
  #noted(error: unknown): Failure {
    const { log, type, random, tolerateMissing } = this.#options;
    const fields = { kind: type.kind, group: type.group, error: messageOf(error) };
    if (isGone(error)) {
      log.debug('watch is too far behind, listing again', fields);
      this.#version = undefined;
      return cleanEnd;
    }
    // The kind is not served, or not any more: only a list can tell when it is back.
    if (isNotFound(error)) this.#version = undefined;
    if (isNotFound(error) && tolerateMissing) {
      if (!this.#missing) log.info('kind is not served, looking again from time to time', fields);
      this.#missing = true;
      this.#sink.replace([]);
      return { waitMs: missingRetryMs * (1 + random.next()), backsOff: 'never' };
    }
    log.warn('watching failed, trying again', fields);
    return { waitMs: apiErrorOf(error)?.retryAfterMs ?? 0, backsOff: 'always' };
  }

  #selection(): { namespace?: string; labelSelector?: string; fieldSelector?: string } {
    const { namespace, labelSelector, fieldSelector } = this.#options;
    return {
      ...(namespace ? { namespace } : {}),
      ...(labelSelector ? { labelSelector } : {}),
      ...(fieldSelector ? { fieldSelector } : {}),
    };
  }
}
