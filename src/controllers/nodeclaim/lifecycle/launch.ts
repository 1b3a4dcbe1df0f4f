// SPDX-License-Identifier: Apache-2.0
// Launch: the cloud makes the machine of a NodeClaim. Safe to repeat at any point: the NodeClaim's UID is the token by
// which the cloud finds what it has made before.
import { nodeClaimConditions, trueCondition, unknownCondition } from '../../../api/conditions.ts';
import { labels } from '../../../api/labels.ts';
import type { NodeClaim } from '../../../api/node-claim.ts';
import { findCause, messageOf, wrap } from '../../../base/errors.ts';
import { CreateError, isInsufficientCapacity, isNodeClassNotReady } from '../../../cloud/errors.ts';
import type { CloudProvider, Instance } from '../../../cloud/provider.ts';
import type { Logger } from '../../../runtime/logging.ts';
import type { ControllerContext } from '../context.ts';
import type { Draft } from '../draft.ts';
import { disruptedLabels, nodeClaimMetrics } from '../metrics.ts';
import { insufficientCapacity, nodeClassNotReady, shortened } from './events.ts';
import type { Launches } from './launches.ts';

const { launched } = nodeClaimConditions;

export interface LaunchStep {
  readonly context: ControllerContext;
  readonly launches: Launches;
  readonly cloud: CloudProvider;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/**
 * Brings the draft to Launched. Gives `false` when the NodeClaim was given up and deleted; throws when the launch
 * failed and is to be tried again, with the reason in the draft.
 */
export async function launch(draft: Draft<NodeClaim>, step: LaunchStep): Promise<boolean> {
  const condition = draft.condition(launched);
  if (condition && condition.status !== 'Unknown') {
    draft.refresh(condition);
    step.launches.forget(draft.object);
    return true;
  }
  const known = step.launches.of(draft.object);
  const instance = known && known !== 'nothing' ? known : await create(draft, step);
  if (!instance) return false;
  describe(draft, instance);
  draft.set(trueCondition(launched));
  return true;
}

async function create(draft: Draft<NodeClaim>, step: LaunchStep): Promise<Instance | undefined> {
  const { launches, cloud, log, signal } = step;
  const claim = draft.object;
  try {
    const instance = await cloud.create(claim, signal);
    launches.record(claim, instance);
    log.info('launched nodeclaim', {
      'provider-id': instance.providerID,
      'instance-type': instance.labels[labels.instanceType],
      zone: instance.labels[labels.zone],
      'capacity-type': instance.labels[labels.capacityType],
      allocatable: instance.allocatable,
    });
    return instance;
  } catch (error) {
    if (isInsufficientCapacity(error) || isNodeClassNotReady(error)) {
      launches.record(claim, 'nothing');
      await giveUp(claim, error, step);
      return undefined;
    }
    const told = findCause(error, CreateError);
    const reason = told?.conditionReason ?? 'LaunchFailed';
    draft.set(unknownCondition(launched, reason, told?.conditionMessage ?? shortened(messageOf(error))));
    throw wrap('launching nodeclaim', error);
  }
}

/** Another NodeClaim will be made for its pods, by then perhaps of another kind. */
async function giveUp(claim: NodeClaim, error: unknown, { context, log, signal }: LaunchStep): Promise<void> {
  const soldOut = isInsufficientCapacity(error);
  log.error('failed launching nodeclaim', { error });
  context.clusters.karpenter.events.publish((soldOut ? insufficientCapacity : nodeClassNotReady)(claim, error));
  if (!(await context.claims.delete(claim, signal))) return;
  const reason = soldOut ? 'insufficient_capacity' : 'nodeclass_not_ready';
  context.metrics.counter(nodeClaimMetrics.disrupted).inc(disruptedLabels(reason, claim, context.poolOf(claim)));
}

/** Writes into the NodeClaim what the cloud made of it. */
function describe(draft: Draft<NodeClaim>, instance: Instance): void {
  const claim = draft.object;
  const { providerID, imageID, capacity, allocatable } = instance;
  draft.replace({
    ...claim,
    metadata: {
      ...claim.metadata,
      // What the user or the NodePool said about labels stands.
      labels: { ...instance.labels, ...claim.metadata.labels },
      annotations: { ...claim.metadata.annotations, ...instance.annotations },
    },
    status: {
      ...claim.status,
      providerID,
      ...(imageID ? { imageID } : {}),
      capacity: { ...capacity },
      allocatable: { ...allocatable },
    },
  });
}
