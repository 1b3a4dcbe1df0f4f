// SPDX-License-Identifier: Apache-2.0
// A way to find nodes that had better go, and what it says. Methods are asked in a fixed order; the first that finds
// something ends the pass.
import { chain, compareStrings } from '../../base/order.ts';
import type { Steps } from '../../base/steps.ts';
import type { NewNodeClaim } from '../../scheduling/problem.ts';
import type { PoolCatalog } from '../../state/pool-catalog.ts';
import type { BudgetLedger } from './budgets.ts';
import { type Candidate, type DisruptionClass, savingsRatio } from './candidates.ts';
import type { DisruptionSnapshot } from './snapshot.ts';

/** What a method may look at, of one moment. It may take from the ledger, and change nothing else. */
export interface MethodView {
  /** Those that concern the method, in no particular order. */
  readonly candidates: readonly Candidate[];
  /** Others that concern the method, and may not go yet: not for long enough. */
  readonly later: readonly Candidate[];
  readonly budgets: BudgetLedger;
  readonly catalog: PoolCatalog;
  readonly snapshot: DisruptionSnapshot;
  /** Keys of machines that others have chosen: they go soon, whatever this method does. */
  readonly leaving: ReadonlySet<string>;
  /** Whether it is enough to know that there is something to do: it is looked for again, and closely, before anything is done. */
  readonly isGlance?: boolean;
  /** Notes why a candidate was passed over: users hear of it. */
  readonly reject: (candidate: Candidate, kind: RejectionKind, why: string) => void;
}

/** `blocked`: something stands in the way of it. `unconsolidatable`: nothing would be gained. */
export type RejectionKind = 'blocked' | 'unconsolidatable';

/** Machines that should go together, and what has to come first. */
export interface Proposal {
  readonly candidates: readonly Candidate[];
  /** Machines to buy before any of them goes. */
  readonly replacements: readonly NewNodeClaim[];
  /** Machines by key that will take some of their pods: promised to them while the command runs. */
  readonly destinations: readonly string[];
  /** Which metric counts it, when it is not the method's own. */
  readonly consolidationType?: string;
  /** How it scores in the pools whose policy is Balanced. */
  readonly scores?: readonly { readonly pool: string; readonly score: number }[];
  /** Called once when the command has begun, or could not. */
  readonly settled?: () => void;
}

/** Whether a candidate concerns a method; a text tells users why it does not. */
export type Concern = boolean | { readonly unconsolidatable: string };

/** A strategy of disruption. */
export interface Method {
  /** For logs. */
  readonly name: string;
  /** As budgets name it: one of the API's, or one that a cloud declares. */
  readonly reason: string;
  readonly disruptionClass: DisruptionClass;
  /** The value of the metric label; '' for what is no consolidation. */
  readonly consolidationType: string;
  /**
   * How long after it found something it is asked again, about those only that concerned it all along; what it proposes
   * then is carried out. 0: what it proposes is carried out at once.
   */
  readonly validateAfterMs: number;
  /** Whether it does better the more machines it decides about at once: the first then wait for later ones, as long again at most. */
  readonly gathers?: boolean;
  /** Whether its last answer came for want of time: nothing found does not mean that there is nothing. */
  readonly hasMore?: boolean;
  /** Until when it finds nothing, unless something changes; monotonic. */
  readonly restsUntil?: number | undefined;
  /** Keys of the machines that its last answer would have been about as well, had budgets let them go; undefined: as before. */
  readonly deferred?: ReadonlySet<string> | undefined;
  concerns(candidate: Candidate): Concern;
  /** What to disrupt now, within the budgets; nothing proposed means that nothing needs doing. Takes no time that matters. */
  propose(view: MethodView): Proposal[];
  /** The same with pauses, where it may take long. What is read of the view after a pause may be newer than what was before. */
  proposeInSteps?(view: MethodView): Steps<Proposal[]>;
}

/** A proposal that is carried out. */
export interface Command extends Proposal {
  readonly id: string;
  readonly method: Pick<Method, 'reason' | 'consolidationType'>;
  /** What the replacements are bought from. */
  readonly catalog: PoolCatalog;
}

export type Decision = 'delete' | 'replace';

export function decisionOf({ replacements }: Proposal): Decision {
  return replacements.length > 0 ? 'replace' : 'delete';
}

/** The most saved for the least disturbance first. */
export const bySavings: (a: Candidate, b: Candidate) => number = chain(
  (a, b) => savingsRatio(b) - savingsRatio(a),
  (a, b) => compareStrings(a.machine.name, b.machine.name),
);

/** What is saved per hour, as far as prices are known. */
export function savingsOf({ candidates, replacements }: Pick<Proposal, 'candidates' | 'replacements'>): number {
  const saved = candidates.reduce((sum, { price }) => sum + price, 0);
  return replacements.reduce((sum, { price }) => sum - price, saved);
}

/** The command in one line: `Empty/ID: delete: nodepools=[a]: [node-1, node-2] (savings: $0.40)`. */
export function describeCommand(command: Command): string {
  const { id, method, candidates, replacements } = command;
  const names = candidates.map(({ machine }) => machine.name).join(', ');
  const pools = [...new Set(candidates.map(({ nodePool }) => nodePool.metadata.name))].join(',');
  const count = replacements.length;
  const bought = count === 0 ? '' : ` -> [${count} replacement${count === 1 ? '' : 's'}]`;
  const savings = savingsOf(command).toFixed(2);
  return `${method.reason}/${id}: ${decisionOf(command)}: nodepools=[${pools}]: [${names}]${bought} (savings: $${savings})`;
}
