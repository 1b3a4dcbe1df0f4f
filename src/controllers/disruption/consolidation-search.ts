// SPDX-License-Identifier: Apache-2.0
// One search for what consolidation should do with a cluster: the final shape first, as if there were no budgets, and of that as much
// as budgets let happen now; where no part of it saves by itself, what can be found within the budgets.
import { labels } from '../../api/labels.ts';
import { compareStrings } from '../../base/order.ts';
import type { Steps } from '../../base/steps.ts';
import type { NewNodeClaim, Problem } from '../../scheduling/problem.ts';
import { consolidate, type Removable } from '../../scheduling/removal/consolidate.ts';
import { Removals } from '../../scheduling/removal/removals.ts';
import type { Balance } from './balanced.ts';
import { Calm, tooLittleForNow } from './calm.ts';
import type { Candidate } from './candidates.ts';
import { downsized } from './downsizing.ts';
import { meanRequests, withHeadroom } from './headroom.ts';
import { LimitLedger } from './limit-ledger.ts';
import { bySavings, type MethodView, type Proposal, savingsOf } from './method.ts';
import { neededClaims } from './needed-claims.ts';
import { whyNotPaidBack } from './payback.ts';
import { type Pieces, piecesOf } from './pieces.ts';
import { type Rehearsal, rehearse } from './rehearsal.ts';
import { cannotBeCheaper, cheaperReplacements, type ReplacementRules, whyNotPaidSo } from './replacement-rules.ts';

/** With more nodes than this pods are not followed one by one in rehearsal, and nothing is planned beyond the budgets. */
const largeCluster = 128;
/** How much of an average pod a machine has to spare that is bought for pods which the scheduler does not pack tightly. */
const spared = 0.4;
/** At a glance so many things that do not hold are passed over before a closer look is taken. */
const mostTries = 6;

interface Going extends Removable {
  readonly candidate: Candidate;
}

export interface SearchOptions {
  readonly view: MethodView;
  /** Keys of machines that take none of the pods. */
  readonly closed: ReadonlySet<string>;
  readonly balance: Balance;
  /** Whether time is up: what was found until then stands. */
  readonly expired: () => boolean;
}

export interface SearchResult extends Pieces {
  /** Whether budgets may have kept it from finding something, or more. */
  readonly isHeldBack: boolean;
}

export class ConsolidationSearch {
  readonly #view: MethodView;
  readonly #options: SearchOptions;
  readonly #judges: Judges;
  readonly #isLarge: boolean;
  /** All that may go some day, the best to lose first. */
  readonly #planned: readonly Candidate[];
  readonly #notYet: ReadonlySet<Candidate>;
  readonly #keys: ReadonlyMap<string, string>;
  #isHeldBack = false;
  #glanced: { readonly problem: Problem; readonly removals: Removals } | undefined;

  constructor(options: SearchOptions) {
    const { view, balance } = options;
    const { snapshot, budgets, reject } = view;
    this.#view = view;
    this.#options = options;
    this.#notYet = new Set(view.later);
    const all = [...view.candidates, ...view.later].filter(({ nodePool }) => budgets.allowed(nodePool) > 0);
    this.#isLarge = all.length > largeCluster;
    const calm = new Calm(view);
    this.#judges = { view, balance, calm };
    this.#planned = all.toSorted(bySavings).filter((candidate) => {
      const holds = calm.holds(candidate);
      if (holds) reject(candidate, 'unconsolidatable', tooLittleForNow);
      return !holds;
    });
    this.#keys = new Map(
      [...snapshot.machines.nodes()].map((machine) => [machine.nodeName ?? machine.name, machine.key]),
    );
  }

  /** What to do now, and the keys of the machines that are to go when budgets let them. */
  *run(): Steps<SearchResult> {
    const pieces = yield* this.#run();
    return { ...pieces, isHeldBack: this.#isHeldBack };
  }

  *#run(): Steps<Pieces> {
    if (this.#planned.length === 0) return nothing;
    this.#isHeldBack ||= this.#isLarge;
    const open = new Set(this.#planned.filter((one) => this.#leftFor(one) > 0));
    if (!this.#isLarge) {
      const problem = this.#problem(this.#planned);
      yield;
      const first = this.#view.isGlance ? yield* this.#glance(problem, open) : undefined;
      if (first) return first;
      // A glance has said why nodes stay.
      const explains = !this.#view.isGlance;
      const proposals = yield* this.#look(problem, this.#planned, { isLimited: false, explains });
      const now = yield* this.#now(problem, proposals);
      const couldGo = proposals.some(({ candidates }) => candidates.some((one) => open.has(one)));
      if (now.proposals.length > 0 || !couldGo) return now;
    }
    if (open.size === 0) return nothing;
    const problem = this.#problem([...open]);
    yield;
    const proposals = yield* this.#look(problem, [...open], { isLimited: true, explains: this.#isLarge });
    return { proposals, deferred: nothing.deferred };
  }

  /**
   * The first thing to do that holds, or nothing; undefined where a closer look is needed. What does not hold is left out, and the same
   * search goes on: it knows its answers up to there. Where budgets are in the way it goes on within them.
   */
  *#glance(problem: Problem, open: ReadonlySet<Candidate>): Steps<Pieces | undefined> {
    const without = new Set<string>();
    let isLimited = false;
    for (let tries = 0; tries < mostTries; tries++) {
      const of: readonly Candidate[] = isLimited ? [...open] : this.#planned;
      const found: readonly Proposal[] = yield* this.#search(problem, of, {
        isLimited,
        explains: tries === 0,
        any: true,
        without,
      });
      if (found.length === 0) return nothing;
      const { kept }: Rehearsal<Proposal> = yield* rehearse(problem, found, { closely: true });
      const now = yield* this.#now(problem, kept);
      if (now.proposals.length > 0) return now;
      // Of a plan that nothing can be done of for now, all that waits should be known.
      if (kept.some(({ candidates }) => !candidates.some((one) => open.has(one)))) return undefined;
      isLimited ||= kept.length > 0;
      for (const { candidates } of found) without.add(namesOf(candidates));
    }
    return undefined;
  }

  /** How many machines its pool may lose now; none while it has not been there for long enough itself. */
  #leftFor(candidate: Candidate): number {
    return this.#notYet.has(candidate) ? 0 : this.#view.budgets.left(candidate.nodePool);
  }

  #exceedsBudgets(going: readonly Candidate[]): boolean {
    for (const own of Map.groupBy(going, ({ nodePool }) => nodePool.metadata.name).values())
      if (own.some((one) => this.#leftFor(one) < own.length)) return true;
    return false;
  }

  /** What of a plan can be done now. */
  *#now(problem: Problem, plan: readonly Proposal[]): Steps<Pieces> {
    this.#isHeldBack ||= this.#exceedsBudgets(plan.flatMap(({ candidates }) => candidates));
    const limits = new LimitLedger(this.#view);
    const pieces = yield* piecesOf(plan, {
      left: (one) => this.#leftFor(one),
      approve: (candidates, claims) => this.#cheaper(candidates, claims),
      take: (piece) => limits.take(piece),
      needed: (going, claims, others) => neededClaims(problem, going, claims, new Set(others.map(nodeNameOf))),
    });
    if (pieces.deferred.size === 0 || pieces.proposals.length === 0) return pieces;
    const waiting = this.#planned.filter(({ machine }) => pieces.deferred.has(machine.key));
    const avoided = new Set(waiting.map(nodeNameOf));
    const { kept } = yield* rehearse(problem, pieces.proposals, { closely: true, avoided });
    return kept.length > 0 ? { ...pieces, proposals: kept } : nothing;
  }

  /** What a search finds that holds in rehearsal. */
  *#look(problem: Problem, of: readonly Candidate[], kind: SearchKind): Steps<readonly Proposal[]> {
    const search = (changed: Problem, isFirst: boolean): Steps<Proposal[]> =>
      this.#search(changed, of, { ...kind, explains: kind.explains && isFirst });
    const approved = (candidates: readonly Candidate[], claims: readonly NewNodeClaim[]) =>
      this.#cheaper(candidates, claims);
    const closely = of.length <= largeCluster;
    return yield* withstanding(problem, search, approved, { closely, makesRoom: closely && !this.#view.isGlance });
  }

  #problem(of: readonly Candidate[]): Problem {
    return this.#view.snapshot.problem({
      candidates: of.map(({ machine }) => machine.key),
      closedToMoves: this.#options.closed,
      reservedOfferingMode: 'Fallback',
    });
  }

  /** At a glance a cluster is compiled once, and what was found out about it is known to the next search. */
  *#removalsOf(problem: Problem): Steps<Removals | undefined> {
    if (!this.#view.isGlance || this.#isLarge) return undefined;
    if (this.#glanced?.problem !== problem)
      this.#glanced = { problem, removals: yield* Removals.inSteps(problem, 'glance') };
    return this.#glanced.removals;
  }

  *#search(problem: Problem, of: readonly Candidate[], kind: SearchKind): Steps<Proposal[]> {
    const { isLimited, explains, any = false, without } = kind;
    const removals = yield* this.#removalsOf(problem);
    const { snapshot, budgets, reject } = this.#view;
    const pools = new Map(of.map(({ nodePool }) => [nodePool.metadata.name ?? '', nodePool]));
    const commands = yield* consolidate<Going>({
      problem,
      ...(removals ? { removals } : {}),
      removable: of.map((candidate) => ({
        node: nodeNameOf(candidate),
        pool: candidate.nodePool.metadata.name ?? '',
        price: candidate.price,
        zone: candidate.machine.labels[labels.zone] ?? '',
        candidate,
      })),
      budget: (pool) => (isLimited ? budgets.left(pools.get(pool)!) : Number.POSITIVE_INFINITY),
      movePrice: snapshot.settings.podMovePrice,
      approve: (going, claims, pods) => {
        const candidates = candidatesOf(going);
        return without?.has(namesOf(candidates)) ? doesNotHold : approve(candidates, claims, pods, this.#judges);
      },
      refuse: (going, claims) => whyNotPaidSo(candidatesOf(going), claims, rulesOf(this.#view)),
      ...(explains
        ? { explain: ({ candidate }: Going, why: string) => reject(candidate, 'unconsolidatable', why) }
        : {}),
      any,
      expired: this.#options.expired,
    });
    return commands.map(({ nodes, claims, destinations }): Proposal => {
      const candidates = candidatesOf(nodes);
      return {
        candidates,
        replacements: claims,
        destinations: destinations.flatMap((name) => this.#keys.get(name) ?? []),
        consolidationType: candidates.length > 1 ? 'multi' : 'single',
      };
    });
  }

  #cheaper(candidates: readonly Candidate[], claims: readonly NewNodeClaim[]): readonly NewNodeClaim[] | string {
    return approve(candidates, claims, podsOf(candidates), this.#judges);
  }
}

const nothing: Pieces = { proposals: [], deferred: new Set() };

const doesNotHold = 'Its pods would go elsewhere than planned';

function nodeNameOf({ machine }: Candidate): string {
  return machine.nodeName ?? machine.name;
}

function namesOf(candidates: readonly Candidate[]): string {
  return candidates.map(nodeNameOf).sort(compareStrings).join();
}

interface SearchKind {
  /** Whether it keeps to the budgets. */
  readonly isLimited: boolean;
  /** Whether users hear why nodes stay. */
  readonly explains: boolean;
  /** Whether it is enough to find something. */
  readonly any?: boolean;
  /** What is not done, by the names of its nodes. */
  readonly without?: ReadonlySet<string>;
}

/**
 * What a search finds that holds in rehearsal. Where pods would be left over, machines are looked for once more that have
 * room to spare: fewer and larger ones may cost less in the end.
 */
function* withstanding(
  problem: Problem,
  search: (problem: Problem, explains: boolean) => Steps<Proposal[]>,
  approved: (candidates: readonly Candidate[], claims: readonly NewNodeClaim[]) => readonly NewNodeClaim[] | string,
  { closely, makesRoom }: { readonly closely: boolean; readonly makesRoom: boolean },
): Steps<readonly Proposal[]> {
  const tight = yield* search(problem, true);
  if (tight.length === 0) return tight;
  const first = yield* rehearse(problem, tight, { closely });
  const holds = first.unplanned === 0 && first.kept.length === tight.length;
  if (!makesRoom || holds) return first.kept;
  const going = tight.flatMap(({ candidates }) => candidates);
  const roomy = yield* search(withHeadroom(problem, meanRequests(going), spared), false);
  // More than all that it saves it cannot gain.
  if (roomy.reduce((sum, proposal) => sum + savingsOf(proposal), 0) <= first.gain) return first.kept;
  const second = yield* rehearse(problem, roomy, { closely: true });
  if (second.gain <= first.gain) return first.kept;
  const smaller = yield* downsized(problem, second.kept);
  return second.kept.map((proposal, i) => {
    const replacements = approved(proposal.candidates, smaller[i]!);
    return typeof replacements === 'string' ? proposal : { ...proposal, replacements };
  });
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

interface Judges {
  readonly view: MethodView;
  readonly balance: Balance;
  readonly calm: Calm;
}

/** Whether a consolidation keeps all rules about prices; the machines with the types that do, or why not. */
function approve(
  candidates: readonly Candidate[],
  claims: readonly NewNodeClaim[],
  pods: number,
  judges: Judges,
): readonly NewNodeClaim[] | string {
  const problem = whyNotWorth(candidates, claims, pods, judges);
  if (problem !== undefined || claims.length === 0) return problem ?? claims;
  const kept = cheaperReplacements(candidates, claims, rulesOf(judges.view));
  if (typeof kept === 'string') return kept;
  // Of types that are left out the cheapest may be one: then it saves less than it seemed.
  return whyNotWorth(candidates, kept, pods, judges) ?? kept;
}

function whyNotWorth(
  candidates: readonly Candidate[],
  claims: readonly NewNodeClaim[],
  pods: number,
  { view, balance, calm }: Judges,
): string | undefined {
  const { settings, now } = view.snapshot;
  const price = candidates.reduce((sum, candidate) => sum + candidate.price, 0);
  const savings = savingsOf({ candidates, replacements: claims });
  if (claims.length > 0 && !(savings > 0)) return cannotBeCheaper;
  if (savings < (price * settings.consolidationSavingsThreshold) / 100)
    return `It would save less than ${settings.consolidationSavingsThreshold} % of the price`;
  const unpaid = whyNotPaidBack(candidates, claims, savings, now);
  if (unpaid !== undefined) return unpaid;
  if (savings < pods * settings.podMovePrice) return `It would save too little for the ${pods} pods it moves`;
  if (calm.isPoor(candidates, savings, pods)) return tooLittleForNow;
  const poor = balance.poor(candidates, savings);
  return poor && `Balanced: it would save too little for what it moves (score ${poor.score.toFixed(2)})`;
}
