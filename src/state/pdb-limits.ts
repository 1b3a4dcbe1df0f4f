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

/** The list of an informer is the same one until a budget changes: what was found for a pod's labels holds until then. */
const sorted = new WeakMap<object, ReadonlyMap<string, NamespaceBudgets>>();

/** The budgets of a cluster at one moment. */
export class PdbLimits {
  readonly #byNamespace: ReadonlyMap<string, NamespaceBudgets>;
  /** By list of pods that cannot change: those that budgets are about. A node has the same pods for many passes, and most have no budget. */
  readonly #guarded = new WeakMap<object, readonly Guarded[]>();

  constructor(budgets: Iterable<PodDisruptionBudget>) {
    const known = sorted.get(budgets);
    this.#byNamespace = known ?? byNamespace(budgets);
    if (!known && Object.isFrozen(budgets)) sorted.set(budgets, this.#byNamespace);
  }

  /**
   * The budgets, as `namespace/name`, that keep a pod from being evicted now. None for pods nobody would evict. A pod under
   * several budgets cannot be evicted at all, so all of them are named.
   */
  blocking(pod: Pod, now: number): readonly string[] {
    return this.#blocking(pod, now, allowsNone);
  }

  /** The first pod that cannot be evicted now, with the budgets in its way; undefined when all can. */
  firstBlocked(
    pods: Iterable<Pod>,
    now: number,
  ): { readonly pod: Pod; readonly budgets: readonly string[] } | undefined {
    for (const { pod, mine } of this.#guardedAmong(pods)) {
      const budgets = inTheWay(pod, mine, now, allowsNone);
      if (budgets.length > 0) return { pod, budgets };
    }
    return undefined;
  }

  #guardedAmong(pods: Iterable<Pod>): readonly Guarded[] {
    const known = this.#guarded.get(pods);
    if (known) return known;
    const guarded: Guarded[] = [];
    for (const pod of pods) {
      const mine = this.#of(pod);
      if (mine.length > 0) guarded.push({ pod, mine });
    }
    if (Object.isFrozen(pods)) this.#guarded.set(pods, guarded);
    return guarded;
  }

  /** The budgets that will never let a pod go, whatever its siblings do: it makes no sense to wait for its eviction. */
  fullyBlocking(pod: Pod, now: number): readonly string[] {
    return this.#blocking(pod, now, neverAllows);
  }

  /** Whether a pod of a node that goes away needs a place elsewhere: it can move, and will be allowed to some day. */
  isCurrentlyReschedulable(pod: Pod, now: number): boolean {
    return isReschedulable(pod) && isDisruptable(pod, now) && this.fullyBlocking(pod, now).length === 0;
  }

  #blocking(pod: Pod, now: number, blocks: (budget: PodDisruptionBudget) => boolean): readonly string[] {
    return inTheWay(pod, this.#of(pod), now, blocks);
  }

  #of({ metadata }: Pod): readonly Budget[] {
    return this.#byNamespace.get(metadata.namespace ?? '')?.of(metadata.labels) ?? noBudgets;
  }
}

/** A pod with the budgets that select it. */
interface Guarded {
  readonly pod: Pod;
  readonly mine: readonly Budget[];
}

const none: readonly string[] = Object.freeze([]);
const noBudgets: readonly Budget[] = Object.freeze([]);

/** Those of a pod's budgets that keep it from being evicted. */
function inTheWay(
  pod: Pod,
  mine: readonly Budget[],
  now: number,
  blocks: (budget: PodDisruptionBudget) => boolean,
): readonly string[] {
  if (mine.length === 0 || !isEvictable(pod, now)) return none;
  // The eviction API refuses to choose between budgets.
  if (mine.length > 1) return mine.map(({ budget }) => keyOf(budget));
  const { budget } = mine[0]!;
  if (budget.spec?.unhealthyPodEvictionPolicy === 'AlwaysAllow' && isUnready(pod)) return none;
  return blocks(budget) ? [keyOf(budget)] : none;
}

function byNamespace(budgets: Iterable<PodDisruptionBudget>): ReadonlyMap<string, NamespaceBudgets> {
  const all = new Map<string, NamespaceBudgets>();
  let order = 0;
  for (const budget of budgets) {
    const namespace = budget.metadata.namespace ?? '';
    const known = all.get(namespace) ?? new NamespaceBudgets();
    all.set(namespace, known);
    known.add({ budget, selector: selectorOf(budget), order: order++ });
  }
  return all;
}

/** A budget that lets no pod go now. */
function allowsNone({ status }: PodDisruptionBudget): boolean {
  return (status?.disruptionsAllowed ?? 0) === 0;
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
