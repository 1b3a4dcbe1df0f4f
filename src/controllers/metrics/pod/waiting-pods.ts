// SPDX-License-Identifier: Apache-2.0
// Pods on their way: followed from the first sight as Pending until they are ready or over, and measured when they are.
import type { Pod } from '../../../kube/kinds.ts';
import { keyOf } from '../../../kube/object.ts';
import type { Metrics, Observer } from '../../../runtime/metrics.ts';
import type { PodBookkeeping } from '../../../state/pod-bookkeeping.ts';
import { isTerminal } from '../../../state/pod-predicates.ts';
import { seconds, timeOf } from '../times.ts';
import { podMetrics } from './metrics.ts';

/** A pod that is not ready yet. */
export interface WaitingPod {
  readonly pod: Pod;
  readonly bound: boolean;
}

export interface WaitingPodsOptions {
  readonly bookkeeping: PodBookkeeping;
  readonly metrics: Metrics;
  readonly now: () => number;
}

/** The pods that wait. Give it every state of every pod. */
export class WaitingPods {
  readonly #bookkeeping: PodBookkeeping;
  readonly #now: () => number;
  readonly #waiting = new Map<string, WaitingPod>();
  readonly #startup: Observer<never>;
  readonly #bound: Observer<never>;
  readonly #provisioningStartup: Observer<never>;
  readonly #provisioningBound: Observer<never>;

  constructor({ bookkeeping, metrics, now }: WaitingPodsOptions) {
    this.#bookkeeping = bookkeeping;
    this.#now = now;
    this.#startup = metrics.summary(podMetrics.startupDuration);
    this.#bound = metrics.histogram(podMetrics.boundDuration);
    this.#provisioningStartup = metrics.histogram(podMetrics.provisioningStartupDuration);
    this.#provisioningBound = metrics.histogram(podMetrics.provisioningBoundDuration);
  }

  /** All of them, in the order they were seen. */
  all(): WaitingPod[] {
    return [...this.#waiting.values()];
  }

  put(pod: Pod): void {
    const key = keyOf(pod);
    const before = this.#waiting.get(key);
    const pending = pod.status?.phase === 'Pending';
    // Whoever was ready before we looked has nothing to tell.
    if (!before && !pending) return;
    const scheduled = trueCondition(pod, 'PodScheduled');
    if (scheduled && !before?.bound) {
      this.#measure(pod, scheduled, this.#bound, this.#provisioningBound);
    }
    const ready = pending ? undefined : trueCondition(pod, 'Ready');
    if (ready) this.#measure(pod, ready, this.#startup, this.#provisioningStartup);
    if (!ready && !isTerminal(pod)) {
      this.#waiting.set(key, { pod, bound: before?.bound === true || scheduled !== undefined });
      return;
    }
    this.#waiting.delete(key);
    this.#bookkeeping.forget(uidOf(pod));
  }

  remove(pod: Pod): void {
    this.#waiting.delete(keyOf(pod));
  }

  #measure(
    pod: Pod,
    { lastTransitionTime }: PodCondition,
    sinceCreation: Observer<never>,
    sinceSchedulable: Observer<never>,
  ): void {
    const at = timeOf(lastTransitionTime, this.#now());
    sinceCreation.observe({}, seconds(at - timeOf(pod.metadata.creationTimestamp, at)));
    const schedulable = this.#bookkeeping.of(uidOf(pod))?.schedulable;
    if (schedulable !== undefined) sinceSchedulable.observe({}, seconds(at - schedulable));
  }
}

type PodCondition = NonNullable<NonNullable<Pod['status']>['conditions']>[number];

/** The condition, if it is True. */
export function trueCondition(pod: Pod, type: string): PodCondition | undefined {
  return pod.status?.conditions?.find((condition) => condition.type === type && condition.status === 'True');
}

export function uidOf(pod: Pod): string {
  return pod.metadata.uid ?? keyOf(pod);
}
