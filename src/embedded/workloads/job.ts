// SPDX-License-Identifier: Apache-2.0
// Jobs: pods until enough have succeeded, or too many have failed.
import { deepEqual } from '../../base/freeze.ts';
import { ignoreNotFound } from '../../kube/api-error.ts';
import { type Job, kinds, type Pod } from '../../kube/kinds.ts';
import { parseTime } from '../../kube/time.ts';
import { Controller, type Result } from '../../runtime/controller.ts';
import { inGrowingBatches } from './batches.ts';
import { type ControlPlane, vanishingIsFine } from './context.ts';
import { type JobProgress, jobStatus, parseIndexes, verdictOf, wantedActive } from './job-status.ts';
import { OwnedPods } from './owned-pods.ts';
import { controllerOf, ownerKey } from './ownership.ts';
import { createPod, deletePod, isNamespaceLeaving, podFromTemplate } from './pod-factory.ts';
import { byDeletionOrder, isPodActive, isPodEnded } from './pods.ts';

const firstBackoffMs = 10_000;
const longestBackoffMs = 10 * 60_000;
const indexAnnotation = 'batch.kubernetes.io/job-completion-index';
/** Holds a finished pod until the Job has counted it: a pod deleted too early would run again. */
const trackingFinalizer = 'batch.kubernetes.io/job-tracking';

/** Keys of pods that no Job counts any more. */
const orphan = 'orphan:';

export function jobController(plane: ControlPlane): Controller {
  const { Job: type } = kinds;
  return new Controller({
    ...plane,
    name: 'job',
    kind: type.kind,
    reconciler: vanishingIsFine(new Jobs(plane)),
    maxConcurrent: 5,
  })
    .watch(plane.informers.of(type))
    .watch(plane.informers.of(kinds.Pod), {
      keys: (pod) => {
        const owner = ownerKey(pod, type);
        if (owner) return [owner];
        return isTracked(pod) ? [`${orphan}${pod.metadata.namespace}/${pod.metadata.name}`] : [];
      },
    });
}

function isIndexed(job: Job): boolean {
  return job.spec.completionMode === 'Indexed';
}

function indexOf(pod: Pod): number | undefined {
  const text = pod.metadata.annotations?.[indexAnnotation];
  return text === undefined ? undefined : Number(text);
}

class Jobs {
  readonly #plane: ControlPlane;
  readonly #pods: OwnedPods;

  constructor(plane: ControlPlane) {
    this.#plane = plane;
    this.#pods = new OwnedPods(plane.informers.of(kinds.Pod), plane.clock);
  }

  async reconcile(key: string): Promise<Result | void> {
    if (key.startsWith(orphan)) {
      const pod = this.#plane.informers.of(kinds.Pod).get(key.slice(orphan.length));
      return pod && !ownerKey(pod, kinds.Job) ? this.#untrack([pod]) : undefined;
    }
    const job = this.#plane.informers.of(kinds.Job).get(key);
    await this.#release(key, job);
    if (!job) return;
    const uid = job.metadata.uid!;
    const pods = this.#pods.ownedBy(uid);
    if (job.metadata.deletionTimestamp || isFinished(job)) {
      await this.#untrack(pods);
      return isFinished(job) ? this.#expire(job) : undefined;
    }
    if (!this.#pods.settled(uid)) return;
    return this.#advance(job, pods);
  }

  async #advance(job: Job, pods: readonly Pod[]): Promise<Result | void> {
    const now = this.#plane.clock.now();
    const active = pods.filter(isPodActive);
    // Pods that ended and are not counted yet still carry the finalizer; those counted do not.
    const uncounted = pods.filter((pod) => !isPodActive(pod) && isTracked(pod) && isPodEnded(pod));
    const lost = pods.filter((pod) => pod.metadata.deletionTimestamp && !isPodEnded(pod) && isTracked(pod));
    const succeeded = this.#succeeded(job, uncounted);
    const failed = (job.status?.failed ?? 0) + uncounted.filter((pod) => pod.status?.phase === 'Failed').length;
    const verdict = verdictOf(job, succeeded.count, failed, active.length, now);
    let wait: number | undefined;
    let running = active;
    if (verdict || job.spec.suspend) {
      for (const pod of active) await this.#remove(pod, job);
      running = [];
    } else {
      wait = await this.#scale(job, active, succeeded, failed);
      running = active;
    }
    await this.#writeStatus(job, { succeeded, failed, active: running, verdict, now });
    await this.#untrack([...uncounted, ...lost]);
    const deadline = job.spec.activeDeadlineSeconds;
    const waits = [wait, !verdict && deadline !== undefined ? deadline * 1000 : undefined].filter(
      (w) => w !== undefined,
    );
    if (waits.length > 0) return { requeueAfterMs: Math.min(...waits) };
  }

  #succeeded(job: Job, uncounted: readonly Pod[]): { count: number; indexes: Set<number> } {
    const won = uncounted.filter((pod) => pod.status?.phase === 'Succeeded');
    if (!isIndexed(job)) return { count: (job.status?.succeeded ?? 0) + won.length, indexes: new Set() };
    const indexes = parseIndexes(job.status?.completedIndexes ?? '');
    for (const pod of won) indexes.add(indexOf(pod)!);
    return { count: indexes.size, indexes };
  }

  /** Creates or removes pods; the time to wait when failures ask for it. */
  async #scale(
    job: Job,
    active: readonly Pod[],
    succeeded: { count: number; indexes: Set<number> },
    failed: number,
  ): Promise<number | undefined> {
    const wanted = wantedActive(job, succeeded.count, active.length);
    if (active.length > wanted) {
      const surplus = byDeletionOrder(active, active, this.#plane.clock.now()).slice(0, active.length - wanted);
      for (const pod of surplus) await this.#remove(pod, job);
      return undefined;
    }
    const missing = wanted - active.length;
    if (missing <= 0 || isNamespaceLeaving(this.#plane, job.metadata.namespace)) return undefined;
    const wait = this.#backoff(job, failed);
    if (wait > 0) return wait;
    const free = isIndexed(job) ? freeIndexes(job, active, succeeded.indexes).slice(0, missing) : undefined;
    const uid = job.metadata.uid!;
    const { error } = await inGrowingBatches(free?.length ?? missing, async (i) => {
      const created = await createPod(this.#plane, jobPod(job, free?.[i]), job);
      this.#pods.created(uid, created);
    });
    if (error) throw error;
    return undefined;
  }

  /** After failures, new pods wait 10 s, 20 s, 40 s … since the last one failed. */
  #backoff(job: Job, failed: number): number {
    if (failed === 0) return 0;
    const ended = this.#pods
      .ownedBy(job.metadata.uid!)
      .filter((pod) => pod.status?.phase === 'Failed')
      .map((pod) => pod.status?.containerStatuses?.[0]?.state?.terminated?.finishedAt)
      .filter((time) => time !== undefined)
      .map((time) => parseTime(time));
    if (ended.length === 0) return 0;
    const delay = Math.min(longestBackoffMs, firstBackoffMs * 2 ** (failed - 1));
    return Math.max(...ended) + delay - this.#plane.clock.now();
  }

  async #remove(pod: Pod, job: Job): Promise<void> {
    await this.#untrack([pod]);
    await deletePod(this.#plane, pod, job);
    this.#pods.deleted(job.metadata.uid!, pod);
  }

  /** Lets pods go whose Job is gone, perhaps with another in its place: nobody will count them. */
  async #release(key: string, job: Job | undefined): Promise<void> {
    const left = this.#plane.informers
      .of(kinds.Pod)
      .list()
      .filter(
        (pod) => isTracked(pod) && ownerKey(pod, kinds.Job) === key && controllerOf(pod)?.uid !== job?.metadata.uid,
      );
    await this.#untrack(left);
  }

  /** Lets pods go that have been counted. */
  async #untrack(pods: readonly Pod[]): Promise<void> {
    for (const pod of pods.filter(isTracked)) {
      const { name, namespace } = pod.metadata;
      const patch = { metadata: { '$deleteFromPrimitiveList/finalizers': [trackingFinalizer] } };
      await ignoreNotFound(
        this.#plane.client.resource(kinds.Pod).patch(name!, patch, { namespace, type: 'strategic' }),
      );
    }
  }

  async #writeStatus(job: Job, seen: JobProgress): Promise<void> {
    const status = jobStatus(job, seen);
    if (deepEqual(status, job.status)) return;
    await this.#plane.client.resource(kinds.Job).updateStatus({ ...job, status });
    const { verdict } = seen;
    if (verdict?.type === 'Complete') this.#plane.events.normal(job, 'Completed', 'Job completed');
    else if (verdict) this.#plane.events.warning(job, verdict.reason, verdict.message);
  }

  /** A finished Job goes after its time to live. */
  async #expire(job: Job): Promise<Result | void> {
    const ttl = job.spec.ttlSecondsAfterFinished;
    if (ttl === undefined) return;
    const ended = job.status!.conditions!.find((c) => c.type === 'Complete' || c.type === 'Failed')!;
    const left = parseTime(ended.lastTransitionTime!) + ttl * 1000 - this.#plane.clock.now();
    if (left > 0) return { requeueAfterMs: left };
    const { name, namespace, uid } = job.metadata;
    await ignoreNotFound(
      this.#plane.client.resource(kinds.Job).delete(name!, {
        namespace,
        propagationPolicy: 'Foreground',
        ...(uid ? { preconditions: { uid } } : {}),
      }),
    );
  }
}

function isFinished(job: Job): boolean {
  return (
    job.status?.conditions?.some((c) => (c.type === 'Complete' || c.type === 'Failed') && c.status === 'True') ?? false
  );
}

function isTracked(pod: Pod): boolean {
  return pod.metadata.finalizers?.includes(trackingFinalizer) ?? false;
}

function jobPod(job: Job, index: number | undefined): Pod {
  const pod = podFromTemplate(job.spec.template, job, kinds.Job);
  pod.metadata.finalizers = [...(pod.metadata.finalizers ?? []), trackingFinalizer];
  if (index === undefined) return pod;
  pod.metadata.generateName = `${job.metadata.name}-${index}-`;
  pod.metadata.annotations = { ...pod.metadata.annotations, [indexAnnotation]: String(index) };
  pod.metadata.labels = { ...pod.metadata.labels, [indexAnnotation]: String(index) };
  pod.spec.hostname ??= `${job.metadata.name}-${index}`;
  for (const container of pod.spec.containers) {
    container.env = [...(container.env ?? []), { name: 'JOB_COMPLETION_INDEX', value: String(index) }];
  }
  return pod;
}

function freeIndexes(job: Job, active: readonly Pod[], completed: ReadonlySet<number>): number[] {
  const taken = new Set(active.map(indexOf));
  return Array.from({ length: job.spec.completions ?? 0 }, (_, i) => i).filter(
    (index) => !taken.has(index) && !completed.has(index),
  );
}
