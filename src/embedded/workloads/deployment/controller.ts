// SPDX-License-Identifier: Apache-2.0
// Deployments: one ReplicaSet per template, replicas moved from old to new within the bounds of the strategy.
import { deepEqual } from '../../../base/freeze.ts';
import { isAlreadyExists } from '../../../kube/api-error.ts';
import { type Deployment, type DeploymentStatus, kinds, type Pod, type ReplicaSet } from '../../../kube/kinds.ts';
import { Controller, type Result } from '../../../runtime/controller.ts';
import { findCondition, withCondition } from '../conditions.ts';
import { type ControlPlane, vanishingIsFine } from '../context.ts';
import { OwnStatus, sooner, unreadPaceMs } from '../own-status.ts';
import { type OwnerIndex, ownerIndex } from '../owner-index.ts';
import { claimOwned, ownerKey } from '../ownership.ts';
import { isNamespaceLeaving } from '../pod-factory.ts';
import { isPodActive } from '../pods.ts';
import { selectorOf } from '../selectors.ts';
import {
  byAge,
  desiredReplicasAnnotation,
  isRolling,
  newSetReplicas,
  replicasOf,
  rescale,
  type Scaling,
  shrinkOldSets,
} from './arithmetic.ts';
import {
  freshAnnotations,
  hasTemplateOf,
  newReplicaSet,
  revisionAnnotation,
  revisionOf,
  sizes,
  splitSets,
} from './revisions.ts';
import { countedStatus, deadlineIn, deploymentCondition, hasDeadline, isComplete, rolloutStatus } from './status.ts';

const { Deployment: deployments, ReplicaSet: replicaSets } = kinds;

export function deploymentController(plane: ControlPlane): Controller {
  const reconciler = new Deployments(plane);
  return (
    new Controller({
      ...plane,
      name: 'deployment',
      kind: deployments.kind,
      reconciler: vanishingIsFine(reconciler),
      maxConcurrent: 10,
    })
      .watch(plane.informers.of(deployments), { when: (deployment, old) => reconciler.isNews(deployment, old) })
      .watch(plane.informers.of(replicaSets), { keys: (set) => reconciler.ownersOf(set) })
      // A Recreate rollout waits for old pods to be gone.
      .watch(plane.informers.of(kinds.Pod), {
        keys: (pod) => reconciler.ownersOfPod(pod),
        when: (pod) => pod.metadata.deletionTimestamp !== undefined || !isPodActive(pod),
      })
  );
}

interface Rollout {
  readonly deployment: Deployment;
  readonly fresh: ReplicaSet | undefined;
  readonly old: readonly ReplicaSet[];
}

class Deployments {
  readonly #own: OwnStatus<Deployment>;
  readonly #plane: ControlPlane;
  readonly #sets: OwnerIndex<ReplicaSet>;
  readonly #pods: OwnerIndex<Pod>;

  constructor(plane: ControlPlane) {
    this.#plane = plane;
    this.#own = new OwnStatus(plane.informers.of(deployments), plane, unreadPaceMs);
    this.#sets = ownerIndex(plane.informers.of(replicaSets));
    this.#pods = ownerIndex(plane.informers.of(kinds.Pod));
  }

  /** Its own status says nothing new, but that old sets may go once a rollout is seen to be complete. */
  isNews(deployment: Deployment, old: Deployment | undefined): boolean {
    if (!this.#own.isEcho(deployment, old)) return true;
    return this.#sets.ownedBy(deployment.metadata.uid!).length > (deployment.spec.revisionHistoryLimit ?? 10);
  }

  ownersOf(set: ReplicaSet): string[] {
    const owner = ownerKey(set, deployments);
    if (owner) return [owner];
    const candidates = this.#plane.informers.of(deployments).list();
    return candidates
      .filter(
        (deployment) =>
          deployment.metadata.namespace === set.metadata.namespace &&
          selectorOf(deployment).matches(set.metadata.labels),
      )
      .map((deployment) => `${deployment.metadata.namespace}/${deployment.metadata.name}`);
  }

  ownersOfPod(pod: Pod): string[] {
    const setKey = ownerKey(pod, replicaSets);
    const set = setKey ? this.#plane.informers.of(replicaSets).get(setKey) : undefined;
    const owner = set ? ownerKey(set, deployments) : undefined;
    const deployment = owner ? this.#plane.informers.of(deployments).get(owner) : undefined;
    return deployment && !isRolling(deployment) ? [owner!] : [];
  }

  async reconcile(key: string): Promise<Result | void> {
    const deployment = this.#plane.informers.of(deployments).get(key);
    if (!deployment) return;
    const owned = await claimOwned({
      owner: deployment,
      ownerType: deployments,
      selector: selectorOf(deployment),
      candidates: this.#sets.candidates(deployment),
      client: this.#plane.client.resource(replicaSets),
    });
    const rollout: Rollout = { deployment, ...splitSets(deployment, owned) };
    if (deployment.metadata.deletionTimestamp) return this.#writeStatus(rollout);
    if (await this.#markPause(deployment)) return;
    if (deployment.spec.paused || isScaled(deployment, owned)) return this.#scaleOnly(rollout);
    return isRolling(deployment) ? this.#roll(rollout) : this.#recreate(rollout);
  }

  /** Sizes follow the Deployment's, templates stay. */
  async #scaleOnly(rollout: Rollout): Promise<Result | void> {
    const { deployment, old } = rollout;
    const fresh = rollout.fresh && (await this.#annotate(rollout, rollout.fresh));
    if (rollout.fresh && !fresh) return;
    const changes = rescale(deployment, old, fresh);
    const rescaled = await this.#scale(deployment, changes);
    for (const set of [...old, ...(fresh ? [fresh] : [])]) {
      const size = set.metadata.annotations?.[desiredReplicasAnnotation];
      const stale = size !== undefined && Number(size) !== replicasOf(deployment) && replicasOf(set) > 0;
      if (stale && !rescaled.has(set.metadata.uid!)) await this.#resize(deployment, set, replicasOf(set));
    }
    if (deployment.spec.paused) await this.#cleanUp(rollout);
    return this.#writeStatus({ ...rollout, fresh });
  }

  async #roll(rollout: Rollout): Promise<Result | void> {
    const { deployment, old } = rollout;
    const fresh = await this.#freshSet(rollout);
    if (!fresh) return;
    const all = [...old, fresh];
    const size = newSetReplicas(deployment, all, replicasOf(fresh));
    const active = old.filter((set) => replicasOf(set) > 0);
    const changes =
      size === replicasOf(fresh) ? shrinkOldSets(deployment, active, fresh) : [{ set: fresh, replicas: size }];
    await this.#scale(deployment, changes);
    if (changes.length === 0 && isComplete(deployment, deployment.status)) await this.#cleanUp(rollout);
    return this.#writeRolloutStatus({ deployment, fresh, old });
  }

  async #recreate(rollout: Rollout): Promise<Result | void> {
    const { deployment, old } = rollout;
    const shrink = old.filter((set) => replicasOf(set) > 0).map((set) => ({ set, replicas: 0 }));
    await this.#scale(deployment, shrink);
    if (shrink.length > 0 || this.#oldPodsRun(old)) return this.#writeRolloutStatus(rollout);
    const fresh = await this.#freshSet(rollout);
    if (!fresh) return;
    const size = replicasOf(deployment);
    await this.#scale(deployment, size === replicasOf(fresh) ? [] : [{ set: fresh, replicas: size }]);
    if (isComplete(deployment, deployment.status)) await this.#cleanUp(rollout);
    return this.#writeRolloutStatus({ deployment, fresh, old });
  }

  #oldPodsRun(old: readonly ReplicaSet[]): boolean {
    return old.some((set) =>
      this.#pods
        .ownedBy(set.metadata.uid!)
        .some((pod) => pod.status?.phase !== 'Failed' && pod.status?.phase !== 'Succeeded'),
    );
  }

  /** The ReplicaSet of the current template. Undefined when something was written that the cache must show first. */
  async #freshSet(rollout: Rollout): Promise<ReplicaSet | undefined> {
    const { deployment, old } = rollout;
    if (rollout.fresh) return this.#annotate(rollout, rollout.fresh);
    if (isNamespaceLeaving(this.#plane, deployment.metadata.namespace)) return undefined;
    const wanted = newReplicaSet(deployment, old);
    const created = await this.#createSet(deployment, wanted);
    if (!created) return undefined;
    if (replicasOf(created) > 0) this.#tellScaled(deployment, created, 0, replicasOf(created));
    await this.#setRevision(deployment, created);
    if (hasDeadline(deployment)) {
      await this.#setProgressing(
        deployment,
        'NewReplicaSetCreated',
        `Created new replica set "${created.metadata.name}"`,
      );
    }
    // The rest happens when the cache shows what was written.
    return undefined;
  }

  async #createSet(deployment: Deployment, wanted: ReplicaSet): Promise<ReplicaSet | undefined> {
    const client = this.#plane.client.resource(replicaSets);
    const { name, namespace } = wanted.metadata;
    try {
      return await client.create(wanted);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
    // A cache that lags behind, or another template with the same hash.
    const existing = await client.get(name!, { namespace });
    const own = existing.metadata.ownerReferences?.some((owner) => owner.uid === deployment.metadata.uid);
    if (own && hasTemplateOf(existing, deployment)) return existing;
    const status = { ...deployment.status, collisionCount: (deployment.status?.collisionCount ?? 0) + 1 };
    await this.#plane.client.resource(deployments).updateStatus({ ...deployment, status });
    return undefined;
  }

  /** Brings the new set's annotations and minReadySeconds up to date, and the Deployment's revision with them. */
  async #annotate(rollout: Rollout, fresh: ReplicaSet): Promise<ReplicaSet | undefined> {
    const { deployment, old } = rollout;
    const annotations = freshAnnotations(deployment, fresh, old);
    const minReadySeconds = deployment.spec.minReadySeconds ?? 0;
    let current = fresh;
    if (!deepEqual(annotations, fresh.metadata.annotations) || (fresh.spec.minReadySeconds ?? 0) !== minReadySeconds) {
      current = await this.#plane.client.resource(replicaSets).update({
        ...fresh,
        metadata: { ...fresh.metadata, annotations },
        spec: { ...fresh.spec, minReadySeconds },
      });
    }
    let written = await this.#setRevision(deployment, current);
    if (hasDeadline(deployment) && !findCondition(deployment.status?.conditions, 'Progressing')) {
      await this.#setProgressing(deployment, 'FoundNewReplicaSet', `Found new replica set "${fresh.metadata.name}"`);
      written = true;
    }
    return written ? undefined : current;
  }

  /** Copies the set's revision to the Deployment; whether it had to. */
  async #setRevision(deployment: Deployment, fresh: ReplicaSet): Promise<boolean> {
    const revision = fresh.metadata.annotations?.[revisionAnnotation];
    if (!revision || deployment.metadata.annotations?.[revisionAnnotation] === revision) return false;
    const { name, namespace } = deployment.metadata;
    await this.#plane.client
      .resource(deployments)
      .patch(name!, { metadata: { annotations: { [revisionAnnotation]: revision } } }, { namespace });
    return true;
  }

  /** Progress that is not seen in counts. Patched alone: the rest of the status is written at the end. */
  async #setProgressing(
    deployment: Deployment,
    reason: string,
    message: string,
    status: 'True' | 'Unknown' = 'True',
  ): Promise<void> {
    const next = deploymentCondition('Progressing', status, reason, message, this.#plane.clock.now());
    const conditions = withCondition(deployment.status?.conditions, next);
    const { name, namespace } = deployment.metadata;
    await this.#plane.client.resource(deployments).patchStatus(name!, { status: { conditions } }, { namespace });
  }

  /** Says in the status that a Deployment was paused or resumed; whether it had to be said. */
  async #markPause(deployment: Deployment): Promise<boolean> {
    if (!hasDeadline(deployment)) return false;
    const current = findCondition(deployment.status?.conditions, 'Progressing');
    if (current?.reason === 'ProgressDeadlineExceeded') return false;
    const paused = deployment.spec.paused === true;
    const saysPaused = current?.reason === 'DeploymentPaused';
    if (paused && !saysPaused) {
      await this.#setProgressing(deployment, 'DeploymentPaused', 'Deployment is paused', 'Unknown');
      return true;
    }
    if (!paused && saysPaused) {
      await this.#setProgressing(deployment, 'DeploymentResumed', 'Deployment is resumed', 'Unknown');
      return true;
    }
    return false;
  }

  async #scale(deployment: Deployment, changes: readonly Scaling[]): Promise<Set<string>> {
    const done = new Set<string>();
    for (const { set, replicas } of changes) {
      await this.#resize(deployment, set, replicas);
      this.#tellScaled(deployment, set, replicasOf(set), replicas);
      done.add(set.metadata.uid!);
    }
    return done;
  }

  async #resize(deployment: Deployment, set: ReplicaSet, replicas: number): Promise<void> {
    await this.#plane.client.resource(replicaSets).update({
      ...set,
      metadata: { ...set.metadata, annotations: { ...set.metadata.annotations, ...sizes(deployment) } },
      spec: { ...set.spec, replicas },
    });
  }

  #tellScaled(deployment: Deployment, set: ReplicaSet, from: number, to: number): void {
    const direction = to > from ? 'up' : 'down';
    this.#plane.events.normal(
      deployment,
      'ScalingReplicaSet',
      `Scaled ${direction} replica set ${set.metadata.name} from ${from} to ${to}`,
    );
  }

  /** Old, empty sets beyond the history limit go, the oldest revisions first. */
  async #cleanUp({ deployment, old }: Rollout): Promise<void> {
    const limit = deployment.spec.revisionHistoryLimit ?? 10;
    const idle = old
      .filter((set) => set.metadata.deletionTimestamp === undefined)
      .sort((a, b) => revisionOf(a) - revisionOf(b) || byAge(a, b));
    for (const set of idle.slice(0, Math.max(0, idle.length - limit))) {
      const { name, namespace } = set.metadata;
      const isEmpty = replicasOf(set) === 0 && (set.status?.replicas ?? 0) === 0;
      if (!isEmpty || (set.metadata.generation ?? 0) > (set.status?.observedGeneration ?? 0)) continue;
      await this.#plane.client.resource(replicaSets).delete(name!, { namespace, propagationPolicy: 'Background' });
    }
  }

  async #writeStatus({ deployment, fresh, old }: Rollout): Promise<Result | void> {
    const status = countedStatus(deployment, allSets(fresh, old), fresh, this.#plane.clock.now());
    return sooner(undefined, await this.#write(deployment, status));
  }

  async #writeRolloutStatus({ deployment, fresh, old }: Rollout): Promise<Result | void> {
    const now = this.#plane.clock.now();
    const status = rolloutStatus(deployment, allSets(fresh, old), fresh, now);
    const waitMs = await this.#write(deployment, status);
    const progressing = findCondition(status.conditions, 'Progressing');
    if (!hasDeadline(deployment) || !progressing || isComplete(deployment, status)) return sooner(undefined, waitMs);
    if (isDecided(progressing)) return sooner(undefined, waitMs);
    return sooner({ requeueAfterMs: Math.max(0, deadlineIn(deployment, progressing, now)) + 1000 }, waitMs);
  }

  /** Gives for how long it has to wait; 0 when it is up to date. */
  async #write(deployment: Deployment, status: DeploymentStatus): Promise<number> {
    return this.#own.write(deployment, status, () =>
      this.#plane.client.resource(deployments).updateStatus({ ...deployment, status }),
    );
  }
}

/** Whether time changes nothing any more: progress was too slow, or it was made before, and a pod that waits since is none. */
function isDecided({ reason }: { readonly reason?: string }): boolean {
  return reason === 'ProgressDeadlineExceeded' || reason === 'NewReplicaSetAvailable';
}

function allSets(fresh: ReplicaSet | undefined, old: readonly ReplicaSet[]): ReplicaSet[] {
  return fresh ? [...old, fresh] : [...old];
}

/** Whether the Deployment's size changed since its active sets were last sized. */
function isScaled(deployment: Deployment, sets: readonly ReplicaSet[]): boolean {
  return sets.some((set) => {
    const desired = set.metadata.annotations?.[desiredReplicasAnnotation];
    return replicasOf(set) > 0 && desired !== undefined && Number(desired) !== replicasOf(deployment);
  });
}
