// SPDX-License-Identifier: Apache-2.0
// Nodes without pods that would have to move are deleted, whatever the consolidation policy of their pool.
import { hasTrueConditions, nodeClaimConditions } from '../../api/conditions.ts';
import { never } from '../../api/duration.ts';
import { type Candidate, isEmpty } from './candidates.ts';
import { bySavings, type Concern, type Method, type MethodView, type Proposal } from './method.ts';

/** The method `Emptiness`. */
export class Emptiness implements Method {
  readonly name = 'Emptiness';
  readonly reason = 'Empty';
  readonly disruptionClass = 'graceful';
  readonly consolidationType = 'empty';
  readonly validateAfterMs = 15_000;

  concerns(candidate: Candidate): Concern {
    const { nodePool, nodeClaim } = candidate;
    const { replicas, disruption } = nodePool.spec;
    if (replicas !== undefined) return false;
    if (disruption?.consolidateAfter === never) {
      return { unconsolidatable: `NodePool "${nodePool.metadata.name}" has consolidation disabled` };
    }
    return isEmpty(candidate) && hasTrueConditions(nodeClaim, nodeClaimConditions.consolidatable);
  }

  /** As many as the budgets allow, in one command. */
  propose({ candidates, budgets }: MethodView): Proposal[] {
    const chosen = candidates.toSorted(bySavings).filter(({ nodePool }) => budgets.take(nodePool));
    return chosen.length > 0 ? [{ candidates: chosen, replacements: [], destinations: [] }] : [];
  }
}
