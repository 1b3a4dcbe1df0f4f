// SPDX-License-Identifier: Apache-2.0
// The hunt for planted defects: the simulator runs its seeds, in their order, on a product with one mistake in it, until
// an invariant notices. What it does not notice here it would not notice in earnest.
import { VirtualClock } from '../base/clock.ts';
import { type Defect, defects, plant } from '../base/defects.ts';
import { runWorld } from './run.ts';
import type { ScenarioShape } from './scenarios.ts';

const minute = 60_000;
/** When every world begins. */
const begin = new VirtualClock().now();

/**
 * A small cluster with everything going on in it at once: users, faults of all kinds, two replicas more often than not.
 * Small, so that many of them can be run; short rests, so that what comes to light only then does so soon.
 */
export const huntingGround: ScenarioShape = {
  name: 'hunt',
  description: 'a small cluster in which everything goes on at once',
  pods: 40,
  changeEveryMs: 25_000,
  faultEveryMs: 50_000,
  activeMs: 40 * minute,
  restMs: 35 * minute,
  twoReplicas: 0.6,
};

/** Watches are late, and machines are taken away while pods are being placed: for what shows only then. */
const lateGround: ScenarioShape = {
  ...huntingGround,
  name: 'hunt-late',
  changeEveryMs: 8000,
  happenings: ['workload/scale', 'workload/roll', 'workload/crash', 'user/delete-', 'user/uncordon'],
  faults: ['api/watches-late'],
};

/** kube-scheduler is away most of the time: machines wait for the pods that they were bought for. */
const waitingGround: ScenarioShape = {
  ...huntingGround,
  name: 'hunt-waiting',
  changeEveryMs: 12_000,
  happenings: ['workload/'],
  faults: ['cluster/', 'api/watches-late'],
};

/** Where a defect is hunted that hardly ever shows among everything else. */
const grounds: Partial<Readonly<Record<Defect, ScenarioShape>>> = {
  'loses-nominations': waitingGround,
  'trusts-a-stale-cache': lateGround,
};

/**
 * Seeds 1 to 20, agreed on beforehand and never picked by what they find. The worlds were not: their length was chosen and
 * their shape made denser after the first hunts, so that defects come to light within these seeds.
 */
export const huntSeeds: readonly number[] = Array.from({ length: 20 }, (_, i) => i + 1);
export const huntHours = 2.5;

/** Of these the first that found each defect in the last hunt: where the run of every change begins to look. */
export const knownSeeds: Partial<Readonly<Record<Defect, number>>> = {
  'budget-off-by-one': 2,
  'cluster-api-adopts-strangers': 1,
  'cluster-api-binds-twice': 1,
  'cluster-api-lowers-again': 1,
  'cluster-api-raises-again': 1,
  'collects-strangers': 1,
  'collects-young-machines': 2,
  'cuts-grace': 1,
  'delete-error-is-not-found': 11,
  'drops-failed-items': 2,
  'event-storm': 1,
  'forgets-daemons': 2,
  'forgets-expiry': 6,
  'forgets-lost-machines': 4,
  'forgets-machines-on-their-way': 1,
  'forgets-reservations': 10,
  'ignores-disruption-budgets': 1,
  'ignores-do-not-disrupt': 1,
  'ignores-termination-grace-period': 13,
  'keeps-unregistered-taint': 1,
  'kwok-launches-again': 7,
  'leads-without-a-lease': 8,
  'limit-not-counted-in-a-pass': 1,
  'linode-claims-the-account': 1,
  'linode-failure-is-gone': 1,
  'linode-forgets-what-it-asked': 3,
  'linode-launches-again': 1,
  'loses-nominations': 2,
  'misses-deletions': 1,
  'moves-for-nothing': 3,
  'node-let-go-too-early': 1,
  'orphans-left-behind': 4,
  'overwrites-foreign-taints': 2,
  'replaces-twice': 1,
  'scripted-launches-again': 2,
  'trusts-a-stale-cache': 5,
  'waits-for-ever': 3,
};

/** All seeds, the known one of a defect first. */
export function seedsFor(defect: Defect | undefined): readonly number[] {
  const known = defect && knownSeeds[defect];
  return known === undefined ? huntSeeds : [known, ...huntSeeds.filter((seed) => seed !== known)];
}

/** All but those of providers, whose clouds are not part of these worlds. */
export const allDefects = (Object.keys(defects) as Defect[]).filter((name) => !cloudsOf(name));

/** Those of providers: hunted in worlds of their clouds. */
export const cloudDefects = (Object.keys(defects) as Defect[]).filter((name) => cloudsOf(name));

/** The clouds that a defect can be found in; undefined for those of every world. */
function cloudsOf(defect: Defect): ScenarioShape['clouds'] {
  if (defect.startsWith('cluster-api-')) return ['cluster-api'];
  // Node pools belong to a cluster: only single Linodes can be mistaken for one's own.
  if (defect === 'linode-claims-the-account') return ['linode-instance'];
  return defect.startsWith('linode-') ? ['linode'] : undefined;
}

/** Who noticed a defect, and when. */
export interface Find {
  readonly seed: number;
  readonly invariant: string;
  /** Minutes from the beginning of its world. */
  readonly minute: number;
  readonly message: string;
}

export interface HuntOptions {
  readonly seeds?: readonly number[];
  readonly hours?: number;
  /** Other than those that the defect can be found in. */
  readonly clouds?: ScenarioShape['clouds'];
}

/** Runs the seeds with a defect in the product, or none, and gives the first that an invariant noticed. */
export async function hunt(defect: Defect | undefined, options: HuntOptions = {}): Promise<Find | undefined> {
  const { seeds = huntSeeds, hours = huntHours, clouds = defect && cloudsOf(defect) } = options;
  const ground = (defect && grounds[defect]) ?? huntingGround;
  const scenario = clouds ? { ...ground, name: `hunt-${clouds[0]}`, clouds } : ground;
  plant(defect);
  try {
    for (const seed of seeds) {
      const { violations } = await runWorld({ scenario, seed, hours });
      const [first] = violations;
      if (!first) continue;
      const { invariant, message, at } = first;
      return { seed, invariant, message, minute: Math.round((at - begin) / minute) };
    }
    return undefined;
  } finally {
    plant(undefined);
  }
}
