// SPDX-License-Identifier: Apache-2.0
// What users are told about pods that must leave their node.
import type { EventToRecord } from '../../../kube/event-recorder.ts';
import type { Node, Pod } from '../../../kube/kinds.ts';
import { keyOf } from '../../../kube/object.ts';
import { formatTime } from '../../../kube/time.ts';
import { eventKinds, eventOf } from '../../events.ts';

export function evicted(pod: Pod, reason: string): EventToRecord {
  return eventOf(eventKinds.evicted, pod, `Evicted pod: ${reason}`);
}

/** The pod is deleted although something protects it: its node's time is over. */
export function disrupted(pod: Pod, deadlineMs: number, graceSeconds: number): EventToRecord {
  const asked = pod.spec.terminationGracePeriodSeconds ?? 0;
  return eventOf(
    eventKinds.disrupted,
    pod,
    `Deleting the pod to accommodate the terminationTime ${formatTime(deadlineMs)} of the node. The pod was granted ${graceSeconds} seconds of grace-period of its ${asked} terminationGracePeriodSeconds. This bypasses the PDB of the pod and the do-not-disrupt annotation.`,
  );
}

/** A disruption budget keeps a pod on a node that is being drained. */
export function evictionBlocked(node: Node, pod: Pod, problem: string): EventToRecord {
  return eventOf(eventKinds.failedDraining, node, `Failed to drain node, ${problem} (Pod=${keyOf(pod)})`, {
    dedupeValues: [node.metadata.uid ?? '', pod.metadata.uid ?? ''],
  });
}
