// SPDX-License-Identifier: Apache-2.0
// state.pricing: asks the clouds for the prices of what NodePools run, when something new appears and every hour. Reads
// NodePools of the cluster `karpenter`.
import type { Controller } from '../../../runtime/controller.ts';
import { formatList } from '../../../runtime/logging.ts';
import type { ClusterCost } from '../../../state/cluster-cost.ts';
import type { ControllerContext } from '../../nodeclaim/context.ts';
import { nodePoolMetrics } from '../nodepool/metrics.ts';

const name = 'state.pricing';
const periodMs = 3_600_000;

/** The controller `state.pricing`. */
export function pricingController(context: ControllerContext, cost: ClusterCost): Controller {
  const clouds = context.cloudsFor(name);
  const errors = context.metrics.counter(nodePoolMetrics.costTrackerErrors);
  const controller = context.controller({
    name,
    kind: 'NodePool',
    concurrent: 10,
    reconciler: {
      async reconcile(key, signal, run) {
        const pool = context.pool(key);
        const cloud = pool && clouds.ofNodePool(pool);
        if (!pool || !cloud) return {};
        try {
          cost.setPrices(key, await cloud.instanceTypes(pool, signal));
        } catch (error) {
          errors.inc({ nodepool: key });
          throw error;
        }
        const unknown = cost.unpriced(key);
        if (unknown.length > 0)
          run.log.warn('offering price unknown, the cost of the nodepool is too low', {
            offerings: formatList(unknown, 5),
          });
        return { requeueAfterMs: periodMs };
      },
    },
  });
  cost.onUnpriced((pool) => controller.enqueue(pool));
  return controller.watch(context.pools.informer, { when: (_pool, old) => old === undefined });
}
