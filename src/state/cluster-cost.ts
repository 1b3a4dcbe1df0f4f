// SPDX-License-Identifier: Apache-2.0
// What the machines of each NodePool cost an hour, by the last price heard of what they are.
import { labels } from '../api/labels.ts';
import type { Clock } from '../base/clock.ts';
import type { InstanceType } from '../cloud/provider.ts';
import type { CloudRegistry } from '../cloud/registry.ts';
import { type Controller, singleton, singletonKey } from '../runtime/controller.ts';
import { type Logger, objectField } from '../runtime/logging.ts';
import type { Metrics } from '../runtime/metrics.ts';
import type { ClusterState } from './cluster-state.ts';
import { readPoolCatalog } from './pool-catalog.ts';
import type { StateNode } from './state-node.ts';

/** Costs by NodePool. Prices are kept when a cloud no longer sells what still runs. */
export class ClusterCost {
  readonly #state: ClusterState;
  readonly #prices = new Map<string, Map<string, number>>();

  constructor(state: ClusterState) {
    this.#state = state;
  }

  /** Takes in the prices of what a pool can buy. */
  learn(pool: string, types: readonly InstanceType[]): void {
    const prices = this.#prices.get(pool) ?? new Map<string, number>();
    for (const { name, offerings } of types) {
      for (const { requirements, price } of offerings) {
        const values = (key: string): readonly string[] =>
          requirements.find((spec) => spec.key === key)?.values ?? [''];
        for (const zone of values(labels.zone))
          for (const capacityType of values(labels.capacityType))
            prices.set(offeringKey(name, zone, capacityType), price);
      }
    }
    this.#prices.set(pool, prices);
  }

  /** Per hour; undefined while the price, or what the machine is, is not known. */
  priceOf(node: StateNode): number | undefined {
    const own = node.labels;
    const type = own[labels.instanceType];
    if (type === undefined || node.nodePool === undefined) return undefined;
    return this.#prices
      .get(node.nodePool)
      ?.get(offeringKey(type, own[labels.zone] ?? '', own[labels.capacityType] ?? ''));
  }

  /** Per hour. A machine whose price is not known counts nothing. */
  costOf(pool: string): number {
    let cost = 0;
    for (const node of this.#state.nodesOfPool(pool)) cost += this.priceOf(node) ?? 0;
    return cost;
  }

  /** Forgets a pool that is gone. */
  forget(pool: string): void {
    this.#prices.delete(pool);
  }
}

function offeringKey(type: string, zone: string, capacityType: string): string {
  return `${type}/${zone}/${capacityType}`;
}

export interface PricingOptions {
  readonly cost: ClusterCost;
  readonly state: ClusterState;
  readonly registry: CloudRegistry;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

const hour = 3_600_000;
const retryMs = 60_000;

/** Asks the clouds for prices: at the start, every hour, and when a pool comes or changes. */
export function pricingController({ cost, state, registry, clock, log, metrics }: PricingOptions): Controller {
  const { nodePools } = state.sources;
  nodePools.addHandler({ deleted: ({ metadata }) => cost.forget(metadata.name ?? '') });
  return singleton({
    name: 'state.pricing',
    clock,
    log,
    metrics,
    reconcile: async (signal, context) => {
      const pools = nodePools.list().filter((pool) => registry.ofNodePool(pool));
      const catalog = await readPoolCatalog(registry, pools, signal);
      for (const [pool, types] of Object.entries(catalog.instanceTypes)) cost.learn(pool, types);
      for (const { pool, error } of catalog.failures)
        context.log.error('refreshing pricing info', { ...objectField(pool, 'NodePool'), error });
      return { requeueAfterMs: catalog.failures.length > 0 ? retryMs : hour };
    },
  }).watch(nodePools, {
    keys: () => [singletonKey],
    when: (pool, old) => pool.metadata.generation !== old?.metadata.generation,
  });
}
