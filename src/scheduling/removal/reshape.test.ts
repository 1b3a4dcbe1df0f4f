// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { SeededRandom } from '../../base/random.ts';
import { finish } from '../../base/steps.ts';
import type { Node, Pod } from '../objects.ts';
import type { Problem } from '../problem.ts';
import { instanceType, node, nodePool, pod } from '../testing/builders.ts';
import { anti, hostname, offers, zone } from '../testing/place.ts';
import { type ConsolidateOptions, consolidate, type Removable, type RemovalCommand } from './consolidate.ts';
import { Removals } from './removals.ts';

/** Machines with little and with much memory, each cheap for what it has. */
const types = [2, 4, 8].flatMap((cpu) =>
  [2, 8].map((ratio) =>
    instanceType(
      `m-${cpu}-${ratio}`,
      { cpu: `${cpu}`, memory: `${cpu * ratio}Gi`, pods: '50' },
      offers(cpu * (0.02 + 0.004 * ratio)),
    ),
  ),
);
const priceOf = (type: string): number => types.find(({ name }) => name === type)!.offerings[0]!.price;

interface Machine {
  readonly type: string;
  readonly pods: readonly Pod[];
}

/** Half of the pods need much memory, and half do not; each machine has one of both, and is the cheapest for the two. */
function mixed(count: number, more: Parameters<typeof pod>[1] = {}): Machine[] {
  return Array.from({ length: count }, (_, i) => ({
    type: 'm-4-8',
    pods: [
      pod(`lean-${i}`, { ...more, requests: { cpu: '2', memory: '2Gi' } }),
      pod(`hungry-${i}`, { ...more, requests: { cpu: '2', memory: '15Gi' } }),
    ],
  }));
}

function clusterOf(machines: readonly Machine[]): { problem: Problem; removable: Removable[] } {
  const nodes: Node[] = machines.map(({ type }, i) => {
    const { capacity } = types.find(({ name }) => name === type)!;
    const labels = {
      [zone]: 'a',
      'karpenter.sh/nodepool': 'default',
      'node.kubernetes.io/instance-type': type,
      'karpenter.sh/capacity-type': 'on-demand',
      'kubernetes.io/arch': 'amd64',
      'kubernetes.io/os': 'linux',
    };
    return node(`node-${i}`, { labels, allocatable: capacity });
  });
  const pods = machines.flatMap(({ pods: own }, i) =>
    own.map((one) => ({ ...one, spec: { ...one.spec, nodeName: `node-${i}` }, status: { phase: 'Running' } })),
  );
  const candidates = nodes.map(({ metadata }) => metadata.name!);
  const problem: Problem = {
    nodePools: [nodePool('default')],
    instanceTypes: { default: types },
    nodes,
    pods,
    state: { candidates },
  };
  const removable = machines.map(({ type }, i) => ({ node: `node-${i}`, pool: 'default', price: priceOf(type) }));
  return { problem, removable };
}

function commandsFor(
  machines: readonly Machine[],
  budget = Number.POSITIVE_INFINITY,
  options: Pick<ConsolidateOptions<Removable>, 'any'> = {},
): RemovalCommand<Removable>[] {
  const { problem, removable } = clusterOf(machines);
  return finish(
    consolidate({
      ...options,
      problem,
      removable,
      budget: () => budget,
      approve: (nodes, claims) =>
        claims.reduce((sum, { price }) => sum + price, 0) < nodes.reduce((sum, { price }) => sum + price, 0)
          ? claims
          : 'no cheaper',
    }),
  );
}

const saved = (commands: readonly RemovalCommand<Removable>[]): number =>
  commands.reduce(
    (sum, { nodes, claims }) =>
      sum + nodes.reduce((a, { price }) => a + price, 0) - claims.reduce((a, { price }) => a + price, 0),
    0,
  );

/** Random pods on the cheapest machine for each handful of them. */
function random(count: number, seed: number): Machine[] {
  const chance = new SeededRandom(seed);
  return Array.from({ length: count }, (_, i) => {
    const pods = Array.from({ length: 1 + chance.int(3) }, (__, j) => {
      const cpu = [250, 500, 1000, 2000][chance.int(4)]!;
      return pod(`pod-${i}-${j}`, { requests: { cpu: `${cpu}m`, memory: `${cpu * (1 + chance.int(7))}Mi` } });
    });
    return { type: ['m-8-8', 'm-8-2'][chance.int(2)]!, pods };
  });
}

describe('groups of nodes to replace', () => {
  test.each([1, 2, 3, 4, 5, 6, 7, 8])('lose no pod and no node, and save, seed %i', (seed) => {
    const { problem, removable } = clusterOf(random(40, seed));
    const removals = finish(Removals.inSteps(problem, 'quick'));
    const priceBy = new Map(removable.map(({ node: name, price }) => [removals.slotOf(name)!, price]));
    const groups = removals.reshapings([...priceBy.keys()], (slot) => priceBy.get(slot)!);
    expect(groups.length).toBeGreaterThan(0);
    const seen = new Set<number>();
    for (const { slots, bins } of groups) {
      expect(slots.length).toBeLessThanOrEqual(16);
      for (const slot of slots) {
        expect(seen.has(slot)).toBe(false);
        seen.add(slot);
      }
      const sorted = (of: readonly number[]): number[] => [...of].sort((a, b) => a - b);
      expect(sorted(bins.flatMap(({ pods }) => pods))).toEqual(sorted(slots.flatMap((slot) => removals.podsOn(slot))));
      const paid = slots.reduce((sum, slot) => sum + priceBy.get(slot)!, 0);
      expect(bins.reduce((sum, { price }) => sum + price, 0)).toBeLessThan(paid * 0.98);
    }
    // What is asked for is had, and taken back without a trace.
    const [first] = groups;
    const paid = first!.slots.reduce((sum, slot) => sum + priceBy.get(slot)!, 0);
    const removal = removals.tryReshape(first!, paid);
    expect(removal?.claims.reduce((sum, { price }) => sum + price, 0)).toBeLessThan(paid * 0.98);
    expect(removal?.claims.flatMap(({ pods }) => pods)).toHaveLength(removal!.moves.length);
    removals.takeBack();
    expect(removals.tryReshape(first!, paid * 0.1)).toBeUndefined();
  });
});

describe('nodes that are each good for what they hold', () => {
  test('are replaced by others that suit what they hold together', () => {
    const machines = mixed(200);
    const commands = commandsFor(machines);
    const before = machines.length * priceOf('m-4-8');
    expect(saved(commands) / before).toBeGreaterThan(0.1);
    // Every pod of a node that goes has a place on what is bought with it, or on a node that stays.
    const going = new Set(commands.flatMap(({ nodes }) => nodes.map((one) => one.node)));
    for (const { nodes, claims, placements } of commands) {
      const bought = new Set(claims.flatMap(({ pods }) => pods));
      const moved = nodes.flatMap((one) => machines[Number(one.node.slice('node-'.length))]!.pods);
      expect(new Set(placements.map((one) => one.pod))).toEqual(
        new Set(moved.map(({ metadata }) => `default/${metadata.name}`)),
      );
      for (const { pod: name, node: at } of placements)
        expect(at === undefined ? bought.has(name) : !going.has(at)).toBe(true);
    }
  });

  test('go within their budget', () => {
    const commands = commandsFor(mixed(200), 7);
    const going = commands.flatMap(({ nodes }) => nodes);
    expect(going.length).toBeGreaterThan(0);
    expect(going.length).toBeLessThanOrEqual(7);
  });

  test('stay where their pods are tied to the host', () => {
    const { problem, removable } = clusterOf(mixed(10, { labels: { app: 'tied' }, spec: anti('other', hostname) }));
    const removals = finish(Removals.inSteps(problem, 'quick'));
    const slots = removable.map(({ node: name }) => removals.slotOf(name)!);
    expect(removals.reshapings(slots, () => 1)).toEqual([]);
  });
});

describe('whoever asks whether anything can be done', () => {
  test.each([1, 2, 3, 4])('gets one command where there are many, seed %i', (seed) => {
    const machines = random(40, seed);
    const [one, ...others] = commandsFor(machines, Number.POSITIVE_INFINITY, { any: true });
    expect(one!.nodes.length).toBeGreaterThan(0);
    expect(others).toEqual([]);
    expect(saved([one!])).toBeGreaterThan(0);
    expect(saved([one!])).toBeLessThanOrEqual(saved(commandsFor(machines)));
  });

  test('hears of nodes that only together can be replaced', () => {
    expect(commandsFor(mixed(8), Number.POSITIVE_INFINITY, { any: true }).length).toBeGreaterThan(0);
  });
});

test('pods for which nothing is on sale any more keep their nodes, and the search ends', () => {
  const { problem, removable } = clusterOf(
    [0, 1, 2].map((i) => ({ type: 'm-8-8', pods: [pod(`huge-${i}`, { requests: { cpu: '10' } })] })),
  );
  const nodes = problem.nodes!.map((one) => ({
    ...one,
    status: { ...one.status, allocatable: { cpu: '12', memory: '64Gi', pods: '50' } },
  }));
  const commands = finish(
    consolidate({
      problem: { ...problem, nodes },
      removable: removable.map((one) => ({ ...one, price: 10 })),
      budget: () => Number.POSITIVE_INFINITY,
      approve: (_, claims) => claims,
    }),
  );
  expect(commands).toEqual([]);
});
