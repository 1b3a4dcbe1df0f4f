// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { commonLabelSet, extendLabelSet, labels } from '../../../api/labels.ts';
import { boundPod, node, ownedBy } from '../../../state/testing/objects.ts';
import { type ClaimWorld, claimWorld } from '../../nodeclaim/testing/claim-world.ts';
import { nodeMetricsObserver } from './controller.ts';
import { shownLabels } from './metrics.ts';

let w: ClaimWorld;
beforeEach(async () => {
  w = await claimWorld({ lifecycle: true });
  w.world.cloud.labels = extendLabelSet(commonLabelSet, { wellKnown: ['cloud.example/Instance-Family'] });
  w.world.run(nodeMetricsObserver(w.context));
});
afterEach(() => w.world.close());

const value = (name: string, series: Record<string, string>): Promise<number | undefined> =>
  w.world.metrics.value(`karpenter_${name}`, series);

/** A node of somebody else with ten CPUs. */
async function stranger(name: string, own: Record<string, string> = {}): Promise<void> {
  const capacity = { cpu: '10', memory: '20Gi', 'nvidia.com/gpu': '2' };
  const allocatable = { ...capacity, cpu: '9500m', memory: '19Gi' };
  await w.world.apply(node(name, { labels: own, status: { capacity, allocatable } }));
  await w.world.settle();
}

describe('a node', () => {
  test('shows what it has for pods and what it keeps for itself', async () => {
    await stranger('a', { [labels.zone]: 'zone-a', 'cloud.example/Instance-Family': 'c7' });
    const own = { node_name: 'a', zone: 'zone-a', instance_family: 'c7', nodepool: '', managed: 'false', phase: '' };
    expect(await value('nodes_allocatable', { ...own, resource_type: 'cpu' })).toBe(9.5);
    expect(await value('nodes_allocatable', { ...own, resource_type: 'memory' })).toBe(19 * 2 ** 30);
    expect(await value('nodes_allocatable', { ...own, resource_type: 'nvidia.com/gpu' })).toBe(2);
    expect(await value('nodes_system_overhead', { ...own, resource_type: 'cpu' })).toBe(0.5);
    expect(await value('nodes_system_overhead', { ...own, resource_type: 'memory' })).toBe(2 ** 30);
    expect(await value('nodes_system_overhead', { ...own, resource_type: 'nvidia.com/gpu' })).toBe(0);
  });

  test('of ours is managed and names its pool', async () => {
    await w.write('a', { pool: await w.world.pool() });
    await w.world.until(() => w.world.state.nodeByClaim('a')?.initialized === true);
    const own = { nodepool: 'default', managed: 'true', capacity_type: 'on-demand', instance_type: 'c-1x' };
    expect(await value('nodes_allocatable', { ...own, resource_type: 'ephemeral_storage' })).toBe(20 * 2 ** 30);
  });

  test('shows what its pods request and may use, DaemonSets also on their own', async () => {
    await stranger('a');
    const resources = { requests: { cpu: '250m', memory: '1Gi' }, limits: { cpu: '1' } };
    const containers = [{ name: 'main', image: 'app', resources }];
    await w.world.apply(boundPod('app', 'a', { containers }));
    await w.world.apply(ownedBy(boundPod('agent', 'a', { containers }), 'apps/v1', 'DaemonSet'));
    await w.world.settle();
    const of = (gauge: string, resource: string): Promise<number | undefined> =>
      value(`nodes_total_${gauge}`, { node_name: 'a', resource_type: resource });
    expect(await of('pod_requests', 'cpu')).toBe(0.5);
    expect(await of('pod_requests', 'pods')).toBe(2);
    expect(await of('pod_limits', 'cpu')).toBe(2);
    expect(await of('pod_limits', 'pods')).toBe(2);
    expect(await of('pod_limits', 'memory')).toBeUndefined();
    expect(await of('daemon_requests', 'memory')).toBe(2 ** 30);
    expect(await of('daemon_requests', 'pods')).toBe(1);
    expect(await of('daemon_limits', 'cpu')).toBe(1);
  });

  test('shows its age', async () => {
    await stranger('a');
    await w.world.advance(90_000);
    expect(await value('nodes_current_lifetime_seconds', { node_name: 'a' })).toBe(90);
  });

  test('has one set of labels, and none once it is gone', async () => {
    await stranger('a', { [labels.zone]: 'zone-a' });
    await stranger('a', { [labels.zone]: 'zone-b' });
    expect(await value('nodes_allocatable', { zone: 'zone-a' })).toBeUndefined();
    expect(await value('nodes_allocatable', { zone: 'zone-b', resource_type: 'cpu' })).toBe(9.5);
    await w.world.delete(node('a'));
    await w.world.settle();
    expect(await w.world.metrics.render()).not.toContain('node_name="a"');
  });
});

test('the cluster shows how much of it is requested', async () => {
  await stranger('a');
  await stranger('b');
  expect(await value('cluster_utilization_percent', { resource_type: 'cpu' })).toBe(0);
  await w.world.apply(boundPod('app', 'a', { containers: [container('1900m')] }));
  await w.world.settle();
  expect(await value('cluster_utilization_percent', { resource_type: 'cpu' })).toBe(10);
});

test('nothing is shown once the program no longer leads', async () => {
  await stranger('a');
  const stop = new AbortController();
  const running = nodeMetricsObserver(w.context).start(stop.signal);
  const count = async (): Promise<number> =>
    (await w.world.metrics.render()).match(/^karpenter_nodes_current_lifetime_seconds\{/gm)?.length ?? 0;
  expect(await count()).toBe(2);
  stop.abort();
  await running;
  expect(await count()).toBe(1);
});

test('labels of two clouds with one word share it, and words of ours are not taken', () => {
  const shown = shownLabels([
    'b.example/family',
    'a.example/family',
    'c.example/Phase',
    'plain',
    'd.example/gpu.count',
  ]);
  expect([...shown]).toEqual([
    ['family', ['a.example/family', 'b.example/family']],
    ['gpu_count', ['d.example/gpu.count']],
  ]);
});

function container(cpu: string): { name: string; image: string; resources: { requests: { cpu: string } } } {
  return { name: 'main', image: 'app', resources: { requests: { cpu } } };
}
