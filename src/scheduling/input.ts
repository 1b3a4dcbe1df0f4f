// SPDX-License-Identifier: Apache-2.0
// Which pods a pass has to place: those that wait, and those whose node goes away and that may be moved.
import { annotations } from '../api/labels.ts';
import { compileLabelSelector, type Selector, SelectorError } from '../kube/labels.ts';
import type { Pod, PodDisruptionBudget } from './objects.ts';
import type { Problem } from './problem.ts';

function ownedBy(pod: Pod, kind: string): boolean {
  return pod.metadata.ownerReferences?.some((owner) => owner.kind === kind) ?? false;
}

export function isTerminal(pod: Pod): boolean {
  const phase = pod.status?.phase;
  return phase === 'Succeeded' || phase === 'Failed';
}

export function isTerminating(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp !== undefined && pod.metadata.deletionTimestamp !== null;
}

/** Whether a pod is owned by a DaemonSet. */
export function isDaemonPod(pod: Pod): boolean {
  return ownedBy(pod, 'DaemonSet');
}

/** A pod without a node that waits for one. What says that it waits for something else does not count. */
export function isPending(pod: Pod): boolean {
  if (pod.spec.nodeName || isTerminal(pod) || pod.status?.nominatedNodeName) return false;
  if ((pod.spec.schedulingGates?.length ?? 0) > 0) return false;
  if (pod.metadata.ownerReferences && (isDaemonPod(pod) || ownedBy(pod, 'Node'))) return false;
  const scheduled = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled');
  return scheduled?.reason === undefined || scheduled.reason === 'Unschedulable';
}

/** PodDisruptionBudgets, and which pods they never let go. */
class Budgets {
  readonly #all: readonly { readonly budget: PodDisruptionBudget; readonly selector: Selector }[];
  /** Of pods that cannot change. */
  readonly #known = new WeakMap<Pod, boolean>();

  constructor(budgets: readonly PodDisruptionBudget[]) {
    this.#all = budgets.flatMap((budget) => {
      try {
        return [{ budget, selector: compileLabelSelector(budget.spec?.selector) }];
      } catch (error) {
        // A budget that selects nothing protects nothing, as in the API server.
        if (error instanceof SelectorError) return [];
        throw error;
      }
    });
  }

  block(pod: Pod): boolean {
    if (this.#all.length === 0) return false;
    let blocked = this.#known.get(pod);
    if (blocked === undefined) {
      blocked = this.#block(pod);
      if (Object.isFrozen(pod)) this.#known.set(pod, blocked);
    }
    return blocked;
  }

  #block(pod: Pod): boolean {
    const namespace = pod.metadata.namespace ?? 'default';
    const mine = this.#all.filter(
      ({ budget, selector }) =>
        (budget.metadata.namespace ?? 'default') === namespace && selector.matches(pod.metadata.labels),
    );
    if (mine.length === 0) return false;
    if (mine.length > 1) return true;
    const spec = mine[0]!.budget.spec ?? {};
    const notReady =
      pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'False') ?? false;
    if (spec.unhealthyPodEvictionPolicy === 'AlwaysAllow' && notReady) return false;
    const { maxUnavailable: most, minAvailable: least } = spec;
    return most === 0 || most === '0' || most === '0%' || least === '100%';
  }
}

/** A cluster is read again every few seconds, and often within a search: a list that cannot change is read once. */
const knownBudgets = new WeakMap<readonly PodDisruptionBudget[], Budgets>();

function budgetsOf(list: readonly PodDisruptionBudget[]): Budgets {
  const known = knownBudgets.get(list);
  if (known) return known;
  const budgets = new Budgets(list);
  if (Object.isFrozen(list)) knownBudgets.set(list, budgets);
  return budgets;
}

/** Judges which pods of nodes that go away are scheduled anew. */
export class MoveRules {
  readonly #budgets: Budgets;
  readonly #now: number;

  constructor(problem: Problem) {
    this.#now = problem.now === undefined ? Number.NaN : Date.parse(problem.now);
    this.#budgets = budgetsOf(problem.podDisruptionBudgets ?? []);
  }

  /** Reschedulable, disruptable and not held by a budget that never gives way. */
  mayMove(pod: Pod): boolean {
    if (isDaemonPod(pod) || ownedBy(pod, 'Node') || isTerminal(pod)) return false;
    if (isTerminating(pod)) return ownedBy(pod, 'StatefulSet');
    return !this.#doNotDisrupt(pod) && !this.#budgets.block(pod);
  }

  #doNotDisrupt(pod: Pod): boolean {
    const asked = pod.metadata.annotations?.[annotations.doNotDisrupt];
    if (asked === undefined) return false;
    if (asked === 'true') return true;
    const lasts = goDuration(asked);
    if (lasts === undefined || lasts <= 0) return false;
    const started = Date.parse(pod.status?.startTime ?? '');
    return !(this.#now - started >= lasts);
  }
}

const units: Readonly<Record<string, number>> = {
  h: 3_600_000,
  m: 60_000,
  s: 1000,
  ms: 1,
  us: 1e-3,
  µs: 1e-3,
  ns: 1e-6,
};

/** Go's duration syntax in milliseconds; undefined when it is not one. */
function goDuration(text: string): number | undefined {
  if (!/^[+-]?([0-9]+(\.[0-9]*)?(h|m|s|ms|us|µs|ns))+$/.test(text)) return undefined;
  let total = 0;
  for (const [, amount, unit] of text.matchAll(/([0-9]+(?:\.[0-9]*)?)(ms|us|µs|ns|h|m|s)/g))
    total += Number(amount) * units[unit!]!;
  return text.startsWith('-') ? -total : total;
}
