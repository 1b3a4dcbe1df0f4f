// SPDX-License-Identifier: Apache-2.0
// Questions about one pod that provisioning, termination and disruption ask alike. Pure: the time is handed in.
import { annotations } from '../api/labels.ts';
import { disruptedTaint } from '../api/taints.ts';
import { planted } from '../base/defects.ts';
import type { Pod } from '../kube/kinds.ts';
import { parseDuration } from '../kube/time.ts';
import { tolerates } from '../scheduling/taints.ts';

/** A pod that has been going for longer than this is stuck: nobody waits for it any more. */
const stuckAfterMs = 60_000;

/** Tells a pod apart from those that had its name before. */
export function podId({ metadata }: Pod): string {
  return metadata.uid ?? `${metadata.namespace}/${metadata.name}`;
}

export function isTerminal(pod: Pod): boolean {
  const phase = pod.status?.phase;
  return phase === 'Failed' || phase === 'Succeeded';
}

export function isTerminating(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp !== undefined;
}

/** Says of itself that it is not ready: what says nothing does not. */
export function isUnready(pod: Pod): boolean {
  return pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'False') ?? false;
}

/** Neither over nor on its way out. */
export function isActive(pod: Pod): boolean {
  return !isTerminal(pod) && !isTerminating(pod);
}

/** Being deleted, and past its time (deletionTimestamp includes the grace period) for more than a minute. */
export function isStuckTerminating(pod: Pod, now: number): boolean {
  return now > stuckAt(pod);
}

/** Until when a pod that is being deleted is waited for; Infinity for all others. */
export function stuckAt({ metadata: { deletionTimestamp } }: Pod): number {
  return deletionTimestamp === undefined ? Number.POSITIVE_INFINITY : Date.parse(deletionTimestamp) + stuckAfterMs;
}

export function isOwnedByDaemonSet(pod: Pod): boolean {
  return ownedBy(pod, 'DaemonSet', 'apps/v1');
}

/** A mirror of a static pod: it lives and dies with its node. */
export function isOwnedByNode(pod: Pod): boolean {
  return ownedBy(pod, 'Node', 'v1');
}

export function isOwnedByStatefulSet(pod: Pod): boolean {
  return ownedBy(pod, 'StatefulSet', 'apps/v1');
}

function ownedBy(pod: Pod, kind: string, apiVersion: string): boolean {
  const owners = pod.metadata.ownerReferences;
  if (!owners) return false;
  // Asked about every pod of the cluster, several times in each pass: a closure for each would be most of what a pass allocates.
  for (const owner of owners) if (owner.kind === kind && owner.apiVersion === apiVersion) return true;
  return false;
}

/** The workload that made it. */
export function controllerOf(
  pod: Pod,
): { readonly kind: string; readonly name: string; readonly uid: string } | undefined {
  return pod.metadata.ownerReferences?.find(({ controller }) => controller);
}

export function isScheduled(pod: Pod): boolean {
  return Boolean(pod.spec.nodeName);
}

/** kube-scheduler has said that no node can take it. */
export function failedToSchedule(pod: Pod): boolean {
  return (
    pod.status?.conditions?.some(({ type, reason }) => type === 'PodScheduled' && reason === 'Unschedulable') ?? false
  );
}

/** kube-scheduler makes room for it by preemption. */
export function isPreempting(pod: Pod): boolean {
  return Boolean(pod.status?.nominatedNodeName);
}

/** It waits for a node that does not exist yet: ours to provide. */
export function isProvisionable(pod: Pod): boolean {
  return (
    !isScheduled(pod) && failedToSchedule(pod) && !isPreempting(pod) && !isOwnedByDaemonSet(pod) && !isOwnedByNode(pod)
  );
}

/** It will need a place elsewhere when its node goes. A StatefulSet's pod comes back under its name once it is gone. */
export function isReschedulable(pod: Pod): boolean {
  if (isOwnedByDaemonSet(pod) || isOwnedByNode(pod)) return false;
  return isActive(pod) || (isOwnedByStatefulSet(pod) && isTerminating(pod));
}

/** What the annotation do-not-disrupt of a pod means. */
export type DoNotDisrupt =
  | { readonly state: 'absent' }
  /** Neither "true" nor a positive duration: it protects nothing. */
  | { readonly state: 'invalid'; readonly value: string }
  /** Holds; `untilMs` when it ends by itself at a known time. */
  | { readonly state: 'active'; readonly untilMs?: number }
  | { readonly state: 'elapsed'; readonly sinceMs: number };

const absent: DoNotDisrupt = { state: 'absent' };

/** Reads the annotation: "true" holds for ever, a duration from the start of the pod; before that it holds, too. */
export function doNotDisrupt(pod: Pod, now: number): DoNotDisrupt {
  const value = pod.metadata.annotations?.[annotations.doNotDisrupt];
  if (value === undefined) return absent;
  if (value === 'true') return { state: 'active' };
  const lasts = durationOf(value);
  if (lasts === undefined || lasts <= 0) return { state: 'invalid', value };
  const { startTime } = pod.status ?? {};
  if (startTime === undefined) return { state: 'active' };
  const untilMs = Date.parse(startTime) + lasts;
  return now < untilMs ? { state: 'active', untilMs } : { state: 'elapsed', sinceMs: untilMs };
}

function durationOf(text: string): number | undefined {
  try {
    return parseDuration(text);
  } catch {
    return undefined;
  }
}

export function isDoNotDisruptActive(pod: Pod, now: number): boolean {
  return doNotDisrupt(pod, now).state === 'active' && !planted('ignores-do-not-disrupt');
}

/** Voluntary disruption may take it: it is over anyway, or nothing protects it. */
export function isDisruptable(pod: Pod, now: number): boolean {
  return !isActive(pod) || !isDoNotDisruptActive(pod, now);
}

/** It wants to stay on nodes that are being disrupted. */
export function toleratesDisruption(pod: Pod): boolean {
  return pod.spec.tolerations?.some((toleration) => tolerates(toleration, disruptedTaint)) ?? false;
}

/** It may be asked to leave through the eviction API. */
export function isEvictable(pod: Pod, now: number): boolean {
  return isActive(pod) && !toleratesDisruption(pod) && !isOwnedByNode(pod) && !isDoNotDisruptActive(pod, now);
}

/** A drain is about this pod at all. */
export function isDrainable(pod: Pod, now: number): boolean {
  return !toleratesDisruption(pod) && !isStuckTerminating(pod, now) && !isOwnedByNode(pod);
}

/** A drain waits for this pod to go. */
export function isWaitingEviction(pod: Pod, now: number): boolean {
  return !isTerminal(pod) && isDrainable(pod, now);
}

const maxEvictionCost = 10;

/** How much it hurts to move a pod: 1 for an ordinary one, from -10 to 10 by deletion cost and priority. */
export function evictionCost(pod: Pod): number {
  let cost = 1;
  const asked = pod.metadata.annotations?.[annotations.podDeletionCost];
  const deletionCost = asked === undefined || asked === '' ? 0 : Number(asked);
  if (Number.isFinite(deletionCost)) cost += deletionCost / 2 ** 27;
  cost += (pod.spec.priority ?? 0) / 2 ** 25;
  return Math.min(maxEvictionCost, Math.max(-maxEvictionCost, cost));
}
