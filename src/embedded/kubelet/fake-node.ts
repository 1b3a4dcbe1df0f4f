// SPDX-License-Identifier: Apache-2.0
// The life of a fake node: what its kubelet would report, and a lease that says it is still there.
import { deepEqual } from '../../base/freeze.ts';
import { ignoreNotFound, isAlreadyExists } from '../../kube/api-error.ts';
import { kinds, type Lease, type Node, type NodeCondition, type NodeStatus } from '../../kube/kinds.ts';
import { formatMicroTime, formatTime } from '../../kube/time.ts';
import { Controller, type Result } from '../../runtime/controller.ts';
import type { ControlPlane } from '../workloads/context.ts';
import type { AddressBook } from './addresses.ts';

/** Nodes with this annotation have no machine behind them: we play their kubelet. */
export const fakeNodeAnnotation = 'kwok.x-k8s.io/node';
const leaseNamespace = 'kube-node-lease';
const leaseSeconds = 40;

export function isFake(node: Node | undefined): boolean {
  return node?.metadata.annotations?.[fakeNodeAnnotation] === 'fake';
}

export interface FakeNodeOptions {
  /** How often a node renews its lease; 0 turns heartbeats off. */
  readonly heartbeatMs: number;
  readonly addresses: AddressBook;
}

export function fakeNodeController(plane: ControlPlane, options: FakeNodeOptions): Controller {
  return new Controller({
    ...plane,
    name: 'fake-node',
    kind: 'Node',
    reconciler: new FakeNodes(plane, options),
    maxConcurrent: 10,
  }).watch(plane.informers.of(kinds.Node), { when: isFake });
}

const defaultCapacity = { cpu: '8', memory: '32Gi', 'ephemeral-storage': '100Gi', pods: '110' };

/** A status with everything a kubelet reports; what is there already, such as capacity, stays. */
export function reportedStatus(node: Node, ip: string, now: number): NodeStatus {
  const status = node.status ?? {};
  const capacity = status.capacity && Object.keys(status.capacity).length > 0 ? status.capacity : defaultCapacity;
  const allocatable = status.allocatable && Object.keys(status.allocatable).length > 0 ? status.allocatable : capacity;
  const labels = node.metadata.labels ?? {};
  return {
    ...status,
    phase: 'Running',
    capacity,
    allocatable,
    addresses: status.addresses ?? [
      { type: 'InternalIP', address: ip },
      { type: 'Hostname', address: labels['kubernetes.io/hostname'] ?? node.metadata.name! },
    ],
    daemonEndpoints: { kubeletEndpoint: { Port: 10250 } },
    nodeInfo: {
      architecture: labels['kubernetes.io/arch'] ?? 'amd64',
      bootID: '',
      containerRuntimeVersion: 'fake://1.0',
      kernelVersion: '6.12.0',
      kubeProxyVersion: '',
      kubeletVersion: 'v1.36.1',
      machineID: '',
      operatingSystem: labels['kubernetes.io/os'] ?? 'linux',
      osImage: 'embedded',
      systemUUID: '',
      ...nonEmpty(status.nodeInfo),
    },
    conditions: healthyConditions(status.conditions, now),
  };
}

/** What the creator of a node said of it, without the blanks the API fills in. */
function nonEmpty<T extends object>(info: T | undefined): Partial<T> {
  return Object.fromEntries(Object.entries(info ?? {}).filter(([, value]) => value !== '')) as Partial<T>;
}

function healthyConditions(current: readonly NodeCondition[] | undefined, now: number): NodeCondition[] {
  const time = formatTime(now);
  const healthy: readonly [type: string, status: string, reason: string, message: string][] = [
    ['MemoryPressure', 'False', 'KubeletHasSufficientMemory', 'kubelet has sufficient memory available'],
    ['DiskPressure', 'False', 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure'],
    ['PIDPressure', 'False', 'KubeletHasSufficientPID', 'kubelet has sufficient PID available'],
    ['Ready', 'True', 'KubeletReady', 'kubelet is posting ready status'],
  ];
  const own = healthy.map(([type, status, reason, message]) => {
    const known = current?.find((condition) => condition.type === type);
    // A condition that somebody set to another value on purpose is theirs: tests break nodes that way.
    if (known && known.reason !== 'NodeStatusUnknown' && known.reason !== 'NodeStatusNeverUpdated') return known;
    return { type, status, reason, message, lastHeartbeatTime: time, lastTransitionTime: time };
  });
  const others = (current ?? []).filter((condition) => !healthy.some(([type]) => type === condition.type));
  return [...others, ...own];
}

class FakeNodes {
  readonly #plane: ControlPlane;
  readonly #options: FakeNodeOptions;
  /** When each node renewed its lease last, by the monotonic clock. */
  readonly #renewed = new Map<string, number>();

  constructor(plane: ControlPlane, options: FakeNodeOptions) {
    this.#plane = plane;
    this.#options = options;
  }

  async reconcile(name: string): Promise<Result | void> {
    const node = this.#plane.informers.of(kinds.Node).get(name);
    if (!node || !isFake(node)) {
      this.#renewed.delete(name);
      this.#options.addresses.release(`node/${name}`);
      return;
    }
    // The lease first: a node that speaks again after a silence must not be called silent at once.
    const wait = await this.#renew(node);
    await this.#report(node);
    if (wait !== undefined) return { requeueAfterMs: wait };
  }

  async #report(node: Node): Promise<void> {
    const known = node.status?.addresses?.find((address) => address.type === 'InternalIP')?.address;
    const ip = known ?? this.#options.addresses.assign(`node/${node.metadata.name}`, 'node');
    const status = reportedStatus(node, ip, this.#plane.clock.now());
    if (deepEqual(status, node.status)) return;
    await ignoreNotFound(this.#plane.client.resource(kinds.Node).updateStatus({ ...node, status }));
  }

  /** Renews the node's lease when it is due; the time until the next renewal. */
  async #renew(node: Node): Promise<number | undefined> {
    const { heartbeatMs } = this.#options;
    if (heartbeatMs === 0) return undefined;
    const name = node.metadata.name!;
    const { clock, client } = this.#plane;
    const last = this.#renewed.get(name);
    const left = last === undefined ? 0 : last + heartbeatMs - clock.monotonic();
    if (left > 0) return left;
    this.#renewed.set(name, clock.monotonic());
    const leases = client.resource(kinds.Lease);
    const renewTime = formatMicroTime(clock.now());
    const renewed = await ignoreNotFound(leases.patch(name, { spec: { renewTime } }, { namespace: leaseNamespace }));
    if (!renewed) await this.#createLease(node, renewTime);
    return heartbeatMs;
  }

  async #createLease(node: Node, renewTime: string): Promise<void> {
    const { name, uid } = node.metadata;
    const lease: Lease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: {
        name: name!,
        namespace: leaseNamespace,
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: name!, uid: uid! }],
      },
      spec: { holderIdentity: name!, leaseDurationSeconds: leaseSeconds, renewTime },
    };
    try {
      await this.#plane.client.resource(kinds.Lease).create(lease);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
  }
}
