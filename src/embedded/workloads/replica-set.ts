// SPDX-License-Identifier: Apache-2.0
// ReplicaSets: as many pods as asked for, the least useful ones given up first, and a status that says how it stands.
import { messageOf } from '../../base/errors.ts';
import { kinds, type Pod, type ReplicaSet } from '../../kube/kinds.ts';
import { formatTime } from '../../kube/time.ts';
import { Controller, type Result } from '../../runtime/controller.ts';
import { inGrowingBatches } from './batches.ts';
import { withCondition, withoutCondition } from './conditions.ts';
import { type ControlPlane, vanishingIsFine } from './context.ts';
import { OwnStatus, sooner } from './own-status.ts';
import { OwnedPods } from './owned-pods.ts';
import { claimOwned, controllerOf, ownerKey } from './ownership.ts';
import { createPod, deletePod, isNamespaceLeaving, podFromTemplate } from './pod-factory.ts';
import { byDeletionOrder, isPodActive, isPodAvailable, isPodEnded, isPodReady, readySince } from './pods.ts';
import { selectorOf } from './selectors.ts';
import { watchOwnedPods } from './watch-owned-pods.ts';

/** The most pods created or deleted in one reconcile. */
const burst = 500;

export function replicaSetController(plane: ControlPlane): Controller {
  const reconciler = new ReplicaSets(plane);
  const { ReplicaSet: type } = kinds;
  const controller = new Controller({
    ...plane,
    name: 'replicaset',
    kind: type.kind,
    reconciler: vanishingIsFine(reconciler),
    maxConcurrent: 10,
  }).watch(plane.informers.of(type), { when: (set, old) => !reconciler.own.isEcho(set, old) });
  return watchOwnedPods(controller, plane, (pod) => reconciler.ownersOf(pod));
}

class ReplicaSets {
  readonly own: OwnStatus<ReplicaSet>;
  readonly #plane: ControlPlane;
  readonly #pods: OwnedPods;

  constructor(plane: ControlPlane) {
    this.#plane = plane;
    this.own = new OwnStatus(plane.informers.of(kinds.ReplicaSet), plane);
    this.#pods = new OwnedPods(plane.informers.of(kinds.Pod), plane.clock);
  }

  /** The keys of the ReplicaSets a pod concerns: its owner, or those that could adopt it. */
  ownersOf(pod: Pod): string[] {
    const owner = ownerKey(pod, kinds.ReplicaSet);
    if (owner) return [owner];
    if (controllerOf(pod) || !pod.metadata.labels) return [];
    const sets = this.#plane.informers.of(kinds.ReplicaSet).list();
    return sets
      .filter(
        (set) => set.metadata.namespace === pod.metadata.namespace && selectorOf(set).matches(pod.metadata.labels),
      )
      .map((set) => `${set.metadata.namespace}/${set.metadata.name}`);
  }

  async reconcile(key: string): Promise<Result | void> {
    const set = this.#plane.informers.of(kinds.ReplicaSet).get(key);
    if (!set) return;
    const uid = set.metadata.uid!;
    const selector = selectorOf(set);
    const claimed = await claimOwned({
      owner: set,
      ownerType: kinds.ReplicaSet,
      selector,
      candidates: this.#pods.candidates(set),
      client: this.#plane.client.resource(kinds.Pod),
    });
    const active = claimed.filter(isPodActive);
    let failure: unknown;
    if (!set.metadata.deletionTimestamp && this.#pods.settled(uid)) {
      failure = await this.#scale(set, active);
    }
    const waitMs = await this.#writeStatus(set, claimed, failure);
    if (failure !== undefined) throw failure;
    return sooner(this.#nextAvailability(set, active), waitMs);
  }

  async #scale(set: ReplicaSet, active: readonly Pod[]): Promise<unknown> {
    const difference = (set.spec.replicas ?? 1) - active.length;
    const uid = set.metadata.uid!;
    if (difference > 0) {
      if (isNamespaceLeaving(this.#plane, set.metadata.namespace)) return undefined;
      const { error } = await inGrowingBatches(Math.min(difference, burst), async () => {
        const pod = podFromTemplate(set.spec.template, set, kinds.ReplicaSet);
        const created = await createPod(this.#plane, pod, set);
        this.#pods.created(uid, created);
      });
      return error;
    }
    if (difference === 0) return undefined;
    const surplus = byDeletionOrder(active, this.#company(set), this.#plane.clock.now()).slice(0, -difference);
    const { error } = await inGrowingBatches(Math.min(surplus.length, burst), async (i) => {
      await deletePod(this.#plane, surplus[i]!, set);
      this.#pods.deleted(uid, surplus[i]!);
    });
    return error;
  }

  /** Pods of all ReplicaSets of the same owner: a Deployment's old and new replicas count together on a node. */
  #company(set: ReplicaSet): Pod[] {
    const owner = controllerOf(set);
    if (!owner) return this.#pods.ownedBy(set.metadata.uid!);
    const siblings = this.#plane.informers
      .of(kinds.ReplicaSet)
      .list()
      .filter((other) => controllerOf(other)?.uid === owner.uid);
    return siblings.flatMap((sibling) => this.#pods.ownedBy(sibling.metadata.uid!));
  }

  /** Gives for how long it has to wait; 0 when it is up to date. */
  async #writeStatus(set: ReplicaSet, claimed: readonly Pod[], failure: unknown): Promise<number> {
    const now = this.#plane.clock.now();
    const active = claimed.filter(isPodActive);
    const { terminating, ready, available, labelled } = countsOf(set, claimed, now);
    const conditions =
      failure === undefined
        ? withoutCondition(set.status?.conditions, 'ReplicaFailure')
        : withCondition(set.status?.conditions, {
            type: 'ReplicaFailure',
            status: 'True',
            reason: active.length < (set.spec.replicas ?? 1) ? 'FailedCreate' : 'FailedDelete',
            message: messageOf(failure),
            lastTransitionTime: formatTime(now),
          });
    const status = {
      replicas: active.length,
      ...(labelled > 0 ? { fullyLabeledReplicas: labelled } : {}),
      ...(ready > 0 ? { readyReplicas: ready } : {}),
      ...(available > 0 ? { availableReplicas: available } : {}),
      terminatingReplicas: terminating,
      observedGeneration: set.metadata.generation ?? 0,
      ...(conditions.length > 0 ? { conditions } : {}),
    };
    const put = (): Promise<unknown> => this.#plane.client.resource(kinds.ReplicaSet).updateStatus({ ...set, status });
    return this.own.write(set, status, put, failure !== undefined);
  }

  /** Pods become available by the passing of time: look again when the next one does. */
  #nextAvailability(set: ReplicaSet, active: readonly Pod[]): Result | void {
    const minReadyMs = (set.spec.minReadySeconds ?? 0) * 1000;
    if (minReadyMs === 0) return;
    const now = this.#plane.clock.now();
    const waits = active.filter(isPodReady).map((pod) => readySince(pod) + minReadyMs - now);
    const next = Math.min(...waits.filter((wait) => wait > 0));
    if (Number.isFinite(next)) return { requeueAfterMs: next };
  }
}

/** What a status says of pods, in one pass over them. */
function countsOf(
  { spec }: ReplicaSet,
  claimed: readonly Pod[],
  now: number,
): { readonly terminating: number; readonly ready: number; readonly available: number; readonly labelled: number } {
  const wanted = Object.entries(spec.template.metadata?.labels ?? {});
  const counts = { terminating: 0, ready: 0, available: 0, labelled: 0 };
  for (const pod of claimed) {
    const { deletionTimestamp, labels } = pod.metadata;
    if (deletionTimestamp !== undefined && !isPodEnded(pod)) counts.terminating++;
    if (!isPodActive(pod)) continue;
    if (isPodReady(pod)) counts.ready++;
    if (isPodAvailable(pod, spec.minReadySeconds ?? 0, now)) counts.available++;
    if (wanted.every(([key, value]) => labels?.[key] === value)) counts.labelled++;
  }
  return counts;
}
