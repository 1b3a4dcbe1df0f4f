// SPDX-License-Identifier: Apache-2.0
// NoExecute taints: pods that do not tolerate them go, those that do for a while go later.
import { deepEqual } from '../../base/freeze.ts';
import { isNotFound } from '../../kube/api-error.ts';
import { kinds, type Node, type Pod, type Taint } from '../../kube/kinds.ts';
import { formatTime, parseTime } from '../../kube/time.ts';
import { Controller, type Result } from '../../runtime/controller.ts';
import { tolerates } from '../scheduler/tolerations.ts';
import type { ControlPlane } from './context.ts';
import { isPodActive, isPodReady, podCondition } from './pods.ts';

export function taintEvictionController(plane: ControlPlane): Controller {
  const pods = plane.informers.of(kinds.Pod);
  pods.addIndex('node', (pod) => pod.spec.nodeName);
  const onNode = (node: Node): string[] =>
    pods.byIndex('node', node.metadata.name!).map((pod) => `${pod.metadata.namespace}/${pod.metadata.name}`);
  const reconciler = new TaintEviction(plane);
  return new Controller({ ...plane, name: 'taint-eviction', kind: 'Pod', reconciler, maxConcurrent: 10 })
    .watch(plane.informers.of(kinds.Node), { keys: onNode, when: (node, old) => concerns(node, old) })
    .watch(pods, { when: (pod, old) => Boolean(pod.spec.nodeName) && !old?.spec.nodeName, whenGone: false });
}

/** Only evicting taints and readiness matter; heartbeats do not. */
function concerns(node: Node, old: Node | undefined): boolean {
  if (old === undefined) return evictingTaints(node).length > 0;
  const readiness = (n: Node): string | undefined => n.status?.conditions?.find((c) => c.type === 'Ready')?.status;
  if (readiness(node) !== readiness(old)) return true;
  return node.spec?.taints !== old.spec?.taints && !deepEqual(evictingTaints(node), evictingTaints(old));
}

function evictingTaints(node: Node): Taint[] {
  return (node.spec?.taints ?? []).filter((taint) => taint.effect === 'NoExecute');
}

/**
 * When a pod must leave because of the taints of its node, in ms since the epoch: a taint nobody tolerates counts from
 * now on, a tolerated one from when it was added plus the time the pod tolerates it. Undefined: it may stay.
 */
export function evictionTime(pod: Pod, node: Node, now: number): number | undefined {
  let earliest: number | undefined;
  for (const taint of evictingTaints(node)) {
    const matching = (pod.spec.tolerations ?? []).filter((toleration) => tolerates(toleration, taint));
    if (matching.length === 0) return now;
    const limits = matching
      .map((toleration) => toleration.tolerationSeconds)
      .filter((seconds) => seconds !== undefined);
    if (limits.length === 0) continue;
    const since = taint.timeAdded ? parseTime(taint.timeAdded) : now;
    const due = since + Math.max(0, Math.min(...limits)) * 1000;
    earliest = Math.min(earliest ?? due, due);
  }
  return earliest;
}

class TaintEviction {
  readonly #plane: ControlPlane;

  constructor(plane: ControlPlane) {
    this.#plane = plane;
  }

  async reconcile(key: string): Promise<Result | void> {
    const { informers, clock } = this.#plane;
    const pod = informers.of(kinds.Pod).get(key);
    if (!pod?.spec.nodeName || !isPodActive(pod)) return;
    const node = informers.of(kinds.Node).get(pod.spec.nodeName);
    if (!node) return;
    await this.#markNotReady(pod, node);
    const due = evictionTime(pod, node, clock.now());
    if (due === undefined) return;
    if (due > clock.now()) return { requeueAfterMs: due - clock.now() };
    await this.#evict(pod);
  }

  async #evict(pod: Pod): Promise<void> {
    const { name, namespace, uid } = pod.metadata;
    const client = this.#plane.client.resource(kinds.Pod);
    this.#plane.events.normal(pod, 'TaintManagerEviction', `Marking for deletion Pod ${namespace}/${name}`);
    const condition = {
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'DeletionByTaintManager',
      message: 'Taint manager: deleting due to NoExecute taint',
      lastTransitionTime: formatTime(this.#plane.clock.now()),
    };
    try {
      await client.patchStatus(name!, { status: { conditions: [condition] } }, { namespace, type: 'strategic' });
      await client.delete(name!, { namespace, ...(uid ? { preconditions: { uid } } : {}) });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }

  /** Nobody answers for the pods of a node that is not ready: they do not count as ready either. */
  async #markNotReady(pod: Pod, node: Node): Promise<void> {
    const ready = node.status?.conditions?.find((condition) => condition.type === 'Ready');
    if (ready?.status !== 'Unknown' || !isPodReady(pod)) return;
    const condition = {
      ...podCondition(pod, 'Ready'),
      type: 'Ready',
      status: 'False',
      lastTransitionTime: formatTime(this.#plane.clock.now()),
    };
    const { name, namespace } = pod.metadata;
    try {
      await this.#plane.client
        .resource(kinds.Pod)
        .patchStatus(name!, { status: { conditions: [condition] } }, { namespace, type: 'strategic' });
      this.#plane.events.warning(pod, 'NodeNotReady', 'Node is not ready');
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
}
