// SPDX-License-Identifier: Apache-2.0
// Pods that nobody will ever clean up: on nodes that are gone, deleted before they were placed, or too many that ended.
import { isNotFound } from '../../kube/api-error.ts';
import { kinds, type Pod } from '../../kube/kinds.ts';
import { formatTime } from '../../kube/time.ts';
import { type Controller, type Result, singleton } from '../../runtime/controller.ts';
import type { ControlPlane } from './context.ts';
import { isPodEnded } from './pods.ts';

const everyMs = 20_000;
/** A node that is missing may just not have been seen yet. */
const quarantineMs = 40_000;
/** Ended pods beyond this number go, the oldest first. */
const keptEnded = 12_500;

export function podGarbageCollector(plane: ControlPlane): Controller {
  const collector = new PodGarbageCollector(plane);
  return singleton({ ...plane, name: 'pod-gc', reconcile: () => collector.collect() });
}

class PodGarbageCollector {
  readonly #plane: ControlPlane;
  /** Nodes that pods name and that do not exist, and since when we know. */
  readonly #missing = new Map<string, number>();
  /** Whether the last look found nothing to do, and nothing has happened since that could be something. */
  #clean = false;

  constructor(plane: ControlPlane) {
    this.#plane = plane;
    const nodes = plane.informers.of(kinds.Node);
    const look = (pod: Pod): void => {
      const { nodeName } = pod.spec;
      if (nodeName ? !nodes.get(nodeName) : pod.metadata.deletionTimestamp) this.#clean = false;
      if (isPodEnded(pod)) this.#clean = false;
    };
    plane.informers.of(kinds.Pod).addHandler({ added: look, updated: look });
    nodes.addHandler({ deleted: () => void (this.#clean = false) });
  }

  async collect(): Promise<Result> {
    if (!this.#clean) {
      // Before it looks: what happens meanwhile counts for the next time.
      this.#clean = true;
      let isClean = false;
      try {
        isClean = await this.#sweep(this.#plane.informers.of(kinds.Pod).list());
      } finally {
        if (!isClean) this.#clean = false;
      }
    }
    return { requeueAfterMs: everyMs };
  }

  /** Gives whether there is nothing to do until something changes. */
  async #sweep(pods: readonly Pod[]): Promise<boolean> {
    const { informers, clock } = this.#plane;
    const nodes = informers.of(kinds.Node);
    const gone = new Set<string>();
    const [unplaced, ended]: [Pod[], Pod[]] = [[], []];
    for (const pod of pods) {
      const { nodeName } = pod.spec;
      if (nodeName && !nodes.get(nodeName)) gone.add(nodeName);
      if (!nodeName && pod.metadata.deletionTimestamp) unplaced.push(pod);
      if (isPodEnded(pod)) ended.push(pod);
    }
    for (const pod of unplaced) await this.#delete(pod);
    for (const name of this.#missing.keys()) if (!gone.has(name)) this.#missing.delete(name);
    for (const name of gone) if (!this.#missing.has(name)) this.#missing.set(name, clock.monotonic());
    for (const pod of pods) {
      const since = pod.spec.nodeName ? this.#missing.get(pod.spec.nodeName) : undefined;
      if (since !== undefined && clock.monotonic() - since >= quarantineMs) await this.#deleteOrphan(pod);
    }
    await this.#trim(ended);
    return unplaced.length === 0 && gone.size === 0 && ended.length <= keptEnded;
  }

  async #trim(ended: Pod[]): Promise<void> {
    if (ended.length <= keptEnded) return;
    ended.sort((a, b) => ((a.metadata.creationTimestamp ?? '') < (b.metadata.creationTimestamp ?? '') ? -1 : 1));
    for (const pod of ended.slice(0, ended.length - keptEnded)) await this.#delete(pod);
  }

  async #deleteOrphan(pod: Pod): Promise<void> {
    const { name, namespace } = pod.metadata;
    if (!isPodEnded(pod)) {
      const condition = {
        type: 'DisruptionTarget',
        status: 'True',
        reason: 'DeletionByPodGC',
        message: 'PodGC: node no longer exists',
        lastTransitionTime: formatTime(this.#plane.clock.now()),
      };
      const status = { phase: 'Failed', conditions: [condition] };
      try {
        await this.#plane.client.resource(kinds.Pod).patchStatus(name!, { status }, { namespace, type: 'strategic' });
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
    await this.#delete(pod);
  }

  async #delete(pod: Pod): Promise<void> {
    const { name, namespace, uid } = pod.metadata;
    try {
      await this.#plane.client
        .resource(kinds.Pod)
        .delete(name!, { namespace, gracePeriodSeconds: 0, ...(uid ? { preconditions: { uid } } : {}) });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}
