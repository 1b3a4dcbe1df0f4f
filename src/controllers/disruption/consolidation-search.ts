// SPDX-License-Identifier: Apache-2.0
// One search for what consolidation should do with a cluster: the final shape first, as if there were no budgets, and of that as much
// as budgets let happen now; where no part of it saves by itself, what can be found within the budgets.
import { labels } from '../../api/labels.ts';
import type { Steps } from '../../base/steps.ts';
import type { NewNodeClaim, Problem } from '../../scheduling/problem.ts';
import { consolidate, type Removable } from '../../scheduling/removal/consolidate.ts';
import type { Balance } from './balanced.ts';
import { Calm, isYoung, tooLittleForNow } from './calm.ts';
import type { Candidate } from './candidates.ts';
import { downsized } from './downsizing.ts';
import { meanRequests, withHeadroom } from './headroom.ts';
import { LimitLedger } from './limit-ledger.ts';
import { bySavings, type MethodView, type Proposal, savingsOf } from './method.ts';
import { neededClaims } from './needed-claims.ts';
import { type Pieces, piecesOf } from './pieces.ts';
import { rehearse } from './rehearsal.ts';
import { cannotBeCheaper, cheaperReplacements, type ReplacementRules, whyNotPaidSo } from './replacement-rules.ts';

/** With more nodes than this pods are not followed one by one in rehearsal, and nothing is planned beyond the budgets. */
const largeCluster = 128;
/** How much of an average pod a machine has to spare that is bought for pods which the scheduler does not pack tightly. */
const spared = 0.4;
/** A young machine is not replaced to save less than this part of its price. */
const worthForYoung = 0.25;

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

export class ConsolidationSearch {
  readonly #view: MethodView;
  readonly #options: SearchOptions;
  readonly #judges: Judges;
  readonly #isLarge: boolean;
  /** All that may go some day, the best to lose first. */
  readonly #planned: readonly Candidate[];
  readonly #notYet: ReadonlySet<Candidate>;
  readonly #keys: ReadonlyMap<string, string>;

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
  *run(): Steps<Pieces> {
    if (this.#planned.length === 0) return nothing;
    const open = new Set(this.#planned.filter((one) => this.#leftFor(one) > 0));
    if (!this.#isLarge) {
      const { problem, proposals } = yield* this.#look(this.#planned, false, true);
      const now = yield* this.#now(problem, proposals);
      const couldGo = proposals.some(({ candidates }) => candidates.some((one) => open.has(one)));
      if (now.proposals.length > 0 || !couldGo) return now;
    }
    if (open.size === 0) return nothing;
    const { proposals } = yield* this.#look([...open], true, this.#isLarge);
    return { proposals, deferred: nothing.deferred };
  }

  /** How many machines its pool may lose now; none while it has not been there for long enough itself. */
  #leftFor(candidate: Candidate): number {
    return this.#notYet.has(candidate) ? 0 : this.#view.budgets.left(candidate.nodePool);
  }

  /** What of a plan can be done now. */
  *#now(problem: Problem, plan: readonly Proposal[]): Steps<Pieces> {
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

  /** What a search finds that holds in rehearsal, and the cluster it was made in. */
  *#look(of: readonly Candidate[], isLimited: boolean, explains: boolean): Steps<Found> {
    const { snapshot } = this.#view;
    const problem = snapshot.problem({
      candidates: of.map(({ machine }) => machine.key),
      closedToMoves: this.#options.closed,
      reservedOfferingMode: 'Fallback',
    });
    yield;
    const search = (changed: Problem, isFirst: boolean): Steps<Proposal[]> =>
      this.#search(changed, of, isLimited, explains && isFirst);
    const approved = (candidates: readonly Candidate[], claims: readonly NewNodeClaim[]) =>
      this.#cheaper(candidates, claims);
    const proposals = yield* withstanding(problem, search, approved, of.length > largeCluster);
    return { problem, proposals };
  }

  *#search(problem: Problem, of: readonly Candidate[], isLimited: boolean, explains: boolean): Steps<Proposal[]> {
    const { snapshot, budgets, reject } = this.#view;
    const pools = new Map(of.map(({ nodePool }) => [nodePool.metadata.name ?? '', nodePool]));
    const commands = yield* consolidate<Going>({
      problem,
      removable: of.map((candidate) => ({
        node: nodeNameOf(candidate),
        pool: candidate.nodePool.metadata.name ?? '',
        price: candidate.price,
        zone: candidate.machine.labels[labels.zone] ?? '',
        candidate,
      })),
      budget: (pool) => (isLimited ? budgets.left(pools.get(pool)!) : Number.POSITIVE_INFINITY),
      movePrice: snapshot.settings.podMovePrice,
      approve: (going, claims, pods) => approve(candidatesOf(going), claims, pods, this.#judges),
      refuse: (going, claims) => whyNotPaidSo(candidatesOf(going), claims, rulesOf(this.#view)),
      ...(explains
        ? { explain: ({ candidate }: Going, why: string) => reject(candidate, 'unconsolidatable', why) }
        : {}),
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

function nodeNameOf({ machine }: Candidate): string {
  return machine.nodeName ?? machine.name;
}

/** A search, and the cluster it was made in. */
interface Found {
  readonly problem: Problem;
  readonly proposals: readonly Proposal[];
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
  const first = yield* rehearse(problem, tight, { closely: !isLarge });
  const holds = first.unplanned === 0 && first.kept.length === tight.length;
  if (isLarge || holds) return first.kept;
  const going = tight.flatMap(({ candidates }) => candidates);
  const roomy = yield* search(withHeadroom(problem, meanRequests(going), spared), false);
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
  // What was just bought, perhaps with room to spare on purpose, is not bought again in another size: pods would move on and on.
  const young = candidates.reduce((sum, candidate) => sum + (isYoung(candidate, now) ? candidate.price : 0), 0);
  if (claims.length > 0 && savings < young * worthForYoung)
    return 'It was bought less than ten minutes ago, and would save less than a quarter of its price';
  if (savings < pods * settings.podMovePrice) return `It would save too little for the ${pods} pods it moves`;
  if (calm.isPoor(candidates, savings, pods)) return tooLittleForNow;
  const poor = balance.poor(candidates, savings);
  return poor && `Balanced: it would save too little for what it moves (score ${poor.score.toFixed(2)})`;
}
