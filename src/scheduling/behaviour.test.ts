// SPDX-License-Identifier: Apache-2.0
// Finer points of what a pod, a node and a pool may ask for; `solve.test.ts` has the broad strokes.
import { describe, expect, test } from 'vitest';
import type { PodAffinityTerm, PodSpec, RequirementSpec } from './objects.ts';
import type { Problem } from './problem.ts';
import { claimOf, instanceType, node, nodePool, oneOf, pod } from './testing/builders.ts';
import {
  app,
  existing,
  hostname,
  large,
  near,
  nodeOf,
  offers,
  place,
  reasonOf,
  required,
  small,
  spread,
  times,
  zone,
  zoneOf,
} from './testing/place.ts';

type Terms = readonly { weight: number; podAffinityTerm: PodAffinityTerm }[];

const nodeWishes = (...wishes: [number, RequirementSpec][]) => ({
  nodeAffinity: {
    preferredDuringSchedulingIgnoredDuringExecution: wishes.map(([weight, expression]) => ({
      weight,
      preference: { matchExpressions: [expression] },
    })),
  },
});
const neighbours = (name: string, topologyKey: string, weight = 1): Terms => [
  { weight, podAffinityTerm: { topologyKey, ...app(name) } },
];
const wishNear = (terms: Terms) => ({ podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: terms } });
const wishApart = (terms: Terms) => ({ podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: terms } });
/** A running pod on a full node in zone a. */
const running = (name: string): Pick<Problem, 'nodes'> & { pod: ReturnType<typeof pod> } => ({
  nodes: [existing(`node-of-${name}`, { allocatable: { cpu: '100m', memory: '128Mi', pods: '1' } })],
  pod: pod(name, { labels: { app: name }, spec: { nodeName: `node-of-${name}` } }),
});

describe('extended resources', () => {
  const gpu = 'example.com/gpu';
  const withGpus = instanceType('gpus', { cpu: '4', memory: '8Gi', pods: '20', [gpu]: '2' }, offers(3));
  test('are bought where they are sold, as many as are asked for', () => {
    const pods = times(3, 'p', { requests: { cpu: '100m', [gpu]: '1' } });
    const result = place(pods, { types: [small, withGpus] });
    expect(result.newNodeClaims.map((c) => [c.instanceTypes, c.pods.length])).toEqual([
      [['gpus'], 2],
      [['gpus'], 1],
    ]);
  });
  test('that nobody sells leave the pod out, and say so', () => {
    expect(reasonOf(place([pod('p', { requests: { [gpu]: '1' } })]), 'p')).toContain(gpu);
  });
  test('of a node that is starting are those of its claim while the kubelet still says zero', () => {
    const options = { pool: 'default', labels: { [zone]: 'a' }, initialized: false };
    const has = { cpu: '4', memory: '8Gi', pods: '20' };
    const starting = {
      nodes: [node('n', { ...options, allocatable: { ...has, [gpu]: '0' } })],
      nodeClaims: [claimOf('n', { ...options, allocatable: { ...has, [gpu]: '2' } })],
    };
    expect(nodeOf(place([pod('p', { requests: { [gpu]: '2' } })], starting), 'p')).toBe('n');
  });
});

describe('machines on their way', () => {
  const options = { pool: 'default', labels: { [zone]: 'a' }, allocatable: { cpu: '2', memory: '4Gi', pods: '9' } };
  test('take pods before another is bought', () => {
    const result = place([pod('p')], { nodeClaims: [claimOf('coming', options)] });
    expect(result.existingNodes).toEqual([{ name: 'coming', pods: ['default/p'] }]);
  });
  test('come after nodes that are there', () => {
    const result = place([pod('p')], {
      nodes: [node('young', { ...options, initialized: false }), existing('zzz')],
      nodeClaims: [claimOf('young', options)],
    });
    expect(nodeOf(result, 'p')).toBe('zzz');
  });
  test('take none when they joined again under another name, for nobody will open that Node', () => {
    const unregistered = { key: 'karpenter.sh/unregistered', effect: 'NoExecute' } as const;
    const { pool: _, ...strange } = options;
    const again = node('first-again', { ...strange, taints: [unregistered] });
    const result = place([pod('p')], {
      nodes: [{ ...again, spec: { ...again.spec, providerID: 'fake:///first' } }],
      nodeClaims: [claimOf('first', options)],
    });
    expect(nodeOf(result, 'p')).toBe(0);
  });
  test('do not, once they are to be deleted', () => {
    const result = place([pod('p')], {
      nodeClaims: [claimOf('going', options)],
      state: { markedForDeletion: ['going'] },
    });
    expect(nodeOf(result, 'p')).toBe(0);
  });
});

describe('preferred pod affinity', () => {
  test('brings pods together where it can', () => {
    const { nodes, pod: there } = running('db');
    const wish = pod('p', { spec: { affinity: wishNear(neighbours('db', zone)) } });
    expect(zoneOf(place([there, wish], { nodes: nodes! }), 'p')).toBe('a');
  });
  test('is given up where it cannot be had', () => {
    expect(place([pod('p', { spec: { affinity: wishNear(neighbours('nobody', zone)) } })]).errors).toEqual([]);
  });
});

describe('affinity per revision', () => {
  const term = (extra: Partial<PodAffinityTerm>): Partial<PodSpec> => ({
    affinity: {
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: hostname, ...app('p'), ...extra }],
      },
    },
  });
  const of = (rev: string, spec: Partial<PodSpec>) => pod(rev, { labels: { app: 'p', rev }, spec });
  test('matchLabelKeys lets another revision share the node', () => {
    const spec = term({ matchLabelKeys: ['rev'] });
    expect(place([of('x', spec), of('y', spec)]).newNodeClaims).toHaveLength(1);
    expect(place([of('x', term({})), of('y', term({}))]).newNodeClaims).toHaveLength(2);
  });
  test('mismatchLabelKeys keeps other revisions away and none of its own', () => {
    const spec = term({ mismatchLabelKeys: ['rev'] });
    const twin = pod('x2', { labels: { app: 'p', rev: 'x' }, spec });
    const result = place([of('x', spec), twin, of('y', spec)]);
    expect(nodeOf(result, 'x2')).toBe(nodeOf(result, 'x'));
    expect(nodeOf(result, 'y')).not.toBe(nodeOf(result, 'x'));
  });
});

describe('which nodes a spread counts', () => {
  test('only those that the pod may use, or all of them with nodeAffinityPolicy Ignore', () => {
    const arch = 'kubernetes.io/arch';
    const arm = existing('arm', {
      labels: { [zone]: 'a', [arch]: 'arm64' },
      allocatable: { cpu: '100m', memory: '128Mi', pods: '1' },
    });
    const there = pod('there', { labels: { app: 'p' }, spec: { nodeName: 'arm' } });
    const zoneWith = (extra: object): string | undefined => {
      const spec = { nodeSelector: { [arch]: 'amd64' }, ...spread('p', zone, extra) };
      return zoneOf(place([there, pod('p', { labels: { app: 'p' }, spec })], { nodes: [arm] }), 'p');
    };
    expect(zoneWith({})).toBe('a');
    expect(zoneWith({ nodeAffinityPolicy: 'Ignore' })).toBe('b');
  });
  test('those with taints too, unless nodeTaintsPolicy is Honor', () => {
    const nodePools = [
      nodePool('open', { requirements: [oneOf(zone, 'a', 'b')] }),
      nodePool('closed', { requirements: [oneOf(zone, 'c')], taints: [{ key: 'k', effect: 'NoSchedule' }] }),
    ];
    const spreading = (extra: object) => times(3, 'p', { labels: { app: 'p' }, spec: spread('p', zone, extra) });
    expect(place(spreading({}), { nodePools }).errors).toHaveLength(1);
    expect(place(spreading({ nodeTaintsPolicy: 'Honor' }), { nodePools }).errors).toEqual([]);
  });
  test('a wish for a zone does not shrink them', () => {
    const spec = { ...spread('p', zone), affinity: nodeWishes([1, oneOf(zone, 'a')]) };
    const result = place(times(3, 'p', { labels: { app: 'p' }, spec }));
    expect(new Set([0, 1, 2].map((i) => zoneOf(result, `p-${i}`)))).toEqual(new Set(['a', 'b', 'c']));
  });
});

test('affinity to its own kind on one host starts one node, and no second', () => {
  const pods = times(3, 'p', { labels: { app: 'p' }, requests: { cpu: '1' }, spec: near('p', hostname) });
  const result = place(pods, { types: [small] });
  expect(result.newNodeClaims).toHaveLength(1);
  expect(result.errors).toHaveLength(1);
});

describe('what cannot be had together is given up in this order', () => {
  const { nodes, pod: there } = running('db');
  const inZone = (z: string) => [1, oneOf(zone, z)] as [number, RequirementSpec];
  const zoneWith = (spec: Partial<PodSpec>, labels = {}): string | undefined =>
    zoneOf(place([there, pod('p', { labels, spec })], { nodes: nodes! }), 'p');
  test('alternatives of a demand before any wish', () => {
    const terms = required([[oneOf(zone, 'nowhere')], [oneOf(zone, 'b')]]).affinity!.nodeAffinity!;
    const wish = nodeWishes([1, oneOf('node.kubernetes.io/instance-type', 'large')]).nodeAffinity;
    const result = place([pod('p', { spec: { affinity: { nodeAffinity: { ...terms, ...wish } } } })]);
    expect(result.newNodeClaims[0]!.instanceTypes).toEqual(['large']);
  });
  test('the wish to be near before the wish to be apart', () => {
    const wishes = { ...wishNear(neighbours('db', zone)), ...wishApart(neighbours('db', zone)) };
    expect(zoneWith({ affinity: { ...wishes } })).not.toBe('a');
  });
  test('the wish to be near before the wish for a node', () => {
    expect(zoneWith({ affinity: { ...wishNear(neighbours('db', zone, 100)), ...nodeWishes(inZone('b')) } })).toBe('b');
  });
  test('the wish to be apart before the wish for a node', () => {
    expect(zoneWith({ affinity: { ...wishApart(neighbours('db', zone, 100)), ...nodeWishes(inZone('a')) } })).toBe('a');
  });
  test('the wish for a node before the wish to spread', () => {
    const spec = {
      ...spread('db', zone, { whenUnsatisfiable: 'ScheduleAnyway' }),
      affinity: nodeWishes(inZone('a')),
    };
    expect(zoneWith(spec, { app: 'db' })).not.toBe('a');
  });
  test('of wishes for a node the heaviest counts, and where it cannot be had the next', () => {
    const both = (first: string) => nodeWishes([1, oneOf(zone, 'b')], [50, oneOf(zone, first)]);
    expect(zoneWith({ affinity: both('c') })).toBe('c');
    expect(zoneWith({ affinity: both('nowhere') })).toBe('b');
  });
  test('a soft taint last, after every wish', () => {
    const soft = nodePool('soft', {
      weight: 9,
      requirements: [oneOf(zone, 'b')],
      taints: [{ key: 'k', effect: 'PreferNoSchedule' }],
    });
    const result = place([pod('p', { spec: { affinity: nodeWishes(inZone('b')) } })], {
      nodePools: [soft, nodePool('plain', { requirements: [oneOf(zone, 'a')] })],
    });
    expect(result.newNodeClaims[0]!.nodePool).toBe('plain');
  });
});

describe('pools', () => {
  test('list the 600 cheapest types at most', () => {
    const types = Array.from({ length: 700 }, (_, i) =>
      instanceType(`t${i}`, { cpu: '2', memory: '4Gi', pods: '9' }, offers(700 - i)),
    );
    const { instanceTypes } = place([pod('p')], { types }).newNodeClaims[0]!;
    expect(instanceTypes).toHaveLength(600);
    expect([instanceTypes[0], instanceTypes.at(-1)]).toEqual(['t699', 't100']);
  });
  test('place what their limits allow and leave the rest', () => {
    const result = place(times(3, 'p', { requests: { cpu: '1500m' } }), {
      types: [small],
      nodePools: [nodePool('default', { limits: { cpu: '4' } })],
    });
    expect([result.newNodeClaims.length, result.errors.length]).toEqual([2, 1]);
  });
  test('with minValues under BestEffort lower them before a lighter pool is asked', () => {
    const wants = { key: 'node.kubernetes.io/instance-type', operator: 'Exists', minValues: 3 };
    const result = place([pod('p')], {
      types: [small, large],
      nodePools: [nodePool('heavy', { weight: 9, requirements: [wants] }), nodePool('light')],
      settings: { minValuesPolicy: 'BestEffort' },
    });
    expect(result.newNodeClaims).toMatchObject([{ nodePool: 'heavy', minValuesRelaxed: true }]);
  });
});
