// SPDX-License-Identifier: Apache-2.0
// What a pass is about: which pools may buy, which pods can be planned for, and the scheduling problem they make. The
// provisioner and `karpenter snapshot` both use it, so that a snapshot is what the controller would see.
import { getCondition, readyCondition } from '../../api/conditions.ts';
import type { NodePool } from '../../api/node-pool.ts';
import type { CloudRegistry } from '../../cloud/registry.ts';
import type { Pod } from '../../kube/kinds.ts';
import type { Settings } from '../../runtime/settings.ts';
import type { Problem } from '../../scheduling/problem.ts';
import { VolumeIndex } from '../../scheduling/volumes.ts';
import type { ClusterState } from '../../state/cluster-state.ts';
import type { DefaultSpread } from '../../state/default-spread.ts';
import type { LaunchHold } from '../../state/launching-claims.ts';
import type { PoolCatalog } from '../../state/pool-catalog.ts';
import { snapshotProblem } from '../../state/snapshot.ts';
import type { PodArrivals } from './arrivals.ts';
import { type ValidatedPods, validatePods } from './validate-pods.ts';

/** Why nothing is bought for a pool; undefined when something may be. */
export function buyingObstacle(
  pool: NodePool,
  registry: CloudRegistry,
): 'unmanaged' | 'deleting' | 'static' | 'not ready' | undefined {
  if (!registry.ofNodePool(pool)) return 'unmanaged';
  if (pool.metadata.deletionTimestamp !== undefined) return 'deleting';
  if (pool.spec.replicas !== undefined) return 'static';
  return getCondition(pool, readyCondition)?.status === 'True' ? undefined : 'not ready';
}

/** The settings of the solver that belong to a controller's settings. */
export function solveSettings(
  settings: Pick<Settings, 'preferencePolicy' | 'minValuesPolicy'>,
): NonNullable<Problem['settings']> {
  const { preferencePolicy, minValuesPolicy } = settings;
  return { preferencePolicy, minValuesPolicy, reservedOfferingMode: 'Strict' };
}

export interface PassOptions {
  readonly state: ClusterState;
  readonly registry: CloudRegistry;
  /** Of the pools that may buy. */
  readonly catalog: PoolCatalog;
  readonly settings: Pick<Settings, 'preferencePolicy' | 'minValuesPolicy'>;
  readonly defaultSpread?: DefaultSpread | undefined;
  /** Pods that kube-scheduler has not looked at yet. */
  readonly arrivals?: Pick<PodArrivals, 'siblingsOf'> | undefined;
  /** What NodeClaims without a machine keep from being planned. */
  readonly hold?: LaunchHold | undefined;
  /** Milliseconds since 1970. */
  readonly now: number;
}

export interface PassProblem {
  readonly problem: Problem;
  readonly pods: ValidatedPods;
  readonly volumes: VolumeIndex;
}

/** The problem as it is now: nothing is awaited, so it is one state of the cluster. */
export function passProblem(options: PassOptions): PassProblem {
  const { state, registry, catalog, settings, defaultSpread, arrivals, hold, now } = options;
  const volumes = volumeIndex(state);
  const clouds = registry.providers.map((provider) => provider.labels);
  const pods = validatePods(waitingPods(state, arrivals, hold), clouds, volumes);
  const problem = snapshotProblem(state, {
    catalog,
    registry,
    now,
    pending: defaultSpread ? defaultSpread.applyTo(pods.valid) : pods.valid,
    settings: solveSettings(settings),
    keepsPromises: true,
    ...(hold ? { held: (pod) => hold.holds(pod) } : {}),
  });
  return { problem, pods, volumes };
}

/** Pods that wait, or are about to, and that no NodeClaim is on its way for. */
function* waitingPods(
  state: ClusterState,
  arrivals: PassOptions['arrivals'],
  hold: LaunchHold | undefined,
): Generator<Pod, void, undefined> {
  for (const pod of state.pendingPods()) if (!hold?.holds(pod)) yield pod;
  for (const pod of arrivals?.siblingsOf(state.pendingPods()) ?? []) if (!hold?.holds(pod)) yield pod;
}

function volumeIndex({ sources }: ClusterState): VolumeIndex {
  return new VolumeIndex({
    nodePools: [],
    instanceTypes: {},
    pods: [],
    persistentVolumeClaims: sources.persistentVolumeClaims.list(),
    persistentVolumes: sources.persistentVolumes.list(),
    storageClasses: sources.storageClasses.list(),
  });
}
