// SPDX-License-Identifier: Apache-2.0
// StatefulSets: pods with names and claims of their own, started, replaced and stopped in order.
import { deepClone, deepEqual } from '../../../base/freeze.ts';
import { ignoreNotFound, isAlreadyExists } from '../../../kube/api-error.ts';
import {
  type ControllerRevision,
  kinds,
  type Pod,
  type PodTemplateSpec,
  type StatefulSet,
} from '../../../kube/kinds.ts';
import { Controller, type Result } from '../../../runtime/controller.ts';
import { type ControlPlane, vanishingIsFine } from '../context.ts';
import { type OwnerIndex, ownerIndex } from '../owner-index.ts';
import { claimOwned, ownerKey } from '../ownership.ts';
import { createPod, deletePod, isNamespaceLeaving } from '../pod-factory.ts';
import { isPodAvailable, isPodReady } from '../pods.ts';
import { RevisionHistory, revisionLabel } from '../revision-history.ts';
import { selectorOf } from '../selectors.ts';
import { claimName, nextAction, ordinalOf, statefulPod } from './ordinals.ts';

export function statefulSetController(plane: ControlPlane): Controller {
  const reconciler = new StatefulSets(plane);
  const { StatefulSet: type } = kinds;
  return new Controller({
    ...plane,
    name: 'statefulset',
    kind: type.kind,
    reconciler: vanishingIsFine(reconciler),
    maxConcurrent: 5,
  })
    .watch(plane.informers.of(type))
    .watch(plane.informers.of(kinds.Pod), {
      keys: (pod) => {
        const owner = ownerKey(pod, type);
        return owner ? [owner] : [];
      },
    });
}

class StatefulSets {
  readonly #plane: ControlPlane;
  readonly #pods: OwnerIndex<Pod>;
  readonly #revisions: OwnerIndex<ControllerRevision>;
  readonly #history: RevisionHistory;

  constructor(plane: ControlPlane) {
    this.#plane = plane;
    this.#pods = ownerIndex(plane.informers.of(kinds.Pod));
    this.#revisions = ownerIndex(plane.informers.of(kinds.ControllerRevision));
    this.#history = new RevisionHistory(plane, kinds.StatefulSet);
  }

  async reconcile(key: string): Promise<Result | void> {
    const set = this.#plane.informers.of(kinds.StatefulSet).get(key);
    if (!set || set.metadata.deletionTimestamp || isNamespaceLeaving(this.#plane, set.metadata.namespace)) return;
    const owned = await claimOwned({
      owner: set,
      ownerType: kinds.StatefulSet,
      selector: selectorOf(set),
      candidates: this.#pods.candidates(set),
      client: this.#plane.client.resource(kinds.Pod),
    });
    const pods = owned.filter((pod) => ordinalOf(set, pod) !== undefined);
    const limit = set.spec.revisionHistoryLimit ?? 10;
    const update = `${set.metadata.name}-${await this.#history.current(set, set.spec.template, limit, pods)}`;
    const current = set.status?.currentRevision ?? update;
    // Names are fixed, so a write the cache has not shown yet is refused as a duplicate: no expectations needed.
    const actions = nextAction({ set, pods, current, update, now: this.#plane.clock.now() });
    for (const action of actions) {
      if (action.kind === 'create') await this.#create(set, action.ordinal, action.revision);
      else await deletePod(this.#plane, action.pod, set);
    }
    await this.#writeStatus(set, pods, current, update);
    if ((set.spec.minReadySeconds ?? 0) > 0 && pods.some(isPodReady)) return { requeueAfterMs: 1000 };
  }

  async #create(set: StatefulSet, ordinal: number, revision: string): Promise<void> {
    for (const template of set.spec.volumeClaimTemplates ?? []) {
      const name = claimName(set, template.metadata.name!, ordinal);
      const { namespace } = set.metadata;
      if (this.#plane.informers.of(kinds.PersistentVolumeClaim).get(`${namespace}/${name}`)) continue;
      const labels = { ...template.metadata.labels, ...set.spec.selector.matchLabels };
      const claim = { ...deepClone(template), metadata: { ...template.metadata, name, namespace: namespace!, labels } };
      await ignoreExisting(this.#plane.client.resource(kinds.PersistentVolumeClaim).create(claim));
    }
    const pod = statefulPod(set, this.#templateOf(set, revision), ordinal, revision);
    await ignoreExisting(createPod(this.#plane, pod, set));
  }

  /** The template of a revision: the set's own, or one of its history. */
  #templateOf(set: StatefulSet, revision: string): PodTemplateSpec {
    const recorded = this.#revisions
      .ownedBy(set.metadata.uid!)
      .find((candidate) => candidate.metadata.name === revision);
    const data = recorded?.data as { spec?: { template?: PodTemplateSpec & { $patch?: string } } } | undefined;
    if (!data?.spec?.template) return set.spec.template;
    const { $patch: _, ...template } = data.spec.template;
    return template;
  }

  async #writeStatus(set: StatefulSet, pods: readonly Pod[], current: string, update: string): Promise<void> {
    const now = this.#plane.clock.now();
    const wanted = set.spec.replicas ?? 1;
    const alive = pods.filter((pod) => !pod.metadata.deletionTimestamp);
    const at = (revision: string): number =>
      alive.filter((pod) => pod.metadata.labels?.[revisionLabel] === revision).length;
    const ready = alive.filter(isPodReady).length;
    const available = alive.filter((pod) => isPodAvailable(pod, set.spec.minReadySeconds ?? 0, now)).length;
    const partition = set.spec.updateStrategy?.rollingUpdate?.partition ?? 0;
    const rolledOut =
      set.spec.updateStrategy?.type !== 'OnDelete' &&
      partition === 0 &&
      at(update) === wanted &&
      alive.length === wanted &&
      ready === wanted;
    const currentNow = rolledOut ? update : current;
    const status = {
      observedGeneration: set.metadata.generation ?? 0,
      replicas: alive.length,
      ...(ready > 0 ? { readyReplicas: ready } : {}),
      ...(at(currentNow) > 0 ? { currentReplicas: at(currentNow) } : {}),
      ...(at(update) > 0 ? { updatedReplicas: at(update) } : {}),
      currentRevision: currentNow,
      updateRevision: update,
      collisionCount: set.status?.collisionCount ?? 0,
      availableReplicas: available,
    };
    if (deepEqual(status, set.status)) return;
    await ignoreNotFound(this.#plane.client.resource(kinds.StatefulSet).updateStatus({ ...set, status }));
  }
}

async function ignoreExisting(creation: Promise<unknown>): Promise<void> {
  try {
    await creation;
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}
