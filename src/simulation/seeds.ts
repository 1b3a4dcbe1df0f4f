// SPDX-License-Identifier: Apache-2.0
// The seeds that are run for every change, chosen before anything was found with them: the numbers from one on.

/** How the hours of a run are divided: mostly small worlds, which are cheap, some of full size, and one of a provider. */
const rotation = [
  'small',
  'small',
  'small',
  'faults',
  'small',
  'small',
  'crashes',
  'cluster-api',
  'storm',
  'bad-cloud',
] as const;

/** The scenario that a seed is run in. */
export function scenarioOfSeed(seed: number): string {
  return rotation[(seed - 1) % rotation.length]!;
}
