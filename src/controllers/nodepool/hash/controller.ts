// SPDX-License-Identifier: Apache-2.0
// Writes the drift hash of its template on every NodePool. When the way to compute it changed, the NodeClaims get the new
// hash as well, so that a new version of the program does not replace the fleet. Writes NodePools and NodeClaims in the
// cluster `karpenter`.
import { getCondition, nodeClaimConditions } from '../../../api/conditions.ts';
import { nodePoolHash, nodePoolHashVersion } from '../../../api/hash.ts';
import { annotations } from '../../../api/labels.ts';
import type { NodeClaim } from '../../../api/node-claim.ts';
import type { NodePool } from '../../../api/node-pool.ts';
import { messageOf } from '../../../base/errors.ts';
import { deepEqual } from '../../../base/freeze.ts';
import { type Controller, TerminalError } from '../../../runtime/controller.ts';
import type { ControllerContext } from '../../nodeclaim/context.ts';
import { inParallel } from '../../nodeclaim/garbage-collection/in-parallel.ts';

const parallel = 20;

/** The controller `nodepool.hash`. */
export function hashController(context: ControllerContext): Controller {
  const { pools, claims } = context;
  const controller = context.controller({
    name: 'nodepool.hash',
    kind: 'NodePool',
    concurrent: [10, 1000],
    reconciler: {
      async reconcile(key, signal) {
        const pool = context.pool(key);
        if (!pool) return;
        const hash = hashOf(pool);
        // The NodeClaims first: once the NodePool says that it is done, nobody looks at them again.
        if (pool.metadata.annotations?.[annotations.nodePoolHashVersion] !== nodePoolHashVersion) {
          await inParallel(context.claimsOfPool(pool), parallel, async (claim) => {
            await claims.patch(claim, restamped(claim, hash), { signal });
          });
        }
        await pools.patch(pool, annotated(pool, hash), { signal });
      },
    },
  });
  controller.requires(claims.informer);
  return controller.watch(pools.informer, {
    // What is found out about a pool is written into its status all day; the hash is of its spec.
    when: (pool, old) =>
      old === undefined ||
      pool.metadata.generation !== old.metadata.generation ||
      !deepEqual(pool.metadata.annotations, old.metadata.annotations),
  });
}

function hashOf(pool: NodePool): string {
  try {
    return nodePoolHash(pool);
  } catch (error) {
    // The condition ValidationSucceeded tells the user; a new spec brings us back.
    throw new TerminalError(`hashing nodepool: ${messageOf(error)}`, { cause: error });
  }
}

function annotated<T extends NodePool | NodeClaim>(object: T, hash: string): T {
  const stamps = { [annotations.nodePoolHash]: hash, [annotations.nodePoolHashVersion]: nodePoolHashVersion };
  return { ...object, metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, ...stamps } } };
}

/** Nobody can tell whether a drifted NodeClaim would still be: it keeps the old hash, and with it its drift. */
function restamped(claim: NodeClaim, hash: string): NodeClaim {
  const own = claim.metadata.annotations ?? {};
  if (own[annotations.nodePoolHashVersion] === nodePoolHashVersion) return claim;
  const drifted = getCondition(claim, nodeClaimConditions.drifted) !== undefined;
  const kept = own[annotations.nodePoolHash];
  const stamped = annotated(claim, drifted && kept !== undefined ? kept : hash);
  return stamped;
}
