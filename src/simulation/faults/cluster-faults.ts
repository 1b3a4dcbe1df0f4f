// SPDX-License-Identifier: Apache-2.0
// What goes wrong in the control plane beside the API server: the autoscaler counts on all of it.
import type { EmbeddedCluster } from '../../embedded/cluster.ts';
import type { Coverage, Fault } from '../contract.ts';

export interface ClusterFaultParts {
  readonly cluster: EmbeddedCluster;
  readonly coverage: Coverage;
}

export function clusterFaults({ cluster, coverage }: ClusterFaultParts): Fault[] {
  let away = 0;
  let back = (): void => undefined;
  return [
    {
      name: 'cluster/scheduler-away',
      // Machines come up, and the pods they were bought for stay where they are: nowhere. Often, for it is the only one of its kind
      // among three dozen, and what it breaks is what a plan rests on.
      weight: 3,
      inject: () => {
        coverage.count('fault', 'cluster/scheduler-away');
        if (away++ === 0) back = cluster.pauseScheduler();
        return () => {
          if (--away === 0) back();
        };
      },
    },
  ];
}
