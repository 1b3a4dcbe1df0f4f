// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { NodePool } from '../../api/node-pool.ts';
import { Metrics } from '../../runtime/metrics.ts';
import { BudgetGauges } from './budget-gauges.ts';
import type { PoolBudget } from './budgets.ts';

function budget(name: string, allowed: number, disrupting = 0): PoolBudget {
  const pool = { metadata: { name }, spec: {} } as NodePool;
  return { pool, nodes: 10, disrupting, allowed, problem: undefined };
}

test('shows what changed of the budgets for a reason, and no longer pools that are gone', async () => {
  const metrics = new Metrics();
  const gauges = new BudgetGauges(metrics);
  const allowed = (nodepool: string, reason = 'Empty') =>
    metrics.value('karpenter_nodepools_allowed_disruptions', { nodepool, reason });
  gauges.show([budget('a', 1), budget('b', 2)], 'Empty');
  gauges.show([budget('a', 7)], 'Drifted');
  gauges.show([budget('a', 1), budget('b', 2)], 'Empty');
  expect([await allowed('a'), await allowed('b'), await allowed('a', 'Drifted')]).toEqual([1, 2, 7]);
  gauges.show([budget('a', 1), budget('b', 3)], 'Empty');
  expect([await allowed('a'), await allowed('b')]).toEqual([1, 3]);
  gauges.show([budget('a', 1, 4), budget('c', 3)], 'Empty');
  expect([await allowed('b'), await allowed('c')]).toEqual([undefined, 3]);
  const consuming = await metrics.value('karpenter_nodepools_nodes_consuming_budgets', {
    nodepool: 'a',
    reason: 'Empty',
  });
  expect(consuming).toBe(4);
});
