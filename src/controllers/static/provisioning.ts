// SPDX-License-Identifier: Apache-2.0
// Makes machines for NodePools with a fixed number of nodes until they have as many. Reads NodePools and writes NodeClaims
// in the cluster `karpenter`.
import { hasTrueConditions, readyCondition } from '../../api/conditions.ts';
import { labels } from '../../api/labels.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import type { NodePool } from '../../api/node-pool.ts';
import type { Controller, Result } from '../../runtime/controller.ts';
import { objectField } from '../../runtime/logging.ts';
import { readPoolCatalog } from '../../state/pool-catalog.ts';
import type { ControllerContext } from '../nodeclaim/context.ts';
import { ClaimCreator } from '../provisioning/create-claims.ts';
import { StaticNodes } from './static-nodes.ts';

const name = 'static.provisioning';
const periodMs = 60_000;
const atLimitMs = 30_000;
const unsyncedRetryMs = 1000;

/** The controller `static.provisioning`. */
export function staticProvisioningController(context: ControllerContext, nodes: StaticNodes): Controller {
  const { pools, claims, clusters, state, registry, metrics } = context;
  const creator = new ClaimCreator({ clusters, state, registry, metrics, onFound: (claim) => nodes.wrote(claim) });
  const clouds = context.cloudsFor(name);
  const controller = context.controller({
    name,
    kind: 'NodePool',
    concurrent: 10,
    reconciler: {
      async reconcile(key, signal, { log }): Promise<Result> {
        const pool = context.pool(key);
        if (!pool || !mayGrow(pool)) return {};
        if (!state.hasRead) return { requeueAfterMs: unsyncedRetryMs };
        const { active, unseen, pendingDisruption } = nodes.count(key);
        const running = active.length + unseen;
        const missing = (pool.spec.replicas ?? 0) - running;
        if (missing - pendingDisruption <= 0) return { requeueAfterMs: periodMs };
        const granted = nodes.reserve(pool, missing);
        if (granted === 0) return { requeueAfterMs: atLimitMs };
        try {
          const catalog = await readPoolCatalog(clouds, [pool], signal);
          const plans = Array.from({ length: granted }, () => nodes.planFor(pool));
          log.info('creating nodeclaim(s) for static nodepool', {
            ...objectField(pool, 'NodePool'),
            current: running,
            desired: pool.spec.replicas,
            provision: granted,
          });
          const outcomes = await creator.create(plans, { reason: 'provisioned', catalog, log, signal });
          for (const outcome of outcomes) if ('claim' in outcome) nodes.wrote(outcome.claim);
          const failed = outcomes.find((outcome) => 'error' in outcome);
          if (failed) throw failed.error;
        } finally {
          nodes.release(pool, granted);
        }
        return { requeueAfterMs: periodMs };
      },
    },
  });
  controller.watch(pools.informer, { when: (pool) => StaticNodes.is(pool) });
  return controller.watch(claims.informer, { keys: poolKeys, when: hasChanged });
}

function mayGrow(pool: NodePool): boolean {
  return (
    StaticNodes.is(pool) &&
    pool.metadata.deletionTimestamp === undefined &&
    hasTrueConditions(pool as never, readyCondition)
  );
}

/** The pool of a NodeClaim. */
export function poolKeys({ metadata }: NodeClaim): string[] {
  const pool = metadata.labels?.[labels.nodePool];
  return pool === undefined ? [] : [pool];
}

/** It came, or it is going. */
export function hasChanged(claim: NodeClaim, old?: NodeClaim): boolean {
  return !old || (claim.metadata.deletionTimestamp === undefined) !== (old.metadata.deletionTimestamp === undefined);
}
