// SPDX-License-Identifier: Apache-2.0
import type { VirtualClock } from '../../base/clock.ts';
import type { KubeClient } from '../../kube/client.ts';
import type { FeatureGates } from '../../runtime/settings.ts';
import type { Facts, PodTerms } from '../contract.ts';
import type { ScenarioShape } from '../scenarios.ts';

/** What users have: a client that works (their faults are not ours), and eyes. */
export interface Hands {
  readonly karpenter: KubeClient;
  readonly workload: KubeClient;
  readonly facts: Facts;
  readonly clock: VirtualClock;
  readonly shape: ScenarioShape;
  /** What the program of this world can do besides. */
  readonly gates: FeatureGates;
  /** What pods may ask for: the cloud that takes every pod has it. */
  readonly terms: PodTerms;
  /** The next number for a name. */
  next(): number;
}

/** The namespace of all that users run. */
export const namespace = 'default';
