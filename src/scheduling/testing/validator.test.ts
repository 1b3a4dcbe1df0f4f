// SPDX-License-Identifier: Apache-2.0
// The judge is judged: right results pass, and each way of spoiling one is named by the rule it breaks.
import { describe, expect, test } from 'vitest';
import type { NewNodeClaim, Placement, Problem } from '../problem.ts';
import { solve } from '../solve.ts';
import { daemonSet, instanceType, node, nodePool, offering, oneOf, pod } from './builders.ts';
import { type JudgedResult, validate } from './validator.ts';

const zone = 'topology.kubernetes.io/zone';
const host = 'kubernetes.io/hostname';
const zones = ['zone-1', 'zone-2', 'zone-3'];
const capacity = (cpu: number) => ({ cpu: `${cpu}`, memory: `${4 * cpu}Gi`, pods: '20' });
const sold = (price: number) => zones.flatMap((z) => [offering(z, 'on-demand', price), offering(z, 'spot', price / 2)]);
const types = [2, 4, 8].map((cpu) =>
  instanceType(`type-${cpu}`, capacity(cpu), sold(cpu / 10), { requirements: [oneOf('cloud.example/size', `${cpu}`)] }),
);

function problemWith(pods: Problem['pods'], extra: Partial<Problem> = {}): Problem {
  return {
    nodePools: [nodePool('pool')],
    instanceTypes: { pool: types },
    labels: { pool: { wellKnown: ['cloud.example/size'], reservationId: 'cloud.example/reservation' } },
    pods,
    ...extra,
  };
}

const app = (name: string) => ({ app: name });
const picks = (name: string) => ({ matchLabels: app(name) });
const cpu = (amount: string) => ({ requests: { cpu: amount, memory: '256Mi' } });
const apartFrom = (name: string, topologyKey: string) => ({
  affinity: {
    podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey, labelSelector: picks(name) }] },
  },
});
const togetherWith = (name: string, topologyKey: string) => ({
  affinity: {
    podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey, labelSelector: picks(name) }] },
  },
});
const spreadOver = (name: string, topologyKey: string, extra = {}) => ({
  topologySpreadConstraints: [
    { maxSkew: 1, topologyKey, whenUnsatisfiable: 'DoNotSchedule', labelSelector: picks(name), ...extra },
  ],
});
const claims = (result: JudgedResult, change: (claim: NewNodeClaim, index: number) => NewNodeClaim): JudgedResult => ({
  ...result,
  newNodeClaims: result.newNodeClaims.map(change),
});

/** Lists pods where `placements` puts them. */
function relisted(result: JudgedResult, placements: readonly Placement[]): JudgedResult {
  const at = (wanted: (p: Placement) => boolean) => placements.filter(wanted).map((p) => p.pod);
  const nodes = [...new Set(placements.flatMap((p) => ('node' in p.target ? [p.target.node] : [])))].sort();
  return {
    ...result,
    placements,
    newNodeClaims: result.newNodeClaims.map((c, i) => ({
      ...c,
      pods: at((p) => 'newNodeClaim' in p.target && p.target.newNodeClaim === i),
    })),
    existingNodes: nodes.map((name) => ({ name, pods: at((p) => 'node' in p.target && p.target.node === name) })),
  };
}

const moved = (result: JudgedResult, name: string, target: Placement['target']): JudgedResult =>
  relisted(
    result,
    result.placements.map((p) => (p.pod === `default/${name}` ? { pod: p.pod, target } : p)),
  );

const inZone =
  (value: string) =>
  (c: NewNodeClaim): NewNodeClaim => ({
    ...c,
    requirements: [...c.requirements.filter((r) => r.key !== zone), oneOf(zone, value)],
  });

interface Spoiling {
  readonly title: string;
  readonly problem: Problem;
  readonly rule: string;
  /** Spoils the result, or the problem under it. */
  readonly spoil: (result: JudgedResult, problem: Problem) => { result?: JudgedResult; problem?: Problem };
}

const tiny = node('tiny', { labels: { [zone]: 'zone-1' }, allocatable: { cpu: '500m', memory: '1Gi', pods: '5' } });
const roomy = (name: string, z = 'zone-1') => node(name, { labels: { [zone]: z }, allocatable: capacity(8) });
const disk = (z: string) => ({
  persistentVolumeClaims: [
    {
      metadata: { name: 'data', namespace: 'default', annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } },
      spec: { volumeName: 'disk', storageClassName: 'fast' },
      status: { phase: 'Bound' },
    },
  ],
  persistentVolumes: [
    {
      metadata: { name: 'disk' },
      spec: {
        csi: { driver: 'disk.example' },
        nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions: [oneOf(zone, z)] }] } },
      },
    },
  ],
});
const mounts = { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }] };
const taint = { key: 'team', value: 'red', effect: 'NoSchedule' };
const reserved = instanceType('type-r', capacity(4), [
  ...sold(0.4),
  {
    ...offering('zone-1', 'reserved', 0.01, { reservationCapacity: 1 }),
    requirements: [
      oneOf(zone, 'zone-1'),
      oneOf('karpenter.sh/capacity-type', 'reserved'),
      oneOf('cloud.example/reservation', 'r-1'),
    ],
  },
]);

const spoilings: readonly Spoiling[] = [
  {
    title: 'a pod is moved to a node that is too small',
    problem: problemWith([pod('a', cpu('1'))], { nodes: [tiny] }),
    rule: 'resources',
    spoil: (result) => ({ result: { ...moved(result, 'a', { node: 'tiny' }), newNodeClaims: [] } }),
  },
  {
    title: 'a pod is forgotten',
    problem: problemWith([pod('a'), pod('b')]),
    rule: 'account',
    spoil: (result) => ({ result: relisted(result, result.placements.slice(1)) }),
  },
  {
    title: 'a pod is placed twice',
    problem: problemWith([pod('a'), pod('b')]),
    rule: 'account',
    spoil: (result) => ({ result: { ...result, placements: [...result.placements, result.placements[0]!] } }),
  },
  {
    title: 'a toleration is lost',
    problem: problemWith([pod('a', { spec: { tolerations: [{ key: 'team', operator: 'Exists' }] } })], {
      nodePools: [nodePool('pool', { taints: [taint] })],
    }),
    rule: 'taint',
    spoil: (_, problem) => ({ problem: { ...problem, pods: [pod('a')] } }),
  },
  {
    title: 'a claim forgets the zone that its pod selects',
    problem: problemWith([pod('a', { spec: { nodeSelector: { [zone]: 'zone-2' } } })]),
    rule: 'node-affinity',
    spoil: (result) => ({
      result: claims(result, (c) => ({ ...c, requirements: c.requirements.filter((r) => r.key !== zone) })),
    }),
  },
  {
    title: "a pod asks for another cloud's label",
    problem: problemWith([pod('a', { spec: { nodeSelector: { 'cloud.example/size': '2' } } })]),
    rule: 'node-affinity',
    spoil: (_, problem) => ({
      problem: { ...problem, pods: [pod('a', { spec: { nodeSelector: { 'other.example/size': '2' } } })] },
    }),
  },
  {
    title: 'pods that shun each other share a node',
    problem: problemWith([
      pod('a', { labels: app('x'), spec: apartFrom('x', host) }),
      pod('b', { labels: app('x'), spec: apartFrom('x', host) }),
    ]),
    rule: 'anti-affinity',
    spoil: (result) => ({ result: moved(result, 'b', result.placements[0]!.target) }),
  },
  {
    title: 'a pod joins one that shuns it',
    problem: problemWith([pod('a', { ...cpu('2'), spec: apartFrom('y', host) }), pod('b', { labels: app('y') })]),
    rule: 'inverse-anti-affinity',
    spoil: (result) => ({ result: moved(result, 'b', result.placements.find((p) => p.pod === 'default/a')!.target) }),
  },
  {
    title: 'pods that shun each other over zones may both land in one',
    problem: problemWith([
      pod('a', { labels: app('x'), spec: apartFrom('x', zone) }),
      pod('b', { labels: app('x'), spec: { ...apartFrom('x', zone), nodeSelector: { [zone]: 'zone-2' } } }),
    ]),
    rule: 'anti-affinity',
    spoil: (result) => ({ result: claims(result, inZone('zone-2')) }),
  },
  {
    title: 'a follower goes to another zone than its leader',
    problem: problemWith([
      pod('leader', { ...cpu('7'), labels: app('lead'), spec: { nodeSelector: { [zone]: 'zone-1' } } }),
      pod('follower', { ...cpu('7'), spec: togetherWith('lead', zone) }),
    ]),
    rule: 'affinity',
    spoil: (result) => ({
      result: claims(result, (c) => (c.pods.includes('default/follower') ? inZone('zone-3')(c) : c)),
    }),
  },
  {
    title: 'a follower is placed before its leader',
    problem: problemWith([
      pod('leader', { ...cpu('7'), labels: app('lead'), spec: { nodeSelector: { [zone]: 'zone-1' } } }),
      pod('follower', { ...cpu('6'), spec: togetherWith('lead', zone) }),
    ]),
    rule: 'affinity',
    spoil: (result) => ({ result: { ...result, placements: result.placements.toReversed() } }),
  },
  {
    title: 'a pod with two affinities follows two half matches',
    problem: problemWith([
      pod('both', { ...cpu('7'), labels: { app: 'one', tier: 'two' }, spec: { nodeSelector: { [zone]: 'zone-1' } } }),
      pod('follower', {
        spec: {
          affinity: {
            podAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: [
                { topologyKey: zone, labelSelector: picks('one') },
                { topologyKey: zone, labelSelector: { matchLabels: { tier: 'two' } } },
              ],
            },
          },
        },
      }),
    ]),
    rule: 'affinity',
    spoil: (_, problem) => ({
      problem: {
        ...problem,
        pods: problem.pods.map((p) =>
          p.metadata.name === 'both' ? { ...p, metadata: { ...p.metadata, labels: { app: 'one' } } } : p,
        ),
      },
    }),
  },
  {
    title: 'spread pods crowd one zone',
    problem: problemWith(['a', 'b', 'c'].map((n) => pod(n, { labels: app('s'), spec: spreadOver('s', zone) }))),
    rule: 'spread',
    spoil: (result) => ({ result: claims(result, inZone('zone-1')) }),
  },
  {
    title: 'spread pods crowd one host',
    problem: problemWith(['a', 'b'].map((n) => pod(n, { labels: app('s'), spec: spreadOver('s', host) }))),
    rule: 'spread',
    spoil: (result) => ({ result: moved(result, 'b', result.placements.find((p) => p.pod === 'default/a')!.target) }),
  },
  {
    title: 'minDomains is not reached',
    problem: problemWith(
      ['a', 'b'].map((n) => pod(n, { labels: app('s'), spec: spreadOver('s', zone) })),
      { nodePools: [nodePool('pool', { requirements: [oneOf(zone, 'zone-1')] })] },
    ),
    rule: 'spread',
    spoil: (_, problem) => ({
      problem: {
        ...problem,
        pods: ['a', 'b'].map((n) => pod(n, { labels: app('s'), spec: spreadOver('s', zone, { minDomains: 2 }) })),
      },
    }),
  },
  {
    title: 'two pods take the same host port',
    problem: problemWith(
      ['a', 'b'].map((n) => pod(n, { spec: { containers: [{ name: 'main', ports: [{ hostPort: 80 }] }] } })),
    ),
    rule: 'host-port',
    spoil: (result) => ({ result: moved(result, 'b', result.placements.find((p) => p.pod === 'default/a')!.target) }),
  },
  {
    title: 'a claim lists a type that is too small',
    problem: problemWith([pod('a', cpu('3'))]),
    rule: 'resources',
    spoil: (result) => ({ result: claims(result, (c) => ({ ...c, instanceTypes: ['type-2', ...c.instanceTypes] })) }),
  },
  {
    title: 'a daemonset leaves no room on a listed type',
    problem: problemWith([pod('a', cpu('1500m'))]),
    rule: 'resources',
    spoil: (_, problem) => ({ problem: { ...problem, daemonSets: [daemonSet('agent', { cpu: '1' })] } }),
  },
  {
    title: 'a listed type is not sold in the zone',
    problem: problemWith([pod('a', { spec: { nodeSelector: { [zone]: 'zone-3' } } })]),
    rule: 'offering',
    spoil: (_, problem) => ({
      problem: {
        ...problem,
        instanceTypes: {
          pool: types.map((t) => ({
            ...t,
            offerings: t.offerings.filter((o) => t.name !== 'type-8' || o.requirements[0]!.values![0] !== 'zone-3'),
          })),
        },
      },
    }),
  },
  {
    title: 'a price is embellished',
    problem: problemWith([pod('a')]),
    rule: 'price',
    spoil: (result) => ({ result: claims(result, (c) => ({ ...c, price: c.price * 0.9 })) }),
  },
  {
    title: 'types are not in the order of their price',
    problem: problemWith([pod('a')]),
    rule: 'order',
    spoil: (result) => ({ result: claims(result, (c) => ({ ...c, instanceTypes: c.instanceTypes.toReversed() })) }),
  },
  {
    title: 'the requests of a claim are understated',
    problem: problemWith([pod('a'), pod('b')]),
    rule: 'requests',
    spoil: (result) => ({ result: claims(result, (c) => ({ ...c, requests: { ...c.requests, cpu: '100m' } })) }),
  },
  {
    title: 'a limit on cpu is broken by what a claim may become',
    problem: problemWith([pod('a')], { nodePools: [nodePool('pool', { limits: { cpu: '8' } })] }),
    rule: 'limits',
    spoil: (_, problem) => ({ problem: { ...problem, nodePools: [nodePool('pool', { limits: { cpu: '4' } })] } }),
  },
  {
    title: 'a limit on nodes is broken within one pass',
    problem: problemWith([pod('a', cpu('7')), pod('b', cpu('7'))], {
      nodePools: [nodePool('pool', { limits: { nodes: '2' } })],
    }),
    rule: 'limits',
    spoil: (_, problem) => ({ problem: { ...problem, nodePools: [nodePool('pool', { limits: { nodes: '1' } })] } }),
  },
  {
    title: 'a reservation is promised twice',
    problem: problemWith([pod('a', cpu('3')), pod('b', cpu('3'))], {
      instanceTypes: {
        pool: [
          {
            ...reserved,
            offerings: reserved.offerings.map((o) => (o.reservationCapacity ? { ...o, reservationCapacity: 2 } : o)),
          },
        ],
      },
    }),
    rule: 'reservation',
    spoil: (_, problem) => ({ problem: { ...problem, instanceTypes: { pool: [reserved] } } }),
  },
  {
    title: 'a claim lists more types than may be listed',
    problem: problemWith([pod('a')]),
    rule: 'truncation',
    spoil: (_, problem) => ({ problem: { ...problem, settings: { maxInstanceTypes: 2 } } }),
  },
  {
    title: 'a claim loses the choice that minValues asks for',
    problem: problemWith([pod('a')], {
      nodePools: [
        nodePool('pool', {
          requirements: [{ key: 'node.kubernetes.io/instance-type', operator: 'Exists', minValues: 2 }],
        }),
      ],
    }),
    rule: 'min-values',
    spoil: (result) => ({ result: claims(result, (c) => ({ ...c, instanceTypes: c.instanceTypes.slice(0, 1) })) }),
  },
  {
    title: "a volume is in another zone than its pod's machine",
    problem: problemWith([pod('a', { spec: mounts })], disk('zone-1')),
    rule: 'volume-topology',
    spoil: (_, problem) => ({ problem: { ...problem, ...disk('zone-2') } }),
  },
  {
    title: 'a node attaches more volumes than it can',
    problem: problemWith([pod('a', { spec: mounts })], { ...disk('zone-1'), nodes: [roomy('big')] }),
    rule: 'volume-limit',
    spoil: (_, problem) => ({
      problem: {
        ...problem,
        csiNodes: [
          { metadata: { name: 'big' }, spec: { drivers: [{ name: 'disk.example', allocatable: { count: 0 } }] } },
        ],
      },
    }),
  },
  {
    title: 'a claim goes beyond what its pool allows',
    problem: problemWith([pod('a')], { nodePools: [nodePool('pool', { requirements: [oneOf(zone, 'zone-1')] })] }),
    rule: 'pool-requirements',
    spoil: (result) => ({ result: claims(result, inZone('zone-2')) }),
  },
  {
    title: 'a pod is put on a node that is going away',
    problem: problemWith([pod('a')], { nodes: [roomy('big')] }),
    rule: 'placement',
    spoil: (_, problem) => ({ problem: { ...problem, state: { markedForDeletion: ['big'] } } }),
  },
];

describe('the validator', () => {
  test.each(spoilings)('passes the right result, and says $rule when $title', ({ problem, rule, spoil }) => {
    const result = solve(problem);
    expect(validate(problem, result, { missed: true })).toEqual({ violations: [], missed: [] });
    expect(result.errors).toEqual([]);
    const spoiled = spoil(result, problem);
    const { violations } = validate(spoiled.problem ?? problem, spoiled.result ?? result);
    expect(violations.map((v) => v.rule)).toContain(rule);
  });

  test('lets a pod that is merely selected push a skew, because only owners of a constraint are bound by it', () => {
    const problem = problemWith(
      [
        pod('owner', { ...cpu('2'), labels: app('s'), spec: spreadOver('s', zone) }),
        pod('selected', { labels: app('s'), spec: { nodeSelector: { [zone]: 'zone-1' } } }),
      ],
      {
        nodePools: [nodePool('pool', { requirements: [oneOf(zone, 'zone-1', 'zone-2')] })],
        nodes: [roomy('one'), roomy('two', 'zone-2')],
      },
    );
    expect(validate(problem, solve(problem)).violations).toEqual([]);
  });

  test('notices a pod that was left out although a new machine would take it', () => {
    const problem = problemWith([pod('a')]);
    const none: JudgedResult = {
      newNodeClaims: [],
      existingNodes: [],
      placements: [],
      errors: [{ pod: 'default/a', reason: 'no', detail: 'no' }],
    };
    expect(validate(problem, none, { missed: true }).missed).toEqual([
      { pod: 'default/a', place: 'a new machine of pool' },
    ]);
  });
});
