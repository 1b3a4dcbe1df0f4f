// SPDX-License-Identifier: Apache-2.0
// Watches over the state itself: how large it is, whether it is in step, and a word in the log when it is not for long.
import type { Clock } from '../base/clock.ts';
import { compareStrings } from '../base/order.ts';
import { formatList, type Logger } from '../runtime/logging.ts';
import type { Runnable } from '../runtime/manager.ts';
import { gauge, type Metrics } from '../runtime/metrics.ts';
import type { ClusterState } from './cluster-state.ts';

export const stateMetrics = {
  nodeCount: gauge({
    name: 'karpenter_cluster_state_node_count',
    help: 'Machines in the state, those on their way included.',
  }),
  synced: gauge({
    name: 'karpenter_cluster_state_synced',
    help: '1 when decisions can be based on the state, 0 while a collection is not read or a NodeClaim has no machine yet.',
  }),
  unsyncedTime: gauge({
    name: 'karpenter_cluster_state_unsynced_time_seconds',
    help: 'For how long the state has not been synced.',
    stability: 'alpha',
  }),
} as const;

const lookEveryMs = 10_000;
const worryAfterMs = 30_000;

export interface StateObserverOptions {
  readonly state: ClusterState;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** Runs beside the controllers. */
export function stateObserver({ state, clock, log, metrics }: StateObserverOptions): Runnable {
  const name = 'state.observer';
  const [nodeCount, synced, unsyncedTime] = [
    metrics.gauge(stateMetrics.nodeCount),
    metrics.gauge(stateMetrics.synced),
    metrics.gauge(stateMetrics.unsyncedTime),
  ];
  const refresh = (): void => {
    const unsyncedMs = state.unsyncedMs();
    nodeCount.set({}, state.nodeCount);
    synced.set({}, state.isSynced() ? 1 : 0);
    unsyncedTime.set({}, unsyncedMs / 1000);
  };
  return {
    name,
    async start(signal) {
      const stop = metrics.onScrape(refresh);
      while (!signal.aborted) {
        const ms = state.unsyncedMs();
        if (ms > worryAfterMs)
          log.error('cluster state is not synced', {
            controller: name,
            seconds: Math.round(ms / 1000),
            'unlaunched-nodeclaims': formatList([...state.unlaunchedClaims].sort(compareStrings), 5),
          });
        await clock.sleep(lookEveryMs, signal).catch(() => undefined);
      }
      stop();
    },
  };
}
