// SPDX-License-Identifier: Apache-2.0
// The kinds of worlds there are. What happens in one follows from its seed; a scenario says how much of what.
import type { CloudName } from './clouds/index.ts';
import type { PodTerms, Reach } from './contract.ts';

/** How a world is made. */
export interface ScenarioShape {
  readonly name: string;
  readonly description: string;
  /** About how many pods users want; they add and take away to stay near it. */
  readonly pods: number;
  /** As a share of them, how far they let it stray; 0.3 unless told. */
  readonly strays?: number;
  /** The CPUs that pods ask for, each as often as it is named. */
  readonly podCpus?: PodTerms['cpus'];
  /** When machines expire, where they do. */
  readonly expireAfter?: readonly [string, ...string[]];
  /** How often changes come that move much, against what would be usual; 1 unless told. */
  readonly reaching?: Partial<Readonly<Record<Reach, number>>>;
  /** How far apart changes by users are, on average, while they are active. */
  readonly changeEveryMs: number;
  /** How far apart faults begin, on average; undefined for none. */
  readonly faultEveryMs?: number;
  /** Work and rest in turn: while there is rest, nothing is changed and nothing fails. */
  readonly activeMs: number;
  readonly restMs: number;
  /** How likely the autoscaler has two replicas. */
  readonly twoReplicas: number;
  /** Only happenings whose names begin so; all unless told. */
  readonly happenings?: readonly string[];
  /** Only faults whose names begin so; all unless told. */
  readonly faults?: readonly string[];
  /** The clouds there are; the first is that of the pool that takes every pod. */
  readonly clouds?: readonly [CloudName, ...CloudName[]];
  /** NodePools and NodeClaims are in one API server, Nodes and Pods in another. */
  readonly apart?: boolean;
}

const minute = 60_000;
const halves = { activeMs: 80 * minute, restMs: 40 * minute, twoReplicas: 0.25 } as const;

/** Some 32 nodes and 305 pods. What replaces half of the machines at once is rare: it costs more than all else together. */
const usual = {
  ...halves,
  pods: 272,
  strays: 0.05,
  podCpus: ['50m', '100m', '100m', '250m', '500m', '500m', '500m', '500m', '1', '2'],
  expireAfter: ['4h', '12h', '24h'],
  reaching: { service: 0.12, machine: 0.15, pool: 0.02 },
} as const satisfies Partial<ScenarioShape>;

const small = {
  ...halves,
  pods: 30,
  changeEveryMs: 90_000,
  faultEveryMs: 5 * minute,
  reaching: { service: 0.5, machine: 0.5, pool: 0.2 },
} as const;

/** Denser: faults of a cloud bite only while machines are bought, and its worlds are one of ten. */
const ofProvider = { ...small, faultEveryMs: 2 * minute } as const;

export const scenarios: readonly ScenarioShape[] = [
  {
    ...usual,
    name: 'faults',
    description: 'everything at once: users at work, and something broken most of the time',
    changeEveryMs: 34_000,
    faultEveryMs: 5 * minute,
  },
  { ...usual, name: 'busy', description: 'users at work, nothing broken', changeEveryMs: 34_000 },
  {
    ...usual,
    name: 'calm',
    description: 'few changes, nothing broken: what a cluster costs when all is well',
    changeEveryMs: 3 * minute,
    twoReplicas: 0,
  },
  {
    ...small,
    name: 'small',
    description: 'everything at once on a handful of nodes: many hours in little time',
  },
  {
    ...usual,
    name: 'crashes',
    description: 'the autoscaler dies, hangs and loses its lease all the time',
    changeEveryMs: 34_000,
    faultEveryMs: 5 * minute,
    faults: ['process/'],
    twoReplicas: 0.5,
  },
  {
    ...usual,
    name: 'storm',
    description: 'an API server that is slow, refuses, forgets and loses answers',
    changeEveryMs: 34_000,
    faultEveryMs: 5 * minute,
    faults: ['api/'],
  },
  {
    ...usual,
    name: 'bad-cloud',
    description: 'clouds without capacity, with lost answers, and machines that do not join or die',
    changeEveryMs: 34_000,
    faultEveryMs: 5 * minute,
    faults: ['cloud/', 'node/'],
  },
  {
    ...small,
    name: 'apart',
    description: 'NodePools and NodeClaims in one API server, Nodes and Pods in another; the rest as in small',
    apart: true,
  },
  {
    ...ofProvider,
    name: 'several',
    description: 'a scripted cloud and Cluster API at once, with the faults of both',
    clouds: ['scripted', 'cluster-api'],
  },
  {
    ...ofProvider,
    name: 'cluster-api',
    description: 'Cluster API with its faults, and people who scale and roll beside the autoscaler',
    clouds: ['cluster-api'],
  },
  {
    ...ofProvider,
    name: 'linode',
    description: 'Linode in LKE mode with the faults of its API, and others in the account',
    clouds: ['linode'],
  },
  {
    ...ofProvider,
    name: 'linode-shared',
    description: 'Linode in LKE mode with node pools that NodeClaims share, and the same faults',
    clouds: ['linode-shared'],
  },
  {
    ...ofProvider,
    name: 'linode-instance',
    description: 'Linode in Instance mode with the faults of its API, and others in the account',
    clouds: ['linode-instance'],
  },
];
