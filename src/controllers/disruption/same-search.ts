// SPDX-License-Identifier: Apache-2.0
// A search that was made before: over the same cluster it finds the same. What consolidation proposes is looked at again after a
// while, mostly with nothing changed in between, and a search costs as much as the first time.
import type { NodePool } from '../../api/node-pool.ts';
import { isYoung } from './calm.ts';
import type { Candidate } from './candidates.ts';
import { bySavings, type MethodView, type RejectionKind } from './method.ts';
import type { Pieces } from './pieces.ts';

interface Rejected {
  readonly key: string;
  readonly kind: RejectionKind;
  readonly why: string;
}

interface Remembered {
  readonly question: readonly unknown[];
  readonly answer: Pieces;
  readonly rejected: readonly Rejected[];
}

/** Remembers the last search and what came of it. */
export class SameSearch {
  #last: Remembered | undefined;

  /** What was found, if all that a search looks at is as it was; nodes that were passed over are told of again. */
  again(view: MethodView, question: readonly unknown[]): Pieces | undefined {
    const last = this.#last;
    if (last?.question.length !== question.length) return undefined;
    if (!last.question.every((part, i) => part === question[i])) return undefined;
    const now = new Map([...view.candidates, ...view.later].map((candidate) => [candidate.machine.key, candidate]));
    for (const { key, kind, why } of last.rejected) view.reject(now.get(key)!, kind, why);
    const proposals = last.answer.proposals.map((proposal) => ({
      ...proposal,
      candidates: proposal.candidates.map(({ machine }) => now.get(machine.key)!),
    }));
    return { ...last.answer, proposals };
  }

  /** The same view, of which is noted what is passed over; `keep` remembers what came of it. */
  noting(view: MethodView, question: readonly unknown[]): { view: MethodView; keep: (answer: Pieces) => void } {
    const rejected: Rejected[] = [];
    const reject = (candidate: Candidate, kind: RejectionKind, why: string): void => {
      rejected.push({ key: candidate.machine.key, kind, why });
      view.reject(candidate, kind, why);
    };
    const keep = (answer: Pieces): void => {
      this.#last = { question, answer, rejected };
    };
    this.#last = undefined;
    return { view: { ...view, reject }, keep };
  }
}

/** All that a search looks at, piece by piece: frozen objects that are others as soon as something in them changes. */
export function questionOf(view: MethodView, closed: ReadonlySet<string>): unknown[] {
  const { candidates, later, budgets, catalog, snapshot } = view;
  const parts: unknown[] = [];
  for (const group of [candidates, later]) {
    parts.push(group.length);
    for (const candidate of group.toSorted(bySavings)) {
      const { machine, nodePool, price, rescheduleCost, reschedulablePods } = candidate;
      parts.push(machine.key, nodePool.metadata.name, price, rescheduleCost, isYoung(candidate, snapshot.now));
      parts.push(reschedulablePods.length);
    }
  }
  for (const pool of catalog.pools)
    parts.push(versionOf(pool), budgets.left(pool), budgets.allowed(pool), budgets.isTight(pool));
  const keys = [...candidates, ...later].map(({ machine }) => machine.key).toSorted();
  const problem = snapshot.problem({ candidates: keys, closedToMoves: closed, reservedOfferingMode: 'Fallback' });
  const {
    now: _,
    nodePools: _pools,
    instanceTypes,
    nodes = [],
    nodeClaims = [],
    pods,
    labels,
    state,
    settings,
    ...lists
  } = problem;
  for (const objects of [nodes, nodeClaims, pods, Object.values(instanceTypes)]) {
    parts.push(objects.length);
    for (const object of objects) parts.push(object);
  }
  parts.push(
    ...Object.values(lists),
    JSON.stringify([labels, settings, { ...state, nominations: Object.keys(state?.nominations ?? {}) }]),
  );
  return parts;
}

/** Changes with what a pool asks for, and not with what is told about it. */
function versionOf({ metadata }: Pick<NodePool, 'metadata'>): string {
  const { name, uid, generation, resourceVersion } = metadata;
  return generation === undefined ? `${name} ${uid} ${resourceVersion}` : `${name} ${uid} ${generation}`;
}
