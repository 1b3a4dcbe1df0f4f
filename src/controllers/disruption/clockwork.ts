// SPDX-License-Identifier: Apache-2.0
// Whether time alone can change what may be disrupted. Mostly it cannot: then nobody has to look again because a minute
// is over.
import { annotations } from '../../api/labels.ts';
import type { NodePool } from '../../api/node-pool.ts';
import type { Pod } from '../../kube/kinds.ts';

/** Remembers its answer about a list of pods. */
export class Clockwork {
  #pods: readonly Pod[] | undefined;
  #hasTimedPods = false;

  /** Whether a budget has a window, or a pod protects itself for a time. Both begin and end with a minute at the latest. */
  runs(pools: readonly NodePool[], pods: readonly Pod[]): boolean {
    const hasWindows = pools.some(({ spec }) =>
      spec.disruption?.budgets?.some(({ schedule, duration }) => schedule !== undefined || duration !== undefined),
    );
    if (hasWindows) return true;
    if (pods !== this.#pods) {
      this.#pods = pods;
      this.#hasTimedPods = pods.some(isProtectedForATime);
    }
    return this.#hasTimedPods;
  }
}

function isProtectedForATime({ metadata }: Pod): boolean {
  const value = metadata.annotations?.[annotations.doNotDisrupt];
  return value !== undefined && value !== 'true';
}
