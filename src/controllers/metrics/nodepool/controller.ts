// SPDX-License-Identifier: Apache-2.0
// metrics.nodepool: limits, usage and cost of each NodePool of ours. Reads NodePools of the cluster `karpenter`.
import type { NodePool } from '../../../api/node-pool.ts';
import { type CollectedSample, labelText } from '../../../runtime/collected-gauge.ts';
import type { Runnable } from '../../../runtime/manager.ts';
import { readAmounts } from '../../../state/amounts.ts';
import type { ClusterCost } from '../../../state/cluster-cost.ts';
import type { ControllerContext } from '../../nodeclaim/context.ts';
import { observer } from '../observer.ts';
import { shownResources } from '../resources.ts';
import { nodePoolMetrics } from './metrics.ts';

/** The observer `metrics.nodepool`. */
export function nodePoolMetricsObserver(context: ControllerContext, cost: ClusterCost): Runnable {
  const { metrics, pools, registry } = context;
  const ours = (): NodePool[] => pools.list().filter((pool) => registry.ofNodePool(pool));

  function* resources(listOf: (pool: NodePool) => ResourceList): Generator<CollectedSample, void, undefined> {
    for (const pool of ours()) {
      const name = nameOf(pool);
      for (const { label, value } of shownResources(readAmounts(listOf(pool))))
        yield { labels: `${label},${name}`, value };
    }
  }

  return observer('metrics.nodepool', () => [
    metrics.collect(nodePoolMetrics.limit, () => resources(({ spec }) => spec.limits)),
    metrics.collect(nodePoolMetrics.usage, () => resources(({ status }) => status?.resources)),
    metrics.collect(nodePoolMetrics.cost, () =>
      ours().map((pool) => ({ labels: nameOf(pool), value: cost.ofPool(pool.metadata.name ?? '') })),
    ),
  ]);
}

type ResourceList = Readonly<Record<string, string | number>> | undefined;

function nameOf(pool: NodePool): string {
  return labelText({ nodepool: pool.metadata.name ?? '' });
}
