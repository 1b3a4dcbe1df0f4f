// SPDX-License-Identifier: Apache-2.0
// Which PodDisruptionBudgets stand in the way of a pod's eviction, now and for ever.
import type { Pod, PodDisruptionBudget } from '../kube/kinds.ts';
import { compileLabelSelector, type Labels, nothing, type Selector, SelectorError } from '../kube/labels.ts';
import { keyOf } from '../kube/object.ts';
import { isDisruptable, isEvictable, isReschedulable, isUnready } from './pod-predicates.ts';

interface Budget {
  readonly budget: PodDisruptionBudget;
  readonly selector: Selector;
  readonly order: number;
}

/** The budgets of one namespace, found without asking each of them. */
class NamespaceBudgets {
  /** By a label and a value that a pod must have: most selectors name one. */
  readonly #byLabel = new Map<string, Map<string, Budget[]>>();
  readonly #others: Budget[] = [];
  /** Pods of one workload share their labels: what was found for one holds for all. */
  readonly #known = new WeakMap<Labels, readonly Budget[]>();

  add(entry: Budget): void {
    const wanted = entry.selector.requirements.find(({ operator }) => operator === 'In');
    if (!wanted) {
      this.#others.push(entry);
      return;
    }
    const byValue = this.#byLabel.get(wanted.key) ?? new Map<string, Budget[]>();
    this.#byLabel.set(wanted.key, byValue);
    for (const value of new Set(wanted.values)) byValue.set(value, [...(byValue.get(value) ?? []), entry]);
  }

  /** Those that select a pod, in the order they were given. */
  of(labels: Labels = noLabels): readonly Budget[] {
    let mine = this.#known.get(labels);
    if (!mine) {
      mine = this.#select(labels);
      this.#known.set(labels, mine);
    }
    return mine;
  }

  #select(labels: Labels): readonly Budget[] {
    const candidates = [...this.#others];
    for (const [key, byValue] of this.#byLabel) candidates.push(...(byValue.get(labels[key] ?? '') ?? []));
    return candidates.filter(({ selector }) => selector.matches(labels)).sort((a, b) => a.order - b.order);
  }
}

const noLabels: Labels = {};

/** Frozen objects keep their identity: each budget's selector is compiled once. */
const selectors = new WeakMap<PodDisruptionBudget, Selector>();

/** The budgets of a cluster at one moment. */
export class PdbLimits {
  readonly #byNamespace = new Map<string, NamespaceBudgets>();

  constructor(budgets: Iterable<PodDisruptionBudget>) {
    let order = 0;
    for (const budget of budgets) {
      const namespace = budget.metadata.namespace ?? '';
      const known = this.#byNamespace.get(namespace) ?? new NamespaceBudgets();
      this.#byNamespace.set(namespace, known);
      known.add({ budget, selector: selectorOf(budget), order: order++ });
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
    const mine = this.#byNamespace.get(pod.metadata.namespace ?? '')?.of(pod.metadata.labels) ?? [];
    if (mine.length === 0 || !isEvictable(pod, now)) return [];
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
