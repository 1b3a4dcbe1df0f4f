// SPDX-License-Identifier: Apache-2.0
import type { ScenarioShape } from '../scenarios.ts';

const minute = 60_000;

/** A handful of nodes, faults all the time, a rest: an hour of it takes seconds. */
export const tiny: ScenarioShape = {
  name: 'tiny',
  description: 'for tests',
  pods: 15,
  changeEveryMs: 40_000,
  faultEveryMs: 2 * minute,
  activeMs: 25 * minute,
  restMs: 35 * minute,
  twoReplicas: 0.5,
};
