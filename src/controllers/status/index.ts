// SPDX-License-Identifier: Apache-2.0
// The status of NodeClaims, NodePools, Nodes and NodeClasses, and of CapacityBuffers where they are in use, as events and
// metrics.
import { type CapacityBuffer, capacityBufferKind } from '../../api/capacity-buffer.ts';
import {
  type Conditioned,
  type ConditionTypes,
  completeConditions,
  nodeClaimConditionTypes,
  nodePoolConditionTypes,
} from '../../api/conditions.ts';
import { labels, nodeClassLabel } from '../../api/labels.ts';
import type { ResourceType } from '../../kube/object.ts';
import { formatTime } from '../../kube/time.ts';
import type { Runnable } from '../../runtime/manager.ts';
import type { ControllerContext } from '../nodeclaim/context.ts';
import { statusObserver } from './controller.ts';
import {
  capacityBufferStatusMetrics,
  nodeClaimStatusMetrics,
  nodePoolStatusMetrics,
  nodeStatusMetrics,
  statusMetricsOf,
  withObjectLabels,
} from './metrics.ts';

export interface StatusControllersOptions {
  /** CapacityBuffers are in use. */
  readonly capacityBuffers?: boolean;
}

/** All of them, ready to be started. */
export function statusControllers(context: ControllerContext, options: StatusControllersOptions = {}): Runnable[] {
  const { claims, clock, clusters, metrics, nodes, pools, registry } = context;
  const { karpenter, workload } = clusters;
  const common = { clock, metrics };
  const nodeClassLabels = registry.nodeClasses.map(nodeClassLabel);
  const claimLabels = [...nodeClassLabels, labels.nodePool];
  const nodeLabels = [...claimLabels, labels.initialized];
  /** Conditions that every object of a kind has count as Unknown until somebody looked. */
  const complete = (types: ConditionTypes) => (object: Conditioned) =>
    completeConditions(types, object, formatTime(clock.now()));
  const observers = [
    statusObserver({
      ...common,
      cluster: karpenter,
      informer: claims.informer,
      declarations: withObjectLabels(nodeClaimStatusMetrics, nodeClassLabels),
      objectLabels: claimLabels,
      deprecated: true,
      manages: (claim) => registry.ofNodeClaim(claim) !== undefined,
      conditionsOf: complete(nodeClaimConditionTypes),
    }),
    statusObserver({
      ...common,
      cluster: karpenter,
      informer: pools.informer,
      declarations: nodePoolStatusMetrics,
      deprecated: true,
      manages: (pool) => registry.ofNodePool(pool) !== undefined,
      conditionsOf: complete(nodePoolConditionTypes),
    }),
    statusObserver({
      ...common,
      cluster: workload,
      informer: nodes.informer,
      declarations: withObjectLabels(nodeStatusMetrics, nodeClassLabels),
      objectLabels: nodeLabels,
    }),
    ...[...context.nodeClasses].map((informer) =>
      statusObserver({
        ...common,
        cluster: karpenter,
        informer,
        declarations: statusMetricsOf(informer.type.kind),
        deprecated: true,
      }),
    ),
  ];
  if (!options.capacityBuffers) return observers;
  const type = capacityBufferKind as ResourceType<CapacityBuffer>;
  const buffers = statusObserver({
    ...common,
    cluster: workload,
    informer: workload.informers.get(type, { tolerateMissing: true }),
    declarations: capacityBufferStatusMetrics,
    deprecated: true,
  });
  return [...observers, buffers];
}
