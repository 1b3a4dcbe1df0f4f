// SPDX-License-Identifier: Apache-2.0
// Nodes: conditions become taints, and a node that no longer speaks is called unknown.
import { deepEqual } from '../../base/freeze.ts';
import { ignoreNotFound } from '../../kube/api-error.ts';
import { kinds, type Lease, type Node, type NodeCondition, type Taint } from '../../kube/kinds.ts';
import { formatTime } from '../../kube/time.ts';
import { Controller, type Result } from '../../runtime/controller.ts';
import { type ControlPlane, vanishingIsFine } from './context.ts';

/** Silence after which a node is unknown; longer for one that has never spoken. */
const silenceMs = 50_000;
const startupSilenceMs = 60_000;

export interface NodeLifecycleOptions {
  /** Whether a node that falls silent is called unknown. */
  readonly watchHeartbeats: boolean;
}

export function nodeLifecycleController(plane: ControlPlane, options: NodeLifecycleOptions): Controller {
  const reconciler = new NodeLifecycle(plane, options);
  return new Controller({
    ...plane,
    name: 'node-lifecycle',
    kind: 'Node',
    reconciler: vanishingIsFine(reconciler),
    maxConcurrent: 10,
  }).watch(plane.informers.of(kinds.Node));
}

interface ConditionTaint {
  readonly condition: string;
  readonly status: string;
  readonly key: string;
}

const conditionTaints: readonly ConditionTaint[] = [
  { condition: 'Ready', status: 'False', key: 'node.kubernetes.io/not-ready' },
  { condition: 'Ready', status: 'Unknown', key: 'node.kubernetes.io/unreachable' },
  { condition: 'MemoryPressure', status: 'True', key: 'node.kubernetes.io/memory-pressure' },
  { condition: 'DiskPressure', status: 'True', key: 'node.kubernetes.io/disk-pressure' },
  { condition: 'PIDPressure', status: 'True', key: 'node.kubernetes.io/pid-pressure' },
  { condition: 'NetworkUnavailable', status: 'True', key: 'node.kubernetes.io/network-unavailable' },
];
const cordonKey = 'node.kubernetes.io/unschedulable';
const managedKeys = new Set([...conditionTaints.map((taint) => taint.key), cordonKey]);

/** The taints a node should have: those of others as they are, ours as its conditions and its cordon say. */
export function taintsFor(node: Node, now: number): Taint[] {
  const current = node.spec?.taints ?? [];
  const wanted: Taint[] = [];
  const want = (key: string, effect: string): void => {
    const known = current.find((taint) => taint.key === key && taint.effect === effect);
    wanted.push(known ?? { key, effect, timeAdded: formatTime(now) });
  };
  for (const { condition, status, key } of conditionTaints) {
    const ready = node.status?.conditions?.find((c) => c.type === condition);
    if (ready?.status !== status) continue;
    want(key, 'NoSchedule');
    if (condition === 'Ready') want(key, 'NoExecute');
  }
  if (node.spec?.unschedulable) want(cordonKey, 'NoSchedule');
  // A node that has not said anything yet keeps the taint it was born with.
  const spoke = node.status?.conditions?.some((c) => c.type === 'Ready') ?? false;
  const kept = current.filter(
    (taint) => !managedKeys.has(taint.key) || (!spoke && taint.key === 'node.kubernetes.io/not-ready'),
  );
  return [...kept, ...wanted.filter((taint) => !kept.includes(taint))];
}

interface Heard {
  readonly heartbeat: string;
  readonly at: number;
}

class NodeLifecycle {
  readonly #plane: ControlPlane;
  readonly #watchHeartbeats: boolean;
  /** What was last heard of each node, and when by our own clock: a node's clock is not trusted. */
  readonly #heard = new Map<string, Heard>();

  constructor(plane: ControlPlane, options: NodeLifecycleOptions) {
    this.#plane = plane;
    this.#watchHeartbeats = options.watchHeartbeats;
    plane.informers.of(kinds.Lease);
  }

  async reconcile(name: string): Promise<Result | void> {
    const node = this.#plane.informers.of(kinds.Node).get(name);
    if (!node) {
      this.#heard.delete(name);
      return;
    }
    if (!this.#watchHeartbeats) return this.#writeTaints(node);
    const silentFor = this.#silence(node);
    const allowed = node.status?.conditions?.some((c) => c.type === 'Ready') ? silenceMs : startupSilenceMs;
    if (silentFor >= allowed && !isUnknown(node)) await this.#markUnknown(node);
    else await this.#writeTaints(node);
    return { requeueAfterMs: isUnknown(node) ? silenceMs : Math.max(1000, allowed - silentFor) };
  }

  /** How long nothing was heard of a node: neither a new lease nor a new heartbeat in its conditions. */
  #silence(node: Node): number {
    const name = node.metadata.name!;
    const lease: Lease | undefined = this.#plane.informers.of(kinds.Lease).get(`kube-node-lease/${name}`);
    const beats = (node.status?.conditions ?? []).map((condition) => condition.lastHeartbeatTime ?? '').sort();
    const heartbeat = `${lease?.spec?.renewTime ?? ''}|${isUnknown(node) ? '' : (beats.at(-1) ?? '')}`;
    const now = this.#plane.clock.monotonic();
    const heard = this.#heard.get(name);
    if (heard?.heartbeat === heartbeat) return now - heard.at;
    this.#heard.set(name, { heartbeat, at: now });
    return 0;
  }

  async #markUnknown(node: Node): Promise<void> {
    const time = formatTime(this.#plane.clock.now());
    const types = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'];
    const conditions: NodeCondition[] = types.map((type) => {
      const current = node.status?.conditions?.find((condition) => condition.type === type);
      return {
        type,
        status: 'Unknown',
        reason: current ? 'NodeStatusUnknown' : 'NodeStatusNeverUpdated',
        message: current ? 'Kubelet stopped posting node status.' : 'Kubelet never posted node status.',
        ...(current?.lastHeartbeatTime ? { lastHeartbeatTime: current.lastHeartbeatTime } : {}),
        lastTransitionTime: time,
      };
    });
    const others = (node.status?.conditions ?? []).filter((condition) => !types.includes(condition.type));
    this.#plane.events.normal(node, 'NodeNotReady', `Node ${node.metadata.name} status is now: NodeNotReady`);
    await ignoreNotFound(
      this.#plane.client
        .resource(kinds.Node)
        .updateStatus({ ...node, status: { ...node.status, conditions: [...others, ...conditions] } }),
    );
  }

  async #writeTaints(node: Node): Promise<void> {
    const taints = taintsFor(node, this.#plane.clock.now());
    if (deepEqual(taints, node.spec?.taints ?? [])) return;
    const spec = { ...node.spec, taints };
    if (taints.length === 0) delete (spec as { taints?: Taint[] }).taints;
    await ignoreNotFound(this.#plane.client.resource(kinds.Node).update({ ...node, spec }));
  }
}

function isUnknown(node: Node): boolean {
  return node.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'Unknown') ?? false;
}
