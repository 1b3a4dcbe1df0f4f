// SPDX-License-Identifier: Apache-2.0
// The NodePools of a world. `anchor` takes every pod and is never taken away; the others come with the seed.
import { labels } from '../../api/labels.ts';
import type { Budget, NodePool, NodePoolSpec } from '../../api/node-pool.ts';
import type { Random } from '../../base/random.ts';
import type { FeatureGates } from '../../runtime/settings.ts';
import type { SimulatedCloud } from '../contract.ts';
import { between, chance, oneOf, pick, skewed } from '../draw.ts';
import type { ScenarioShape } from '../scenarios.ts';
import { batchTaint } from './workload-objects.ts';

export const anchor = 'anchor';
/** The one with a fixed number of nodes. */
const fixed = 'fixed';

/** The pools of a world. */
export function poolsOf(
  random: Random,
  clouds: readonly SimulatedCloud[],
  shape: ScenarioShape,
  gates: FeatureGates,
): NodePool[] {
  const { pods, expireAfter = ['45m', '2h', '5h'] } = shape;
  const poolOf = (name: string, cloud: SimulatedCloud, parts: Partial<NodePoolSpec>, asks?: Requirements): NodePool =>
    newPool(random, name, cloud, parts, expireAfter, asks);
  const [first, ...others] = clouds as [SimulatedCloud, ...SimulatedCloud[]];
  const other = pick(random, others) ?? first;
  const pools = [poolOf(anchor, first, {})];
  // Often what is paid for by commitment comes first, as far as it goes, and the rest goes elsewhere.
  const preferred = chance(random, 0.5) ? { weight: between(random, 51, 59) } : {};
  const paid = chance(random, 0.5) ? onDemandOnly : undefined;
  const second = poolOf('second', other, { limits: limitsFor(random, pods), ...preferred }, paid);
  if (chance(random, 0.3)) second.spec.template.spec.expireAfter = `${between(random, 60, 240)}m`;
  pools.push(second);
  if (chance(random, 0.6) && first.sells.capacityTypes.includes('spot')) {
    const spot: Requirements = [{ key: labels.capacityType, operator: 'In', values: ['spot'] }];
    pools.push(poolOf('spot', first, { weight: between(random, 1, 50) }, spot));
  }
  if (chance(random, 0.5)) {
    const batch = poolOf('batch', other, { weight: 60, limits: limitsFor(random, pods) });
    batch.spec.template.spec.taints = [{ ...batchTaint }];
    pools.push(batch);
  }
  if (gates.StaticCapacity) {
    const limits = chance(random, 0.3) ? { limits: { nodes: String(between(random, 1, 3)) } } : {};
    pools.push(poolOf(fixed, chance(random, 0.5) ? first : other, { replicas: between(random, 1, 2), ...limits }));
  }
  return pools;
}

/** How many nodes a static pool is told to have: few, since they are there whatever pods ask for. */
export function replicasFor(random: Random): number {
  return skewed(random, 1, 4) - 1;
}

type Requirements = NodePool['spec']['template']['spec']['requirements'];

const onDemandOnly: Requirements = [{ key: labels.capacityType, operator: 'In', values: ['on-demand'] }];

/**
 * From next to nothing to more than all pods of the world ask for: a pool reaches its limit within one pass, or never. Of
 * CPUs always, of memory and nodes now and then.
 */
export function limitsFor(random: Random, pods: number): Record<string, string> {
  const cpu = between(random, 8, Math.max(48, pods));
  const memory = chance(random, 0.3) ? { memory: `${cpu * between(random, 2, 6)}Gi` } : {};
  const nodes = chance(random, 0.3) ? { nodes: String(Math.max(2, Math.ceil(cpu / between(random, 4, 10)))) } : {};
  return { cpu: String(cpu), ...memory, ...nodes };
}

function newPool(
  random: Random,
  name: string,
  { nodeClass, requirements: usual = [] }: SimulatedCloud,
  parts: Partial<NodePoolSpec>,
  expiries: readonly [string, ...string[]],
  requirements?: Requirements,
): NodePool {
  // Otherwise only spot would be bought, and only on-demand would be asked for.
  const both: Requirements = [{ key: labels.capacityType, operator: 'In', values: ['on-demand', 'spot', 'reserved'] }];
  const grace = chance(random, 0.5) ? { terminationGracePeriod: oneOf(random, ['2m', '10m', '30m']) } : {};
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name },
    spec: {
      template: {
        metadata: { labels: { 'example.com/team': name } },
        spec: {
          nodeClassRef: { group: nodeClass.group, kind: nodeClass.kind, name: 'default' },
          requirements: [...(requirements ?? both), ...usual],
          expireAfter: chance(random, 0.4) ? oneOf(random, expiries) : 'Never',
          ...grace,
        },
      },
      disruption: disruptionOf(random),
      ...parts,
    },
  };
}

export function disruptionOf(random: Random): NonNullable<NodePoolSpec['disruption']> {
  return {
    consolidateAfter: oneOf(random, ['0s', '30s', '2m', '10m', '30m']),
    consolidationPolicy: oneOf(random, ['WhenEmptyOrUnderutilized', 'Balanced', 'WhenEmpty', 'WhenEmpty']),
    budgets: budgetsOf(random),
  };
}

export function budgetsOf(random: Random): Budget[] {
  const nodes = oneOf(random, ['10%', '10%', '20%', '1', '2', '5', '100%']);
  const budgets: Budget[] = [{ nodes }];
  if (chance(random, 0.2)) budgets.push({ nodes: '1', reasons: ['Drifted'] });
  if (chance(random, 0.1)) budgets.push({ nodes: '0', schedule: '@hourly', duration: '10m' });
  return budgets;
}
