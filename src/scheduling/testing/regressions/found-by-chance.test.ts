// SPDX-License-Identifier: Apache-2.0
// What random problems found wrong in the solver, each cut down to what matters. They stay found.
import { describe, expect, test } from 'vitest';
import { SeededRandom } from '../../../base/random.ts';
import type { RequirementSpec } from '../../objects.ts';
import type { Problem } from '../../problem.ts';
import { solve } from '../../solve.ts';
import { instanceType, node, nodePool, offering, oneOf, pod } from '../builders.ts';
import { generateProblem } from '../generate.ts';
import { validate } from '../validator.ts';

const zone = 'topology.kubernetes.io/zone';
const family = 'cloud.example/family';
const reservation = 'cloud.example/reservation';
const capacity = (cpu: number) => ({ cpu: `${cpu}`, memory: `${4 * cpu}Gi`, pods: '20' });
const rules = { wellKnown: [family], reservationId: reservation };
const inZones = (...names: string[]) => names.map((z) => offering(z, 'on-demand', 0.1));
const reserved = (id: string, left: number) => {
  const plain = offering('zone-1', 'reserved', 0.01, { reservationCapacity: left });
  return { ...plain, requirements: [...plain.requirements, oneOf(reservation, id)] };
};
const requiring = (...terms: RequirementSpec[][]) => ({
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: terms.map((t) => ({ matchExpressions: t })),
      },
    },
  },
});

/** Solves, insists that no rule is broken, and returns who was placed. */
function placed(problem: Problem): string[] {
  const result = solve(problem);
  expect(validate(problem, result, { missed: true })).toEqual({ violations: [], missed: [] });
  return result.placements.map((p) => p.pod).sort();
}

describe('random problems have shown that', () => {
  test('a term whose expressions contradict each other matches no node, not even one without the label', () => {
    const problem: Problem = {
      nodePools: [nodePool('pool')],
      instanceTypes: { pool: [instanceType('small', capacity(2), inZones('zone-1'))] },
      labels: { pool: rules },
      pods: [pod('a', { spec: requiring([oneOf(family, 'f'), oneOf(family, 'g')]) })],
    };
    expect(placed(problem)).toEqual([]);
  });

  test('a node selector that contradicts every term leaves the pod out', () => {
    const problem: Problem = {
      nodePools: [nodePool('pool', { requirements: [oneOf('team', 'red', 'blue')] })],
      instanceTypes: { pool: [instanceType('small', capacity(2), inZones('zone-1'))] },
      pods: [
        pod('a', {
          spec: { nodeSelector: { team: 'blue' }, ...requiring([{ key: 'team', operator: 'DoesNotExist' }]) },
        }),
      ],
    };
    expect(placed(problem)).toEqual([]);
  });

  test('pods that wait on a node of open zone count as soon as a spread pod settles it', () => {
    const labels = { app: 'x' };
    const problem: Problem = {
      nodePools: [nodePool('pool')],
      instanceTypes: { pool: [instanceType('big', capacity(8), inZones('zone-1', 'zone-2'))] },
      pods: [
        ...['a', 'b'].map((name) => pod(name, { labels, requests: { cpu: '2', memory: '1Gi' } })),
        pod('spread', {
          labels,
          spec: {
            topologySpreadConstraints: [
              {
                maxSkew: 1,
                topologyKey: zone,
                whenUnsatisfiable: 'DoNotSchedule',
                labelSelector: { matchLabels: labels },
              },
            ],
          },
        }),
      ],
    };
    expect(placed(problem)).toEqual(['default/a', 'default/b', 'default/spread']);
  });

  test('a reservation that two pools see differently has room for the fewer', () => {
    const selling = (left: number) => instanceType('big', capacity(4), [...inZones('zone-1'), reserved('r-1', left)]);
    const problem: Problem = {
      nodePools: [
        nodePool('one', { weight: 2 }),
        nodePool('two', { requirements: [oneOf('kubernetes.io/arch', 'arm64')] }),
      ],
      instanceTypes: { one: [selling(2)], two: [selling(1)] },
      labels: { one: rules, two: rules },
      pods: ['a', 'b'].map((name) => pod(name, { requests: { cpu: '3', memory: '1Gi' } })),
      settings: { reservedOfferingMode: 'Fallback' },
    };
    expect(placed(problem)).toEqual(['default/a', 'default/b']);
  });

  test('a type that sells only what is used up does not count for minValues', () => {
    const problem: Problem = {
      nodePools: [
        nodePool('pool', {
          requirements: [{ key: 'node.kubernetes.io/instance-type', operator: 'Exists', minValues: 2 }],
        }),
      ],
      instanceTypes: {
        pool: [
          instanceType('free', capacity(4), inZones('zone-1')),
          instanceType('used-up', capacity(4), [reserved('r-1', 0)]),
        ],
      },
      labels: { pool: rules },
      pods: [pod('a')],
    };
    expect(placed(problem)).toEqual([]);
  });

  test('a node with a soft taint counts for a spread that honours taints', () => {
    const labels = { app: 'x' };
    const spread = {
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: zone,
          whenUnsatisfiable: 'DoNotSchedule',
          labelSelector: { matchLabels: labels },
          nodeTaintsPolicy: 'Honor',
        },
      ],
    };
    const problem: Problem = {
      nodePools: [nodePool('pool', { taints: [{ key: 'soft', effect: 'PreferNoSchedule' }] })],
      instanceTypes: { pool: [instanceType('big', capacity(8), inZones('zone-1', 'zone-2'))] },
      pods: [pod('a', { labels, requests: { cpu: '1', memory: '1Gi' } }), pod('b', { labels, spec: spread })],
    };
    expect(placed(problem)).toEqual(['default/a', 'default/b']);
  });

  test('the pods that wait on a node of open zone count for the emptiest zone as well, once it is settled', () => {
    const labels = { app: 'x' };
    const everybody = { labelSelector: { matchLabels: labels } };
    const spread = { maxSkew: 1, topologyKey: zone, whenUnsatisfiable: 'DoNotSchedule', ...everybody };
    const neighbour = { topologyKey: 'kubernetes.io/hostname', ...everybody };
    const sociable = {
      affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [neighbour] } },
      topologySpreadConstraints: [spread],
    };
    const problem: Problem = {
      nodePools: [nodePool('pool')],
      instanceTypes: { pool: [instanceType('big', capacity(16), inZones('zone-1', 'zone-2'))] },
      pods: [
        ...['a', 'b', 'c'].map((name) => pod(name, { labels, requests: { cpu: '7', memory: '1Gi' } })),
        ...['s', 't'].map((name) => pod(name, { labels, spec: sociable })),
      ],
    };
    expect(placed(problem)).toHaveLength(5);
  });

  test('a zone that is named and not sold keeps nobody from deciding where others are', () => {
    const labels = { app: 'x' };
    const apart = { topologyKey: zone, labelSelector: { matchLabels: labels } };
    const big = instanceType('big', capacity(8), inZones('zone-1'));
    const named = { ...big, requirements: big.requirements.filter(({ key }) => key !== zone) };
    const problem: Problem = {
      nodePools: [nodePool('pool')],
      instanceTypes: {
        pool: [
          instanceType('small', capacity(4), inZones('zone-3')),
          { ...named, requirements: [...named.requirements, oneOf(zone, 'zone-1', 'zone-2', 'zone-3')] },
        ],
      },
      pods: [
        pod('a', { labels, requests: { cpu: '7', memory: '1Gi' } }),
        pod('b', {
          labels,
          spec: { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [apart] } } },
        }),
      ],
    };
    expect(placed(problem)).toEqual(['default/a', 'default/b']);
  });

  test('a machine that may turn out not to count for a spread fills no zone', () => {
    const labels = { app: 'x' };
    const pages = 'hugepages-2Mi';
    const spread = { maxSkew: 2, topologyKey: zone, whenUnsatisfiable: 'DoNotSchedule' };
    const plain = requiring([{ key: family, operator: 'DoesNotExist' }]);
    const problem: Problem = {
      nodePools: [nodePool('pool')],
      instanceTypes: {
        pool: [
          instanceType('small', capacity(2), inZones('zone-1')),
          instanceType('special', { ...capacity(4), [pages]: '1Gi' }, inZones('zone-1'), {
            requirements: [oneOf(family, 'cards')],
          }),
        ],
      },
      labels: { pool: rules },
      nodes: [node('there', { labels: { [zone]: 'zone-2' }, allocatable: capacity(4) })],
      pods: [
        ...['a', 'b', 'c'].map((name) => pod(name, { labels, spec: { nodeName: 'there' } })),
        ...['d', 'e'].map((name) => pod(name, { labels, requests: { cpu: '1', memory: '1Gi', [pages]: '256Mi' } })),
        pod('f', {
          labels,
          spec: { ...plain, topologySpreadConstraints: [{ ...spread, labelSelector: { matchLabels: labels } }] },
        }),
      ],
    };
    expect(placed(problem)).toHaveLength(3);
    expect(solve(problem).existingNodes).toEqual([]);
  });

  // The limit leaves no other machine, and the best plan of many meant each node for a cheap one: too much to be cut down.
  test.each([5343, 8494])('who finds no place on nodes meant to be cheap makes one dearer (seed %i)', (seed) => {
    expect(placed(generateProblem(new SeededRandom(seed))).length).toBeGreaterThan(0);
  });
});
