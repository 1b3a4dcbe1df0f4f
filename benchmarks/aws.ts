// SPDX-License-Identifier: Apache-2.0
// Problems on real EC2 types and prices. The facts are not part of the repo: `KARPENTER_BENCH_DATA` says where they are.
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { SeededRandom } from '../src/base/random.ts';
import type { Node, Pod, PodSpec } from '../src/scheduling/objects.ts';
import type { InstanceTypeSpec, OfferingSpec, Problem } from '../src/scheduling/problem.ts';
import { node, nodePool, offering, oneOf, pod } from '../src/scheduling/testing/builders.ts';

const zoneLabel = 'topology.kubernetes.io/zone';
export const zones = ['us-east-1a', 'us-east-1b', 'us-east-1c', 'us-east-1d'] as const;
const poolName = 'aws';

interface TypeFacts {
  readonly allocatable: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
}

const typesFile = 'aws-instance-types.json';

function folderOfFacts(): string {
  const root = dirname(dirname(fileURLToPath(import.meta.url)));
  return resolve(root, process.env['KARPENTER_BENCH_DATA'] || '../shared/data');
}

/** Whether the facts are there. */
export function knowsAws(): boolean {
  return existsSync(join(folderOfFacts(), typesFile));
}

function facts<T>(file: string): T {
  const folder = folderOfFacts();
  const path = join(folder, file);
  if (!existsSync(path))
    throw new Error(
      `${file} is not in ${folder}: set KARPENTER_BENCH_DATA to the folder that has the EC2 types and prices`,
    );
  return JSON.parse(readFileSync(path, 'utf8')) as T;
}

/** Every EC2 type with a price, sold in four zones, on demand and as spot at a seeded 30–70 % of that. */
export function awsTypes(seed = 1): InstanceTypeSpec[] {
  const types = facts<Record<string, TypeFacts>>(typesFile);
  const prices = facts<Record<string, Record<string, number>>>('aws-on-demand-prices.json')['us-east-1'] ?? {};
  const random = new SeededRandom(seed);
  return Object.keys(types)
    .sort()
    .filter((name) => prices[name] !== undefined)
    .map((name) => {
      const { allocatable, labels } = types[name]!;
      const price = prices[name]!;
      const offerings: OfferingSpec[] = zones.flatMap((z) => [
        offering(z, 'on-demand', price),
        offering(z, 'spot', Math.round(price * (0.3 + 0.4 * random.next()) * 1e5) / 1e5),
      ]);
      return {
        name,
        capacity: allocatable,
        offerings,
        requirements: [
          ...Object.entries(labels).map(([key, value]) => oneOf(key, value)),
          oneOf(zoneLabel, ...zones),
          oneOf('karpenter.sh/capacity-type', 'on-demand', 'spot'),
        ],
      };
    });
}

function wellKnown(types: readonly InstanceTypeSpec[]): string[] {
  return [...new Set(types.flatMap((t) => t.requirements.map((r) => r.key)))]
    .filter((k) => k.startsWith('karpenter.k8s.aws/'))
    .sort();
}

const cpus = [100, 250, 500, 1000, 2000, 4000] as const;
/** MiB per thousandth of a cpu: from lean to hungry. */
const ratios = [1, 2, 4, 8] as const;

/** A pod of one of 24 shapes; four in ten are bound to on-demand, to ARM, or to a zone. */
function workload(random: SeededRandom, i: number): Pod {
  const cpu = cpus[random.int(cpus.length)]!;
  const memory = cpu * ratios[random.int(ratios.length)]!;
  const selectors: readonly (Record<string, string> | undefined)[] = [
    { 'karpenter.sh/capacity-type': 'on-demand' },
    { 'kubernetes.io/arch': 'arm64' },
    { [zoneLabel]: zones[random.int(zones.length)]! },
    { 'kubernetes.io/arch': 'amd64' },
  ];
  const nodeSelector = random.int(10) < 4 ? selectors[random.int(selectors.length)] : undefined;
  const spec: Partial<PodSpec> = nodeSelector ? { nodeSelector } : {};
  return pod(`pod-${i}`, {
    labels: { app: `app-${i % 50}` },
    requests: { cpu: `${cpu}m`, memory: `${memory}Mi` },
    spec,
  });
}

/** `count` pods on an empty cluster and all of EC2: what packing is judged by. */
export function awsPacking(count: number, seed = 1): Problem {
  const types = awsTypes();
  const random = new SeededRandom(seed);
  return {
    nodePools: [nodePool(poolName)],
    instanceTypes: { [poolName]: types },
    labels: { [poolName]: { wellKnown: wellKnown(types) } },
    pods: Array.from({ length: count }, (_, i) => workload(random, i)),
  };
}

/** `count` pending pods beside 10,000 running nodes: a tenth spread over zones, a tenth apart on hosts. */
export function growthProblem(count: number, seed = 1): Problem {
  const problem = awsPacking(count, seed);
  const random = new SeededRandom(seed + 1);
  const nodes: Node[] = Array.from({ length: 10_000 }, (_, i) =>
    node(`node-${i}`, {
      labels: {
        [zoneLabel]: zones[random.int(zones.length)]!,
        'kubernetes.io/arch': random.int(4) === 0 ? 'arm64' : 'amd64',
        'kubernetes.io/os': 'linux',
        'karpenter.sh/capacity-type': 'on-demand',
        'node.kubernetes.io/instance-type': 'm5.large',
      },
      allocatable: { cpu: '1930m', memory: '6903Mi', pods: '29' },
    }),
  );
  const running = nodes.map((n, i) =>
    pod(`running-${i}`, {
      labels: { app: `app-${i % 50}` },
      requests: { cpu: `${1000 + 100 * random.int(9)}m`, memory: '4Gi' },
      spec: { nodeName: n.metadata.name! },
    }),
  );
  const pending = problem.pods.map((p, i) => (i % 10 === 0 ? spreadOver(p) : i % 10 === 1 ? apart(p, i) : p));
  return { ...problem, nodes, pods: [...running, ...pending] };
}

function spreadOver(p: Pod): Pod {
  const { app } = p.metadata.labels as { app: string };
  const { nodeSelector: _none, ...spec } = p.spec;
  return {
    ...p,
    spec: {
      ...spec,
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: zoneLabel,
          whenUnsatisfiable: 'DoNotSchedule',
          labelSelector: { matchLabels: { spread: app } },
        },
      ],
    },
    metadata: { ...p.metadata, labels: { spread: app } },
  };
}

function apart(p: Pod, i: number): Pod {
  const group = `apart-${i % 200}`;
  return {
    ...p,
    metadata: { ...p.metadata, labels: { group } },
    spec: {
      ...p.spec,
      affinity: {
        podAntiAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: [
            { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { group } } },
          ],
        },
      },
    },
  };
}
