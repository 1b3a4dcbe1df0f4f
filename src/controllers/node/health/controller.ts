// SPDX-License-Identifier: Apache-2.0
// Replaces nodes that their cloud calls broken: a condition has said so for longer than it may. Forceful: neither budgets
// nor pods are asked, unless so many nodes are broken that something else must be wrong. Reads Nodes of `workload`, writes
// NodeClaims of `karpenter`.
import { annotations, labels } from '../../../api/labels.ts';
import type { NodeClaim } from '../../../api/node-claim.ts';
import type { RepairPolicy } from '../../../cloud/provider.ts';
import type { Node } from '../../../kube/kinds.ts';
import { keyOf } from '../../../kube/object.ts';
import { formatTime, parseTime } from '../../../kube/time.ts';
import type { Controller, Result } from '../../../runtime/controller.ts';
import type { Logger } from '../../../runtime/logging.ts';
import { eventKinds, eventOf } from '../../events.ts';
import type { ControllerContext } from '../../nodeclaim/context.ts';
import { disruptedLabels, nodeClaimMetrics, poolLabel } from '../../nodeclaim/metrics.ts';
import { againAtWallTime } from '../../wall-time.ts';

const blockedRetryMs = 5 * 60_000;
/** With more of the nodes broken than this, rounded up, replacing them would only make it worse. */
const mostUnhealthy = 0.2;

/** A policy that a node's condition meets, and when its time is over. */
interface Finding {
  readonly policy: RepairPolicy;
  readonly dueAt: number;
}

/** The controller `node.health`. */
export function nodeHealthController(context: ControllerContext): Controller {
  const { claims, nodes, clock } = context;
  const controller = context.controller({
    name: 'node.health',
    kind: 'Node',
    concurrent: [10, 1000],
    reconciler: {
      async reconcile(key, signal, { log }): Promise<Result> {
        const node = nodes.get(key);
        const [claim, another] = node ? context.claimsOf(node) : [];
        if (!node || !claim || another || claim.metadata.deletionTimestamp !== undefined) return {};
        const found = findingOf(context, node, claim);
        if (!found) return {};
        const leftMs = found.dueAt - clock.now();
        if (leftMs > 0) return againAtWallTime(leftMs);
        const blocked = whyBlocked(context, claim);
        if (blocked !== undefined) {
          tellBlocked(context, node, claim, blocked);
          return { requeueAfterMs: blockedRetryMs };
        }
        await repair(context, node, claim, found.policy, signal, log);
        return {};
      },
    },
  });
  controller.watch(nodes.informer, {
    when: (node, old) =>
      old === undefined || node.spec?.providerID !== old.spec?.providerID || conditionsOf(node) !== conditionsOf(old),
  });
  // A Node may be broken before its NodeClaim is there, or says which machine is its own.
  return controller.watch(claims.informer, {
    keys: (claim) => context.nodesOf(claim).map(keyOf),
    when: (claim, old) => claim.status?.providerID !== old?.status?.providerID,
    whenGone: false,
  });
}

/** Conditions without the heartbeats. */
function conditionsOf(node: Node): string {
  const all = (node.status?.conditions ?? []).map(
    ({ type, status, lastTransitionTime }) => `${type}=${status}@${lastTransitionTime ?? ''}`,
  );
  return all.sort().join();
}

/** The policy whose time is over first among those the node's conditions meet. */
function findingOf({ registry }: ControllerContext, node: Node, claim: NodeClaim): Finding | undefined {
  let first: Finding | undefined;
  for (const policy of registry.ofNodeClaim(claim)?.repairPolicies ?? []) {
    for (const { type, status, lastTransitionTime } of node.status?.conditions ?? []) {
      if (type !== policy.conditionType || status !== policy.conditionStatus || !lastTransitionTime) continue;
      const dueAt = parseTime(lastTransitionTime) + policy.tolerationMs;
      if (!first || dueAt < first.dueAt) first = { policy, dueAt };
    }
  }
  return first;
}

/** Too many of the nodes it belongs to are broken: of its pool, or of all when it has none. */
function whyBlocked(context: ControllerContext, claim: NodeClaim): string | undefined {
  const pool = claim.metadata.labels?.[labels.nodePool];
  let [all, unhealthy] = [0, 0];
  for (const node of context.nodes.list()) {
    if (pool !== undefined && node.metadata.labels?.[labels.nodePool] !== pool) continue;
    const [own] = context.claimsOf(node);
    if (!own) continue;
    all++;
    if (findingOf(context, node, own)) unhealthy++;
  }
  if (unhealthy <= Math.ceil(all * mostUnhealthy)) return undefined;
  return pool === undefined
    ? 'more than 20% nodes are unhealthy in the cluster'
    : `more than 20% nodes are unhealthy in the nodepool ${pool}`;
}

function tellBlocked({ clusters }: ControllerContext, node: Node, claim: NodeClaim, why: string): void {
  clusters.workload.events.publish(eventOf(eventKinds.nodeRepairBlocked, node, why));
  clusters.karpenter.events.publish(eventOf(eventKinds.nodeRepairBlocked, claim, why));
}

/** Its time is over now, so that the drain waits for nobody. */
async function repair(
  context: ControllerContext,
  node: Node,
  claim: NodeClaim,
  { conditionType }: RepairPolicy,
  signal: AbortSignal,
  log: Logger,
): Promise<void> {
  const { claims, clock, metrics } = context;
  const own = claim.metadata.annotations ?? {};
  const deadline = own[annotations.terminationTimestamp];
  if (deadline === undefined || !(Date.parse(deadline) <= clock.now())) {
    const changed = { ...own, [annotations.terminationTimestamp]: formatTime(clock.now()) };
    await claims.patch(claim, { ...claim, metadata: { ...claim.metadata, annotations: changed } }, { signal });
  }
  if (!(await claims.delete(claim, signal))) return;
  log.info('deleting unhealthy node', { Node: { name: node.metadata.name }, condition: conditionType });
  metrics.counter(nodeClaimMetrics.disrupted).inc(disruptedLabels('unhealthy', claim, context.poolOf(claim)));
  metrics.counter(nodeClaimMetrics.unhealthyDisrupted).inc({
    condition: snakeCase(conditionType),
    nodepool: poolLabel(claim),
    capacity_type: claim.metadata.labels?.[labels.capacityType] ?? '',
    image_id: claim.status?.imageID ?? '',
  });
}

function snakeCase(text: string): string {
  return text.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase();
}
