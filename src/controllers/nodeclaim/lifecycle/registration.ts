// SPDX-License-Identifier: Apache-2.0
// Registration: the machine has become a Node. The Node gets what its NodeClaim promises, and only then may pods come.
import { falseCondition, nodeClaimConditions, trueCondition, unknownCondition } from '../../../api/conditions.ts';
import { labels, terminationFinalizer } from '../../../api/labels.ts';
import type { NodeClaim } from '../../../api/node-claim.ts';
import { isSameTaint, mergeTaints, unregisteredTaint } from '../../../api/taints.ts';
import { planted } from '../../../base/defects.ts';
import { wrap } from '../../../base/errors.ts';
import type { RegistrationHook } from '../../../cloud/provider.ts';
import type { Node } from '../../../kube/kinds.ts';
import type { OwnerReference } from '../../../kube/object.ts';
import { ownerReference } from '../../../runtime/clusters.ts';
import type { Result } from '../../../runtime/controller.ts';
import { type Logger, objectField } from '../../../runtime/logging.ts';
import type { ControllerContext } from '../context.ts';
import type { Draft } from '../draft.ts';
import { nodeClaimMetrics, poolLabel } from '../metrics.ts';
import { unregisteredTaintMissing } from './events.ts';
import { recordRegistration } from './registration-outcome.ts';

const { registered } = nodeClaimConditions;

export interface RegistrationStep {
  readonly context: ControllerContext;
  readonly hooks: readonly RegistrationHook[];
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** Brings the draft to Registered when its Node is there and every hook is done. */
export async function register(draft: Draft<NodeClaim>, step: RegistrationStep): Promise<Result> {
  const condition = draft.condition(registered);
  if (condition?.status === 'True') {
    draft.refresh(condition);
    return {};
  }
  const { context } = step;
  const [node, another] = context.nodesOf(draft.object);
  // The API server lets nobody hold on to what is being deleted.
  if (!node || (node.metadata.deletionTimestamp !== undefined && !isHeld(node))) {
    draft.set(unknownCondition(registered, 'NodeNotFound', 'the node has not appeared in the cluster'));
    return {};
  }
  if (another) {
    const names = `${node.metadata.name}, ${another.metadata.name}`;
    draft.set(falseCondition(registered, 'MultipleNodesFound', `several nodes have this provider id: ${names}`));
    return {};
  }
  const log = step.log.with(objectField(node, 'Node'));
  warnOfMissingTaint(draft.object, node, context, log);
  const hooks = await runHooks(draft.object, step.hooks, step.signal);
  if (step.hooks.length > 0 && !(await isCurrent(draft, step))) return { requeueAfterMs: 0 };
  const synced = inLine(draft.object, node, context);
  const wanted = hooks.pending.length > 0 ? synced : released(synced);
  const stored = await context.nodes.patch(node, wanted, { signal: step.signal, lock: true });
  if (!stored) {
    draft.set(unknownCondition(registered, 'NodeNotFound', 'the node has not appeared in the cluster'));
    return {};
  }
  if (hooks.pending.length > 0) {
    log.debug('awaiting registration hooks', { hooks: hooks.pending });
    draft.set(unknownCondition(registered, 'RegistrationHookPending', hooks.pending.join(', ')));
    if (hooks.failure !== undefined) throw hooks.failure;
    return { requeueAfterMs: hooks.requeueAfterMs };
  }
  draft.set(trueCondition(registered));
  draft.replace({ ...draft.object, status: { ...draft.object.status, nodeName: stored.metadata.name ?? '' } });
  draft.onceSaved(async () => {
    log.info('registered nodeclaim');
    const zone = draft.object.metadata.labels?.[labels.zone] ?? '';
    context.metrics.counter(nodeClaimMetrics.nodesCreated).inc({ nodepool: poolLabel(draft.object), zone });
    await recordRegistration(context, draft.object, step.signal);
  });
  return {};
}

function isHeld(node: Node): boolean {
  return node.metadata.finalizers?.includes(terminationFinalizer) ?? false;
}

function warnOfMissingTaint(claim: NodeClaim, node: Node, context: ControllerContext, log: Logger): void {
  if (node.metadata.labels?.[labels.registered] !== undefined) return;
  if (node.spec?.taints?.some((taint) => isSameTaint(taint, unregisteredTaint))) return;
  log.error('node claim registration error', {
    taint: unregisteredTaint.key,
    error: 'the node came without the taint that keeps pods away until it is registered',
  });
  context.clusters.karpenter.events.publish(unregisteredTaintMissing(claim));
}

/** Hooks may have written to the NodeClaim: what they wrote belongs on the Node, too, so the round starts over. */
async function isCurrent(draft: Draft<NodeClaim>, { context, signal }: RegistrationStep): Promise<boolean> {
  const { name = '', resourceVersion } = draft.before.metadata;
  const newest = await context.claims.read(name, signal);
  return newest?.metadata.resourceVersion === resourceVersion;
}

interface HooksOutcome {
  readonly pending: readonly string[];
  readonly requeueAfterMs: number;
  readonly failure?: unknown;
}

/** Asks all hooks at once; one that fails counts as pending. */
async function runHooks(
  claim: NodeClaim,
  hooks: readonly RegistrationHook[],
  signal: AbortSignal,
): Promise<HooksOutcome> {
  const outcomes = await Promise.allSettled(hooks.map(async (hook) => hook.registered(claim, signal)));
  const pending: string[] = [];
  let requeueAfterMs = Number.POSITIVE_INFINITY;
  let failure: unknown;
  for (const [i, outcome] of outcomes.entries()) {
    const name = hooks[i]!.name;
    if (outcome.status === 'rejected') {
      pending.push(name);
      failure ??= wrap(`registration hook ${name}`, outcome.reason);
    } else if ('requeueAfterMs' in outcome.value) {
      pending.push(name);
      requeueAfterMs = Math.min(requeueAfterMs, outcome.value.requeueAfterMs);
    }
  }
  return { pending, requeueAfterMs, ...(failure === undefined ? {} : { failure }) };
}

/** The Node with everything its NodeClaim promises. */
function inLine(claim: NodeClaim, node: Node, context: ControllerContext): Node {
  const { metadata } = node;
  const finalizers = metadata.finalizers ?? [];
  const owners = withOwner(claim, metadata.ownerReferences ?? [], context);
  const taints = node.spec?.taints ?? [];
  const { taints: own = [], startupTaints = [] } = claim.spec;
  const synced =
    metadata.labels?.[labels.doNotSyncTaints] === 'true'
      ? taints
      : mergeTaints(mergeTaints(taints, own as typeof taints), startupTaints as typeof taints);
  return {
    ...node,
    metadata: {
      ...metadata,
      labels: { ...metadata.labels, ...claim.metadata.labels },
      annotations: { ...metadata.annotations, ...claim.metadata.annotations },
      finalizers: isHeld(node) ? finalizers : [...finalizers, terminationFinalizer],
      ...(owners.length > 0 ? { ownerReferences: owners } : {}),
    },
    spec: { ...node.spec, ...(synced.length > 0 ? { taints: synced } : {}) },
  };
}

/** Owners never live in another cluster: then our own controllers see to the end of the Node. */
function withOwner(claim: NodeClaim, owners: OwnerReference[], { clusters }: ControllerContext): OwnerReference[] {
  if (clusters.karpenter !== clusters.workload || owners.some(({ uid }) => uid === claim.metadata.uid)) return owners;
  const owner = { cluster: clusters.karpenter, object: claim };
  return [...owners, ownerReference(owner, clusters.workload, { blockOwnerDeletion: true })];
}

/** The Node as one that pods may come to. */
function released(node: Node): Node {
  const taints = node.spec?.taints?.filter(
    (taint) => !isSameTaint(taint, unregisteredTaint) || planted('keeps-unregistered-taint'),
  );
  return {
    ...node,
    metadata: { ...node.metadata, labels: { ...node.metadata.labels, [labels.registered]: 'true' } },
    spec: { ...node.spec, ...(taints ? { taints } : {}) },
  };
}
