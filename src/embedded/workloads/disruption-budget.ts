// SPDX-License-Identifier: Apache-2.0
// PodDisruptionBudgets: how many pods are healthy, how many must be, and how many may therefore be evicted now.
import { deepEqual } from '../../base/freeze.ts';
import { isNotFound } from '../../kube/api-error.ts';
import { kinds, type Pod, type PodDisruptionBudget } from '../../kube/kinds.ts';
import { formatTime, parseTime } from '../../kube/time.ts';
import { Controller, type Result } from '../../runtime/controller.ts';
import { withCondition } from './conditions.ts';
import { type ControlPlane, vanishingIsFine } from './context.ts';
import { scaled } from './int-or-percent.ts';
import { OwnStatus, sooner } from './own-status.ts';
import { controllerOf } from './ownership.ts';
import { isPodActive, isPodReady } from './pods.ts';
import { selectorOf } from './selectors.ts';
import { gatherMs } from './watch-owned-pods.ts';

/** An eviction that was granted and did not lead to a deletion within this time no longer counts. */
const evictionTimeoutMs = 2 * 60_000;

export function disruptionBudgetController(plane: ControlPlane): Controller {
  const budgets = plane.informers.of(kinds.PodDisruptionBudget);
  budgets.addIndex('namespace', (budget) => budget.metadata.namespace);
  const selecting = (namespace: string | undefined, labels: Labels | undefined): string[] =>
    budgets
      .byIndex('namespace', namespace ?? '')
      .filter((budget) => selectorOf(budget).matches(labels))
      .map((budget) => `${namespace}/${budget.metadata.name}`);
  const reconciler = new DisruptionBudgets(plane);
  const controller = new Controller({
    ...plane,
    name: 'disruption',
    kind: 'PodDisruptionBudget',
    reconciler: vanishingIsFine(reconciler),
    maxConcurrent: 5,
  });
  // Whose pods carry other labels than its template has no say in the size of the budgets that select those.
  const sized = {
    keys: ({ metadata, spec }: Sized) => selecting(metadata.namespace, spec.template.metadata?.labels),
    when: sizeDiffers,
  };
  return controller
    .watch(budgets, { when: (budget, old) => !reconciler.own.isEcho(budget, old) })
    .watch(plane.informers.of(kinds.Pod), {
      keys: ({ metadata }) => selecting(metadata.namespace, metadata.labels),
      when: countsOtherwise,
    })
    .watch(plane.informers.of(kinds.Deployment), sized)
    .watch(plane.informers.of(kinds.ReplicaSet), sized)
    .watch(plane.informers.of(kinds.StatefulSet), sized);
}

type Labels = Readonly<Record<string, string>>;

interface Sized {
  readonly metadata: { readonly namespace?: string };
  readonly spec: {
    readonly replicas?: number;
    readonly template: { readonly metadata?: { readonly labels?: Labels } };
  };
}

function sizeDiffers(owner: Sized, old?: Sized): boolean {
  return owner.spec.replicas !== old?.spec.replicas;
}

/** Whether a change of a pod can change the numbers of a budget: most of what happens to pods cannot. */
function countsOtherwise(pod: Pod, old?: Pod): boolean {
  return (
    old === undefined ||
    pod.metadata.uid !== old.metadata.uid ||
    isPodActive(pod) !== isPodActive(old) ||
    isPodReady(pod) !== isPodReady(old) ||
    pod.metadata.deletionTimestamp !== old.metadata.deletionTimestamp ||
    !deepEqual(pod.metadata.labels, old.metadata.labels) ||
    !deepEqual(pod.metadata.ownerReferences, old.metadata.ownerReferences)
  );
}

/** The arithmetic of a budget. `expected` is asked for only when the rule is relative to it. */
export function budgetNumbers(
  budget: PodDisruptionBudget,
  pods: number,
  expected: () => number,
): { expectedPods: number; desiredHealthy: number } {
  const { maxUnavailable, minAvailable } = budget.spec ?? {};
  if (maxUnavailable !== undefined) {
    const total = expected();
    return { expectedPods: total, desiredHealthy: Math.max(0, total - scaled(maxUnavailable, total, 'up')) };
  }
  if (typeof minAvailable === 'string') {
    const total = expected();
    return { expectedPods: total, desiredHealthy: scaled(minAvailable, total, 'up') };
  }
  return { expectedPods: pods, desiredHealthy: minAvailable ?? 0 };
}

/** Whether to wait would let a pod be evicted that must stay, or count an eviction for longer than it lasts. */
function isUrgent({ metadata, status: old }: PodDisruptionBudget, status: PodDisruptionBudget['status']): boolean {
  return (
    old?.observedGeneration !== metadata.generation ||
    old?.disruptionsAllowed === undefined ||
    (status?.disruptionsAllowed ?? 0) < old.disruptionsAllowed ||
    !deepEqual(status?.disruptedPods, old.disruptedPods)
  );
}

class DisruptionBudgets {
  readonly own: OwnStatus<PodDisruptionBudget>;
  readonly #plane: ControlPlane;

  constructor(plane: ControlPlane) {
    this.#plane = plane;
    this.own = new OwnStatus(plane.informers.of(kinds.PodDisruptionBudget), plane, gatherMs);
    plane.informers.of(kinds.Pod).addIndex('namespace', (pod) => pod.metadata.namespace);
  }

  async reconcile(key: string): Promise<Result | void> {
    const budget = this.#plane.informers.of(kinds.PodDisruptionBudget).get(key);
    if (!budget || budget.metadata.deletionTimestamp) return;
    const now = this.#plane.clock.now();
    const selector = selectorOf(budget);
    const pods = this.#plane.informers
      .of(kinds.Pod)
      .byIndex('namespace', budget.metadata.namespace!)
      .filter((pod) => selector.matches(pod.metadata.labels));
    const owned = await this.#expectedPods(pods);
    const numbers = budgetNumbers(budget, pods.length, () => owned);
    const { disruptedPods, recheckMs } = this.#stillLeaving(budget, pods, now);
    const healthy = pods.filter((pod) => isPodActive(pod) && isPodReady(pod) && !(pod.metadata.name! in disruptedPods));
    const spare = healthy.length - numbers.desiredHealthy;
    const disruptionsAllowed = numbers.expectedPods <= 0 ? 0 : Math.max(0, spare);
    const conditions = withCondition(budget.status?.conditions, {
      type: 'DisruptionAllowed',
      status: disruptionsAllowed > 0 ? 'True' : 'False',
      reason: disruptionsAllowed > 0 ? 'SufficientPods' : 'InsufficientPods',
      message: '',
      observedGeneration: budget.metadata.generation ?? 0,
      lastTransitionTime: formatTime(now),
    }).map((c) => (c.type === 'DisruptionAllowed' ? { ...c, observedGeneration: budget.metadata.generation ?? 0 } : c));
    const status = {
      observedGeneration: budget.metadata.generation ?? 0,
      ...(Object.keys(disruptedPods).length > 0 ? { disruptedPods } : {}),
      disruptionsAllowed,
      currentHealthy: healthy.length,
      desiredHealthy: numbers.desiredHealthy,
      expectedPods: numbers.expectedPods,
      conditions,
    };
    const put = (): Promise<unknown> =>
      this.#plane.client.resource(kinds.PodDisruptionBudget).updateStatus({ ...budget, status });
    const waitMs = await this.own.write(budget, status, put, isUrgent(budget, status));
    return sooner(recheckMs === undefined ? undefined : { requeueAfterMs: recheckMs }, waitMs);
  }

  /** Granted evictions that have not led to a deletion yet, and when the next of them runs out. */
  #stillLeaving(
    budget: PodDisruptionBudget,
    pods: readonly Pod[],
    now: number,
  ): { disruptedPods: Record<string, string>; recheckMs: number | undefined } {
    const disruptedPods: Record<string, string> = {};
    let recheckMs: number | undefined;
    for (const [name, time] of Object.entries(budget.status?.disruptedPods ?? {})) {
      const pod = pods.find((candidate) => candidate.metadata.name === name);
      if (!pod || pod.metadata.deletionTimestamp) continue;
      const left = parseTime(time) + evictionTimeoutMs - now;
      if (left <= 0) {
        this.#plane.events.warning(
          pod,
          'NotDeleted',
          `Pod was expected by PDB ${budget.metadata.namespace}/${budget.metadata.name} to be deleted but it wasn't`,
        );
        continue;
      }
      disruptedPods[name] = time;
      recheckMs = Math.min(recheckMs ?? left, left);
    }
    return { disruptedPods, recheckMs };
  }

  /** How many pods the owners of these pods want; pods without an owner that has a size do not count. */
  async #expectedPods(pods: readonly Pod[]): Promise<number> {
    const sizes = new Map<string, number>();
    const seen = new Set<string>();
    for (const pod of pods) {
      const owner = controllerOf(pod);
      if (!owner || seen.has(owner.uid)) continue;
      seen.add(owner.uid);
      const found = this.#sizeOf(owner, pod.metadata.namespace!);
      const [uid, size] = found instanceof Promise ? await found : found;
      if (size !== undefined) sizes.set(uid, size);
    }
    return [...sizes.values()].reduce((sum, size) => sum + size, 0);
  }

  /** From the caches; only those who still have a ReplicationController have to be asked for. */
  #sizeOf(owner: Owner, namespace: string): Size | Promise<Size> {
    const key = `${namespace}/${owner.name}`;
    const { informers } = this.#plane;
    if (owner.kind === 'ReplicaSet') {
      const set = informers.of(kinds.ReplicaSet).get(key);
      const above = set ? controllerOf(set) : undefined;
      const deployment =
        above?.kind === 'Deployment' ? informers.of(kinds.Deployment).get(`${namespace}/${above.name}`) : undefined;
      // The Deployment's size counts once, however many sets it has.
      if (deployment) return [deployment.metadata.uid!, deployment.spec.replicas ?? 1];
      return [owner.uid, set ? (set.spec.replicas ?? 1) : undefined];
    }
    if (owner.kind === 'StatefulSet') {
      const set = informers.of(kinds.StatefulSet).get(key);
      return [owner.uid, set ? (set.spec.replicas ?? 1) : undefined];
    }
    if (owner.kind === 'ReplicationController') return this.#askedSizeOf(owner, namespace);
    return [owner.uid, undefined];
  }

  async #askedSizeOf({ name, uid }: Owner, namespace: string): Promise<Size> {
    try {
      const controller = await this.#plane.client.resource(kinds.ReplicationController).get(name, { namespace });
      return [uid, controller.spec.replicas ?? 1];
    } catch (error) {
      if (!isNotFound(error)) throw error;
      return [uid, undefined];
    }
  }
}

interface Owner {
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
}

type Size = readonly [uid: string, replicas: number | undefined];
