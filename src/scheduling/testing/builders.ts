// SPDX-License-Identifier: Apache-2.0
// Builders of valid problems for tests and benchmarks: shallow options for the common knobs, everything else by spreading.
import type {
  DaemonSet,
  Node,
  NodeClaim,
  NodePool,
  Pod,
  PodSpec,
  RequirementSpec,
  ResourceList,
  Taint,
} from '../objects.ts';
import type { InstanceTypeSpec, OfferingSpec } from '../problem.ts';

export interface PodOptions {
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly requests?: ResourceList;
  readonly created?: string;
  readonly owner?: { readonly kind: string; readonly name: string };
  readonly spec?: Partial<PodSpec>;
}

/** A pending pod with one container. Its UID is its name: stable over runs. */
export function pod(name: string, options: PodOptions = {}): Pod {
  const { owner } = options;
  return {
    metadata: {
      name,
      namespace: options.namespace ?? 'default',
      uid: `uid-${options.namespace ?? 'default'}-${name}`,
      creationTimestamp: options.created ?? '2026-01-01T00:00:00Z',
      ...(options.labels ? { labels: options.labels } : {}),
      ...(owner
        ? { ownerReferences: [{ apiVersion: 'apps/v1', ...owner, uid: `uid-default-${owner.name}`, controller: true }] }
        : {}),
    },
    spec: {
      containers: [{ name: 'main', resources: { requests: options.requests ?? { cpu: '100m', memory: '128Mi' } } }],
      ...options.spec,
    },
    status: { phase: options.spec?.nodeName ? 'Running' : 'Pending' },
  };
}

export interface NodePoolOptions {
  readonly weight?: number;
  readonly limits?: ResourceList;
  readonly labels?: Readonly<Record<string, string>>;
  readonly requirements?: readonly RequirementSpec[];
  readonly taints?: readonly Taint[];
  readonly startupTaints?: readonly Taint[];
}

/** A NodePool that is ready. */
export function nodePool(name: string, options: NodePoolOptions = {}): NodePool {
  return {
    metadata: { name, uid: `uid-${name}` },
    spec: {
      ...(options.weight === undefined ? {} : { weight: options.weight }),
      ...(options.limits ? { limits: options.limits } : {}),
      template: {
        metadata: { labels: options.labels ?? {} },
        spec: {
          nodeClassRef: { group: 'karpenter.test.sh', kind: 'TestNodeClass', name: 'default' },
          requirements: options.requirements ?? [],
          ...(options.taints ? { taints: options.taints } : {}),
          ...(options.startupTaints ? { startupTaints: options.startupTaints } : {}),
        },
      },
    },
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  };
}

export function oneOf(key: string, ...values: string[]): RequirementSpec {
  return { key, operator: 'In', values };
}

export function offering(
  zone: string,
  capacityType: string,
  price: number,
  extra: Partial<OfferingSpec> = {},
): OfferingSpec {
  return {
    requirements: [oneOf('topology.kubernetes.io/zone', zone), oneOf('karpenter.sh/capacity-type', capacityType)],
    price,
    available: true,
    ...extra,
  };
}

export interface InstanceTypeOptions {
  readonly arch?: string;
  readonly os?: readonly string[];
  readonly requirements?: readonly RequirementSpec[];
  readonly overhead?: InstanceTypeSpec['overhead'];
}

/** An instance type that defines every well-known label its offerings allow. */
export function instanceType(
  name: string,
  capacity: ResourceList,
  offerings: readonly OfferingSpec[],
  options: InstanceTypeOptions = {},
): InstanceTypeSpec {
  const values = (key: string) => [
    ...new Set(
      offerings
        .filter((o) => o.available !== false)
        .flatMap((o) => o.requirements.find((r) => r.key === key)?.values ?? []),
    ),
  ];
  return {
    name,
    capacity,
    offerings,
    requirements: [
      oneOf('node.kubernetes.io/instance-type', name),
      oneOf('kubernetes.io/arch', options.arch ?? 'amd64'),
      oneOf('kubernetes.io/os', ...(options.os ?? ['linux'])),
      oneOf('topology.kubernetes.io/zone', ...values('topology.kubernetes.io/zone')),
      oneOf('karpenter.sh/capacity-type', ...values('karpenter.sh/capacity-type')),
      ...(options.requirements ?? []),
    ],
    ...(options.overhead ? { overhead: options.overhead } : {}),
  };
}

export interface NodeOptions {
  readonly pool?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly taints?: readonly Taint[];
  readonly allocatable: ResourceList;
  readonly initialized?: boolean;
}

/** A node that has joined. With a pool it is one of ours and needs `claimOf` beside it. */
export function node(name: string, options: NodeOptions): Node {
  const ours: Record<string, string> = options.pool
    ? {
        'karpenter.sh/nodepool': options.pool,
        'karpenter.sh/registered': 'true',
        ...(options.initialized === false ? {} : { 'karpenter.sh/initialized': 'true' }),
      }
    : {};
  return {
    metadata: { name, uid: `uid-${name}`, labels: { 'kubernetes.io/hostname': name, ...options.labels, ...ours } },
    spec: { providerID: `fake:///${name}`, ...(options.taints ? { taints: options.taints } : {}) },
    status: {
      capacity: options.allocatable,
      allocatable: options.allocatable,
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  };
}

/** The NodeClaim of a node of ours; without the node it is a machine on its way. */
export function claimOf(name: string, options: NodeOptions & { readonly startupTaints?: readonly Taint[] }): NodeClaim {
  return {
    metadata: {
      name,
      uid: `uid-claim-${name}`,
      labels: { ...options.labels, 'karpenter.sh/nodepool': options.pool ?? '' },
    },
    spec: {
      requirements: [],
      ...(options.taints ? { taints: options.taints } : {}),
      ...(options.startupTaints ? { startupTaints: options.startupTaints } : {}),
    },
    status: {
      providerID: `fake:///${name}`,
      nodeName: name,
      capacity: options.allocatable,
      allocatable: options.allocatable,
    },
  };
}

export function daemonSet(name: string, requests: ResourceList, spec: Partial<PodSpec> = {}): DaemonSet {
  return {
    metadata: { name, namespace: 'default', uid: `uid-default-${name}` },
    spec: {
      template: {
        metadata: { labels: { daemon: name } },
        spec: { containers: [{ name: 'main', resources: { requests } }], ...spec },
      },
    },
  };
}
