// SPDX-License-Identifier: Apache-2.0
// What disruption decides on: the machines, what can be bought, and the cluster as a scheduling problem, all of one
// moment. Made of the live state or of a file; methods cannot tell which.
import { hasTrueConditions, nodeClaimConditions } from '../../api/conditions.ts';
import { durationMs, never } from '../../api/duration.ts';
import type { CloudRegistry } from '../../cloud/registry.ts';
import type { PodDisruptionBudget } from '../../kube/kinds.ts';
import type { Settings } from '../../runtime/settings.ts';
import type { Problem, ReservedOfferingMode } from '../../scheduling/problem.ts';
import type { ClusterState } from '../../state/cluster-state.ts';
import type { PoolCatalog } from '../../state/pool-catalog.ts';
import { snapshotProblem } from '../../state/snapshot.ts';
import type { StateNode } from '../../state/state-node.ts';

/** The machines of a cluster. */
export interface Machines {
  nodes(): Iterable<StateNode>;
  nodesOfPool(pool: string): Iterable<StateNode>;
  /** Names of NodeClaims that pods wait for. */
  awaitedClaims(): ReadonlySet<string>;
  /** Whether a machine, by its key, is promised to pods that are not bound yet. */
  isNominated(key: string): boolean;
}

/** Settings that disruption reads. */
export type DisruptionSettings = Pick<
  Settings,
  'featureGates' | 'preferencePolicy' | 'minValuesPolicy' | 'consolidationSavingsThreshold' | 'podMovePrice'
>;

export interface ProblemOptions {
  /** Machines by key of which is asked whether they could go. */
  readonly candidates: Iterable<string>;
  /** Machines by key that take none of their pods. */
  readonly closedToMoves: Iterable<string>;
  readonly reservedOfferingMode: ReservedOfferingMode;
}

/** One moment of a cluster. */
export interface DisruptionSnapshot {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly machines: Machines;
  readonly catalog: PoolCatalog;
  readonly podDisruptionBudgets: readonly PodDisruptionBudget[];
  readonly settings: DisruptionSettings;
  /** Whether a command is about the machine already, by its key. */
  isQueued(key: string): boolean;
  /** The cluster as a problem, with a question. */
  problem(options: ProblemOptions): Problem;
}

export interface LiveSnapshotOptions {
  readonly state: ClusterState;
  readonly registry: CloudRegistry;
  readonly catalog: PoolCatalog;
  readonly settings: DisruptionSettings;
  readonly now: number;
  readonly isQueued: (key: string) => boolean;
}

/** The state as it is now. Valid until something is awaited. */
export function liveSnapshot(options: LiveSnapshotOptions): DisruptionSnapshot {
  const { state, registry, catalog, settings, now, isQueued } = options;
  const { preferencePolicy, minValuesPolicy } = settings;
  return {
    now,
    machines: state,
    catalog,
    podDisruptionBudgets: state.sources.podDisruptionBudgets.list(),
    settings,
    isQueued,
    problem: ({ candidates, closedToMoves, reservedOfferingMode }) =>
      snapshotProblem(state, {
        catalog,
        registry,
        now,
        candidates,
        closedToMoves,
        settings: { preferencePolicy, minValuesPolicy, reservedOfferingMode },
      }),
  };
}

/** Keys of the machines of ours that are not in service yet: nobody knows whether they ever will be. */
export function unfinishedMachines({ machines }: DisruptionSnapshot): string[] {
  const keys: string[] = [];
  for (const machine of machines.nodes()) if (machine.managed && !machine.initialized) keys.push(machine.key);
  return keys;
}

/** Keys of the machines that pods came to or left so lately that their pool wants them left alone. */
export function unsettledMachines({ machines, catalog }: DisruptionSnapshot): string[] {
  const waits = new Map(catalog.pools.map((pool) => [pool.metadata.name ?? '', waitsFor(pool)]));
  const keys: string[] = [];
  for (const machine of machines.nodes()) {
    const { nodeClaim, nodePool } = machine;
    if (!nodeClaim || nodePool === undefined || !waits.get(nodePool)) continue;
    if (!hasTrueConditions(nodeClaim, nodeClaimConditions.consolidatable)) keys.push(machine.key);
  }
  return keys;
}

/** Whether nodes of a pool have to be quiet for a while before they are touched. */
function waitsFor({ spec }: PoolCatalog['pools'][number]): boolean {
  const { consolidateAfter = '0s' } = spec.disruption ?? {};
  if (spec.replicas !== undefined || consolidateAfter === never) return false;
  try {
    return (durationMs(consolidateAfter) ?? 0) > 0;
  } catch {
    // A time that cannot be read: such nodes are never consolidated, and may take pods like those of `Never`.
    return false;
  }
}
