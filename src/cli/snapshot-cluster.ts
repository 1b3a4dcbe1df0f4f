// SPDX-License-Identifier: Apache-2.0
// A live cluster as a problem file: what the controller would plan for at this moment, with the same settings, without
// what must not leave the cluster.
import type { NodePool } from '../api/node-pool.ts';
import type { Clock } from '../base/clock.ts';
import { KarpenterError, messageOf } from '../base/errors.ts';
import type { CloudRegistry } from '../cloud/registry.ts';
import { buyingObstacle, passProblem } from '../controllers/provisioning/pass-problem.ts';
import type { Clusters } from '../runtime/clusters.ts';
import type { Problem } from '../scheduling/problem.ts';
import { ClusterState } from '../state/cluster-state.ts';
import { DefaultSpread } from '../state/default-spread.ts';
import { readPoolCatalog } from '../state/pool-catalog.ts';
import { sanitizeProblem } from '../state/sanitize.ts';
import type { ProgramSettings } from './program-settings.ts';

export interface SnapshotOptions {
  /** Not started yet, and not closed here. */
  readonly clusters: Clusters;
  readonly registry: CloudRegistry;
  readonly settings: Pick<ProgramSettings, 'preferencePolicy' | 'minValuesPolicy' | 'schedulerConfig'>;
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Told what is left out, and why. */
  readonly warn: (message: string) => void;
  readonly signal: AbortSignal;
}

/** Reads both clusters once. Throws KarpenterError when they cannot be read in time. */
export async function snapshotCluster(options: SnapshotOptions): Promise<Problem> {
  const { clusters, registry, settings, clock, warn, signal } = options;
  const state = new ClusterState({ clusters, registry, clock });
  const { defaultConstraints } = settings.schedulerConfig.podTopologySpread;
  const defaultSpread = DefaultSpread.of(clusters.workload, defaultConstraints);
  for (const cluster of clusters.all) cluster.start(signal);
  await readAll(state, defaultSpread, options);
  const pools = state.sources.nodePools.list().filter((pool) => mayBuy(pool, options));
  const catalog = await readPoolCatalog(registry, pools, signal);
  for (const { pool, error } of catalog.failures)
    warn(`NodePool ${pool.metadata.name} has no instance types: ${messageOf(error)}`);
  // From here on nothing is awaited: the problem is one state of the cluster.
  const { problem, pods } = passProblem({ state, registry, catalog, settings, defaultSpread, now: clock.now() });
  for (const { pod, reason, byChoice } of pods.ignored)
    if (!byChoice) warn(`pod ${pod.metadata.namespace}/${pod.metadata.name} is left out: ${reason}`);
  state.close();
  return sanitizeProblem(problem);
}

function mayBuy(pool: NodePool, { registry, warn }: SnapshotOptions): boolean {
  const obstacle = buyingObstacle(pool, registry);
  if (obstacle === undefined) return true;
  const { kind, group } = pool.spec.template.spec.nodeClassRef;
  const why = obstacle === 'unmanaged' ? `no provider serves ${kind}.${group}` : `it is ${obstacle}`;
  warn(`NodePool ${pool.metadata.name} is left out: ${why}`);
  return false;
}

async function readAll(
  state: ClusterState,
  defaultSpread: DefaultSpread | undefined,
  { clock, timeoutMs, signal }: SnapshotOptions,
): Promise<void> {
  const end = clock.monotonic() + timeoutMs;
  while (!state.hasRead || defaultSpread?.hasRead === false) {
    if (clock.monotonic() > end) {
      const missing = Object.entries(state.sources)
        .filter(([, informer]: [string, { readonly hasSynced: boolean }]) => !informer.hasSynced)
        .map(([name]) => name);
      const seconds = timeoutMs / 1000;
      throw new KarpenterError('KRP_SNAPSHOT_TIMEOUT', `could not read ${missing.join(', ')} within ${seconds} s`);
    }
    await clock.sleep(20, signal);
  }
}
