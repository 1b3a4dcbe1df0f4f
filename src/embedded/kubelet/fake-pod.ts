// SPDX-License-Identifier: Apache-2.0
// The life of a pod on a fake node: created, running, ready, perhaps finished, and gone when it is asked to go.
import { ignoreNotFound, isNotFound } from '../../kube/api-error.ts';
import { kinds, type Pod } from '../../kube/kinds.ts';
import { formatTime, parseDuration, parseTime } from '../../kube/time.ts';
import { Controller, type Result } from '../../runtime/controller.ts';
import type { ControlPlane } from '../workloads/context.ts';
import type { AddressBook } from './addresses.ts';
import { isFake } from './fake-node.ts';
import {
  creatingStatus,
  finishedStatus,
  isUnhealthy,
  readinessMatches,
  runningStatus,
  type StatusContext,
} from './pod-status.ts';

/** How long a pod takes to go after it was asked to; never longer than its grace period. */
const deleteDelayAnnotation = 'pod-delete.stage.kwok.x-k8s.io/delay';
/** How long a pod runs until it completes; pods of Jobs complete without it as well. */
const completeDelayAnnotation = 'pod-complete.stage.kwok.x-k8s.io/delay';

export interface FakePodOptions {
  /** From being placed to running. */
  readonly startMs: number;
  /** From running to completed, for the pods of Jobs. */
  readonly jobMs: number;
  readonly addresses: AddressBook;
}

export function fakePodController(plane: ControlPlane, options: FakePodOptions): Controller {
  const pods = plane.informers.of(kinds.Pod);
  pods.addIndex('node', (pod) => pod.spec.nodeName);
  const onNode = (node: { metadata: { name?: string } }): string[] =>
    pods.byIndex('node', node.metadata.name!).map((pod) => `${pod.metadata.namespace}/${pod.metadata.name}`);
  return (
    new Controller({
      ...plane,
      name: 'fake-pod',
      kind: 'Pod',
      reconciler: new FakePods(plane, options),
      maxConcurrent: 50,
    })
      .watch(pods, { when: (pod) => Boolean(pod.spec.nodeName) && !isAtRest(pod), whenGone: false })
      // Pods that were there before their node was known.
      .watch(plane.informers.of(kinds.Node), { keys: onNode, when: (node, old) => isFake(node) && !isFake(old) })
  );
}

/** Whether a pod runs as it should until somebody wants something else: most of what is told of pods is what was written here. */
function isAtRest(pod: Pod): boolean {
  if (pod.metadata.deletionTimestamp) return false;
  const phase = pod.status?.phase;
  if (phase === 'Succeeded' || phase === 'Failed') return true;
  return phase === 'Running' && Boolean(pod.status?.startTime) && !mayComplete(pod) && readinessMatches(pod);
}

/** Whether a pod runs for a time only. */
function mayComplete(pod: Pod): boolean {
  if (isUnhealthy(pod)) return false;
  if (pod.metadata.annotations?.[completeDelayAnnotation] !== undefined) return true;
  const isJob = pod.metadata.ownerReferences?.some((owner) => owner.kind === 'Job' && owner.controller);
  return isJob === true && pod.spec.restartPolicy !== 'Always';
}

class FakePods {
  readonly #plane: ControlPlane;
  readonly #options: FakePodOptions;
  /** When pods were first seen on their node, by the monotonic clock: times in the API are whole seconds. */
  readonly #seen = new Map<string, number>();
  /** Pods that were taken away, by UID, until the cache has seen it. */
  readonly #stopped = new Set<string>();

  constructor(plane: ControlPlane, options: FakePodOptions) {
    this.#plane = plane;
    this.#options = options;
    plane.informers.of(kinds.Pod).addHandler({
      added: (pod) => {
        if (pod.status?.podIP && !pod.spec.hostNetwork) options.addresses.note(pod.metadata.uid!, pod.status.podIP);
      },
      deleted: (pod) => {
        options.addresses.release(pod.metadata.uid!);
        this.#seen.delete(pod.metadata.uid!);
        this.#stopped.delete(pod.metadata.uid!);
      },
    });
  }

  async reconcile(key: string): Promise<Result | void> {
    const { informers } = this.#plane;
    const pod = informers.of(kinds.Pod).get(key);
    const node = pod?.spec.nodeName ? informers.of(kinds.Node).get(pod.spec.nodeName) : undefined;
    if (!pod || !node || !isFake(node)) return;
    if (pod.metadata.deletionTimestamp) return this.#stop(pod);
    const phase = pod.status?.phase;
    if (phase === 'Succeeded' || phase === 'Failed') return;
    const hostIP = node.status?.addresses?.find((address) => address.type === 'InternalIP')?.address ?? '';
    const context: StatusContext = { now: this.#plane.clock.now(), hostIP, podIP: '' };
    if (!pod.status?.startTime) {
      if (this.#plane.lean) return this.#start(pod, context);
      this.#seen.set(pod.metadata.uid!, this.#plane.clock.monotonic());
      await this.#write(pod, creatingStatus(pod, context));
      return { requeueAfterMs: this.#options.startMs };
    }
    if (phase === 'Pending' || phase === undefined) return this.#start(pod, context);
    return this.#keepRunning(pod, context);
  }

  async #start(pod: Pod, context: StatusContext): Promise<Result | void> {
    const uid = pod.metadata.uid!;
    const now = this.#plane.clock.monotonic();
    const seen = this.#seen.get(uid) ?? now;
    this.#seen.set(uid, seen);
    const wait = seen + this.#options.startMs - now;
    if (wait > 0) return { requeueAfterMs: wait };
    this.#seen.delete(uid);
    const podIP = pod.spec.hostNetwork ? context.hostIP : this.#options.addresses.assign(pod.metadata.uid!, 'pod');
    const since = pod.status?.startTime ?? formatTime(context.now - this.#options.startMs);
    await this.#write(pod, { startTime: since, ...runningStatus(pod, { ...context, podIP }) });
    for (const container of pod.spec.containers) {
      this.#plane.events.normal(pod, 'Started', `Started container ${container.name}`);
    }
  }

  async #keepRunning(pod: Pod, context: StatusContext): Promise<Result | void> {
    const runsMs = this.#runsFor(pod);
    if (runsMs !== undefined) {
      const started = pod.status?.containerStatuses?.[0]?.state?.running?.startedAt ?? pod.status!.startTime!;
      const left = parseTime(started) + runsMs - context.now;
      if (left > 0) return { requeueAfterMs: left };
      return this.#write(pod, finishedStatus(pod, context, 0));
    }
    if (!readinessMatches(pod)) {
      await this.#write(pod, runningStatus(pod, { ...context, podIP: pod.status?.podIP ?? '' }));
    }
  }

  /** How long a pod runs before it completes, or undefined when it runs for ever. */
  #runsFor(pod: Pod): number | undefined {
    if (!mayComplete(pod)) return undefined;
    const annotation = pod.metadata.annotations?.[completeDelayAnnotation];
    return annotation === undefined ? this.#options.jobMs : durationOr(annotation, this.#options.jobMs);
  }

  /** A fake process stops at once, or after the time it is annotated with, but never later than its grace period ends. */
  async #stop(pod: Pod): Promise<Result | void> {
    const { metadata } = pod;
    if (this.#stopped.has(metadata.uid!)) return;
    const deadline = parseTime(metadata.deletionTimestamp!);
    const asked = deadline - (metadata.deletionGracePeriodSeconds ?? 0) * 1000;
    const annotation = metadata.annotations?.[deleteDelayAnnotation];
    const stops = Math.min(deadline, asked + (annotation === undefined ? 0 : durationOr(annotation, 0)));
    const now = this.#plane.clock.now();
    if (stops > now) return { requeueAfterMs: stops - now };
    const { name, namespace, uid } = metadata;
    for (const container of pod.spec.containers) {
      this.#plane.events.normal(pod, 'Killing', `Stopping container ${container.name}`);
    }
    if (pod.status?.phase === 'Running' && !this.#plane.lean) {
      await this.#write(pod, finishedStatus(pod, { now, hostIP: pod.status.hostIP ?? '', podIP: '' }, 0));
    }
    try {
      await this.#plane.client
        .resource(kinds.Pod)
        .delete(name!, { namespace, gracePeriodSeconds: 0, ...(uid ? { preconditions: { uid } } : {}) });
      // One that has a finalizer lingers; whoever takes that off takes the pod away.
      if (this.#plane.informers.of(kinds.Pod).get(`${namespace}/${name}`)?.metadata.uid === uid)
        this.#stopped.add(uid!);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  async #write(pod: Pod, status: unknown): Promise<void> {
    const { name, namespace, uid } = pod.metadata;
    // The uid makes it a conflict when another pod has taken the name.
    const patch = { metadata: { uid }, status };
    await ignoreNotFound(
      this.#plane.client.resource(kinds.Pod).patchStatus(name!, patch, { namespace, type: 'strategic' }),
    );
  }
}

function durationOr(text: string, otherwise: number): number {
  try {
    return parseDuration(text);
  } catch {
    // A user's typo in an annotation must not keep the pod from going on.
    return otherwise;
  }
}
