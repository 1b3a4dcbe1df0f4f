// SPDX-License-Identifier: Apache-2.0
// Builders of cluster objects for tests: valid by default, any part replaceable.
import { labels } from '../../api/labels.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import type { Node, Pod, PodSpec } from '../../kube/kinds.ts';

/** A pod of one container in the namespace `default`, without a node. */
export function pod(name: string, spec: Partial<PodSpec> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', uid: `uid-${name}`, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: {
      containers: [{ name: 'main', image: 'app', resources: { requests: { cpu: '1', memory: '1Gi' } } }],
      ...spec,
    },
    status: { phase: 'Pending' },
  };
}

/** A pod that kube-scheduler found no node for. */
export function pendingPod(name: string, spec: Partial<PodSpec> = {}): Pod {
  return {
    ...pod(name, spec),
    status: {
      phase: 'Pending',
      conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }],
    },
  };
}

/** A pod that runs on a node. */
export function boundPod(name: string, nodeName: string, spec: Partial<PodSpec> = {}): Pod {
  return { ...pod(name, { nodeName, ...spec }), status: { phase: 'Running' } };
}

/** The same pod with a controller. */
export function ownedBy(owned: Pod, apiVersion: string, kind: string, name = 'owner'): Pod {
  const owner = { apiVersion, kind, name, uid: `uid-${name}`, controller: true };
  return { ...owned, metadata: { ...owned.metadata, ownerReferences: [owner] } };
}

/** A node of ten CPUs. */
export function node(
  name: string,
  parts: Partial<Omit<Node, 'metadata'>> & { labels?: Record<string, string> } = {},
): Node {
  const { labels: own = {}, ...rest } = parts;
  const resources = { cpu: '10', memory: '20Gi', pods: '110' };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      uid: `uid-${name}`,
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: { [labels.hostname]: name, ...own },
    },
    spec: { providerID: `fake://${name}` },
    status: { capacity: resources, allocatable: resources },
    ...rest,
  };
}

/** A claim of the pretended cloud for the node of the same provider id. */
export function launchedClaim(
  name: string,
  parts: { pool?: string; providerID?: string; nodeName?: string; spec?: Partial<NodeClaim['spec']> } = {},
): NodeClaim {
  const { pool = 'default', providerID = `fake://${name}`, nodeName, spec } = parts;
  const resources = { cpu: '10', memory: '20Gi', pods: '110' };
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: {
      name,
      uid: `uid-${name}`,
      generation: 1,
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: { [labels.nodePool]: pool, [labels.instanceType]: 'c-10x', [labels.zone]: 'zone-a' },
    },
    spec: {
      nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
      requirements: [],
      ...spec,
    },
    status: {
      ...(providerID === '' ? {} : { providerID, capacity: resources, allocatable: resources }),
      ...(nodeName === undefined ? {} : { nodeName }),
      conditions: [],
    },
  };
}
