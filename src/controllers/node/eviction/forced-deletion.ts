// SPDX-License-Identifier: Apache-2.0
// When a node's time runs out, its pods go whatever protects them: from when on, and with how much grace. Pure.
import type { Pod } from '../../../kube/kinds.ts';

/**
 * Whether a pod must be deleted now to be gone by its node's deadline: as late as its grace period allows, or sooner
 * than it was promised when it is being deleted already. Never without a deadline.
 */
export function isForcedDeletionDue(pod: Pod, deadlineMs: number | undefined, now: number): boolean {
  if (deadlineMs === undefined) return false;
  const { deletionTimestamp } = pod.metadata;
  if (deletionTimestamp !== undefined) return Date.parse(deletionTimestamp) > deadlineMs;
  return now > forcedDeletionAt(pod, deadlineMs);
}

/** Until when a pod that is not being deleted may stay, for its grace period to end with the deadline; never: Infinity. */
export function forcedDeletionAt(pod: Pod, deadlineMs: number | undefined): number {
  const grace = pod.spec.terminationGracePeriodSeconds;
  return deadlineMs === undefined || grace === undefined ? Number.POSITIVE_INFINITY : deadlineMs - grace * 1000;
}

/** What is left until the deadline in whole seconds. At least one: none would let a new pod start beside the old one. */
export function forcedGraceSeconds(deadlineMs: number, now: number): number {
  return Math.max(1, Math.floor((deadlineMs - now) / 1000));
}
