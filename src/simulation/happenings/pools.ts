// SPDX-License-Identifier: Apache-2.0
// The NodePools of a world. `anchor` takes every pod and is never taken away; the others come with the seed.
import { labels } from '../../api/labels.ts';
import type { Budget, NodePool, NodePoolSpec } from '../../api/node-pool.ts';
import type { Random } from '../../base/random.ts';
import type { SimulatedCloud } from '../contract.ts';
import { between, chance, oneOf, pick } from '../draw.ts';
import type { ScenarioShape } from '../scenarios.ts';
import { batchTaint } from './workload-objects.ts';

export const anchor = 'anchor';

/** The pools of a world. */
export function poolsOf(random: Random, clouds: readonly SimulatedCloud[], shape: ScenarioShape): NodePool[] {
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
  return pools;
}

type Requirements = NodePool['spec']['template']['spec']['requirements'];

const onDemandOnly: Requirements = [{ key: labels.capacityType, operator: 'In', values: ['on-demand'] }];

/** From next to nothing to more than all pods of the world ask for: a pool reaches its limit within one pass, or never. */
export function limitsFor(random: Random, pods: number): { cpu: string } {
  return { cpu: String(between(random, 8, Math.max(48, pods))) };
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
    consolidateAfter: oneOf(random, ['0s', '30s', '2m', '5m', '5m']),
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
