// SPDX-License-Identifier: Apache-2.0
// When we first saw, tried and could place each pod that waited for a node: what the metrics about pods are made of.
import type { Clock } from '../base/clock.ts';

/** The times of one pod, in milliseconds since 1970. */
export interface PodTimes {
  /** We took notice of it. */
  acknowledged?: number;
  /** A pass first came to a decision about it, good or bad. */
  attempted?: number;
  /** A pass first found it a place; unset again while passes fail. */
  schedulable?: number;
  /** The same, in a pool whose nodes register as they should. */
  schedulableOnHealthyPool?: number;
  /** The NodeClaim it is to run on. */
  nodeClaim?: string;
}

/** What a pass decided about pods, by UID. */
export interface SchedulingDecision {
  readonly failed: Iterable<string>;
  readonly placed: Iterable<{
    readonly uid: string;
    /** Whether nodes of the pool register as they should. */
    readonly healthyPool: boolean;
  }>;
}

/** Times of pods by UID. A pod that is gone is forgotten. */
export class PodBookkeeping {
  readonly #clock: Clock;
  readonly #times = new Map<string, PodTimes>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The times of a pod; undefined when it never waited for us. */
  of(uid: string): Readonly<PodTimes> | undefined {
    return this.#times.get(uid);
  }

  get size(): number {
    return this.#times.size;
  }

  /** Takes notice of a pod; only the first time counts. */
  acknowledge(uid: string): void {
    this.#entry(uid).acknowledged ??= this.#clock.now();
  }

  /** Writes down the outcome of a pass. Gives for each pod decided on for the first time how long it had waited for that. */
  decide(decision: SchedulingDecision): number[] {
    const now = this.#clock.now();
    const waits: number[] = [];
    const attempt = (times: PodTimes): void => {
      if (times.attempted !== undefined) return;
      times.attempted = now;
      if (times.acknowledged !== undefined) waits.push(now - times.acknowledged);
    };
    for (const uid of decision.failed) {
      const times = this.#entry(uid);
      attempt(times);
      delete times.schedulable;
      delete times.schedulableOnHealthyPool;
      delete times.nodeClaim;
    }
    for (const { uid, healthyPool } of decision.placed) {
      const times = this.#entry(uid);
      attempt(times);
      times.schedulable ??= now;
      if (healthyPool) times.schedulableOnHealthyPool ??= now;
      else delete times.schedulableOnHealthyPool;
    }
    return waits;
  }

  /** Remembers which NodeClaim was made for a pod. */
  assign(uid: string, nodeClaim: string): void {
    this.#entry(uid).nodeClaim = nodeClaim;
  }

  /** The pod runs on no NodeClaim that was made for it. */
  release(uid: string): void {
    const times = this.#times.get(uid);
    if (times) delete times.nodeClaim;
  }

  forget(uid: string): void {
    this.#times.delete(uid);
  }

  #entry(uid: string): PodTimes {
    let times = this.#times.get(uid);
    if (!times) {
      times = {};
      this.#times.set(uid, times);
    }
    return times;
  }
}
