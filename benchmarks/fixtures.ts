// SPDX-License-Identifier: Apache-2.0
// Upstream's own scheduler benchmark as problem files (same types, mixes and distributions, our seed), and the five cases
// in which shortcuts do not help.
import { SeededRandom } from '../src/base/random.ts';
import type { NodePool, Pod, PodSpec, RequirementSpec } from '../src/scheduling/objects.ts';
import type { InstanceTypeSpec, PreferencePolicy, Problem } from '../src/scheduling/problem.ts';
import { instanceType, node, nodePool, offering, oneOf, pod } from '../src/scheduling/testing/builders.ts';

const zone = 'topology.kubernetes.io/zone';
const hostname = 'kubernetes.io/hostname';
const poolName = 'benchmark';
const letters = ['a', 'b', 'c', 'd', 'e', 'f', 'g'] as const;
const cpus = [100, 250, 500, 1000, 1500] as const;
const memories = [100, 256, 512, 1024, 2048, 4096] as const;

/** Labels of upstream's fake cloud. */
const fake = { size: 'size', exotic: 'special', integer: 'integer' } as const;

/** Upstream's 400 types: `i + 1` cpus, twice as many GiB, ten times as many pods. */
export function fakeTypes(count = 400): InstanceTypeSpec[] {
  return Array.from({ length: count }, (_, i) => {
    const cpu = i + 1;
    const bytes = 2 * cpu * 2 ** 30;
    const price = 0.1 * cpu + (0.1 * bytes) / 1e9;
    const large = cpu > 4 && bytes > 8 * 2 ** 30;
    const optional: RequirementSpec = large
      ? oneOf(fake.exotic, 'optional')
      : { key: fake.exotic, operator: 'DoesNotExist' };
    return instanceType(
      `fake-it-${i}`,
      { cpu: `${cpu}`, memory: `${2 * cpu}Gi`, pods: `${10 * cpu}` },
      [
        offering('test-zone-1', 'spot', price),
        offering('test-zone-2', 'spot', price),
        offering('test-zone-1', 'on-demand', price),
        offering('test-zone-2', 'on-demand', price),
        offering('test-zone-3', 'on-demand', price),
      ],
      {
        os: ['linux', 'windows', 'darwin'],
        requirements: [oneOf(fake.integer, `${cpu}`), oneOf(fake.size, large ? 'large' : 'small'), optional],
        overhead: { kubeReserved: { cpu: '100m', memory: '10Mi' } },
      },
    );
  });
}

function fakePool(name = poolName, extra: { weight?: number } = {}): NodePool {
  return nodePool(name, { limits: { cpu: '10000000', memory: '10000000Gi' }, ...extra });
}

function problemOf(pods: readonly Pod[], extra: Partial<Problem> = {}): Problem {
  return {
    nodePools: [fakePool()],
    instanceTypes: { [poolName]: fakeTypes() },
    labels: { [poolName]: { wellKnown: Object.values(fake) } },
    pods,
    ...extra,
  };
}

class Draw {
  readonly #random: SeededRandom;
  #count = 0;

  constructor(seed: number) {
    this.#random = new SeededRandom(seed);
  }

  pick<T>(from: readonly T[]): T {
    return from[this.#random.int(from.length)]!;
  }

  requests() {
    return { cpu: `${this.pick(cpus)}m`, memory: `${this.pick(memories)}Mi` };
  }

  pod(labels: Record<string, string>, spec: Partial<PodSpec> = {}, requests = this.requests()): Pod {
    const made = pod(`pod-${this.#count++}`, { labels, requests, spec });
    // Upstream's queue breaks ties by UID, and its UIDs are random.
    return { ...made, metadata: { ...made.metadata, uid: this.#random.uuid() } };
  }

  letter(): Record<string, string> {
    return { 'my-label': this.pick(letters) };
  }
}

function spread(draw: Draw, key: string): Partial<PodSpec> {
  return {
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: key,
        whenUnsatisfiable: 'DoNotSchedule',
        labelSelector: { matchLabels: draw.letter() },
      },
    ],
  };
}

const nginx = { app: 'nginx' };
const apart = (key: string): Partial<PodSpec> => ({
  affinity: {
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: key, labelSelector: { matchLabels: nginx } }],
    },
  },
});

function togetherWith(labels: Record<string, string>): Partial<PodSpec> {
  return {
    affinity: {
      podAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey: zone, labelSelector: { matchLabels: labels } }],
      },
    },
  };
}

/** Upstream's five equal groups: plain, zone spread, host spread, zone affinity, host anti-affinity. */
function diversePods(draw: Draw, count: number): Pod[] {
  const share = Math.floor(count / 5);
  const pods: Pod[] = [];
  const many = (n: number, make: () => Pod) => {
    for (let i = 0; i < n; i++) pods.push(make());
  };
  many(share, () => draw.pod(draw.letter()));
  many(share, () => draw.pod(draw.letter(), spread(draw, zone)));
  many(share, () => draw.pod(draw.letter(), spread(draw, hostname)));
  many(share, () => {
    // The spelling is upstream's.
    const labels = { 'my-affininity': draw.pick(letters) };
    return draw.pod(labels, togetherWith(labels));
  });
  many(share, () => draw.pod(nginx, apart(hostname)));
  many(count - 5 * share, () => draw.pod(draw.letter()));
  return pods;
}

export function diverse(count: number, seed = 42): Problem {
  return problemOf(diversePods(new Draw(seed), count));
}

/** Upstream's preference pods: identical, with one wish that cannot come true and two that can. */
export function preferences(count: number, policy: PreferencePolicy, seed = 42): Problem {
  const draw = new Draw(seed);
  const requests = draw.requests();
  const wish = (key: string, weight: number) => ({
    weight,
    podAffinityTerm: { topologyKey: key, labelSelector: { matchLabels: nginx } },
  });
  const spec: Partial<PodSpec> = {
    affinity: {
      nodeAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: 1, preference: { matchExpressions: [oneOf(zone, 'test-zone-1')] } },
        ],
      },
      podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [wish(zone, 10), wish(hostname, 1)] },
    },
  };
  const pods = Array.from({ length: count }, () => draw.pod(nginx, spec, requests));
  return problemOf(pods, { settings: { preferencePolicy: policy } });
}

/** Every pod has labels, requests and a spread of its own: no two are alike. */
function everyPodItsOwnClass(count: number): Problem {
  const draw = new Draw(42);
  const pods = diversePods(draw, count).map((p, i) => ({
    ...p,
    metadata: { ...p.metadata, labels: { ...p.metadata.labels, own: `v${i}` } },
    spec: {
      ...p.spec,
      containers: [
        {
          name: 'main',
          resources: { requests: { cpu: `${100 + (i % 1400)}m`, memory: `${100 + ((i * 7) % 4000)}Mi` } },
        },
      ],
      tolerations: [{ key: `own-${i}`, operator: 'Exists' }],
    },
  }));
  return problemOf(pods);
}

function fiftyNodePools(count: number): Problem {
  const names = Array.from({ length: 50 }, (_, i) => `pool-${i}`);
  const types = fakeTypes();
  return {
    nodePools: names.map((name, i) => fakePool(name, { weight: 1 + (i % 100) })),
    // Each pool sells its own slice: large pods find a home only in some of them.
    instanceTypes: Object.fromEntries(names.map((name, i) => [name, types.slice(i * 2, i * 2 + 100)])),
    labels: Object.fromEntries(names.map((name) => [name, { wellKnown: Object.values(fake) }])),
    pods: diversePods(new Draw(42), count),
  };
}

function tenThousandNodes(count: number): Problem {
  const draw = new Draw(43);
  const zones = ['test-zone-1', 'test-zone-2', 'test-zone-3'];
  const nodes = Array.from({ length: 10_000 }, (_, i) =>
    node(`node-${i}`, {
      labels: {
        [zone]: draw.pick(zones),
        'node.kubernetes.io/instance-type': 'fake-it-3',
        'kubernetes.io/arch': 'amd64',
        'kubernetes.io/os': 'linux',
        'karpenter.sh/capacity-type': 'on-demand',
      },
      allocatable: { cpu: '3900m', memory: '8182Mi', pods: '40' },
    }),
  );
  // Nearly full: every node has to be looked at, few have room.
  const running = nodes.map((n, i) =>
    pod(`running-${i}`, {
      labels: draw.letter(),
      requests: { cpu: draw.pick(['3700m', '3600m', '3400m']), memory: '4Gi' },
      spec: { nodeName: n.metadata.name! },
    }),
  );
  return problemOf([...running, ...diversePods(new Draw(42), count)], { nodes });
}

function fourSmallTypes(count: number): Problem {
  const types = fakeTypes(6).slice(2);
  return problemOf(diversePods(new Draw(42), count), { instanceTypes: { [poolName]: types } });
}

/** Each pod has two preferences that nothing can satisfy: it is relaxed twice before it fits. */
function everyPodRelaxedTwice(count: number): Problem {
  const draw = new Draw(42);
  const impossible = (value: string) => ({ weight: 10, preference: { matchExpressions: [oneOf(zone, value)] } });
  const pods = diversePods(draw, count).map((p) => ({
    ...p,
    spec: {
      ...p.spec,
      affinity: {
        ...p.spec.affinity,
        nodeAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [impossible('nowhere'), impossible('neverwhere')],
        },
      },
    },
  }));
  return problemOf(pods);
}

/** The cases in which shortcuts do not help, by name. */
export const hardCases: Readonly<Record<string, (count: number) => Problem>> = {
  'own-class': everyPodItsOwnClass,
  '50-nodepools': fiftyNodePools,
  '10000-nodes': tenThousandNodes,
  '4-small-types': fourSmallTypes,
  'relaxed-twice': everyPodRelaxedTwice,
};
