// SPDX-License-Identifier: Apache-2.0
// The seeds that are run for every change, chosen before anything was found with them: the numbers from one on.

/** The worlds of Linode take turns. */
const ofLinode = ['linode', 'linode-instance', 'linode-shared'] as const;

/** So do small worlds that are made in another way: of two API servers, or of two clouds with nothing in common. */
const ofSmall = ['small', 'apart', 'several'] as const;

/** How the hours of a run are divided: mostly worlds of full size, two small ones that find more in the same time, and two of providers. */
const rotation = [
  'small',
  'faults',
  'crashes',
  'storm',
  'bad-cloud',
  ofLinode,
  ofSmall,
  'cluster-api',
  'busy',
  'faults',
] as const;

/** The scenario that a seed is run in. */
export function scenarioOfSeed(seed: number): string {
  const scenario = rotation[(seed - 1) % rotation.length]!;
  if (typeof scenario === 'string') return scenario;
  return scenario[Math.floor((seed - 1) / rotation.length) % scenario.length]!;
}
