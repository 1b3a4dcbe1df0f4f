// SPDX-License-Identifier: Apache-2.0
// The scheduler's loop: follows the cluster, tries one pod at a time, binds what it placed, says why it could not.
import { messageOf } from '../../base/errors.ts';
import { deepEqual } from '../../base/freeze.ts';
import { apiErrorOf, ignoreNotFound } from '../../kube/api-error.ts';
import { kinds, type Namespace, type Node, type Pod } from '../../kube/kinds.ts';
import { formatTime } from '../../kube/time.ts';
import { aborted } from '../../runtime/controller.ts';
import type { ControlPlane } from '../workloads/context.ts';
import { podCondition } from '../workloads/pods.ts';
import { ClusterState, isActive } from './cluster-state.ts';
import type { FilterName } from './filter.ts';
import { informerLookups } from './lookups.ts';
import { type PodInfo, podInfo } from './pod-info.ts';
import { couldRunOn, type Rotation, schedulePod } from './schedule-pod.ts';
import { SchedulingQueue } from './scheduling-queue.ts';
import { VolumeClaims } from './volume-claims.ts';

const schedulerName = 'default-scheduler';
/** Binds under way at once. */
const maxBinding = 100;
/** How long placing pods may hold the process before others get their turn. */
const longestBurstMs = 10;

/** What another pod's coming or going can change. */
const placedFilters: readonly FilterName[] = ['InterPodAffinity', 'PodTopologySpread'];
const freedFilters: readonly FilterName[] = [
  ...placedFilters,
  'NodeResourcesFit',
  'NodePorts',
  'VolumeRestrictions',
  'NodeVolumeLimits',
];
const volumeFilters: readonly FilterName[] = ['VolumeBinding', 'NodeVolumeLimits', 'VolumeRestrictions'];

export class Scheduler {
  readonly #plane: ControlPlane;
  readonly #state: ClusterState;
  readonly #queue: SchedulingQueue;
  readonly #claims: VolumeClaims;
  readonly #rotation: Rotation = { next: 0 };
  /** Pods placed by us whose binding the informer has not shown yet. */
  readonly #assumed = new Set<string>();
  #binding = 0;
  #slotFree: (() => void) | undefined;
  #running = false;
  #stopped = true;
  #paused = false;

  constructor(plane: ControlPlane) {
    this.#plane = plane;
    this.#state = new ClusterState(informerLookups(plane.informers));
    this.#queue = new SchedulingQueue(plane.clock, () => this.#wake());
    this.#claims = new VolumeClaims(plane, this.#state);
    this.#follow();
  }

  /** Pods that wait for a node. */
  get pending(): number {
    return this.#queue.size;
  }

  /** Schedules until the signal aborts. Start it when the informers have synced. */
  async start(signal: AbortSignal): Promise<void> {
    this.#stopped = false;
    this.#wake();
    await aborted(signal);
    this.#stopped = true;
    this.#queue.close();
    this.#claims.close();
  }

  /** Places nothing until the returned function is called, as while another replica of it takes over. */
  pause(): () => void {
    this.#paused = true;
    return () => {
      this.#paused = false;
      this.#wake();
    };
  }

  #follow(): void {
    const { informers } = this.#plane;
    informers.of(kinds.Node).addHandler({
      added: (node) => this.#nodeChanged(node),
      updated: (node, old) => {
        if (nodeDiffers(node, old)) this.#nodeChanged(node);
        else this.#state.setNode(node);
      },
      deleted: (node) => {
        this.#state.removeNode(node.metadata.name!);
        this.#queue.move(placedFilters);
      },
    });
    informers.of(kinds.Pod).addHandler({
      added: (pod) => this.#podChanged(pod, undefined),
      updated: (pod, old) => {
        if (podDiffers(pod, old)) this.#podChanged(pod, old);
      },
      deleted: (pod) => this.#podGone(pod),
    });
    const volumes = { added: () => this.#volumesChanged(), updated: () => this.#volumesChanged() };
    informers.of(kinds.PersistentVolumeClaim).addHandler(volumes);
    informers.of(kinds.PersistentVolume).addHandler(volumes);
    informers.of(kinds.StorageClass).addHandler(volumes);
    informers.of(kinds.CSINode).addHandler(volumes);
    informers.of(kinds.Namespace).addHandler({
      added: () => this.#queue.move(['InterPodAffinity']),
      updated: (namespace: Namespace, old: Namespace) => {
        if (!deepEqual(namespace.metadata.labels, old.metadata.labels)) this.#queue.move(['InterPodAffinity']);
      },
    });
  }

  #nodeChanged(node: Node): void {
    const info = this.#state.setNode(node);
    this.#queue.moveAll((pod) => couldRunOn(pod, info, this.#state));
  }

  #volumesChanged(): void {
    this.#claims.changed();
    this.#queue.move(volumeFilters);
  }

  #podChanged(pod: Pod, old: Pod | undefined): void {
    const uid = pod.metadata.uid!;
    if (pod.spec.nodeName) {
      this.#assumed.delete(uid);
      this.#queue.remove(uid);
      if (!isActive(pod)) return this.#podGone(pod);
      this.#state.place(podInfo(pod), pod.spec.nodeName);
      this.#queue.move(placedFilters);
      return;
    }
    const mine = (pod.spec.schedulerName ?? schedulerName) === schedulerName;
    const gated = (pod.spec.schedulingGates?.length ?? 0) > 0;
    if (!mine || gated || pod.metadata.deletionTimestamp || !isActive(pod)) {
      this.#queue.remove(uid);
      return;
    }
    if (!this.#assumed.has(uid)) this.#queue.put(podInfo(pod), old !== undefined);
  }

  #podGone(pod: Pod): void {
    const uid = pod.metadata.uid!;
    this.#assumed.delete(uid);
    this.#queue.remove(uid);
    if (this.#state.displace(uid)) this.#queue.move(freedFilters);
  }

  #wake(): void {
    if (this.#running || this.#stopped || this.#paused) return;
    this.#running = true;
    queueMicrotask(() => void this.#run());
  }

  /** Tries pods until none is ready. One run at a time. */
  async #run(): Promise<void> {
    const { clock } = this.#plane;
    let lastBreath = clock.monotonic();
    for (let tried = 1; !this.#stopped && !this.#paused; tried++) {
      if (this.#binding >= maxBinding) await new Promise<void>((resolve) => (this.#slotFree = resolve));
      const pod = this.#queue.pop();
      if (!pod) break;
      try {
        this.#try(pod);
      } catch (error) {
        this.#plane.log.error('scheduling a pod failed', { Pod: pod.key, error });
        this.#queue.failed(pod.uid, new Set(), this.#queue.moves);
      }
      // The virtual clock stands still: give way by count as well.
      if (tried % 64 === 0 || clock.monotonic() - lastBreath > longestBurstMs) {
        await clock.breathe();
        lastBreath = clock.monotonic();
      }
    }
    this.#running = false;
    if (this.#queue.readyCount > 0) this.#wake();
  }

  #try(pod: PodInfo): void {
    const moves = this.#queue.moves;
    const decision = schedulePod(pod, this.#state, this.#plane.random, this.#rotation);
    if ('node' in decision) {
      this.#state.place(pod, decision.node.name);
      this.#assumed.add(pod.uid);
      this.#queue.remove(pod.uid);
      this.#binding++;
      void this.#bind(pod, decision.node.name).finally(() => {
        this.#binding--;
        this.#slotFree?.();
        this.#slotFree = undefined;
      });
      return;
    }
    this.#queue.failed(pod.uid, decision.filters, moves);
    void this.#report(pod, 'Unschedulable', decision.message);
  }

  /** Never rejects. */
  async #bind(pod: PodInfo, node: string): Promise<void> {
    try {
      await this.#claims.bindFor(pod, node);
      await this.#plane.client
        .resource(kinds.Pod)
        .bind(pod.name, node, { namespace: pod.namespace, ...(pod.pod.metadata.uid ? { uid: pod.uid } : {}) });
      this.#plane.events.normal(pod.pod, 'Scheduled', `Successfully assigned ${pod.namespace}/${pod.name} to ${node}`);
    } catch (error) {
      this.#unassume(pod);
      const status = apiErrorOf(error)?.status;
      // Gone, or bound by somebody else: the informer tells the rest.
      if (status === 404 || status === 409) return;
      this.#plane.log.warn('binding a pod failed', { Pod: pod.key, node, error });
      await this.#report(pod, 'SchedulerError', `binding rejected: ${messageOf(error)}`);
    }
  }

  #unassume(pod: PodInfo): void {
    // The binding may have been confirmed meanwhile; then the pod is where it should be.
    if (!this.#assumed.delete(pod.uid)) return;
    this.#state.displace(pod.uid);
    this.#queue.move(freedFilters);
    const latest = this.#plane.informers.of(kinds.Pod).get(pod.key);
    const waits = latest?.metadata.uid === pod.uid && !latest.spec.nodeName && !latest.metadata.deletionTimestamp;
    if (waits && !this.#stopped) this.#queue.putBack(podInfo(latest));
  }

  /** Says in the pod's condition and in an event why it has no node. Never rejects. */
  async #report(pod: PodInfo, reason: string, message: string): Promise<void> {
    this.#plane.events.warning(pod.pod, 'FailedScheduling', message);
    const current = podCondition(this.#plane.informers.of(kinds.Pod).get(pod.key) ?? pod.pod, 'PodScheduled');
    const isKnown = current?.status === 'False' && current.reason === reason;
    // The message counts nodes: it is another one whenever one comes or goes.
    if (isKnown && (this.#plane.lean || current.message === message)) return;
    const condition = {
      type: 'PodScheduled',
      status: 'False',
      reason,
      message,
      lastProbeTime: null,
      lastTransitionTime:
        current?.status === 'False' ? current.lastTransitionTime : formatTime(this.#plane.clock.now()),
    };
    const patch = { metadata: { uid: pod.pod.metadata.uid }, status: { conditions: [condition] } };
    try {
      const options = { namespace: pod.namespace, type: 'strategic' } as const;
      await ignoreNotFound(this.#plane.client.resource(kinds.Pod).patchStatus(pod.name, patch, options));
    } catch (error) {
      this.#plane.log.warn('writing the condition of a pod failed', { Pod: pod.key, error });
    }
  }
}

/** Whether a node changed in a way that matters to placing pods; heartbeats do not. */
function nodeDiffers(node: Node, old: Node): boolean {
  return (
    !deepEqual(node.status?.allocatable, old.status?.allocatable) ||
    !deepEqual(node.metadata.labels, old.metadata.labels) ||
    !deepEqual(node.spec?.taints, old.spec?.taints) ||
    node.spec?.unschedulable !== old.spec?.unschedulable
  );
}

/** Whether a pod changed in a way that matters: where it is, whether it lives, its labels, its spec. */
function podDiffers(pod: Pod, old: Pod): boolean {
  return (
    pod.spec.nodeName !== old.spec.nodeName ||
    isActive(pod) !== isActive(old) ||
    pod.metadata.deletionTimestamp !== old.metadata.deletionTimestamp ||
    pod.status?.nominatedNodeName !== old.status?.nominatedNodeName ||
    !deepEqual(pod.metadata.labels, old.metadata.labels) ||
    !deepEqual(pod.spec, old.spec)
  );
}
