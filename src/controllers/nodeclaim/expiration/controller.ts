// SPDX-License-Identifier: Apache-2.0
// Deletes NodeClaims that have reached their age, whatever budgets say: the drain still asks the pods. Reads and writes
// NodeClaims in the cluster `karpenter`.
import { durationMs } from '../../../api/duration.ts';
import { planted } from '../../../base/defects.ts';
import { messageOf } from '../../../base/errors.ts';
import { parseTime } from '../../../kube/time.ts';
import { type Controller, TerminalError } from '../../../runtime/controller.ts';
import { againAtWallTime } from '../../wall-time.ts';
import type { ControllerContext } from '../context.ts';
import { disruptedLabels, nodeClaimMetrics } from '../metrics.ts';

/** The controller `nodeclaim.expiration`. */
export function expirationController(context: ControllerContext): Controller {
  const { claims, clock, metrics } = context;
  const controller = context.controller({
    name: 'nodeclaim.expiration',
    kind: 'NodeClaim',
    concurrent: 1,
    reconciler: {
      async reconcile(key, signal, run) {
        const claim = context.claim(key);
        const { creationTimestamp, deletionTimestamp } = claim?.metadata ?? {};
        if (!claim || !creationTimestamp || deletionTimestamp !== undefined) return {};
        const expireAfterMs = lifetimeOf(claim.spec.expireAfter);
        if (expireAfterMs === undefined) return {};
        const leftMs = parseTime(creationTimestamp) + expireAfterMs - clock.now();
        if (leftMs > 0) return planted('forgets-expiry') ? {} : againAtWallTime(leftMs);
        if (!(await claims.delete(claim, signal))) return {};
        const { nodeName } = claim.status ?? {};
        run.log.debug('deleting expired nodeclaim', nodeName ? { Node: { name: nodeName } } : {});
        metrics.counter(nodeClaimMetrics.disrupted).inc(disruptedLabels('expired', claim, context.poolOf(claim)));
        return {};
      },
    },
  });
  return controller.watch(claims.informer, {
    // Its age is decided at its birth.
    when: (_claim, old) => old === undefined,
  });
}

function lifetimeOf(expireAfter: string | undefined): number | undefined {
  try {
    return durationMs(expireAfter);
  } catch (error) {
    throw new TerminalError(`reading expireAfter: ${messageOf(error)}`, { cause: error });
  }
}
