// SPDX-License-Identifier: Apache-2.0
// What the solver chooses where several answers are allowed, and what it never gives up.
import { describe, expect, test } from 'vitest';
import type { NodePool, Pod, PodSpec } from './objects.ts';
import type { Problem, SolveResult } from './problem.ts';
import { solve } from './solve.ts';
import { instanceType, nodePool, offering, oneOf, pod } from './testing/builders.ts';
import { validate } from './testing/validator.ts';

const capacityType = 'karpenter.sh/capacity-type';
const size = { cpu: '4', memory: '8Gi', pods: '20' };

function place(problem: Problem): SolveResult {
  const result = solve(problem);
  expect(validate(problem, result).violations).toEqual([]);
  return result;
}

describe('choices', () => {
  test('where counts leave several domains open, the cheapest is taken', () => {
    const type = instanceType('only', size, [offering('a', 'on-demand', 0.2), offering('a', 'spot', 0.08)]);
    const spec: Partial<PodSpec> = {
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: capacityType,
          whenUnsatisfiable: 'DoNotSchedule',
          labelSelector: { matchLabels: { app: 'web' } },
        },
      ],
    };
    const pods = [pod('web', { labels: { app: 'web' }, spec })];
    const result = place({ nodePools: [nodePool('default')], instanceTypes: { default: [type] }, pods });
    expect(result.stats.totalPrice).toBe(0.08);
  });

  test('alternatives are demands: all are tried again once a soft taint is accepted', () => {
    const taints = [{ key: 'soft', value: 'yes', effect: 'PreferNoSchedule' }];
    const type = instanceType('only', size, [offering('a', 'on-demand', 0.2)]);
    const terms = ['a', 'nowhere'].map((zone) => ({ matchExpressions: [oneOf('topology.kubernetes.io/zone', zone)] }));
    const spec: Partial<PodSpec> = {
      affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } } },
    };
    const pool = nodePool('default');
    const tainted = { ...pool, spec: { template: { ...pool.spec.template, spec: { taints } } } } as typeof pool;
    const result = place({
      nodePools: [tainted],
      instanceTypes: { default: [type] },
      pods: [pod('web', { spec })],
    });
    expect(result.errors).toEqual([]);
  });

  describe('between pools of two clouds', () => {
    const of = (name: string, kind: string): NodePool => {
      const pool = nodePool(name);
      const nodeClassRef = { group: 'example.com', kind, name: 'default' };
      return { ...pool, spec: { ...pool.spec, template: { spec: { nodeClassRef } } } };
    };
    const bought = (kinds: readonly [string, string], estimated: boolean): string | undefined => {
      const dear = instanceType('dear', size, [offering('a', 'on-demand', 0.2)]);
      const cheap = instanceType('cheap', size, [offering('a', 'on-demand', 0.1, { estimated })]);
      // Without prices, the later name comes first.
      const pools = [of('z-dear', kinds[0]), of('a-cheap', kinds[1])];
      const problem = {
        nodePools: pools,
        instanceTypes: { 'z-dear': [dear], 'a-cheap': [cheap] },
        pods: [pod('web'), pod('db')],
      };
      return place(problem).newNodeClaims[0]?.nodePool;
    };

    test('the lower price decides where both are known', () => {
      expect(bought(['A', 'B'], false)).toBe('a-cheap');
    });

    test('a guessed price does not', () => {
      expect(bought(['A', 'B'], true)).toBe('z-dear');
    });

    test('within one cloud a guess is as good as a price', () => {
      expect(bought(['A', 'A'], true)).toBe('a-cheap');
    });
  });

  test('the order of keys changes nothing', () => {
    const type = instanceType('only', size, [offering('a', 'on-demand', 0.2)]);
    const one = pod('one', { requests: { cpu: '1', memory: '1Gi' } });
    const other = (requests: Record<string, string>): Pod => pod('other', { requests });
    const answers = [other({ cpu: '1', memory: '1Gi' }), other({ memory: '1Gi', cpu: '1' })].map((second) =>
      place({ nodePools: [nodePool('default')], instanceTypes: { default: [type] }, pods: [one, second] }),
    );
    expect(answers[1]).toEqual(answers[0]);
    expect(answers[1]!.stats.podShapes).toBe(1);
  });

  test('a bound on a label that no type defines is never met', () => {
    const type = instanceType('only', size, [offering('a', 'on-demand', 0.2)]);
    const terms = [{ matchExpressions: [{ key: 'cloud.example/cpu', operator: 'Gt', values: ['2'] }] }];
    const spec = {
      affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } } },
    } as Partial<PodSpec>;
    const result = place({
      nodePools: [nodePool('default')],
      instanceTypes: { default: [type] },
      labels: { default: { wellKnown: ['cloud.example/cpu'] } },
      pods: [pod('web', { spec })],
    });
    expect(result.errors).toHaveLength(1);
  });

  test('a reservation that is used up from the start is not waited for', () => {
    const reserved = (left: number) => ({
      ...offering('a', 'reserved', 0.01, { reservationCapacity: left }),
      requirements: [
        oneOf('topology.kubernetes.io/zone', 'a'),
        oneOf(capacityType, 'reserved'),
        oneOf('cloud.example/reservation', 'r-1'),
      ],
    });
    const problem = (left: number): Problem => ({
      nodePools: [nodePool('default')],
      instanceTypes: { default: [instanceType('only', size, [offering('a', 'on-demand', 0.2), reserved(left)])] },
      labels: { default: { reservationId: 'cloud.example/reservation' } },
      pods: [pod('one', { requests: { cpu: '3' } }), pod('two', { requests: { cpu: '3' } })],
    });
    expect(place(problem(0)).stats.totalPrice).toBeCloseTo(0.4);
    // One that others of the pass hold is: in Strict mode the second pod would rather wait.
    expect(place(problem(1)).errors.map(({ deferred }) => deferred)).toEqual([true]);
  });

  test('of pools with the same weight the cheaper one sells, of others the heavier one', () => {
    const prices = (weight: number): number => {
      const pools = [nodePool('a-cheap'), nodePool('b-dear', { weight })];
      return place({
        nodePools: pools,
        instanceTypes: {
          'a-cheap': [instanceType('cheap', size, [offering('a', 'on-demand', 0.1)])],
          'b-dear': [instanceType('dear', size, [offering('a', 'on-demand', 0.3)])],
        },
        pods: [pod('one', { requests: { cpu: '3' } }), pod('two', { requests: { cpu: '3' } })],
      }).stats.totalPrice;
    };
    expect(prices(0)).toBeCloseTo(0.2);
    expect(prices(5)).toBeCloseTo(0.6);
  });

  test.each([
    ['machines of the size that costs least are bought, not the largest that can be filled', 0.1],
    ['and a zone that is dearer than others is filled like them where pods have to go there', 0.2],
  ])('%s', (_, dear) => {
    const zones = ['a', 'b', 'c'];
    const offers = (price: number) =>
      zones.map((zone) => offering(zone, 'on-demand', price * (zone === 'c' ? dear : 0.1)));
    const machines = [
      instanceType('small', { cpu: '4', memory: '8Gi', pods: '110' }, offers(1)),
      instanceType('large', { cpu: '64', memory: '256Gi', pods: '250' }, offers(30)),
    ];
    const spec: Partial<PodSpec> = {
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: 'topology.kubernetes.io/zone',
          whenUnsatisfiable: 'DoNotSchedule',
          labelSelector: { matchLabels: { app: 'web' } },
        },
      ],
    };
    const sizes = ['500m', '1', '1500m'];
    const pods = Array.from({ length: 600 }, (__, i) =>
      pod(`web-${i}`, { labels: { app: 'web' }, requests: { cpu: sizes[i % 3]!, memory: '1Gi' }, spec }),
    );
    const result = place({ nodePools: [nodePool('default')], instanceTypes: { default: machines }, pods });
    // 200 processors in each zone, four to a machine.
    expect(result.stats.totalPrice).toBeLessThan(50 * (0.1 + 0.1 + dear) * 1.05);
  });

  test.each([
    ['a pod alone goes to the pool that has the cheapest machine for it', 1, 'b-small'],
    ['many pods go to the pool that is cheapest for all of them', 600, 'a-large'],
  ])('%s', (_, count, expected) => {
    const problem: Problem = {
      nodePools: [nodePool('a-large'), nodePool('b-small'), nodePool('z-dear')],
      instanceTypes: {
        'a-large': [instanceType('large', { cpu: '64', memory: '128Gi', pods: '250' }, [offering('a', 'spot', 0.8)])],
        'b-small': [instanceType('small', { cpu: '4', memory: '8Gi', pods: '50' }, [offering('a', 'spot', 0.1)])],
        'z-dear': [instanceType('dear', { cpu: '4', memory: '8Gi', pods: '50' }, [offering('a', 'spot', 0.2)])],
      },
      pods: Array.from({ length: count }, (__, i) => pod(`p-${i}`, { requests: { cpu: '1', memory: '1Gi' } })),
    };
    expect(new Set(place(problem).newNodeClaims.map((claim) => claim.nodePool))).toEqual(new Set([expected]));
  });

  test('pods that only a dear machine suits share one, and leave the cheap ones to others', () => {
    const types = [
      instanceType('dear', { cpu: '16', memory: '64Gi', pods: '20' }, [offering('a', 'on-demand', 1)]),
      instanceType('cheap', size, [offering('a', 'on-demand', 0.1)]),
    ];
    const large = { nodeSelector: { 'node.kubernetes.io/instance-type': 'dear' } };
    const apart: Partial<PodSpec> = {
      affinity: {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'apart' } } },
          ],
        },
      },
    };
    const pods = [
      ...[0, 1].map((i) => pod(`apart-${i}`, { labels: { app: 'apart' }, requests: { cpu: '2' }, spec: apart })),
      ...[0, 1].map((i) => pod(`large-${i}`, { requests: { cpu: '1' }, spec: large })),
    ];
    const result = place({ nodePools: [nodePool('default')], instanceTypes: { default: types }, pods });
    expect(result.stats.totalPrice).toBeCloseTo(1.1);
  });

  test('a zone that sells the planned machine for more than planned still gets its pods, and the plan stands', () => {
    // More pods than are packed in many ways: only the thrifty packing finds the small machines.
    const count = 402;
    const types = [
      instanceType('small', size, [offering('a', 'on-demand', 0.1), offering('b', 'on-demand', 0.105)]),
      instanceType('large', { cpu: '64', memory: '128Gi', pods: '200' }, [
        offering('a', 'on-demand', 8),
        offering('b', 'on-demand', 8),
      ]),
    ];
    const spec: Partial<PodSpec> = {
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: 'topology.kubernetes.io/zone',
          whenUnsatisfiable: 'DoNotSchedule',
          labelSelector: { matchLabels: { app: 'web' } },
        },
      ],
    };
    const pods = Array.from({ length: count }, (_, i) =>
      pod(`web-${i}`, { labels: { app: 'web' }, requests: { cpu: '1', memory: '1Gi' }, spec }),
    );
    const result = place({ nodePools: [nodePool('default')], instanceTypes: { default: types }, pods });
    expect(result.errors).toEqual([]);
    // 201 pods in each zone, four on a machine. On large ones they would cost 64.
    expect(result.stats.totalPrice).toBeCloseTo(51 * 0.1 + 51 * 0.105);
  });
});
