// SPDX-License-Identifier: Apache-2.0
// Looks every ten minutes whether a node is what its NodeClaim says. Reads Nodes in the cluster `workload`, writes
// conditions of NodeClaims in `karpenter`.
import { falseCondition, getCondition, nodeClaimConditions, trueCondition } from '../../../api/conditions.ts';
import { deepEqual } from '../../../base/freeze.ts';
import { keyOf } from '../../../kube/object.ts';
import type { Controller } from '../../../runtime/controller.ts';
import { eventKinds, eventOf } from '../../events.ts';
import type { ControllerContext } from '../context.ts';
import { nodeShapeIssues } from './node-shape.ts';

const periodMs = 10 * 60_000;
const { consistentStateFound, initialized } = nodeClaimConditions;

/** The controller `nodeclaim.consistency`. */
export function consistencyController(context: ControllerContext): Controller {
  const { claims, nodes, clock, clusters } = context;
  /** When each NodeClaim was looked at, by UID. */
  const checked = new Map<string, number>();
  claims.informer.addHandler({ deleted: ({ metadata }) => void checked.delete(metadata.uid ?? '') });
  const controller = context.controller({
    name: 'nodeclaim.consistency',
    kind: 'NodeClaim',
    concurrent: [10, 1000],
    reconciler: {
      async reconcile(key, signal, run) {
        const claim = context.claim(key);
        if (!claim || claim.metadata.deletionTimestamp !== undefined) return {};
        const draft = context.draftOfClaim(claim);
        // A node that is still starting has nothing to be held to; what changes then calls us again.
        const [node, another] = context.nodesOf(claim);
        if (!node || another || !draft.isTrue(initialized)) return {};
        const uid = claim.metadata.uid ?? '';
        const leftMs = (checked.get(uid) ?? Number.NEGATIVE_INFINITY) + periodMs - clock.monotonic();
        if (leftMs > 0) return { requeueAfterMs: leftMs };
        const issues = nodeShapeIssues(claim, node);
        for (const issue of issues) {
          run.log.info('failed consistency check', { issue });
          const dedupeValues = [uid, issue];
          clusters.karpenter.events.publish(eventOf(eventKinds.failedConsistencyCheck, claim, issue, { dedupeValues }));
        }
        draft.set(
          issues.length > 0
            ? falseCondition(consistentStateFound, 'ConsistencyCheckFailed', issues.join('; '))
            : trueCondition(consistentStateFound),
        );
        if (draft.changed) await draft.save(claims, signal);
        checked.set(uid, clock.monotonic());
        return { requeueAfterMs: periodMs };
      },
    },
  });
  // Only what makes a node one that can be held to something calls for a first look; time calls for the others.
  controller.watch(claims.informer, {
    when: (claim, old) =>
      old === undefined ||
      claim.status?.providerID !== old.status?.providerID ||
      getCondition(claim, initialized)?.status !== getCondition(old, initialized)?.status,
  });
  return controller.watch(nodes.informer, {
    keys: (node) => context.claimsOf(node).map(keyOf),
    when: (node, old) => old === undefined || !deepEqual(node.status?.capacity, old.status?.capacity),
  });
}
