// SPDX-License-Identifier: Apache-2.0
// Which PodDisruptionBudgets stand in the way of a pod's eviction, now and for ever.
import type { Pod, PodDisruptionBudget } from '../kube/kinds.ts';
import { compileLabelSelector, nothing, type Selector, SelectorError } from '../kube/labels.ts';
import { keyOf } from '../kube/object.ts';
import { isDisruptable, isEvictable, isReschedulable } from './pod-predicates.ts';

interface Budget {
  readonly budget: PodDisruptionBudget;
  readonly selector: Selector;
}

/** Frozen objects keep their identity: each budget's selector is compiled once. */
const selectors = new WeakMap<PodDisruptionBudget, Selector>();

/** The budgets of a cluster at one moment. */
export class PdbLimits {
  readonly #byNamespace = new Map<string, Budget[]>();

  constructor(budgets: Iterable<PodDisruptionBudget>) {
    for (const budget of budgets) {
      const namespace = budget.metadata.namespace ?? '';
      const entry = { budget, selector: selectorOf(budget) };
      const known = this.#byNamespace.get(namespace);
      if (known) known.push(entry);
      else this.#byNamespace.set(namespace, [entry]);
    }
  }

  /**
   * The budgets, as `namespace/name`, that keep a pod from being evicted now. None for pods nobody would evict. A pod under
   * several budgets cannot be evicted at all, so all of them are named.
   */
  blocking(pod: Pod, now: number): string[] {
    return this.#blocking(pod, now, ({ status }) => (status?.disruptionsAllowed ?? 0) === 0);
  }

  /** The first pod that cannot be evicted now, with the budgets in its way; undefined when all can. */
  firstBlocked(pods: Iterable<Pod>, now: number): { readonly pod: Pod; readonly budgets: string[] } | undefined {
    for (const pod of pods) {
      const budgets = this.blocking(pod, now);
      if (budgets.length > 0) return { pod, budgets };
    }
    return undefined;
  }

  /** The budgets that will never let a pod go, whatever its siblings do: it makes no sense to wait for its eviction. */
  fullyBlocking(pod: Pod, now: number): string[] {
    return this.#blocking(pod, now, neverAllows);
  }

  /** Whether a pod of a node that goes away needs a place elsewhere: it can move, and will be allowed to some day. */
  isCurrentlyReschedulable(pod: Pod, now: number): boolean {
    return isReschedulable(pod) && isDisruptable(pod, now) && this.fullyBlocking(pod, now).length === 0;
  }

  #blocking(pod: Pod, now: number, blocks: (budget: PodDisruptionBudget) => boolean): string[] {
    const candidates = this.#byNamespace.get(pod.metadata.namespace ?? '');
    if (!candidates || !isEvictable(pod, now)) return [];
    const mine = candidates.filter(({ selector }) => selector.matches(pod.metadata.labels));
    if (mine.length === 0) return [];
    // The eviction API refuses to choose between budgets.
    if (mine.length > 1) return mine.map(({ budget }) => keyOf(budget));
    const { budget } = mine[0]!;
    if (budget.spec?.unhealthyPodEvictionPolicy === 'AlwaysAllow' && isUnready(pod)) return [];
    return blocks(budget) ? [keyOf(budget)] : [];
  }
}

/** A budget whose arithmetic leaves no pod over, however many there are. */
function neverAllows({ spec }: PodDisruptionBudget): boolean {
  const { maxUnavailable: most, minAvailable: least } = spec ?? {};
  return most === 0 || most === '0' || most === '0%' || least === '100%';
}

function isUnready(pod: Pod): boolean {
  return pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'False') ?? false;
}

function selectorOf(budget: PodDisruptionBudget): Selector {
  let selector = selectors.get(budget);
  if (!selector) {
    selector = compile(budget);
    selectors.set(budget, selector);
  }
  return selector;
}

function compile(budget: PodDisruptionBudget): Selector {
  try {
    return compileLabelSelector(budget.spec?.selector);
  } catch (error) {
    // The API server lets none of these through; one that slipped in protects nothing there either.
    if (error instanceof SelectorError) return nothing;
    throw error;
  }
}
