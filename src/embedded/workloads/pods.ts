// SPDX-License-Identifier: Apache-2.0
// What controllers ask of pods: are they alive, ready, available, and which to give up first.
import { chain, compareStrings } from '../../base/order.ts';
import type { Pod, PodCondition } from '../../kube/kinds.ts';
import { parseTime } from '../../kube/time.ts';

export function podCondition(pod: Pod, type: string): PodCondition | undefined {
  const conditions = pod.status?.conditions;
  // By hand: every change of a pod is looked at by many, and so are all pods of a set.
  if (conditions) for (let i = 0; i < conditions.length; i++) if (conditions[i]!.type === type) return conditions[i];
  return undefined;
}

export function isPodReady(pod: Pod): boolean {
  return podCondition(pod, 'Ready')?.status === 'True';
}

/** Since when a pod is ready, in ms; 0 when it is not. */
export function readySince(pod: Pod): number {
  const ready = podCondition(pod, 'Ready');
  return ready?.status === 'True' && ready.lastTransitionTime ? parseTime(ready.lastTransitionTime) : 0;
}

/** Ready for at least `minReadySeconds`. */
export function isPodAvailable(pod: Pod, minReadySeconds: number, now: number): boolean {
  return isPodReady(pod) && (minReadySeconds === 0 || readySince(pod) + minReadySeconds * 1000 <= now);
}

/** Whether all its containers ended, well or not. */
export function isPodEnded(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
}

/** Neither ended nor on its way out. */
export function isPodActive(pod: Pod): boolean {
  return !isPodEnded(pod) && pod.metadata.deletionTimestamp === undefined;
}

const phaseOrder: Readonly<Record<string, number>> = { Pending: 0, Unknown: 1, Running: 2 };
const costAnnotation = 'controller.kubernetes.io/pod-deletion-cost';

function deletionCost(pod: Pod): number {
  const text = pod.metadata.annotations?.[costAnnotation] ?? '0';
  return /^-?(0|[1-9]\d*)$/.test(text) ? Number(text) : 0;
}

function restarts(pod: Pod): number {
  return Math.max(0, ...(pod.status?.containerStatuses ?? []).map((status) => status.restartCount));
}

function created(pod: Pod): number {
  return pod.metadata.creationTimestamp ? parseTime(pod.metadata.creationTimestamp) : 0;
}

/** Ages compare by their power of two: a few seconds between old pods do not decide who goes. */
function ageRank(since: number, now: number): number {
  return since === 0 ? -1 : Math.floor(Math.log2(Math.max(1, now - since)));
}

/**
 * Pods in the order they are given up when fewer are wanted: unplaced, not running, not ready, cheap, doubled up on a
 * node, young, often restarted. `related` are all pods that count as company on a node.
 */
export function byDeletionOrder(pods: readonly Pod[], related: readonly Pod[], now: number): Pod[] {
  const company = new Map<string, number>();
  for (const pod of related) {
    const node = pod.spec.nodeName;
    if (node && isPodActive(pod) && isPodReady(pod)) company.set(node, (company.get(node) ?? 0) + 1);
  }
  const rank = (pod: Pod): number => (pod.spec.nodeName ? (company.get(pod.spec.nodeName) ?? 0) : 0);
  const less = (value: (pod: Pod) => number) => (a: Pod, b: Pod) => value(a) - value(b);
  return [...pods].sort(
    chain<Pod>(
      less((pod) => (pod.spec.nodeName ? 1 : 0)),
      less((pod) => phaseOrder[pod.status?.phase ?? 'Pending'] ?? 1),
      less((pod) => (isPodReady(pod) ? 1 : 0)),
      less(deletionCost),
      less((pod) => -rank(pod)),
      less((pod) => ageRank(readySince(pod), now)),
      less((pod) => -restarts(pod)),
      less((pod) => ageRank(created(pod), now)),
      (a, b) => compareStrings(a.metadata.uid ?? '', b.metadata.uid ?? ''),
    ),
  );
}
