// SPDX-License-Identifier: Apache-2.0
// Ten thousand hours of simulated clusters.
import { soak } from '../soak.ts';

/** `[CLUSTER-HOURS [FIRST-SEED]]`: 10,000 from seed 1,000 on, unless told. */
export function world(clusterHours = '10000', firstSeed = '1000'): Promise<boolean> {
  return soak({
    minutes: Number.POSITIVE_INFINITY,
    clusterHours: Number(clusterHours),
    firstSeed: Number(firstSeed),
    complete: true,
  });
}
