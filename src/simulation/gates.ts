// SPDX-License-Identifier: Apache-2.0
// Which optional features the program of a world has: what is behind a gate exists in some worlds, and must not be missed in
// others.
import type { Random } from '../base/random.ts';
import type { FeatureGates } from '../runtime/settings.ts';
import { chance } from './draw.ts';

/** Drawn once for a world: all its processes have the same. */
export function gatesOf(random: Random): FeatureGates {
  return {
    NodeRepair: chance(random, 0.5),
    StaticCapacity: chance(random, 0.4),
    SpotToSpotConsolidation: chance(random, 0.25),
    NodeOverlay: chance(random, 0.3),
    CapacityBuffer: chance(random, 0.3),
    ReservedCapacity: chance(random, 0.9),
  };
}
