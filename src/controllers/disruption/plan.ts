// SPDX-License-Identifier: Apache-2.0
// What disruption would do with a cluster, as data: every method's view of a snapshot, what it proposes and what it passes
// over. The controller acts on it, `karpenter plan` prints it, tests judge it. Pure: nothing is written.
import type { NodePool } from '../../api/node-pool.ts';
import { compareStrings } from '../../base/order.ts';
import type { PodDisruptionBudget } from '../../kube/kinds.ts';
import { keyOf } from '../../kube/object.ts';
import type { NewNodeClaim } from '../../scheduling/problem.ts';
import { PdbLimits } from '../../state/pdb-limits.ts';
import type { StateNode } from '../../state/state-node.ts';
import { BudgetLedger, type PoolBudget, poolBudgets } from './budgets.ts';
import {
  type BlockedMachine,
  type Candidate,
  type CandidateOptions,
  type DisruptionClass,
  findCandidates,
} from './candidates.ts';
import { type Decision, decisionOf, type Method, type MethodView, type Proposal, savingsOf } from './method.ts';
import type { DisruptionSnapshot } from './snapshot.ts';

/** A machine that a method passed over, and why. */
export interface Rejection {
  readonly machine: StateNode;
  readonly kind: 'blocked' | 'unconsolidatable';
  readonly why: string;
}

/** What a method may choose from, and what became of the rest. */
export interface Evaluation {
  readonly view: MethodView;
  readonly budgets: readonly PoolBudget[];
  readonly blocked: readonly BlockedMachine[];
  /** Grows while the method chooses. */
  readonly rejections: readonly Rejection[];
}

/** Machines by key among which a method chooses. */
export interface Among {
  /** The only ones it may choose. */
  readonly only?: ReadonlySet<string>;
  /** Those that others have chosen. */
  readonly not?: ReadonlySet<string>;
  /** Those of them that count against budgets already, though nobody has begun with them; all unless told. */
  readonly spent?: ReadonlySet<string>;
  /** Those that others have decided about and that wait for their budgets. */
  readonly closed?: ReadonlySet<string>;
  /** Those it leaves alone. */
  readonly without?: ReadonlySet<string>;
}

/** One look at a snapshot: what several methods ask is worked out once. */
export class Pass {
  readonly snapshot: DisruptionSnapshot;
  readonly #pools: readonly NodePool[];
  readonly #pdbs: PdbLimits;
  readonly #found = new Map<DisruptionClass, ReturnType<typeof findCandidates>>();
  readonly #known: NonNullable<CandidateOptions['known']> = new Map();

  constructor(snapshot: DisruptionSnapshot) {
    this.snapshot = snapshot;
    this.#pools = snapshot.catalog.pools;
    this.#pdbs = limitsOf(snapshot.podDisruptionBudgets);
  }

  /** The view of a method. */
  evaluate(method: Method, among: Among = {}): Evaluation {
    const { snapshot } = this;
    const rejections: Rejection[] = [];
    const { candidates, blocked } = this.#candidates(method.disruptionClass);
    const later: Candidate[] = [];
    const concerned = candidates.filter((candidate) => {
      const { key } = candidate.machine;
      if (among.not?.has(key) || among.without?.has(key)) return false;
      const concern = method.concerns(candidate);
      if (among.only && !among.only.has(key)) {
        if (concern === true) later.push(candidate);
        return false;
      }
      if (typeof concern === 'boolean') return concern;
      rejections.push({ machine: candidate.machine, kind: 'unconsolidatable', why: concern.unconsolidatable });
      return false;
    });
    const { machines, catalog, now } = snapshot;
    const budgets = poolBudgets({ machines, pools: this.#pools, reason: method.reason, now });
    const view: MethodView = {
      candidates: concerned,
      later,
      budgets: this.#ledger(budgets, among.spent ?? among.not ?? none),
      catalog,
      snapshot,
      leaving: new Set([...(among.not ?? none), ...(among.closed ?? none)]),
      reject: ({ machine }, kind, why) => void rejections.push({ machine, kind, why }),
    };
    return { view, budgets, blocked, rejections };
  }

  /** What others have chosen is spent, though nobody has begun with it. */
  #ledger(budgets: readonly PoolBudget[], chosen: ReadonlySet<string>): BudgetLedger {
    const ledger = new BudgetLedger(budgets);
    if (chosen.size === 0) return ledger;
    for (const { pool } of budgets)
      for (const machine of this.snapshot.machines.nodesOfPool(pool.metadata.name ?? ''))
        if (chosen.has(machine.key) && !machine.markedForDeletion) ledger.take(pool);
    return ledger;
  }

  #candidates(disruptionClass: DisruptionClass): ReturnType<typeof findCandidates> {
    let found = this.#found.get(disruptionClass);
    if (!found) {
      const { machines, catalog, now } = this.snapshot;
      const isQueued = (key: string): boolean => this.snapshot.isQueued(key);
      const known = this.#known;
      found = findCandidates({ machines, catalog, pdbs: this.#pdbs, now, disruptionClass, isQueued, known });
      this.#found.set(disruptionClass, found);
    }
    return found;
  }
}

const none: ReadonlySet<string> = new Set();

/** An informer gives the same list as long as nothing changes: which pods a budget is about is known from the last pass then. */
const limits = new WeakMap<readonly PodDisruptionBudget[], PdbLimits>();

function limitsOf(budgets: readonly PodDisruptionBudget[]): PdbLimits {
  let own = limits.get(budgets);
  if (!own) limits.set(budgets, (own = new PdbLimits(budgets)));
  return own;
}

/** A command as people and programs read it. */
export interface PlannedCommand {
  readonly method: string;
  readonly reason: string;
  readonly decision: Decision;
  /** Nodes that go, by name. */
  readonly nodes: readonly string[];
  readonly nodePools: readonly string[];
  readonly replacements: readonly PlannedReplacement[];
  /** `namespace/name` of the pods that move. */
  readonly podsMoved: readonly string[];
  /** Per hour: of the nodes that go, and what is left of that after the replacements. */
  readonly price: number;
  readonly savings: number;
}

export interface PlannedReplacement {
  readonly nodePool: string;
  /** Cheapest first. */
  readonly instanceTypes: readonly string[];
  readonly price: number;
}

/** A node that stays, and why. */
export interface StayingNode {
  readonly node: string;
  readonly method: string;
  readonly why: string;
}

/** What disruption would do now. */
export interface DisruptionPlan {
  /** In the order in which they would begin; the first method's before all others. */
  readonly commands: readonly PlannedCommand[];
  readonly staying: readonly StayingNode[];
  /** How many nodes each pool may still lose, by method. */
  readonly budgets: readonly {
    readonly nodePool: string;
    readonly reason: string;
    readonly nodes: number;
    readonly allowed: number;
    readonly disrupting: number;
    /** Why one of the pool's budgets cannot be understood: nothing is allowed then. */
    readonly problem?: string;
  }[];
  /** Per hour: of all nodes of ours whose price is known, now and after the commands. */
  readonly price: number;
  readonly priceAfter: number;
}

/** Asks every method. Each leaves alone what those before it have chosen. */
export function plan(snapshot: DisruptionSnapshot, methods: readonly Method[]): DisruptionPlan {
  const pass = new Pass(snapshot);
  const chosen = new Set<string>();
  const commands: PlannedCommand[] = [];
  const staying = new Map<string, StayingNode>();
  const budgets = new Map<string, DisruptionPlan['budgets'][number]>();
  let price = 0;
  const priced = new Set<string>();
  for (const method of methods) {
    const evaluation = pass.evaluate(method, { not: new Set(chosen) });
    for (const { pool, nodes, allowed, disrupting, problem } of evaluation.budgets) {
      const broken = problem === undefined ? {} : { problem };
      const entry = { nodePool: keyOf(pool), reason: method.reason, nodes, allowed, disrupting, ...broken };
      budgets.set(`${entry.nodePool} ${entry.reason}`, entry);
    }
    const proposals = evaluation.view.candidates.length > 0 ? method.propose(evaluation.view) : [];
    for (const proposal of proposals) {
      commands.push(plannedCommand(method, proposal));
      for (const { machine } of proposal.candidates) chosen.add(machine.key);
    }
    for (const { machine, why } of [...evaluation.blocked, ...evaluation.rejections])
      staying.set(`${machine.name} ${why}`, { node: machine.name, method: method.name, why });
    for (const { machine, price: own } of evaluation.view.candidates) {
      if (!priced.has(machine.key)) price += own;
      priced.add(machine.key);
    }
  }
  const saved = commands.reduce((sum, { savings }) => sum + savings, 0);
  const going = new Set(commands.flatMap(({ nodes }) => nodes));
  return {
    commands,
    staying: [...staying.values()]
      .filter(({ node }) => !going.has(node))
      .sort((a, b) => compareStrings(a.node, b.node) || compareStrings(a.why, b.why)),
    budgets: [...budgets.values()],
    price,
    priceAfter: price - saved,
  };
}

function plannedCommand({ name, reason }: Method, proposal: Proposal): PlannedCommand {
  const { candidates, replacements } = proposal;
  return {
    method: name,
    reason,
    decision: decisionOf(proposal),
    nodes: candidates.map(({ machine }) => machine.name),
    nodePools: [...new Set(candidates.map(({ nodePool }) => nodePool.metadata.name ?? ''))].sort(compareStrings),
    replacements: replacements.map(
      ({ nodePool, instanceTypes, price }: NewNodeClaim): PlannedReplacement => ({ nodePool, instanceTypes, price }),
    ),
    podsMoved: candidates.flatMap(({ reschedulablePods }: Candidate) => reschedulablePods.map(keyOf)),
    price: candidates.reduce((sum, { price }) => sum + price, 0),
    savings: savingsOf(proposal),
  };
}
