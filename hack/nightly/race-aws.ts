// SPDX-License-Identifier: Apache-2.0
// The benchmark `disruption/aws-N` as a race: real EC2 types and prices, some hundred nodes, three quarters of the pods gone at
// random. What it ends at, and how many pods were evicted for it, for ours and for upstream on the same control plane.
import { awsPacking } from '../../benchmarks/aws.ts';
import { lowerBound } from '../../benchmarks/lp-bound.ts';
import { SeededRandom } from '../../src/base/random.ts';
import { Quantity } from '../../src/kube/quantity.ts';
import { readInstanceTypes } from '../../src/providers/kwok/instance-types.ts';
import type { Pod } from '../../src/scheduling/objects.ts';
import { cheaper, noDearer, tellBound } from './race-result.ts';
import { nodeClass, nodePool, type Scenario } from './race-scenarios.ts';

const mostCpus = 16;
const podsPerNode = 12;

/** Pods that are alike, and how many of them stay. */
interface Group {
  readonly name: string;
  readonly pod: Pod;
  count: number;
  stay: number;
}

/** About so many nodes, made for four times the pods they have in the end. */
export function awsRace(nodes: number, seed = 1): Scenario {
  const problem = awsPacking(nodes * podsPerNode, seed);
  const file = typesFile(Object.values(problem.instanceTypes).flat());
  const random = new SeededRandom(seed);
  const groups = new Map<string, Group>();
  for (const pod of problem.pods) {
    const { containers, nodeSelector } = pod.spec;
    const kind = JSON.stringify([containers, nodeSelector]);
    const group = groups.get(kind) ?? { name: `group-${groups.size}`, pod, count: 0, stay: 0 };
    group.count++;
    if (random.int(4) === 0) group.stay++;
    groups.set(kind, group);
  }
  const all = [...groups.values()];
  const left = all.reduce((sum, { stay }) => sum + stay, 0);
  const pool = nodePool({ name: 'race', consolidateAfter: '0s' });
  const settling = `${left} pods`;
  const boundOf = async (): Promise<number> => {
    const pods = all.flatMap(({ pod, stay }) => Array.from({ length: stay }, () => pod));
    const { price } = await lowerBound({
      nodePools: [pool],
      instanceTypes: { race: readInstanceTypes(file).types },
      pods,
    });
    return price;
  };
  const step = (count: number, replicas: (group: Group) => number) => ({
    name: `${count} pods`,
    start: (world: { apply(objects: readonly object[]): Promise<void> }) =>
      world.apply(all.map((group) => deploymentOf(group, replicas(group)))),
    done: (world: { readonly pods: number; readonly readyPods: number }) =>
      world.pods === count && world.readyPods === count,
    limitSeconds: 900,
  });
  return {
    what: `${problem.pods.length} pods on EC2 types up to ${mostCpus} CPUs, three quarters of them leave at random`,
    setup: [nodeClass, pool],
    typesFile: file,
    steps: [step(problem.pods.length, ({ count }) => count), { ...step(left, ({ stay }) => stay), settleSeconds: 480 }],
    wanted: [tellBound(settling, boundOf), noDearer, cheaper],
  };
}

/** In the format of the pretended cloud, which both controllers read. On demand only: see `disruption/aws-N`. */
function typesFile(types: ReturnType<typeof awsPacking>['instanceTypes'][string]): string {
  const entries = types
    .filter(({ capacity }) => Quantity.parse(capacity['cpu'] ?? 0).toNumber() <= mostCpus)
    .map(({ name, capacity, requirements, offerings }) => ({
      name,
      architecture: requirements.find(({ key }) => key === 'kubernetes.io/arch')?.values?.[0] ?? 'amd64',
      operatingSystems: ['linux'],
      resources: capacity,
      offerings: offerings
        .filter(({ requirements: own }) => own.some(({ values }) => values?.[0] === 'on-demand'))
        .map(({ price, requirements: own }) => ({ price, available: true, requirements: own })),
    }));
  return JSON.stringify(entries);
}

function deploymentOf({ name, pod }: Group, replicas: number): object {
  const { containers, nodeSelector } = pod.spec;
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'default' },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: {
          terminationGracePeriodSeconds: 0,
          ...(nodeSelector ? { nodeSelector } : {}),
          containers: (containers ?? []).map(({ resources }) => ({
            name: 'main',
            image: 'pause',
            ...(resources ? { resources } : {}),
          })),
        },
      },
    },
  };
}
