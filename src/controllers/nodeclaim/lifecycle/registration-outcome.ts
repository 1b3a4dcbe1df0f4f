// SPDX-License-Identifier: Apache-2.0
// What becomes of a NodeClaim speaks for or against its NodePool: the condition NodeRegistrationHealthy. Only NodeClaims
// that the pool owns count.
import {
  falseCondition,
  getCondition,
  nodeClaimConditions,
  nodePoolConditions,
  trueCondition,
} from '../../../api/conditions.ts';
import { labels } from '../../../api/labels.ts';
import type { NodeClaim } from '../../../api/node-claim.ts';
import type { NodePool } from '../../../api/node-pool.ts';
import { isConflict } from '../../../kube/api-error.ts';
import type { ControllerContext } from '../context.ts';
import type { Draft } from '../draft.ts';

const { nodeRegistrationHealthy } = nodePoolConditions;
/** Several controllers write conditions of NodePools. */
const attempts = 3;

/** The node of a NodeClaim registered. Throws when that cannot be told of its NodePool; it does not count then. */
export async function recordRegistration(
  context: ControllerContext,
  claim: NodeClaim,
  signal: AbortSignal,
): Promise<void> {
  await record(context, claim, true, signal, (draft) => draft.set(trueCondition(nodeRegistrationHealthy)));
}

/** A NodeClaim was not launched or registered in time. Throws as `recordRegistration`. */
export async function recordFailure(context: ControllerContext, claim: NodeClaim, signal: AbortSignal): Promise<void> {
  const launched = getCondition(claim, nodeClaimConditions.launched);
  const failure =
    launched && launched.status !== 'True'
      ? falseCondition(nodeRegistrationHealthy, launched.reason || 'LaunchFailed', launched.message ?? '')
      : falseCondition(nodeRegistrationHealthy, 'RegistrationFailed', 'the node did not register in time');
  await record(context, claim, false, signal, (draft) => {
    if (draft.condition(nodeRegistrationHealthy)?.status !== 'False') draft.set(failure);
  });
}

async function record(
  context: ControllerContext,
  claim: NodeClaim,
  registered: boolean,
  signal: AbortSignal,
  tell: (draft: Draft<NodePool>) => void,
): Promise<void> {
  const name = claim.metadata.labels?.[labels.nodePool];
  if (name === undefined) return;
  // Hundreds of nodes of a pool may register at once: the first one writes, the others find it written.
  await context.poolHealth.inTurn(name, () => recordNow(context, name, claim, registered, signal, tell));
}

async function recordNow(
  context: ControllerContext,
  name: string,
  claim: NodeClaim,
  registered: boolean,
  signal: AbortSignal,
  tell: (draft: Draft<NodePool>) => void,
): Promise<void> {
  let pool = context.pools.get(name);
  for (let attempt = 1; pool; attempt++) {
    const uid = pool.metadata.uid ?? '';
    if (!isOwnedBy(claim, uid)) return;
    try {
      if (context.poolHealth.after(uid, registered) === (registered ? 'healthy' : 'unhealthy')) {
        const draft = context.draftOfPool(pool);
        tell(draft);
        if (draft.changed) await draft.save(context.pools, signal);
      }
      context.poolHealth.record(uid, registered);
      return;
    } catch (error) {
      if (!isConflict(error) || attempt === attempts) throw error;
      pool = await context.pools.read(name, signal);
    }
  }
}

function isOwnedBy(claim: NodeClaim, poolUid: string): boolean {
  return claim.metadata.ownerReferences?.some(({ kind, uid }) => kind === 'NodePool' && uid === poolUid) ?? false;
}
