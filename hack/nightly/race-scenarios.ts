// SPDX-License-Identifier: Apache-2.0
// What the race asks of both controllers, as data: the cluster's set-up, and steps that each change something and are
// over when a condition holds.
import { lowerBound } from '../../benchmarks/lp-bound.ts';
import { defaultInstanceTypes } from '../../src/providers/kwok/instance-types.ts';
import { cheaper, nearBound, noDearer, noMoreEvictions, noSlower, type Wanted } from './race-result.ts';
import type { RaceWorld } from './race-world.ts';

/** One change and how it ends. */
export interface Step {
  readonly name: string;
  start(world: RaceWorld): Promise<void>;
  /** The step is over; its time counts until this holds for the first time. */
  done(world: RaceWorld): boolean;
  /** How long to look on after that: the time until nothing moves any more is found in it. */
  readonly settleSeconds?: number;
  readonly limitSeconds: number;
}

export interface Scenario {
  readonly what: string;
  /** There before the controller starts. */
  readonly setup: readonly object[];
  /** What the pretended cloud sells instead of its own, in the format of its file. */
  readonly typesFile?: string;
  readonly steps: readonly Step[];
  /** What ours must reach. */
  readonly wanted: readonly Wanted[];
}

export const nodeClass = {
  apiVersion: 'karpenter.kwok.sh/v1alpha1',
  kind: 'KWOKNodeClass',
  metadata: { name: 'race' },
};

interface PoolOptions {
  readonly name: string;
  readonly consolidateAfter: string;
  readonly budget?: string;
  readonly weight?: number;
}

export const nodePool = ({ name, consolidateAfter, budget = '100%', weight }: PoolOptions) => ({
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodePool',
  metadata: { name },
  spec: {
    ...(weight === undefined ? {} : { weight }),
    disruption: { consolidationPolicy: 'WhenEmptyOrUnderutilized', consolidateAfter, budgets: [{ nodes: budget }] },
    template: {
      spec: {
        expireAfter: 'Never',
        nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'race' },
        requirements: [
          { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] },
          { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['on-demand'] },
        ],
      },
    },
  },
});

const shapes = [
  { name: 'small', cpu: '250m', memory: '512Mi' },
  { name: 'web', cpu: '500m', memory: '1Gi' },
  { name: 'worker', cpu: '1', memory: '2Gi' },
  { name: 'cache', cpu: '1', memory: '4Gi' },
] as const;

type Shape = (typeof shapes)[number];

/** Pods of one shape that are treated alike. */
interface Group {
  readonly name: string;
  /** Of the shape's pods; the first group takes what rounding leaves. */
  readonly share: number;
  readonly annotations?: Readonly<Record<string, string>>;
}

const plain: readonly Group[] = [{ name: 'plain', share: 1 }];
/** A third of the pods under a PodDisruptionBudget, and every twentieth never to be disrupted. */
const guarded: readonly Group[] = [
  { name: 'plain', share: 1 - 1 / 3 - 1 / 20 },
  { name: 'budgeted', share: 1 / 3 },
  { name: 'pinned', share: 1 / 20, annotations: { 'karpenter.sh/do-not-disrupt': 'true' } },
];

const budgets = shapes.map(({ name }) => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name, namespace: 'default' },
  spec: { maxUnavailable: '10%', selector: { matchLabels: { app: name, group: 'budgeted' } } },
}));

const deployment = (shape: Shape, group: Group, replicas: number) => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: `${shape.name}-${group.name}`, namespace: 'default' },
  spec: {
    replicas,
    selector: { matchLabels: { app: shape.name, group: group.name } },
    template: {
      metadata: {
        labels: { app: shape.name, group: group.name },
        ...(group.annotations ? { annotations: group.annotations } : {}),
      },
      spec: {
        terminationGracePeriodSeconds: 0,
        topologySpreadConstraints: [
          {
            maxSkew: 1,
            topologyKey: 'topology.kubernetes.io/zone',
            whenUnsatisfiable: 'DoNotSchedule',
            labelSelector: { matchLabels: { app: shape.name, group: group.name } },
          },
        ],
        containers: [
          { name: 'main', image: 'pause', resources: { requests: { cpu: shape.cpu, memory: shape.memory } } },
        ],
      },
    },
  },
});

/** So many pods together, the same number of each shape. */
function deployments(count: number, groups: readonly Group[]): object[] {
  const each = count / shapes.length;
  return shapes.flatMap((shape) => {
    const [first, ...others] = groups.map((group) => ({ group, replicas: Math.floor(each * group.share) }));
    if (!first) return [];
    const rest = others.reduce((sum, { replicas }) => sum + replicas, 0);
    const all = [{ ...first, replicas: each - rest }, ...others];
    return all.map(({ group, replicas }) => deployment(shape, group, replicas));
  });
}

const scale = (count: number, groups: readonly Group[], more: Partial<Step> = {}): Step => ({
  name: `${count} pods`,
  start: (world) => world.apply(deployments(count, groups)),
  done: (world) => world.pods === count && world.readyPods === count,
  limitSeconds: 900,
  ...more,
});

/** Up, down to a tenth, time to settle, and nothing left. */
const upAndDown = (groups: readonly Group[]): readonly Step[] => [
  scale(1000, groups),
  scale(100, groups, { settleSeconds: 240 }),
  scale(0, groups, { done: (world) => world.pods === 0 && world.nodes === 0 }),
];

/** The least that so many pods can cost an hour: their requests at the cheapest rate, whatever the zones. */
async function boundOf(count: number): Promise<number> {
  const pods = shapes.flatMap(({ name, cpu, memory }) =>
    Array.from({ length: count / shapes.length }, (_, i) => ({
      metadata: { name: `${name}-${i}`, namespace: 'default', labels: { app: name } },
      spec: { containers: [{ name: 'main', resources: { requests: { cpu, memory } } }] },
    })),
  );
  const pool = nodePool({ name: 'race', consolidateAfter: '0s' });
  const { price } = await lowerBound({
    nodePools: [pool],
    instanceTypes: { race: defaultInstanceTypes() },
    pods,
  });
  return price;
}

/** One pod to a node. */
const apart = (replicas: number): object => {
  const labels = { app: 'apart' };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'apart', namespace: 'default' },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          terminationGracePeriodSeconds: 0,
          affinity: {
            podAntiAffinity: {
              requiredDuringSchedulingIgnoredDuringExecution: [
                { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: labels } },
              ],
            },
          },
          containers: [{ name: 'main', image: 'pause', resources: { requests: { cpu: '500m' } } }],
        },
      },
    },
  };
};

const scaleApart = (count: number): Step => ({
  name: `${count} nodes`,
  start: (world) => world.apply([apart(count)]),
  done: (world) => world.readyPods === count && world.pods === count && world.nodes === count,
  limitSeconds: 900,
});

const guardedSetup: readonly object[] = [
  nodeClass,
  ...budgets,
  ...[1, 2, 3, 4, 5].map((weight) =>
    nodePool({ name: `race-${weight}`, consolidateAfter: '0s', budget: '10%', weight }),
  ),
];

export const scenarios: Readonly<Record<string, Scenario>> = {
  up: {
    what: '1,000 pods of four shapes with zone spread, from pending to ready',
    // Nothing is consolidated while the clock runs: this one is about buying.
    setup: [nodeClass, nodePool({ name: 'race', consolidateAfter: '10m' })],
    steps: [scale(1000, plain)],
    wanted: [noSlower, noDearer],
  },
  'many-nodes': {
    what: '100 nodes for a pod each, from pending to ready, and to zero',
    setup: [nodeClass, nodePool({ name: 'race', consolidateAfter: '0s' })],
    steps: [scaleApart(100), scaleApart(0)],
    wanted: [noSlower, noDearer],
  },
  'up-and-down': {
    what: '1,000 pods of four shapes with zone spread up, down to 100, settle, to zero',
    setup: [nodeClass, nodePool({ name: 'race', consolidateAfter: '0s' })],
    steps: upAndDown(plain),
    wanted: [nearBound('100 pods', () => boundOf(100), 1.15), noDearer, cheaper],
  },
  guarded: {
    what: 'the same with 10 % budgets, PDBs on a third of the pods, 5 % do-not-disrupt, five weighted NodePools',
    setup: guardedSetup,
    steps: upAndDown(guarded),
    wanted: [noDearer, cheaper, noMoreEvictions],
  },
  'guarded-late': {
    // As when a control plane is slow: small nodes are there first, and protected pods end up on large ones with much room.
    what: 'the same, but some pods come first and the protected ones later',
    setup: guardedSetup,
    steps: [scale(44, guarded.slice(0, 2)), ...upAndDown(guarded)],
    wanted: [noDearer, cheaper, noMoreEvictions],
  },
};
