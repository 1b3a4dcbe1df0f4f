// SPDX-License-Identifier: Apache-2.0
// What every controller of the embedded control plane is given: a client, shared informers, time, chance and a voice.
import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import { isNotFound } from '../../kube/api-error.ts';
import type { KubeClient } from '../../kube/client.ts';
import { EventRecorder } from '../../kube/event-recorder.ts';
import { Informer } from '../../kube/informer.ts';
import type { KubeObject, ResourceType } from '../../kube/object.ts';
import type { Reconciler } from '../../runtime/controller.ts';
import type { Logger } from '../../runtime/logging.ts';
import type { Metrics } from '../../runtime/metrics.ts';

export interface ControlPlane {
  readonly client: KubeClient;
  readonly informers: SharedInformers;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly events: Voice;
  /** Writes less: what would be written again soon waits, and what only people read is left out. */
  readonly lean?: boolean;
}

/** Tells of what happens to an object, as events that `kubectl describe` shows. */
export interface Voice {
  normal(object: KubeObject, reason: string, message: string): void;
  warning(object: KubeObject, reason: string, message: string): void;
}

/** Says nothing. */
export const mute: Voice = { normal: () => undefined, warning: () => undefined };

/** One voice per component, so that events say who speaks. */
export class Voices {
  readonly #options: { client: KubeClient; clock: Clock; log: Logger };
  readonly #recorders = new Map<string, EventRecorder>();

  constructor(options: { client: KubeClient; clock: Clock; log: Logger }) {
    this.#options = options;
  }

  of(component: string): Voice {
    let recorder = this.#recorders.get(component);
    if (!recorder) {
      recorder = new EventRecorder({ ...this.#options, component });
      this.#recorders.set(component, recorder);
    }
    const speaker = recorder;
    return {
      normal: (object, reason, message) => speaker.publish({ object, type: 'Normal', reason, message }),
      warning: (object, reason, message) => speaker.publish({ object, type: 'Warning', reason, message }),
    };
  }

  /** Resolves when all that was said has been written, or given up. */
  async flush(): Promise<void> {
    await Promise.all([...this.#recorders.values()].map((recorder) => recorder.flush()));
  }

  stop(): void {
    for (const recorder of this.#recorders.values()) recorder.stop();
  }
}

/** One informer per kind for all controllers of a process. */
export class SharedInformers {
  readonly #client: KubeClient;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #log: Logger;
  readonly #isDirect: boolean;
  readonly #informers = new Map<string, Informer<KubeObject>>();
  /** By the kind itself: every reconcile asks several times. */
  readonly #byKind = new WeakMap<ResourceType, Informer<KubeObject>>();

  /** `isDirect`: the server is in this process. */
  constructor(options: {
    client: KubeClient;
    clock: Clock;
    random: Random;
    log: Logger;
    isDirect?: boolean | undefined;
  }) {
    this.#client = options.client;
    this.#clock = options.clock;
    this.#random = options.random;
    this.#log = options.log;
    this.#isDirect = options.isDirect ?? false;
  }

  /** The informer of a kind; ask for all of them before `start`. */
  of<T extends KubeObject>(type: ResourceType<T>): Informer<T> {
    const known = this.#byKind.get(type);
    if (known) return known as unknown as Informer<T>;
    const key = `${type.plural}.${type.group}`;
    let informer = this.#informers.get(key);
    if (!informer) {
      informer = new Informer<KubeObject>({
        client: this.#client,
        type,
        isDirect: this.#isDirect,
        clock: this.#clock,
        random: this.#random,
        log: this.#log,
      });
      this.#informers.set(key, informer);
    }
    this.#byKind.set(type, informer);
    return informer as unknown as Informer<T>;
  }

  /** Starts every informer and resolves once all have read their first list. */
  async start(signal: AbortSignal): Promise<void> {
    const informers = [...this.#informers.values()];
    for (const informer of informers) informer.start(signal);
    await Promise.all(informers.map((informer) => informer.waitForSync(signal)));
  }

  /** Resolves once all have stopped after the signal aborted. */
  async stopped(): Promise<void> {
    await Promise.all([...this.#informers.values()].map((informer) => informer.stopped()));
  }
}

/**
 * A reconciler for which something that has vanished under its hands is no failure: it looks again, and the cache will
 * have caught up.
 */
export function vanishingIsFine(reconciler: Reconciler): Reconciler {
  return {
    reconcile: async (key, signal, context) => {
      try {
        return await reconciler.reconcile(key, signal, context);
      } catch (error) {
        if (!isNotFound(error)) throw error;
        return { requeue: true };
      }
    },
  };
}
