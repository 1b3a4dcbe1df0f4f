// SPDX-License-Identifier: Apache-2.0
// What measures nodes, NodePools and pods. Values are read when somebody scrapes, never stored.
import type { Runnable } from '../../runtime/manager.ts';
import { ClusterCost } from '../../state/cluster-cost.ts';
import type { ControllerContext } from '../nodeclaim/context.ts';
import { nodeMetricsObserver } from './node/controller.ts';
import { nodePoolMetricsObserver } from './nodepool/controller.ts';
import { podMetricsObserver } from './pod/controller.ts';
import { pricingController } from './pricing/controller.ts';

/** All of them, ready to be started. */
export function metricsControllers(context: ControllerContext): Runnable[] {
  const { claims, registry } = context;
  const manages = (claim: Parameters<typeof registry.ofNodeClaim>[0]) => registry.ofNodeClaim(claim) !== undefined;
  const cost = new ClusterCost({ nodeClaims: claims.informer, manages });
  return [
    nodeMetricsObserver(context),
    nodePoolMetricsObserver(context, cost),
    podMetricsObserver(context),
    pricingController(context, cost),
  ];
}
