// SPDX-License-Identifier: Apache-2.0
// Builders of valid pods and nodes for tests of the embedded cluster: shallow options for what tests vary.
import type { Node, Pod, PodSpec, Taint } from '../../kube/kinds.ts';

export interface NodeOptions {
  readonly labels?: Record<string, string>;
  readonly taints?: Taint[];
  readonly unschedulable?: boolean;
  readonly allocatable?: Record<string, string>;
}

/** A ready node of 4 CPUs, 16 GiB and 110 pods with its hostname label. */
export function aNode(name: string, options: NodeOptions = {}): Node {
  const resources = { cpu: '4', memory: '16Gi', 'ephemeral-storage': '100Gi', pods: '110', ...options.allocatable };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'kubernetes.io/hostname': name, ...options.labels } },
    spec: {
      ...(options.taints ? { taints: options.taints } : {}),
      ...(options.unschedulable ? { unschedulable: true } : {}),
    },
    status: {
      capacity: resources,
      allocatable: resources,
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  };
}

export interface PodOptions {
  readonly namespace?: string;
  readonly labels?: Record<string, string>;
  readonly annotations?: Record<string, string>;
  readonly requests?: Record<string, string>;
  readonly node?: string;
  /** Merged over the spec that the other options give. */
  readonly spec?: Partial<PodSpec>;
  readonly deleting?: boolean;
}

/** A pending pod of one container that asks for a tenth of a CPU. */
export function aPod(name: string, options: PodOptions = {}): Pod {
  const namespace = options.namespace ?? 'default';
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace,
      uid: `${namespace}-${name}`,
      ...(options.labels ? { labels: options.labels } : {}),
      ...(options.annotations ? { annotations: options.annotations } : {}),
      ...(options.deleting ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: {
      containers: [{ name: 'app', image: 'app', resources: { requests: options.requests ?? { cpu: '100m' } } }],
      ...(options.node ? { nodeName: options.node } : {}),
      ...options.spec,
    },
  };
}
