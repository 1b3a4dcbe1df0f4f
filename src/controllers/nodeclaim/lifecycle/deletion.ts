// SPDX-License-Identifier: Apache-2.0
// Deletion: first the Node (its own controller drains it), then the machine, then the NodeClaim itself. Each step is
// repeated until the world shows that it is done, so a crash anywhere costs nothing but time.
import { getCondition, hasTrueConditions, nodeClaimConditions, trueCondition } from '../../../api/conditions.ts';
import { DurationError, durationMs } from '../../../api/duration.ts';
import { annotations, labels, terminationFinalizer } from '../../../api/labels.ts';
import type { NodeClaim } from '../../../api/node-claim.ts';
import { planted } from '../../../base/defects.ts';
import { wrap } from '../../../base/errors.ts';
import { isNodeClaimNotFound } from '../../../cloud/errors.ts';
import type { CloudProvider } from '../../../cloud/provider.ts';
import type { Node } from '../../../kube/kinds.ts';
import { formatTime, parseTime } from '../../../kube/time.ts';
import type { Result } from '../../../runtime/controller.ts';
import type { Logger } from '../../../runtime/logging.ts';
import type { ControllerContext } from '../context.ts';
import { nodeClaimMetrics, poolLabel } from '../metrics.ts';
import { terminationGracePeriodExpiring } from './events.ts';
import type { Launches } from './launches.ts';

/** How often a cloud is asked whether a machine is gone. */
const pollMs = 5000;
const { registered, instanceTerminating } = nodeClaimConditions;

export interface DeletionStep {
  readonly context: ControllerContext;
  readonly launches: Launches;
  readonly cloud: CloudProvider;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** One step towards the end of a NodeClaim that was deleted. */
export async function finalize(deleted: NodeClaim, step: DeletionStep): Promise<Result> {
  if (!deleted.metadata.finalizers?.includes(terminationFinalizer)) return {};
  let claim = await stampDeadline(deleted, step);
  if (!claim) return {};
  // The Node's own end calls us again.
  if (await nodesRemain(claim, step)) return {};
  claim = await withProviderID(claim, step);
  if (!claim) return {};
  if (claim.status?.providerID) {
    const terminated = await terminate(claim, step);
    if (terminated === 'waiting') return { requeueAfterMs: pollMs };
    if (!terminated) return {};
    claim = terminated;
  }
  await deleteUnowned(claim, step);
  await release(claim, step);
  return {};
}

/** Writes down until when the node may drain, once: whoever wrote a time before is obeyed. */
async function stampDeadline(claim: NodeClaim, { context, log, signal }: DeletionStep): Promise<NodeClaim | undefined> {
  const { deletionTimestamp, annotations: own } = claim.metadata;
  const graceMs = gracePeriodOf(claim);
  if (own?.[annotations.terminationTimestamp] !== undefined || graceMs === undefined) return claim;
  const deadline = formatTime(parseTime(deletionTimestamp!) + graceMs);
  const stamped = {
    ...claim,
    metadata: { ...claim.metadata, annotations: { ...own, [annotations.terminationTimestamp]: deadline } },
  };
  const stored = await context.claims.patch(claim, stamped, { signal, lock: true });
  if (!stored) return undefined;
  log.info('annotated nodeclaim', { [annotations.terminationTimestamp]: deadline });
  context.clusters.karpenter.events.publish(terminationGracePeriodExpiring(stored, deadline));
  return stored;
}

/** A period of centuries cannot be counted; it is no reason never to end. */
function gracePeriodOf(claim: NodeClaim): number | undefined {
  try {
    return durationMs(claim.spec.terminationGracePeriod);
  } catch (error) {
    if (error instanceof DurationError) return undefined;
    throw error;
  }
}

/**
 * Asks for the deletion of the Nodes and tells whether some are still there. A Node that never registered held no pods
 * of ours; it goes with its machine.
 */
async function nodesRemain(claim: NodeClaim, { context, signal }: DeletionStep): Promise<boolean> {
  const nodes = context.nodesOf(claim);
  if (!hasTrueConditions(claim, registered) && !nodes.some(isRegistered)) return false;
  for (const node of nodes) {
    if (node.metadata.deletionTimestamp === undefined) await context.nodes.delete(node, signal);
  }
  return nodes.length > 0;
}

/** We let pods onto it, even if a crash kept that out of the NodeClaim. */
function isRegistered(node: Node): boolean {
  return node.metadata.labels?.[labels.registered] === 'true';
}

/** Across clusters no owner reference makes a Node go with its NodeClaim. */
async function deleteUnowned(claim: NodeClaim, { context, signal }: DeletionStep): Promise<void> {
  const { clusters, nodes } = context;
  if (clusters.karpenter === clusters.workload) return;
  for (const node of context.nodesOf(claim)) {
    if (node.metadata.deletionTimestamp === undefined) await nodes.delete(node, signal);
  }
}

/** A machine may have been launched without its NodeClaim knowing: found by UID, or it would be left behind. */
async function withProviderID(
  claim: NodeClaim,
  { context, launches, cloud, signal }: DeletionStep,
): Promise<NodeClaim | undefined> {
  if (claim.status?.providerID) return claim;
  const known = launches.of(claim);
  if (known === 'nothing') return claim;
  const { uid } = claim.metadata;
  const instance = known ?? (await cloud.list(signal)).find((candidate) => candidate.nodeClaim?.uid === uid);
  if (!instance) return claim;
  const found = { ...claim, status: { ...claim.status, providerID: instance.providerID } };
  return context.claims.patchStatus(claim, found, { signal });
}

/** Asks the cloud to remove the machine. Gives the NodeClaim once it is gone, undefined when the NodeClaim is. */
async function terminate(
  claim: NodeClaim,
  { context, cloud, signal }: DeletionStep,
): Promise<NodeClaim | 'waiting' | undefined> {
  let gone = false;
  try {
    await cloud.delete(claim, signal);
  } catch (error) {
    if (!isNodeClaimNotFound(error) && !planted('delete-error-is-not-found')) throw wrap('deleting instance', error);
    gone = true;
  }
  const draft = context.draftOfClaim(claim);
  draft.set(trueCondition(instanceTerminating));
  const stored = draft.changed ? await draft.save(context.claims, signal) : claim;
  if (!stored || !gone) return stored && 'waiting';
  const since = getCondition(stored, instanceTerminating)!.lastTransitionTime;
  context.metrics
    .histogram(nodeClaimMetrics.instanceTerminationDuration)
    .observe({ nodepool: poolLabel(claim) }, secondsSince(since, context));
  return stored;
}

async function release(claim: NodeClaim, { context, launches, log, signal }: DeletionStep): Promise<void> {
  const finalizers = claim.metadata.finalizers?.filter((finalizer) => finalizer !== terminationFinalizer) ?? [];
  const released = { ...claim, metadata: { ...claim.metadata, finalizers } };
  const stored = await context.claims.patch(claim, released, { signal, lock: true });
  launches.forget(claim);
  if (!stored) return;
  log.info('deleted nodeclaim');
  const { metrics } = context;
  const nodepool = poolLabel(claim);
  metrics
    .histogram(nodeClaimMetrics.terminationDuration)
    .observe({ nodepool }, secondsSince(claim.metadata.deletionTimestamp!, context));
  metrics.counter(nodeClaimMetrics.terminated).inc({
    nodepool,
    capacity_type: claim.metadata.labels?.[labels.capacityType] ?? '',
    zone: claim.metadata.labels?.[labels.zone] ?? '',
  });
}

function secondsSince(time: string, { clock }: ControllerContext): number {
  return Math.max(0, clock.now() - parseTime(time)) / 1000;
}
