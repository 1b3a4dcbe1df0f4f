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
  #deferred: ReadonlySet<string> = new Set();

  get deferred(): ReadonlySet<string> {
    return this.#deferred;
  }

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
    const going = new Set(chosen);
    const waiting = candidates.filter((one) => !going.has(one) && budgets.allowed(one.nodePool) > 0);
    this.#deferred = new Set(waiting.map(({ machine }) => machine.key));
    return chosen.length > 0 ? [{ candidates: chosen, replacements: [], destinations: [] }] : [];
  }
}
