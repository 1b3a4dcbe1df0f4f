// SPDX-License-Identifier: Apache-2.0
// What waits for a budget and for nothing else: machines that a method would have chosen, had their budgets let them go; and those
// that stood their trial and were left over, who need not stand another as long as they have the same pods.
import type { Candidate } from './candidates.ts';
import type { Method, MethodView } from './method.ts';

const none: ReadonlySet<string> = new Set();

export class Waiting {
  /** By method: keys of machines that it would have chosen. */
  readonly #deferred = new Map<Method, ReadonlySet<string>>();
  /** By method and key: who stood a trial, as they were then. */
  readonly #stood = new Map<Method, Map<string, Candidate>>();
  readonly #isThere: (key: string) => boolean;

  /** `isThere`: whether a machine still exists, by its key. */
  constructor(isThere: (key: string) => boolean) {
    this.#isThere = isThere;
  }

  /** Keys of all machines that go as soon as a budget lets them; those of other methods only, where one is named. */
  keys(besides?: Method): Set<string> {
    const keys = new Set<string>();
    for (const [method, deferred] of this.#deferred)
      if (method !== besides) for (const key of deferred) if (this.#isThere(key)) keys.add(key);
    return keys;
  }

  /** Says who waits: the same text means the same machines. */
  toString(): string {
    return [...this.#deferred.values()].map((keys) => [...keys].join()).join(';');
  }

  /** Notes the answer of a method to a view. `stood`: those that stood their trial for it. */
  note(method: Method, { candidates, budgets }: MethodView, stood: ReadonlySet<string> = none): void {
    // A method is not asked where nobody may go.
    const deferred = candidates.length > 0 ? method.deferred : undefined;
    if (deferred) this.#deferred.set(method, deferred);
    if (stood.size === 0) return;
    const known = this.#stood.get(method) ?? new Map<string, Candidate>();
    this.#stood.set(method, known);
    for (const key of stood) known.delete(key);
    for (const candidate of candidates) {
      const { machine, nodePool } = candidate;
      const isLeftOver = budgets.left(nodePool) === 0 && budgets.allowed(nodePool) > 0;
      if (stood.has(machine.key) && (deferred?.has(machine.key) || isLeftOver)) known.set(machine.key, candidate);
    }
  }

  /** Nobody concerns the method. */
  forget(method: Method): void {
    this.#deferred.delete(method);
  }

  /** Whoever stood a trial for the method stands another. */
  restart(method: Method): void {
    this.#stood.delete(method);
  }

  /** Keys of candidates that stood a trial before and have the same pods still, and of those that have not. */
  look(method: Method, { candidates }: MethodView): { same: string[]; changed: string[] } {
    const [same, changed]: [string[], string[]] = [[], []];
    const stood = this.#stood.get(method);
    if (!stood || stood.size === 0) return { same, changed };
    for (const key of stood.keys()) if (!this.#isThere(key)) stood.delete(key);
    for (const candidate of candidates) {
      const { key } = candidate.machine;
      const before = stood.get(key);
      if (!before) continue;
      if (isSame(before, candidate)) same.push(key);
      else {
        stood.delete(key);
        changed.push(key);
      }
    }
    return { same, changed };
  }
}

/** Keys of candidates that cannot go before others have gone. */
export function starvedOf({ candidates, budgets }: MethodView): Set<string> {
  const starved = candidates.filter(({ nodePool }) => budgets.allowed(nodePool) > 0 && budgets.left(nodePool) === 0);
  return new Set(starved.map(({ machine }) => machine.key));
}

/** Whether nothing changed that a proposal about the machine was based on. */
export function isSame({ reschedulablePods: before, price }: Candidate, now: Candidate | undefined): boolean {
  const uids = new Set(before.map(({ metadata }) => metadata.uid));
  return (
    now !== undefined &&
    now.price === price &&
    now.reschedulablePods.length === before.length &&
    now.reschedulablePods.every(({ metadata }) => uids.has(metadata.uid))
  );
}
