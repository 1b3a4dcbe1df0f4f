// SPDX-License-Identifier: Apache-2.0
// Writes into a NodeClaim when a pod last came to its node or left it: consolidation waits for quiet. Reads Pods and
// Nodes in the cluster `workload`, writes NodeClaims in `karpenter`.
import { getCondition, nodeClaimConditions } from '../../../api/conditions.ts';
import type { NodeClaim } from '../../../api/node-claim.ts';
import type { NodePool } from '../../../api/node-pool.ts';
import { kinds, type Pod } from '../../../kube/kinds.ts';
import { formatTime, parseTime } from '../../../kube/time.ts';
import type { Controller } from '../../../runtime/controller.ts';
import { isOwnedByDaemonSet, isTerminal, isTerminating } from '../../../state/pod-predicates.ts';
import { againAtWallTime } from '../../wall-time.ts';
import type { ControllerContext } from '../context.ts';
import { checkConsolidatable, quietTimeOf } from '../disruption/consolidatable.ts';

/** A NodeClaim is written at most this often, */
const shortestMs = 10_000;
/** and this often while pods come and go. */
const longestMs = 60_000;

/** The controller `nodeclaim.podevents`. Its keys are names of Nodes. */
export function podEventsController(context: ControllerContext): Controller {
  const { claims, nodes, clock } = context;
  const pods = context.clusters.workload.informers.get(kinds.Pod);
  /** The newest event on each Node that is not written down yet. */
  const latest = new Map<string, number>();
  const controller = context.controller({
    name: 'nodeclaim.podevents',
    kind: 'Node',
    concurrent: 1,
    reconciler: {
      async reconcile(nodeName, signal, run) {
        const at = latest.get(nodeName);
        const node = nodes.get(nodeName);
        const [claim, another] = node ? context.claimsOf(node) : [];
        if (at === undefined || !claim || another || at <= quietSince(claim)) {
          latest.delete(nodeName);
          return {};
        }
        const written = claim.status?.lastPodEventTime;
        const leftMs = written === undefined ? 0 : parseTime(written) + intervalOf(context.poolOf(claim)) - clock.now();
        // Not lost, only late: what happens within the interval is written at its end.
        if (leftMs > 0) return againAtWallTime(leftMs);
        const draft = context.draftOfClaim(claim);
        draft.replace({ ...claim, status: { ...claim.status, lastPodEventTime: formatTime(at) } });
        // A node that is no longer quiet says so in the same breath.
        const pool = draft.isTrue(nodeClaimConditions.consolidatable) ? context.poolOf(claim) : undefined;
        if (pool) checkConsolidatable(draft, pool, clock.now(), run);
        await claims.patchStatus(claim, draft.object, { signal });
        if (latest.get(nodeName) === at) latest.delete(nodeName);
        return {};
      },
    },
  });
  const happened = (pod: Pod, at: number): void => {
    const { nodeName } = pod.spec;
    if (!nodeName || isOwnedByDaemonSet(pod)) return;
    latest.set(nodeName, Math.max(at, latest.get(nodeName) ?? 0));
    controller.enqueue(nodeName);
  };
  let replaying = true;
  pods.addHandler({
    // What was there before we looked happened when it was bound, not when we started.
    added: (pod) => happened(pod, replaying || !pods.hasSynced ? boundAt(pod) : clock.now()),
    updated: (pod, old) => {
      if (isNews(pod, old)) happened(pod, clock.now());
    },
    deleted: (pod) => happened(pod, clock.now()),
  });
  replaying = false;
  context.pools.informer.addHandler({
    // What was not written yet may be needed sooner now.
    updated: ({ spec }, old) => {
      if (spec.disruption?.consolidateAfter === old.spec.disruption?.consolidateAfter) return;
      for (const nodeName of latest.keys()) controller.enqueue(nodeName);
    },
  });
  return controller.requires(pods, claims.informer, nodes.informer);
}

/**
 * How often it is written. Only consolidation reads it, and only to wait until so much time has passed since: a tenth of that is
 * soon enough, and where consolidation does not wait at all, or never happens, a minute is.
 */
function intervalOf(pool: NodePool | undefined): number {
  const quietMs = (pool && quietTimeOf(pool)) || Number.POSITIVE_INFINITY;
  return pool ? Math.min(longestMs, Math.max(shortestMs, quietMs / 10)) : shortestMs;
}

/** It was bound, it is over, or it is on its way out, and was not before. */
function isNews(pod: Pod, old: Pod): boolean {
  if (!old.spec.nodeName && pod.spec.nodeName) return true;
  return (isTerminal(pod) && !isTerminal(old)) || (isTerminating(pod) && !isTerminating(old));
}

function boundAt(pod: Pod): number {
  const scheduled = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')?.lastTransitionTime;
  const time = scheduled ?? pod.status?.startTime;
  return time ? parseTime(time) : 0;
}

/** What happened up to then is counted already: up to the last event, and before pods could come at all. */
function quietSince(claim: NodeClaim): number {
  const { lastPodEventTime } = claim.status ?? {};
  if (lastPodEventTime !== undefined) return parseTime(lastPodEventTime);
  const initialized = getCondition(claim, nodeClaimConditions.initialized);
  return initialized?.status === 'True' ? parseTime(initialized.lastTransitionTime) : 0;
}
