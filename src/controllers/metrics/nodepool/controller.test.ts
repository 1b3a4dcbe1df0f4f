// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { nodePool } from '../../../api/testing/objects.ts';
import { type ClaimWorld, claimWorld } from '../../nodeclaim/testing/claim-world.ts';
import { instanceType } from '../../testing/fake-cloud.ts';
import { metricsControllers } from '../index.ts';

let w: ClaimWorld;
beforeEach(async () => {
  w = await claimWorld({ lifecycle: true });
  w.world.run(...metricsControllers(w.context));
});
afterEach(() => w.world.close());

const value = (name: string, series: Record<string, string>): Promise<number | undefined> =>
  w.world.metrics.value(`karpenter_nodepools_${name}`, series);

describe('a NodePool', () => {
  test('shows its limits and what it uses of them', async () => {
    const resources = { cpu: '1500m', memory: '3Gi', 'ephemeral-storage': '20Gi', nodes: '2' };
    const limits = { cpu: '10', 'nvidia.com/gpu': '4' };
    await w.world.apply({ ...nodePool({ name: 'a', spec: { limits } }), status: { resources } });
    await w.world.settle();
    expect(await value('limit', { nodepool: 'a', resource_type: 'cpu' })).toBe(10);
    expect(await value('limit', { nodepool: 'a', resource_type: 'nvidia.com/gpu' })).toBe(4);
    expect(await value('limit', { nodepool: 'a', resource_type: 'memory' })).toBeUndefined();
    expect(await value('usage', { nodepool: 'a', resource_type: 'cpu' })).toBe(1.5);
    expect(await value('usage', { nodepool: 'a', resource_type: 'ephemeral_storage' })).toBe(20 * 2 ** 30);
    expect(await value('usage', { nodepool: 'a', resource_type: 'nodes' })).toBe(2);
    await w.world.delete(nodePool({ name: 'a' }));
    await w.world.settle();
    expect(await w.world.metrics.render()).not.toContain('nodepool="a"');
  });

  test('of somebody else is not shown', async () => {
    const template = { nodeClassRef: { group: 'other.sh', kind: 'X', name: 'x' } };
    await w.world.apply(nodePool({ name: 'a', template, spec: { limits: { cpu: '1' } } }));
    await w.world.settle();
    expect(await value('limit', { nodepool: 'a' })).toBeUndefined();
  });

  test('shows what its machines cost, and follows the prices of the hour', async () => {
    const pool = await w.world.pool();
    expect(await value('cost_total', { nodepool: 'default' })).toBe(0);
    await w.write('a', { pool });
    await w.write('b', { pool });
    await w.world.until(() => w.world.state.nodeByClaim('b') !== undefined);
    expect(await value('cost_total', { nodepool: 'default' })).toBeCloseTo(0.2);
    const { cloud } = w.world;
    const [cheap] = cloud.types;
    cloud.types = [{ ...cheap!, offerings: cheap!.offerings.map((offering) => ({ ...offering, price: 1 })) }];
    await w.world.advance(3_600_000);
    expect(await value('cost_total', { nodepool: 'default' })).toBe(2);
    cloud.types = [instanceType(64)];
    await w.world.advance(3_600_000);
    expect(await value('cost_total', { nodepool: 'default' })).toBe(2);
  });

  test('is asked for its prices again when that failed', async () => {
    w.world.cloud.fail('instanceTypes', new Error('throttled'), 2);
    const pool = await w.world.pool();
    await w.write('a', { pool });
    await w.world.until(() => w.world.state.nodeByClaim('a') !== undefined);
    await w.world.advance(60_000);
    expect(await value('cost_total', { nodepool: 'default' })).toBeCloseTo(0.1);
    expect(await value('cost_tracker_errors_total', { nodepool: 'default' })).toBe(2);
  });

  test('costs nothing as far as nobody knows a price', async () => {
    const [cheap] = w.world.cloud.types;
    w.world.cloud.types = [
      { ...cheap!, offerings: cheap!.offerings.map((offering) => ({ ...offering, price: Number.NaN })) },
    ];
    await w.write('a', { pool: await w.world.pool() });
    await w.world.until(() => w.world.state.nodeByClaim('a') !== undefined);
    expect(await value('cost_total', { nodepool: 'default' })).toBe(0);
    expect(w.world.log.lines.some(({ message }) => message.startsWith('offering price unknown'))).toBe(true);
  });
});
