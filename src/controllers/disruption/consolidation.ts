// SPDX-License-Identifier: Apache-2.0
// Nodes whose pods fit elsewhere, or on less, go: the whole cluster is looked at in every pass, and as many nodes are
// replaced by as many machines as make it cheapest, within budgets and policies.
import { hasTrueConditions, nodeClaimConditions } from '../../api/conditions.ts';
import { never } from '../../api/duration.ts';
import { labels } from '../../api/labels.ts';
import { finish, type Steps } from '../../base/steps.ts';
import type { InstanceType } from '../../cloud/provider.ts';
import { parseTime } from '../../kube/time.ts';
import type { NewNodeClaim, Problem } from '../../scheduling/problem.ts';
import { consolidate, type Removable } from '../../scheduling/removal/consolidate.ts';
import { Balance, type Score } from './balanced.ts';
import { type Candidate, isEmpty } from './candidates.ts';
import { downsized } from './downsizing.ts';
import { meanRequests, withHeadroom } from './headroom.ts';
import { bySavings, type Concern, type Method, type MethodView, type Proposal, savingsOf } from './method.ts';
import { rehearse } from './rehearsal.ts';
import { cannotBeCheaper, cheaperReplacements, type ReplacementRules, whyNotPaidSo } from './replacement-rules.ts';
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
/** With more nodes than this pods are not followed one by one in rehearsal. */
const largeCluster = 128;
/** How much of an average pod a machine has to spare that is bought for pods which the scheduler does not pack tightly. */
const spared = 0.4;

/** A machine is young for so long: */
const youngMs = 10 * 60_000;
/** it is not replaced to save less than this part of its price. */
const worthForYoung = 0.25;

interface Going extends Removable {
  readonly candidate: Candidate;
}

/** The methods `MultiNodeConsolidation` and `SingleNodeConsolidation` in one. */
export class Consolidation implements Method {
  readonly name = 'Consolidation';
  readonly reason = 'Underutilized';
  readonly disruptionClass = 'graceful';
  readonly consolidationType = 'multi';
  readonly validateAfterMs = 15_000;
  readonly gathers = true;
  readonly #options: ConsolidationOptions;

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

  propose(view: MethodView): Proposal[] {
    return finish(this.proposeInSteps(view));
  }

  *proposeInSteps(view: MethodView): Steps<Proposal[]> {
    const { snapshot, budgets, leaving, reject } = view;
    const open = view.candidates.filter(({ nodePool }) => budgets.left(nodePool) > 0).toSorted(bySavings);
    if (open.length === 0) return [];
    const pools = new Map(open.map(({ nodePool }) => [nodePool.metadata.name ?? '', nodePool]));
    const { clock, timeoutMs = defaultTimeoutMs, onTimeout, onRejected } = this.#options;
    const balance = new Balance(snapshot, onRejected);
    const end = clock ? clock() + timeoutMs : Number.POSITIVE_INFINITY;
    let timedOut = false;
    const problem = snapshot.problem({
      candidates: open.map(({ machine }) => machine.key),
      closedToMoves: new Set([...unfinishedMachines(snapshot), ...unsettledMachines(snapshot), ...leaving]),
      reservedOfferingMode: 'Fallback',
    });
    yield;
    const keys = new Map(
      [...snapshot.machines.nodes()].map((machine) => [machine.nodeName ?? machine.name, machine.key]),
    );
    const search = function* (of: Problem, explains: boolean): Steps<Proposal[]> {
      const commands = yield* consolidate<Going>({
        problem: of,
        removable: open.map((candidate) => ({
          node: candidate.machine.nodeName ?? candidate.machine.name,
          pool: candidate.nodePool.metadata.name ?? '',
          price: candidate.price,
          zone: candidate.machine.labels[labels.zone] ?? '',
          candidate,
        })),
        budget: (pool) => budgets.left(pools.get(pool)!),
        movePrice: snapshot.settings.podMovePrice,
        approve: (going, claims, pods) => approve(candidatesOf(going), claims, pods, view, balance),
        refuse: (going, claims) => whyNotPaidSo(candidatesOf(going), claims, rulesOf(view)),
        ...(explains
          ? { explain: ({ candidate }: Going, why: string) => reject(candidate, 'unconsolidatable', why) }
          : {}),
        expired: () => {
          timedOut ||= clock !== undefined && clock() >= end;
          return timedOut;
        },
      });
      return commands.map(({ nodes, claims, destinations }): Proposal => {
        const candidates = candidatesOf(nodes);
        return {
          candidates,
          replacements: claims,
          destinations: destinations.flatMap((name) => keys.get(name) ?? []),
          consolidationType: candidates.length > 1 ? 'multi' : 'single',
        };
      });
    };
    const cheaper = (candidates: readonly Candidate[], claims: readonly NewNodeClaim[]) =>
      approve(candidates, claims, podsOf(candidates), view, balance);
    const kept = yield* withstanding(problem, search, cheaper, open.length > largeCluster);
    if (timedOut) onTimeout?.();
    for (const { candidates } of kept) for (const { nodePool } of candidates) budgets.take(nodePool);
    return kept.map((proposal) => ({ ...proposal, scores: balance.scores(proposal.candidates, savingsOf(proposal)) }));
  }
}

/**
 * What a search finds that holds in rehearsal. Where pods would be left over, machines are looked for once more that have
 * room to spare: fewer and larger ones may cost less in the end.
 */
function* withstanding(
  problem: Problem,
  search: (problem: Problem, explains: boolean) => Steps<Proposal[]>,
  approved: (candidates: readonly Candidate[], claims: readonly NewNodeClaim[]) => readonly NewNodeClaim[] | string,
  isLarge: boolean,
): Steps<readonly Proposal[]> {
  const tight = yield* search(problem, true);
  if (tight.length === 0) return tight;
  const first = yield* rehearse(problem, tight, !isLarge);
  const holds = first.unplanned === 0 && first.kept.length === tight.length;
  if (isLarge || holds) return first.kept;
  const going = tight.flatMap(({ candidates }) => candidates);
  const roomy = yield* search(withHeadroom(problem, meanRequests(going), spared), false);
  const second = yield* rehearse(problem, roomy, true);
  if (second.gain <= first.gain) return first.kept;
  const smaller = yield* downsized(problem, second.kept);
  return second.kept.map((proposal, i) => {
    const replacements = approved(proposal.candidates, smaller[i]!);
    return typeof replacements === 'string' ? proposal : { ...proposal, replacements };
  });
}

/** Whether a cloud leaves a label open: one without zones sells its machines in the zone ''. */
function isSoldWithout({ offerings }: InstanceType, label: string): boolean {
  return offerings.some(({ requirements }) =>
    requirements.some(({ key, values }) => key === label && values?.includes('') === true),
  );
}

function candidatesOf(going: readonly Going[]): Candidate[] {
  return going.map(({ candidate }) => candidate);
}

function podsOf(candidates: readonly Candidate[]): number {
  return candidates.reduce((sum, { reschedulablePods }) => sum + reschedulablePods.length, 0);
}

function rulesOf({ snapshot, catalog }: MethodView): ReplacementRules {
  return { catalog, spotToSpot: snapshot.settings.featureGates.SpotToSpotConsolidation };
}

/** Whether a consolidation keeps all rules about prices; the machines with the types that do, or why not. */
function approve(
  candidates: readonly Candidate[],
  claims: readonly NewNodeClaim[],
  pods: number,
  view: MethodView,
  balance: Balance,
): readonly NewNodeClaim[] | string {
  const { snapshot } = view;
  const problem = whyNotWorth(candidates, claims, pods, snapshot, balance);
  if (problem !== undefined || claims.length === 0) return problem ?? claims;
  const kept = cheaperReplacements(candidates, claims, rulesOf(view));
  if (typeof kept === 'string') return kept;
  // Of types that are left out the cheapest may be one: then it saves less than it seemed.
  return whyNotWorth(candidates, kept, pods, snapshot, balance) ?? kept;
}

function whyNotWorth(
  candidates: readonly Candidate[],
  claims: readonly NewNodeClaim[],
  pods: number,
  { settings, now }: MethodView['snapshot'],
  balance: Balance,
): string | undefined {
  const price = candidates.reduce((sum, candidate) => sum + candidate.price, 0);
  const savings = savingsOf({ candidates, replacements: claims });
  if (claims.length > 0 && !(savings > 0)) return cannotBeCheaper;
  if (savings < (price * settings.consolidationSavingsThreshold) / 100)
    return `It would save less than ${settings.consolidationSavingsThreshold} % of the price`;
  // What was just bought, perhaps with room to spare on purpose, is not bought again in another size: pods would move on and on.
  const young = candidates.reduce((sum, candidate) => sum + (isYoung(candidate, now) ? candidate.price : 0), 0);
  if (claims.length > 0 && savings < young * worthForYoung)
    return 'It was bought less than ten minutes ago, and would save less than a quarter of its price';
  if (savings < pods * settings.podMovePrice) return `It would save too little for the ${pods} pods it moves`;
  const poor = balance.poor(candidates, savings);
  return poor && `Balanced: it would save too little for what it moves (score ${poor.score.toFixed(2)})`;
}

function isYoung({ nodeClaim }: Candidate, now: number): boolean {
  const { creationTimestamp } = nodeClaim.metadata;
  return typeof creationTimestamp === 'string' && now - parseTime(creationTimestamp) < youngMs;
}
