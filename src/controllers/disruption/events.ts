// SPDX-License-Identifier: Apache-2.0
// What users are told about disruption. About a machine it is told twice: on its Node and on its NodeClaim.
import type { NodeClaim } from '../../api/node-claim.ts';
import type { NodePool } from '../../api/node-pool.ts';
import type { EventToRecord } from '../../kube/event-recorder.ts';
import type { KubeObject } from '../../kube/object.ts';
import type { Clusters } from '../../runtime/clusters.ts';
import type { StateNode } from '../../state/state-node.ts';
import { type EventKind, eventKinds, eventOf } from '../events.ts';

/** Tells it on the Node, in the cluster `workload`, and on the NodeClaim, in the cluster `karpenter`. */
function tell(
  { workload, karpenter }: Clusters,
  { node, nodeClaim }: Pick<StateNode, 'node' | 'nodeClaim'>,
  event: (object: KubeObject, kind: 'Node' | 'NodeClaim') => EventToRecord,
): void {
  if (node) workload.events.publish(event(node, 'Node'));
  if (nodeClaim) karpenter.events.publish(event(nodeClaim, 'NodeClaim'));
}

function tellAlike(clusters: Clusters, machine: StateNode, kind: EventKind, message: string): void {
  tell(clusters, machine, (object) => eventOf(kind, object, message));
}

/** A machine cannot be disrupted now. */
export function tellBlocked(clusters: Clusters, machine: StateNode, why: string): void {
  tellAlike(clusters, machine, eventKinds.disruptionBlocked, why);
}

/** Consolidation does not concern a machine. */
export function tellUnconsolidatable(clusters: Clusters, machine: StateNode, why: string): void {
  tellAlike(clusters, machine, eventKinds.unconsolidatable, why);
}

/** A machine could be replaced by something cheaper. */
export function tellCandidate(clusters: Clusters, machine: StateNode, message: string): void {
  tellAlike(clusters, machine, eventKinds.consolidationCandidate, message);
}

/** A consolidation is worth what it moves, by the policy Balanced. */
export function tellApproved(clusters: Clusters, machine: StateNode, score: number): void {
  tellAlike(clusters, machine, eventKinds.consolidationApproved, `Balanced consolidation scores ${score.toFixed(2)}`);
}

const rejections = {
  budget: 'the budgets of its NodePool have nothing left',
  scheduling: 'its pods have no better place any more',
  churn: 'the node or its pods changed, or it may not be disrupted now',
} as const;

/** What was planned with a machine no longer holds. */
export function tellRejected(clusters: Clusters, machine: StateNode, reason: keyof typeof rejections): void {
  tellAlike(
    clusters,
    machine,
    eventKinds.consolidationRejected,
    `Consolidation was given up while it waited (${reason}): ${rejections[reason]}`,
  );
}

/** A machine is deleted by a command. */
export function tellTerminating(clusters: Clusters, machine: StateNode, reason: string): void {
  tell(clusters, machine, (object, kind) =>
    eventOf(eventKinds.disruptionTerminating, object, `Disrupting ${kind}: ${reason}`, {
      dedupeValues: [object.metadata.uid ?? '', reason],
    }),
  );
}

/** A command waits for its replacement. */
export function launching(claim: NodeClaim, reason: string): EventToRecord {
  return eventOf(eventKinds.disruptionLaunching, claim, `Launching NodeClaim: ${reason}`, {
    dedupeValues: [claim.metadata.uid ?? '', reason],
  });
}

export function waitingOnReadiness(claim: NodeClaim): EventToRecord {
  return eventOf(eventKinds.disruptionWaitingReadiness, claim, 'Waiting on readiness to continue disruption');
}

/** The budgets of a pool allow nothing at all for a reason. `problem`: why one of them cannot be understood. */
export function poolBlocked(pool: NodePool, reason: string, problem?: string): EventToRecord {
  const why = problem === undefined ? '' : ` that cannot be understood: ${problem}`;
  return eventOf(
    eventKinds.poolDisruptionBlocked,
    pool,
    `No allowed disruptions for disruption reason ${reason} due to blocking budget${why}`,
    { dedupeValues: [pool.metadata.uid ?? '', reason] },
  );
}
