// SPDX-License-Identifier: Apache-2.0
// What can be bought for which NodePool, asked of the clouds: the part of a scheduling problem that is not in the cluster.
import { commonLabelSet, type LabelSet } from '../api/labels.ts';
import type { NodePool } from '../api/node-pool.ts';
import { compareStrings } from '../base/order.ts';
import type { CloudProvider, InstanceType } from '../cloud/provider.ts';
import type { CloudRegistry } from '../cloud/registry.ts';
import type { LabelRules } from '../scheduling/problem.ts';

/** NodePools that may buy machines, with what their clouds sell. */
export interface PoolCatalog {
  /** In the order they are tried: highest weight first, then by name, descending. */
  readonly pools: readonly NodePool[];
  /** By NodePool; empty when the cloud could not be asked or sells nothing. */
  readonly instanceTypes: Readonly<Record<string, readonly InstanceType[]>>;
  /** By NodePool: what its cloud knows about labels. */
  readonly labels: Readonly<Record<string, LabelRules>>;
  /** Pools whose cloud could not be asked, with the reason. */
  readonly failures: readonly { readonly pool: NodePool; readonly error: unknown }[];
}

/**
 * Asks the clouds of all pools at once. A pool whose cloud fails stays in the list, without instance types: nothing is
 * bought for it this time, and the others are not held up. Rejects only when the signal aborts.
 */
export async function readPoolCatalog(
  registry: CloudRegistry,
  pools: readonly NodePool[],
  signal: AbortSignal,
): Promise<PoolCatalog> {
  const sorted = pools.toSorted(byWeight);
  const instanceTypes: Record<string, readonly InstanceType[]> = {};
  const labels: Record<string, LabelRules> = {};
  const failures: { pool: NodePool; error: unknown }[] = [];
  await Promise.all(
    sorted.map(async (pool) => {
      const name = pool.metadata.name ?? '';
      const provider = registry.ofNodePool(pool);
      instanceTypes[name] = [];
      if (!provider) return;
      labels[name] = labelRulesOf(provider);
      try {
        instanceTypes[name] = await provider.instanceTypes(pool, signal);
      } catch (error) {
        signal.throwIfAborted();
        failures.push({ pool, error });
      }
    }),
  );
  failures.sort((a, b) => compareStrings(a.pool.metadata.name ?? '', b.pool.metadata.name ?? ''));
  return { pools: sorted, instanceTypes, labels, failures };
}

function byWeight(a: NodePool, b: NodePool): number {
  return (b.spec.weight ?? 0) - (a.spec.weight ?? 0) || compareStrings(b.metadata.name ?? '', a.metadata.name ?? '');
}

const rules = new WeakMap<LabelSet, LabelRules>();

/** What a cloud adds to the labels every cloud knows. The same object for the same provider. */
export function labelRulesOf(provider: Pick<CloudProvider, 'labels' | 'reservationLabel'>): LabelRules {
  const { labels, reservationLabel } = provider;
  let known = rules.get(labels);
  if (!known) {
    const beyond = (own: ReadonlySet<string>, common: ReadonlySet<string>): string[] =>
      [...own].filter((key) => !common.has(key)).sort(compareStrings);
    const entries = <V>(map: ReadonlyMap<string, V>): [string, V][] =>
      [...map].sort(([a], [b]) => compareStrings(a, b));
    known = {
      wellKnown: beyond(labels.wellKnown, commonLabelSet.wellKnown),
      restrictedDomains: beyond(labels.restrictedDomains, commonLabelSet.restrictedDomains),
      normalized: Object.fromEntries(entries(labels.normalized).filter(([key]) => !commonLabelSet.normalized.has(key))),
      normalizedValues: Object.fromEntries(
        entries(labels.normalizedValues).map(([key, values]) => [key, Object.fromEntries(values)]),
      ),
      ...(reservationLabel === undefined ? {} : { reservationId: reservationLabel }),
    };
    rules.set(labels, known);
  }
  return known;
}
