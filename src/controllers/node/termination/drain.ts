// SPDX-License-Identifier: Apache-2.0
// What a drain does next: which pods leave now, and how many it waits for. Pure.
import type { Pod } from '../../../kube/kinds.ts';
import {
  doNotDisrupt,
  isActive,
  isOwnedByDaemonSet,
  isWaitingEviction,
  stuckAt,
} from '../../../state/pod-predicates.ts';
import { forcedDeletionAt, isForcedDeletionDue } from '../eviction/forced-deletion.ts';
import { largestFirst } from '../eviction/turns.ts';

export interface DrainStep {
  /** To be asked to leave now: those of the first tier that is not empty yet, the largest first. */
  readonly evict: readonly Pod[];
  /** To be deleted now whatever protects them: the node's deadline leaves no more time. Of every tier. */
  readonly force: readonly Pod[];
  /** All the pods that the drain waits for; zero when it is over. */
  readonly waiting: number;
}

/**
 * The next step of a drain. Workloads go before what serves them: first ordinary pods, then ordinary daemons, then
 * critical pods, then critical daemons; a tier begins when the one before is gone.
 */
export function nextDrainStep(pods: Iterable<Pod>, deadlineMs: number | undefined, now: number): DrainStep {
  const tiers: [Pod[], Pod[], Pod[], Pod[]] = [[], [], [], []];
  const force: Pod[] = [];
  let waiting = 0;
  for (const pod of pods) {
    if (!isWaitingEviction(pod, now)) continue;
    waiting++;
    tiers[tierOf(pod)].push(pod);
    if (isForcedDeletionDue(pod, deadlineMs, now)) force.push(pod);
  }
  const first = tiers.find((tier) => tier.length > 0) ?? [];
  const forced = new Set(force);
  return { evict: largestFirst(first.filter((pod) => isActive(pod) && !forced.has(pod))), force, waiting };
}

/**
 * When the next step may be another one though no pod changes: one is stuck, its protection ends, or the deadline leaves no
 * more time. Infinity when only pods can change it.
 */
export function nextDrainStepAt(pods: Iterable<Pod>, deadlineMs: number | undefined, now: number): number {
  let next = Number.POSITIVE_INFINITY;
  // The times say when something still holds: a millisecond later it does not.
  const at = (ms: number): void => {
    if (ms >= now) next = Math.min(next, ms + 1);
  };
  for (const pod of pods) {
    if (!isWaitingEviction(pod, now)) continue;
    if (!isActive(pod)) {
      at(stuckAt(pod));
      continue;
    }
    const protection = doNotDisrupt(pod, now);
    if (protection.state === 'active' && protection.untilMs !== undefined) at(protection.untilMs);
    at(forcedDeletionAt(pod, deadlineMs));
  }
  return next;
}

function tierOf(pod: Pod): 0 | 1 | 2 | 3 {
  if (isCritical(pod)) return isOwnedByDaemonSet(pod) ? 3 : 2;
  return isOwnedByDaemonSet(pod) ? 1 : 0;
}

function isCritical({ spec: { priorityClassName } }: Pod): boolean {
  return priorityClassName === 'system-cluster-critical' || priorityClassName === 'system-node-critical';
}
