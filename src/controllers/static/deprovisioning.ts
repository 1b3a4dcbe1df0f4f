// SPDX-License-Identifier: Apache-2.0
// Deletes machines of NodePools with a fixed number of nodes that have too many: the user asked for fewer, so budgets and
// pods are not asked; the drain still is gentle. Reads NodePools and deletes NodeClaims in the cluster `karpenter`.
import { durationMs } from '../../api/duration.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import { chain, compareStrings } from '../../base/order.ts';
import { parseTime } from '../../kube/time.ts';
import type { Controller, Result } from '../../runtime/controller.ts';
import { objectField } from '../../runtime/logging.ts';
import {
  evictionCost,
  isActive,
  isDoNotDisruptActive,
  isOwnedByDaemonSet,
  isOwnedByNode,
} from '../../state/pod-predicates.ts';
import type { ControllerContext } from '../nodeclaim/context.ts';
import { hasChanged, poolKeys } from './provisioning.ts';
import { StaticNodes } from './static-nodes.ts';

const periodMs = 60_000;
const unsyncedRetryMs = 1000;

/** The controller `static.deprovisioning`. */
export function staticDeprovisioningController(context: ControllerContext, nodes: StaticNodes): Controller {
  const { pools, claims, state, clock } = context;
  const controller = context.controller({
    name: 'static.deprovisioning',
    kind: 'NodePool',
    concurrent: 10,
    reconciler: {
      async reconcile(key, signal, { log }): Promise<Result> {
        const pool = context.pool(key);
        if (!pool || !StaticNodes.is(pool) || pool.metadata.deletionTimestamp !== undefined) return {};
        const cloud = context.registry.ofNodePool(pool)?.name ?? '';
        if (!state.hasRead || state.launchHold()?.clouds.has(cloud)) return { requeueAfterMs: unsyncedRetryMs };
        const { active, unseen } = nodes.count(key);
        const excess = active.length + unseen - (pool.spec.replicas ?? 0);
        if (excess <= 0) return { requeueAfterMs: periodMs };
        const chosen = active
          .map((claim) => ({ claim, ...worthOf(context, claim, clock.now()) }))
          .sort(leastMissed)
          .slice(0, excess);
        log.info('deleting nodeclaim(s) of static nodepool', {
          ...objectField(pool, 'NodePool'),
          current: active.length,
          desired: pool.spec.replicas,
          deprovision: chosen.length,
        });
        state.markForDeletion(chosen.map(({ claim }) => claim.status?.providerID ?? ''));
        await Promise.all(
          chosen.map(async ({ claim }) => {
            try {
              await claims.delete(claim, signal);
            } catch (error) {
              state.unmarkForDeletion([claim.status?.providerID ?? '']);
              throw error;
            }
          }),
        );
        return { requeueAfterMs: periodMs };
      },
    },
  });
  controller.watch(pools.informer, { when: (pool) => StaticNodes.is(pool) });
  return controller.watch(claims.informer, { keys: poolKeys, when: hasChanged });
}

interface Worth {
  /** 0: has no machine yet; 1: nobody would have to move; 2: somebody would; 3: somebody who asked not to be moved. */
  readonly rank: number;
  readonly cost: number;
}

const leastMissed: (a: Worth & { claim: NodeClaim }, b: Worth & { claim: NodeClaim }) => number = chain(
  (a, b) => a.rank - b.rank,
  (a, b) => a.cost - b.cost,
  (a, b) => compareStrings(a.claim.metadata.name ?? '', b.claim.metadata.name ?? ''),
);

function worthOf({ state }: ControllerContext, claim: NodeClaim, now: number): Worth {
  if (!claim.status?.providerID) return { rank: 0, cost: 0 };
  const pods = [...(state.nodeByProviderID(claim.status.providerID)?.pods() ?? [])].filter(isActive);
  const isProtected = pods.some((pod) => isDoNotDisruptActive(pod, now));
  const isEmpty = pods.every((pod) => isOwnedByDaemonSet(pod) || isOwnedByNode(pod));
  const cost = pods.reduce((sum, pod) => sum + evictionCost(pod), 0) * lifetimeLeft(claim, now);
  return { rank: isProtected ? 3 : isEmpty ? 1 : 2, cost };
}

/** The share of its time that a machine has before it; 1 for one that never expires. */
function lifetimeLeft({ spec, metadata }: NodeClaim, now: number): number {
  try {
    const allMs = durationMs(spec.expireAfter);
    if (!allMs || !metadata.creationTimestamp) return 1;
    return Math.min(1, Math.max(0, (allMs - (now - parseTime(metadata.creationTimestamp))) / allMs));
  } catch {
    // A time that cannot be read never comes.
    return 1;
  }
}
