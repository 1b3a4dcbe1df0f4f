// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { instanceType, nodePool, pod } from './testing/builders.ts';
import { hostname, offers, place, spread, times, zone, zoneOf } from './testing/place.ts';

/** Machines of many sizes, all at the same price by the CPU. */
const sizes = [1, 2, 4, 8, 16, 32, 64, 96, 128, 192].map((cpu) =>
  instanceType(`m-${cpu}`, { cpu: `${cpu}`, memory: `${4 * cpu}Gi`, pods: '500' }, offers(0.02 * cpu)),
);
const workload = (count: number, spec = spread('web', zone), labels: Record<string, string> = { app: 'web' }) =>
  times(count, 'web', { labels, requests: { cpu: '1' }, spec });

describe('pods that are spread over zones', () => {
  // 40 CPUs in each of three zones: a machine of 64 would be the smallest for all of them.
  test('do not pay for a machine that is too large for their zone', () => {
    const result = place(workload(120), { types: sizes });
    expect(result.stats.totalPrice).toBeCloseTo(0.02 * 120, 9);
    expect(result.newNodeClaims).toHaveLength(6);
    const zones = new Set(result.newNodeClaims.map(({ pods }) => zoneOf(result, pods[0]!.slice('default/'.length))));
    expect(zones).toEqual(new Set(['a', 'b', 'c']));
  });

  test('nor do very many of them', () => {
    const result = place(workload(1800), { types: sizes });
    expect(result.stats.totalPrice / (0.02 * 1800)).toBeLessThan(1.03);
    expect(result.newNodeClaims.length).toBeLessThan(100);
  });

  test('share few machines where many cost the same', () => {
    expect(place(workload(96), { types: sizes }).newNodeClaims).toHaveLength(3);
  });

  test('stay together when their neighbours are tied to the host', () => {
    const alone = pod('alone', {
      labels: { app: 'web' },
      spec: {
        affinity: {
          podAntiAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: [
              { topologyKey: hostname, labelSelector: { matchLabels: { app: 'other' } } },
            ],
          },
        },
      },
    });
    // The judge sees to the rest.
    expect(place([alone, ...workload(120)], { types: sizes }).errors).toEqual([]);
  });

  test('keep to the limits of their pool', () => {
    const nodePools = [nodePool('default', { limits: { nodes: '3' } })];
    expect(place(workload(120), { types: sizes, nodePools }).newNodeClaims).toHaveLength(3);
  });
});
