// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import type { NewNodeClaim } from './problem.ts';
import { instanceType, node, nodePool, pod } from './testing/builders.ts';
import { hostname, nodeOf, offers, place, spread, times, zone, zoneOf } from './testing/place.ts';

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

describe('pods that must not be disrupted', () => {
  const annotations = { 'karpenter.sh/do-not-disrupt': 'true' };
  const some = (count: number, isOne: (i: number) => boolean) =>
    workload(count).map((one, i) =>
      isOne(i) ? { ...one, metadata: { ...one.metadata, annotations: { ...annotations } } } : one,
    );

  // Each keeps its machine when the others have gone: a small one costs less to keep.
  test('are on smaller machines at the same price', () => {
    const plain = place(workload(288), { types: sizes });
    const guarded = place(
      some(288, (i) => i % 10 === 0),
      { types: sizes },
    );
    const dearest = (claims: readonly NewNodeClaim[]) => Math.max(...claims.map(({ price }) => price));
    expect(guarded.stats.totalPrice).toBeCloseTo(plain.stats.totalPrice, 9);
    expect(dearest(guarded.newNodeClaims)).toBeLessThan(dearest(plain.newNodeClaims) / 2);
    expect(guarded.newNodeClaims.length).toBeLessThan(40);
  });

  test('do not count when they say that they may be', () => {
    const { newNodeClaims } = place(
      workload(288).map((one) => ({
        ...one,
        metadata: { ...one.metadata, annotations: { 'karpenter.sh/do-not-disrupt': 'false' } },
      })),
      { types: sizes },
    );
    expect(newNodeClaims).toHaveLength(place(workload(288), { types: sizes }).newNodeClaims.length);
  });
});

describe('pods of several shapes', () => {
  /** Two families at the same price by CPU and GiB, one with little memory and one with more. */
  const families = [2, 4, 8, 16, 32, 64, 128].flatMap((cpu) =>
    [2, 4].map((ratio) =>
      instanceType(
        `${ratio === 2 ? 'compute' : 'standard'}-${cpu}`,
        { cpu: `${cpu}`, memory: `${ratio * cpu}Gi`, pods: '500' },
        offers(cpu * (0.025 + 0.001 * ratio)),
      ),
    ),
  );
  const shapes = [
    { cpu: '500m', memory: '1Gi' },
    { cpu: '1', memory: '2Gi' },
    { cpu: '1', memory: '4Gi' },
  ];
  const pods = shapes.flatMap((requests, i) =>
    times(200, `web-${i}`, {
      labels: { app: `web-${i}` },
      requests,
      spec: spread(`web-${i}`, zone),
    }),
  );

  const isOf = (shape: number) => (key: string) => key.startsWith(`default/web-${shape}-`);
  const zoneOfClaim = ({ requirements }: NewNodeClaim) => requirements.find(({ key }) => key === zone)?.values?.[0];
  const capacityOf = (type: string) => {
    const [family, cpu] = type.split('-');
    return { cpu: Number(cpu), memory: Number(cpu) * (family === 'compute' ? 2 : 4) };
  };
  const amounts = shapes.map(({ cpu, memory }) => ({
    cpu: cpu === '500m' ? 0.5 : Number(cpu),
    memory: Number.parseInt(memory, 10),
  }));
  /** One of each shape after the other, as long as any fits. */
  function fillInTurn(room: { cpu: number; memory: number }, waiting: number[]): void {
    for (let isFull = false; !isFull; ) {
      isFull = true;
      for (const [i, { cpu, memory }] of amounts.entries()) {
        if (waiting[i] === 0 || cpu > room.cpu || memory > room.memory) continue;
        waiting[i]!--;
        room.cpu -= cpu;
        room.memory -= memory;
        isFull = false;
      }
    }
  }

  // Machines with little memory for those that need little would cost 4 % less on paper. But kube-scheduler does not know who
  // is meant to go where: the first that need much would take that memory, and leave CPUs that nobody can use.
  test('get machines that suit their mix, so that it does not matter who goes where', () => {
    const result = place(pods, { types: families });
    let leftOver = 0;
    for (const claims of Map.groupBy(result.newNodeClaims, zoneOfClaim).values()) {
      const waiting = shapes.map((_, i) => claims.flatMap((claim) => claim.pods).filter(isOf(i)).length);
      for (const { instanceTypes } of claims) fillInTurn(capacityOf(instanceTypes[0]!), waiting);
      for (const count of waiting) leftOver += count;
    }
    expect(leftOver / pods.length).toBeLessThan(0.06);
  });
});

describe('a pass that comes while machines of an earlier one are on their way', () => {
  const wide = node('a-wide', { labels: { [zone]: 'a' }, allocatable: { cpu: '250', memory: '250Gi', pods: '500' } });
  const tall = node('tall', { labels: { [zone]: 'a' }, allocatable: { cpu: '250', memory: '2000Gi', pods: '500' } });
  const lean = times(250, 'lean', { requests: { cpu: '1', memory: '1Gi' } });
  const rich = times(250, 'rich', { requests: { cpu: '1', memory: '8Gi' } });
  const promised = {
    ...Object.fromEntries(lean.map(({ metadata: { name } }) => [`default/${name}`, 'a-wide'])),
    ...Object.fromEntries(rich.map(({ metadata: { name } }) => [`default/${name}`, 'tall'])),
  };

  test('leaves pods where they were planned, and buys only for those that are new', () => {
    const anew = place([...lean, ...rich], { nodes: [wide, tall] });
    expect(anew.newNodeClaims.length).toBeGreaterThan(0);
    const result = place([...lean, ...rich, pod('late')], { nodes: [wide, tall], state: { promised } });
    expect(result.newNodeClaims.flatMap(({ pods }) => pods)).toEqual(['default/late']);
  });

  test('buys nothing for a wish that was paid for once: whose place was taken goes to another that is there', () => {
    const wish = {
      affinity: {
        podAntiAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 1, podAffinityTerm: { topologyKey: hostname, labelSelector: { matchLabels: { app: 'shy' } } } },
          ],
        },
      },
    };
    const allocatable = { cpu: '1', memory: '1Gi', pods: '2' };
    const nodes = [
      node('full', { labels: { [zone]: 'a' }, allocatable }),
      node('other', { labels: { [zone]: 'a' }, allocatable }),
    ];
    const shy = (name: string, nodeName?: string) =>
      pod(name, {
        labels: { app: 'shy' },
        requests: { cpu: '600m' },
        spec: { ...wish, ...(nodeName ? { nodeName } : {}) },
      });
    const state = { promised: { 'default/late': 'full' } };
    const small = (name: string) =>
      pod(name, { labels: { app: 'shy' }, requests: { cpu: '100m' }, spec: { nodeName: 'other' } });
    const pods = [shy('early', 'full'), small('beside'), shy('late')];
    expect(nodeOf(place(pods, { nodes, state }), 'late')).toBe('other');
    expect(nodeOf(place(pods, { nodes }), 'late')).toBe(0);
  });

  test('plans anew who would be left out because of it', () => {
    const huge = pod('huge', { requests: { cpu: '250', memory: '1500Gi' } });
    const small = pod('small', { requests: { cpu: '1', memory: '1Gi' } });
    const state = { promised: { 'default/small': 'tall', 'default/huge': 'gone' } };
    expect(place([huge, small], { nodes: [wide, tall], state }).errors).toEqual([]);
  });
});
