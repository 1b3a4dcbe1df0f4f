// SPDX-License-Identifier: Apache-2.0
// Nodes whose pods fit elsewhere, or on less, go: the whole cluster is looked at, and as many nodes are replaced by as many
// machines as make it cheapest, within budgets and policies.
import { hasTrueConditions, nodeClaimConditions } from '../../api/conditions.ts';
import { never } from '../../api/duration.ts';
import { labels } from '../../api/labels.ts';
import { finish, type Steps } from '../../base/steps.ts';
import type { InstanceType } from '../../cloud/provider.ts';
import { Balance, type Score } from './balanced.ts';
import { type Candidate, isEmpty } from './candidates.ts';
import { ConsolidationSearch } from './consolidation-search.ts';
import { type Concern, type Method, type MethodView, type Proposal, savingsOf } from './method.ts';
import { Prospects } from './prospects.ts';
import { unfinishedMachines, unsettledMachines } from './snapshot.ts';

export interface ConsolidationOptions {
  /** Milliseconds from any start; none: a search takes as long as it takes. */
  readonly clock?: () => number;
  /** After this long a search ends with what it has. */
  readonly timeoutMs?: number;
  /** Called when it did. */
  readonly onTimeout?: () => void;
  /** Called with the score of each consolidation that the policy Balanced turned down. */
  readonly onRejected?: (score: Score) => void;
}

const defaultTimeoutMs = 5000;
/** A machine that was to go, and then could not, does not take pods of others for so long. */
const heldUpMs = 60_000;

/** The methods `MultiNodeConsolidation` and `SingleNodeConsolidation` in one. */
export class Consolidation implements Method {
  readonly name = 'Consolidation';
  readonly reason = 'Underutilized';
  readonly disruptionClass = 'graceful';
  readonly consolidationType = 'multi';
  readonly validateAfterMs = 15_000;
  readonly gathers = true;
  readonly #options: ConsolidationOptions;
  #deferred: ReadonlySet<string> | undefined;
  /** By machine: when it was last part of a plan and had to wait. */
  readonly #plannedAt = new Map<string, number>();
  readonly #prospects = new Prospects();
  /** When to search whatever the prospects: somebody is not held up any more. Monotonic. */
  #heldUntil = Number.POSITIVE_INFINITY;

  constructor(options: ConsolidationOptions = {}) {
    this.#options = options;
  }

  concerns(candidate: Candidate): Concern {
    const { nodePool, nodeClaim, instanceType, machine } = candidate;
    const { replicas, disruption } = nodePool.spec;
    if (replicas !== undefined || isEmpty(candidate)) return false;
    const name = JSON.stringify(nodePool.metadata.name ?? '');
    const typeName = machine.labels[labels.instanceType];
    if (!instanceType) return { unconsolidatable: `Instance Type ${JSON.stringify(typeName ?? '')} not found` };
    for (const label of [labels.capacityType, labels.zone])
      if (machine.labels[label] === undefined && !isSoldWithout(instanceType, label))
        return { unconsolidatable: `Node does not have label "${label}"` };
    if (disruption?.consolidateAfter === never)
      return { unconsolidatable: `NodePool ${name} has consolidation disabled` };
    if (disruption?.consolidationPolicy === 'WhenEmpty')
      return { unconsolidatable: `NodePool ${name} has non-empty consolidation disabled` };
    return hasTrueConditions(nodeClaim, nodeClaimConditions.consolidatable);
  }

  get deferred(): ReadonlySet<string> | undefined {
    return this.#deferred;
  }

  get restsUntil(): number | undefined {
    const { restsUntil } = this.#prospects;
    return restsUntil === undefined ? undefined : Math.min(restsUntil, this.#heldUntil);
  }

  /** Machines by key that a plan was to remove a moment ago and that cannot go right now: they still do not stay. */
  #heldUp({ candidates, later, snapshot: { machines, now } }: MethodView): ReadonlySet<string> {
    for (const [key, at] of this.#plannedAt) if (Math.abs(now - at) >= heldUpMs) this.#plannedAt.delete(key);
    const held = new Set<string>();
    for (const { key, markedForDeletion } of this.#plannedAt.size > 0 ? machines.nodes() : [])
      if (!markedForDeletion && this.#plannedAt.has(key)) held.add(key);
    for (const { machine } of [...candidates, ...later]) held.delete(machine.key);
    return held;
  }

  /** For how long all of them are held up; infinite for none. */
  #heldForMs(held: ReadonlySet<string>, now: number): number {
    const left = [...held].map((key) => heldUpMs - Math.abs(now - this.#plannedAt.get(key)!));
    return Math.min(Number.POSITIVE_INFINITY, ...left);
  }

  propose(view: MethodView): Proposal[] {
    return finish(this.proposeInSteps(view));
  }

  *proposeInSteps(view: MethodView): Steps<Proposal[]> {
    const { snapshot, budgets } = view;
    const { clock, timeoutMs = defaultTimeoutMs, onTimeout, onRejected } = this.#options;
    this.#deferred = undefined;
    if (!view.candidates.some(({ nodePool }) => budgets.left(nodePool) > 0)) return [];
    const held = this.#heldUp(view);
    const closed = new Set([...unfinishedMachines(snapshot), ...unsettledMachines(snapshot), ...view.leaving, ...held]);
    const now = clock?.() ?? 0;
    if (clock && !this.#prospects.isWorthwhile(view, closed, now) && now < this.#heldUntil) return [];
    this.#heldUntil = now + this.#heldForMs(held, snapshot.now);
    // Of the cluster as it is before the first pause: what changes meanwhile is news.
    const ended = this.#prospects.before(view, closed, now);
    let timedOut = false;
    const expired = (): boolean => {
      timedOut ||= clock !== undefined && clock() >= now + timeoutMs;
      return timedOut;
    };
    const balance = new Balance(snapshot, onRejected);
    const { proposals, deferred, isHeldBack } = yield* new ConsolidationSearch({
      view,
      closed,
      balance,
      expired,
    }).run();
    if (timedOut) onTimeout?.();
    for (const { candidates } of proposals) for (const { nodePool } of candidates) budgets.take(nodePool);
    if (proposals.length > 0 && (view.isGlance || timedOut)) this.#prospects.foundSomething();
    else {
      const going = proposals.flatMap(({ candidates }) => candidates.map(({ machine }) => machine.key));
      ended({ going, isHeldBack });
    }
    for (const key of deferred) this.#plannedAt.set(key, snapshot.now);
    this.#deferred = new Set([...deferred, ...held]);
    return proposals.map((proposal) => ({
      ...proposal,
      scores: balance.scores(proposal.candidates, savingsOf(proposal)),
    }));
  }
}

/** Whether a cloud leaves a label open: one without zones sells its machines in the zone ''. */
function isSoldWithout({ offerings }: InstanceType, label: string): boolean {
  return offerings.some(({ requirements }) =>
    requirements.some(({ key, values }) => key === label && values?.includes('') === true),
  );
}
