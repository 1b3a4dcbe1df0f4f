// SPDX-License-Identifier: Apache-2.0
// DaemonSets: one pod on every node that will have it, replaced bit by bit when the template changes.
import { deepClone, deepEqual } from '../../base/freeze.ts';
import { compareStrings } from '../../base/order.ts';
import { type DaemonSet, kinds, type Node, type Pod, type PodSpec, type Toleration } from '../../kube/kinds.ts';
import { Controller, type Result } from '../../runtime/controller.ts';
import { matchesNodeSelection, pinnedNodes } from '../scheduler/node-selector.ts';
import { blockingEffects, untoleratedTaint } from '../scheduler/tolerations.ts';
import { inGrowingBatches } from './batches.ts';
import { type ControlPlane, vanishingIsFine } from './context.ts';
import { scaled } from './int-or-percent.ts';
import { OwnStatus, sooner, unreadPaceMs } from './own-status.ts';
import { OwnedPods } from './owned-pods.ts';
import { claimOwned, ownerKey } from './ownership.ts';
import { createPod, deletePod, isNamespaceLeaving, podFromTemplate } from './pod-factory.ts';
import { isPodActive, isPodAvailable, isPodReady } from './pods.ts';
import { RevisionHistory, revisionLabel } from './revision-history.ts';
import { selectorOf } from './selectors.ts';
import { gatherMs, watchOwnedPods } from './watch-owned-pods.ts';

const burst = 250;

export function daemonSetController(plane: ControlPlane): Controller {
  const reconciler = new DaemonSets(plane);
  const { DaemonSet: type } = kinds;
  const all = (): string[] =>
    plane.informers
      .of(type)
      .list()
      .map((set) => `${set.metadata.namespace}/${set.metadata.name}`);
  const controller = new Controller({
    ...plane,
    name: 'daemonset',
    kind: type.kind,
    reconciler: vanishingIsFine(reconciler),
    maxConcurrent: 2,
  })
    .watch(plane.informers.of(type), { when: (set, old) => !reconciler.own.isEcho(set, old) })
    .watch(plane.informers.of(kinds.Node), { keys: all, when: (_node, old) => !old })
    // A node that comes is labelled and tainted several times within a second.
    .watch(plane.informers.of(kinds.Node), {
      keys: all,
      when: (node, old) => old !== undefined && placementDiffers(node, old),
      ...(plane.lean ? { afterMs: gatherMs } : {}),
    });
  return watchOwnedPods(controller, plane, (pod) => {
    const owner = ownerKey(pod, type);
    return owner ? [owner] : [];
  });
}

function placementDiffers(node: Node, old: Node): boolean {
  return !deepEqual(node.metadata.labels, old.metadata.labels) || !deepEqual(node.spec, old.spec);
}

const exists = (name: string, effect: string): Toleration => ({
  key: `node.kubernetes.io/${name}`,
  operator: 'Exists',
  effect,
});

/** What every daemon puts up with. */
const daemonTolerations: readonly Toleration[] = [
  exists('not-ready', 'NoExecute'),
  exists('unreachable', 'NoExecute'),
  exists('disk-pressure', 'NoSchedule'),
  exists('memory-pressure', 'NoSchedule'),
  exists('pid-pressure', 'NoSchedule'),
  exists('unschedulable', 'NoSchedule'),
];

function tolerationsOf(spec: PodSpec): Toleration[] {
  const added = spec.hostNetwork
    ? [...daemonTolerations, exists('network-unavailable', 'NoSchedule')]
    : daemonTolerations;
  const kept = (spec.tolerations ?? []).filter(
    (own) => !added.some((t) => t.key === own.key && t.effect === own.effect && t.operator === own.operator),
  );
  return [...kept, ...added.map((toleration) => ({ ...toleration }))];
}

interface DaemonFit {
  readonly start: boolean;
  readonly stay: boolean;
}

/** What was found of frozen objects, by the spec of the pod and by the node: every change of a pod asks of all nodes. */
const foundBefore = new WeakMap<PodSpec, WeakMap<Node, DaemonFit>>();

/** Whether a daemon's pod should start on a node, and whether one that runs there may stay. */
export function daemonFit(set: DaemonSet, node: Node): DaemonFit {
  const { spec } = set.spec.template;
  if (!Object.isFrozen(spec) || !Object.isFrozen(node)) return fitOf(spec, node);
  let byNode = foundBefore.get(spec);
  if (!byNode) {
    byNode = new WeakMap();
    foundBefore.set(spec, byNode);
  }
  let fit = byNode.get(node);
  if (!fit) {
    fit = fitOf(spec, node);
    byNode.set(node, fit);
  }
  return fit;
}

function fitOf(spec: PodSpec, node: Node): DaemonFit {
  if (spec.nodeName && spec.nodeName !== node.metadata.name) return { start: false, stay: false };
  if (!matchesNodeSelection(spec, node)) return { start: false, stay: false };
  const tolerations = tolerationsOf(spec);
  return {
    start: !untoleratedTaint(node.spec?.taints, tolerations, blockingEffects),
    stay: !untoleratedTaint(node.spec?.taints, tolerations, ['NoExecute']),
  };
}

/** The pod of a daemon for one node: pinned by name, so that the scheduler still has the last word. */
export function daemonPod(set: DaemonSet, nodeName: string, revision: string): Pod {
  const pod = podFromTemplate(set.spec.template, set, kinds.DaemonSet);
  pod.metadata.labels = {
    ...pod.metadata.labels,
    [revisionLabel]: revision,
    'pod-template-generation': set.metadata.annotations?.['deprecated.daemonset.template.generation'] ?? '1',
  };
  const pin = { matchFields: [{ key: 'metadata.name', operator: 'In', values: [nodeName] }] };
  const affinity = deepClone(pod.spec.affinity ?? {});
  pod.spec.affinity = {
    ...affinity,
    nodeAffinity: {
      ...affinity.nodeAffinity,
      requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [pin] },
    },
  };
  pod.spec.tolerations = tolerationsOf(pod.spec);
  return pod;
}

/** The node a daemon's pod is for, placed or not. */
function nodeOf(pod: Pod): string | undefined {
  if (pod.spec.nodeName) return pod.spec.nodeName;
  const pinned = pinnedNodes(pod.spec);
  return pinned?.size === 1 ? [...pinned][0] : undefined;
}

const none: Pod[] = [];

interface Fits {
  readonly nodes: readonly Node[];
  /** By the place of the node. */
  readonly fits: readonly DaemonFit[];
}

class DaemonSets {
  readonly own: OwnStatus<DaemonSet>;
  readonly #plane: ControlPlane;
  readonly #pods: OwnedPods;
  readonly #history: RevisionHistory;
  /** How the nodes fit a template, for as long as none of them changes: pods change far more often. */
  readonly #fits = new WeakMap<PodSpec, Fits>();

  constructor(plane: ControlPlane) {
    this.#plane = plane;
    this.own = new OwnStatus(plane.informers.of(kinds.DaemonSet), plane, unreadPaceMs);
    this.#pods = new OwnedPods(plane.informers.of(kinds.Pod), plane.clock);
    this.#history = new RevisionHistory(plane, kinds.DaemonSet);
  }

  async reconcile(key: string): Promise<Result | void> {
    const set = this.#plane.informers.of(kinds.DaemonSet).get(key);
    if (!set || set.metadata.deletionTimestamp) return;
    const uid = set.metadata.uid!;
    const claimed = await claimOwned({
      owner: set,
      ownerType: kinds.DaemonSet,
      selector: selectorOf(set),
      candidates: this.#pods.candidates(set),
      client: this.#plane.client.resource(kinds.Pod),
    });
    const revision = await this.#history.current(set, set.spec.template, set.spec.revisionHistoryLimit ?? 10, claimed);
    const byNode = groupByNode(claimed);
    if (this.#pods.settled(uid)) {
      await this.#place(set, byNode, revision);
      if (this.#pods.settled(uid)) await this.#replaceOutdated(set, byNode, revision);
    }
    const waitMs = await this.#writeStatus(set, byNode, revision);
    const waits = (set.spec.minReadySeconds ?? 0) > 0 && claimed.some((pod) => isPodReady(pod));
    return sooner(waits ? { requeueAfterMs: 1000 } : undefined, waitMs);
  }

  #fitsOf(set: DaemonSet): Fits {
    const nodes = this.#plane.informers.of(kinds.Node).list();
    const { spec } = set.spec.template;
    const known = this.#fits.get(spec);
    if (known?.nodes === nodes) return known;
    const found = { nodes, fits: nodes.map((node) => daemonFit(set, node)) };
    if (Object.isFrozen(spec)) this.#fits.set(spec, found);
    return found;
  }

  async #place(set: DaemonSet, byNode: ReadonlyMap<string, Pod[]>, revision: string): Promise<void> {
    const { nodes, fits } = this.#fitsOf(set);
    const missing: string[] = [];
    const surplus: Pod[] = [];
    for (const [i, node] of nodes.entries()) {
      const pods = byNode.get(node.metadata.name!) ?? none;
      const { start, stay } = fits[i]!;
      // As it should be, on nearly every node.
      if (stay && pods.length === 1 && isPodActive(pods[0]!)) continue;
      const ended = pods.filter((pod) => pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded');
      const alive = pods.filter((pod) => !ended.includes(pod));
      surplus.push(...ended.filter((pod) => !pod.metadata.deletionTimestamp));
      if (start && pods.length === 0) missing.push(node.metadata.name!);
      else if (!stay) surplus.push(...alive.filter(isPodActive));
      else surplus.push(...alive.filter(isPodActive).sort(oldestFirst).slice(1));
    }
    for (const [name, pods] of byNode) {
      // Not yet placed, for a node that is gone: nothing else would ever remove it.
      const gone = !this.#plane.informers.of(kinds.Node).get(name);
      if (gone) surplus.push(...pods.filter((pod) => !pod.spec.nodeName && isPodActive(pod)));
    }
    await this.#delete(set, surplus);
    if (isNamespaceLeaving(this.#plane, set.metadata.namespace)) return;
    const uid = set.metadata.uid!;
    const { error } = await inGrowingBatches(Math.min(missing.length, burst), async (i) => {
      const created = await createPod(this.#plane, daemonPod(set, missing[i]!, revision), set);
      this.#pods.created(uid, created);
    });
    if (error) throw error;
  }

  async #replaceOutdated(set: DaemonSet, byNode: ReadonlyMap<string, Pod[]>, revision: string): Promise<void> {
    if (set.spec.updateStrategy?.type === 'OnDelete') return;
    const now = this.#plane.clock.now();
    const rolling = set.spec.updateStrategy?.rollingUpdate;
    const { nodes, fits } = this.#fitsOf(set);
    const places = nodes.filter((_, i) => fits[i]!.start);
    // Surge is not supported: a daemon is replaced in place, at least one at a time.
    const allowed = Math.max(1, scaled(rolling?.maxUnavailable ?? 1, places.length, 'up'));
    let unavailable = 0;
    const outdated: Pod[] = [];
    for (const node of places) {
      const pod = byNode.get(node.metadata.name!)?.find(isPodActive);
      const available = pod !== undefined && isPodAvailable(pod, set.spec.minReadySeconds ?? 0, now);
      if (!available) unavailable++;
      if (pod && pod.metadata.labels?.[revisionLabel] !== revision) {
        if (available) outdated.push(pod);
        // One that does not work anyway is replaced at once.
        else await this.#delete(set, [pod]);
      }
    }
    await this.#delete(set, outdated.slice(0, Math.max(0, allowed - unavailable)));
  }

  async #delete(set: DaemonSet, pods: readonly Pod[]): Promise<void> {
    for (const pod of pods) {
      await deletePod(this.#plane, pod, set);
      this.#pods.deleted(set.metadata.uid!, pod);
    }
  }

  /** Gives for how long it has to wait; 0 when it is up to date. */
  async #writeStatus(set: DaemonSet, byNode: ReadonlyMap<string, Pod[]>, revision: string): Promise<number> {
    const now = this.#plane.clock.now();
    const count = { desired: 0, current: 0, misscheduled: 0, ready: 0, available: 0, updated: 0 };
    const { nodes, fits } = this.#fitsOf(set);
    for (const [i, node] of nodes.entries()) {
      const all = byNode.get(node.metadata.name!) ?? none;
      const isSingle = all.length === 1 && Boolean(all[0]!.spec.nodeName);
      const pods = isSingle ? all : all.filter((pod) => pod.spec.nodeName).sort(oldestFirst);
      if (!fits[i]!.start) {
        if (pods.length > 0) count.misscheduled++;
        continue;
      }
      count.desired++;
      const pod = pods[0];
      if (!pod) continue;
      count.current++;
      if (isPodReady(pod)) count.ready++;
      if (isPodAvailable(pod, set.spec.minReadySeconds ?? 0, now)) count.available++;
      if (pod.metadata.labels?.[revisionLabel] === revision) count.updated++;
    }
    const unavailable = count.desired - count.available;
    const status = {
      currentNumberScheduled: count.current,
      numberMisscheduled: count.misscheduled,
      desiredNumberScheduled: count.desired,
      numberReady: count.ready,
      observedGeneration: set.metadata.generation ?? 0,
      ...(count.updated > 0 ? { updatedNumberScheduled: count.updated } : {}),
      ...(count.available > 0 ? { numberAvailable: count.available } : {}),
      ...(unavailable > 0 ? { numberUnavailable: unavailable } : {}),
      ...(set.status?.collisionCount === undefined ? {} : { collisionCount: set.status.collisionCount }),
    };
    return this.own.write(set, status, () =>
      this.#plane.client.resource(kinds.DaemonSet).updateStatus({ ...set, status }),
    );
  }
}

function groupByNode(pods: readonly Pod[]): Map<string, Pod[]> {
  const groups = new Map<string, Pod[]>();
  for (const pod of pods) {
    const node = nodeOf(pod);
    if (node === undefined) continue;
    const group = groups.get(node);
    if (group) group.push(pod);
    else groups.set(node, [pod]);
  }
  return groups;
}

function oldestFirst(a: Pod, b: Pod): number {
  return (
    compareStrings(a.metadata.creationTimestamp ?? '', b.metadata.creationTimestamp ?? '') ||
    compareStrings(a.metadata.name ?? '', b.metadata.name ?? '')
  );
}
