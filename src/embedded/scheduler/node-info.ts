// SPDX-License-Identifier: Apache-2.0
// A node and what is placed on it, with the sums kept up to date.
import type { Node, Taint } from '../../kube/kinds.ts';
import type { HostPort, PodInfo } from './pod-info.ts';
import { Resources } from './resources.ts';

/** One node of the scheduler's picture. Pods may be known before their node is: then `node` is undefined. */
export class NodeInfo {
  readonly name: string;
  node: Node | undefined;
  /** Copies of what is asked of every node for every pod: reading them through the object costs more than the check. */
  labels: Readonly<Record<string, string>> = {};
  unschedulable = false;
  /** Taints that keep pods out, and those that only put them off. */
  blockingTaints: readonly Taint[] = [];
  softTaints: readonly Taint[] = [];
  allocatable: Resources = new Resources();
  readonly requested: Resources = new Resources();
  /** As requested, with a default weight for containers that request nothing: the basis of scores. */
  readonly weights: Resources = new Resources();
  readonly pods: Map<string, PodInfo> = new Map();
  readonly #ports = new Map<string, number>();

  constructor(name: string) {
    this.name = name;
  }

  setNode(node: Node | undefined): void {
    this.node = node;
    this.labels = node?.metadata.labels ?? {};
    this.unschedulable = node?.spec?.unschedulable ?? false;
    const taints = node?.spec?.taints ?? [];
    this.blockingTaints = taints.filter((taint) => taint.effect === 'NoSchedule' || taint.effect === 'NoExecute');
    this.softTaints = taints.filter((taint) => taint.effect === 'PreferNoSchedule');
    this.allocatable = Resources.of(node?.status?.allocatable as Record<string, string> | undefined);
  }

  add(pod: PodInfo): void {
    this.pods.set(pod.uid, pod);
    this.requested.add(pod.requests);
    this.weights.add(pod.weights);
    for (const port of pod.hostPorts) this.#usePort(port, 1);
  }

  remove(pod: PodInfo): void {
    this.pods.delete(pod.uid);
    this.requested.add(pod.requests, -1);
    this.weights.add(pod.weights, -1);
    for (const port of pod.hostPorts) this.#usePort(port, -1);
  }

  /** Whether a port is taken: the same protocol and number, on the same address or with one of the two on all addresses. */
  portTaken(port: HostPort): boolean {
    if (this.#ports.size === 0) return false;
    for (const used of this.#ports.keys()) {
      const [protocol, number, ip] = used.split('|');
      if (protocol !== port.protocol || Number(number) !== port.port) continue;
      if (ip === port.ip || ip === '0.0.0.0' || port.ip === '0.0.0.0') return true;
    }
    return false;
  }

  #usePort(port: HostPort, by: 1 | -1): void {
    const key = `${port.protocol}|${port.port}|${port.ip}`;
    const n = (this.#ports.get(key) ?? 0) + by;
    if (n === 0) this.#ports.delete(key);
    else this.#ports.set(key, n);
  }
}
