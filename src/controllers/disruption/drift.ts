// SPDX-License-Identifier: Apache-2.0
// Nodes that are no longer what their NodePool or their cloud would make today are replaced: the longest drifted first,
// those without pods before all others.
import { getCondition, nodeClaimConditions } from '../../api/conditions.ts';
import type { NodePool } from '../../api/node-pool.ts';
import { messageOf } from '../../base/errors.ts';
import { chain, compareStrings } from '../../base/order.ts';
import { finish, type Steps } from '../../base/steps.ts';
import type { NewNodeClaim } from '../../scheduling/problem.ts';
import type { StaticNodes } from '../static/static-nodes.ts';
import type { Candidate } from './candidates.ts';
import type { Concern, Method, MethodView, Proposal } from './method.ts';
import { isSparedByUnfinished, simulate, type WhatIf } from './simulation.ts';
import { type DisruptionSnapshot, unfinishedMachines } from './snapshot.ts';

const { drifted } = nodeClaimConditions;

function hasCondition({ nodeClaim }: Candidate, type: string): boolean {
  return getCondition(nodeClaim, type)?.status === 'True';
}

function sinceOf({ nodeClaim }: Candidate, type: string): number {
  return Date.parse(getCondition(nodeClaim, type)?.lastTransitionTime ?? '') || 0;
}

/** Those without pods first, then those that have had the condition longest. */
const emptyFirst = (type: string): ((a: Candidate, b: Candidate) => number) =>
  chain(
    (a, b) => Number(a.reschedulablePods.length > 0) - Number(b.reschedulablePods.length > 0),
    (a, b) => sinceOf(a, type) - sinceOf(b, type),
    (a, b) => compareStrings(a.machine.name, b.machine.name),
  );

export interface DriftOptions {
  /** Milliseconds from any start; none: a look takes as long as it takes. */
  readonly clock?: () => number;
  /** After this long the rest has to wait for the next look. */
  readonly timeoutMs?: number;
  /** A reason that a cloud declares: its NodeClaims carry a true condition of that name when it wants them replaced. */
  readonly reason?: string;
}

/** Others need the processor, too. */
const defaultTimeoutMs = 2000;

const waitsForUnfinished = 'Pods would schedule against a node that is not initialized';
/**
 * Whoever waits for machines that are not in service yet is asked about again after this long, or once all of them are: while many
 * start, something changes every second, and each question costs two plans of the whole cluster.
 */
const waitMs = 10_000;

/** The method `Drift`, for pools that grow and shrink; and its like for reasons that clouds declare. */
export class Drift implements Method {
  readonly name: string;
  readonly reason: string;
  readonly disruptionClass = 'eventual';
  readonly consolidationType = '';
  readonly validateAfterMs = 0;
  readonly #options: DriftOptions;
  /** Keys of machines that could not go, since time was up for the others: those have their turn first. */
  #tried = new Set<string>();
  #hasMore = false;
  /** The key of the machine that was proposed last. */
  #proposed = '';
  /** By key of a machine that waits for others to get into service: until when it is not asked about. */
  #waits = new Map<string, number>();

  constructor(options: DriftOptions = {}) {
    this.#options = options;
    this.name = options.reason ?? 'Drift';
    this.reason = options.reason ?? drifted;
  }

  get hasMore(): boolean {
    return this.#hasMore;
  }

  get restsUntil(): number | undefined {
    return this.#waits.size > 0 ? Math.min(...this.#waits.values()) : undefined;
  }

  concerns(candidate: Candidate): Concern {
    return candidate.nodePool.spec.replicas === undefined && hasCondition(candidate, this.reason);
  }

  /** The first whose pods have a place elsewhere; as many machines are bought as they need. */
  propose(view: MethodView): Proposal[] {
    return finish(this.proposeInSteps(view));
  }

  *proposeInSteps({ candidates, budgets, snapshot, reject }: MethodView): Steps<Proposal[]> {
    const { clock, timeoutMs = defaultTimeoutMs } = this.#options;
    const end = clock ? clock() + timeoutMs : Number.POSITIVE_INFINITY;
    const open = candidates.filter(({ nodePool }) => budgets.left(nodePool) > 0).toSorted(emptyFirst(this.reason));
    const known = this.#tried;
    // Still there: its command could not begin, and would not the next time either.
    if (open.some(({ machine }) => machine.key === this.#proposed)) known.add(this.#proposed);
    this.#proposed = '';
    const isTried = ({ machine }: Candidate): boolean => known.has(machine.key);
    this.#tried = new Set(open.every(isTried) ? [] : open.filter(isTried).map(({ machine }) => machine.key));
    this.#hasMore = false;
    this.#forgetWaits(open, snapshot);
    for (const candidate of open.toSorted((a, b) => Number(isTried(a)) - Number(isTried(b)))) {
      if (clock && clock() >= end) {
        this.#hasMore = true;
        return [];
      }
      yield;
      const answer = this.#waits.has(candidate.machine.key) ? waitsForUnfinished : this.#ask(snapshot, candidate);
      if (typeof answer !== 'string') {
        const { replacements, destinations } = answer;
        budgets.take(candidate.nodePool);
        if (known.size === 0) this.#tried.clear();
        this.#proposed = candidate.machine.key;
        return [{ candidates: [candidate], replacements, destinations }];
      }
      reject(candidate, 'blocked', answer);
      this.#tried.add(candidate.machine.key);
    }
    this.#tried.clear();
    return [];
  }

  /** What comes of it if a machine goes, or why it cannot. */
  #ask(snapshot: DisruptionSnapshot, candidate: Candidate): WhatIf | string {
    const whatIf = simulate(snapshot, [candidate]);
    if (whatIf.replacements.length > 0 && isSparedByUnfinished(snapshot, candidate, whatIf)) {
      const { clock } = this.#options;
      if (clock) this.#waits.set(candidate.machine.key, clock() + waitMs);
      return waitsForUnfinished;
    }
    return whatIf.problem ?? whatIf;
  }

  /** Of those that are still open, only whose time is not over waits on; and nobody where there is nothing to wait for. */
  #forgetWaits(open: readonly Candidate[], snapshot: DisruptionSnapshot): void {
    if (this.#waits.size === 0) return;
    const now = this.#options.clock?.() ?? 0;
    const waits = new Map<string, number>();
    if (unfinishedMachines(snapshot).length > 0)
      for (const { machine } of open) {
        const until = this.#waits.get(machine.key);
        if (until !== undefined && until > now) waits.set(machine.key, until);
      }
    this.#waits = waits;
  }
}

/** The method `StaticDrift`, for pools with a fixed number of nodes: each is replaced by one of its pool. */
export class StaticDrift implements Method {
  readonly name = 'StaticDrift';
  readonly reason = 'Drifted';
  readonly disruptionClass = 'eventual';
  readonly consolidationType = '';
  readonly validateAfterMs = 0;
  readonly #nodes: StaticNodes;

  constructor(nodes: StaticNodes) {
    this.#nodes = nodes;
  }

  concerns(candidate: Candidate): Concern {
    return candidate.nodePool.spec.replicas !== undefined && hasCondition(candidate, drifted);
  }

  /** As many as budgets and the limit of nodes allow, each in a command of its own. */
  propose({ candidates, budgets, reject }: MethodView): Proposal[] {
    const proposals: Proposal[] = [];
    const byPool = Map.groupBy(candidates.toSorted(emptyFirst(drifted)), ({ nodePool }) => nodePool);
    for (const [pool, drifting] of byPool) {
      const { active, unseen, pendingDisruption } = this.#nodes.count(pool.metadata.name ?? '');
      // Too many as it is: those that go need no replacement.
      if (active.length + unseen + pendingDisruption > (pool.spec.replicas ?? 0)) continue;
      const plan = this.#planFor(pool);
      if (typeof plan === 'string') {
        for (const candidate of drifting) reject(candidate, 'blocked', plan);
        continue;
      }
      const granted = this.#nodes.reserve(pool, Math.min(budgets.left(pool), drifting.length));
      for (const candidate of drifting.slice(0, granted)) {
        budgets.take(pool);
        proposals.push({
          candidates: [candidate],
          replacements: [plan],
          destinations: [],
          settled: () => this.#nodes.release(pool, 1),
        });
      }
    }
    return proposals;
  }

  /** Why not, where the pool's template describes no machine: that is no reason to leave other pools alone. */
  #planFor(pool: NodePool): NewNodeClaim | string {
    try {
      return this.#nodes.planFor(pool);
    } catch (error) {
      return `No replacement can be made: ${messageOf(error)}`;
    }
  }
}
