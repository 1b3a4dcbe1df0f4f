// SPDX-License-Identifier: Apache-2.0
// NodeClaim (karpenter.sh/v1): one machine that was asked for, from the intent to the running node.
import { defineKind, type ObjectOf } from './kind.ts';
import { dateTime, object, string, type TypeOf } from './schema.ts';
import {
  duration,
  durationOrNever,
  nodeClassRef,
  relaxedConditionList,
  requirementList,
  resourceList,
  taintList,
} from './shared-schemas.ts';

const nodeClaimSpec = object({
  description: 'The machine that is asked for. Cannot be changed after creation.',
  required: ['nodeClassRef', 'requirements'],
  fields: {
    nodeClassRef: nodeClassRef(),
    requirements: requirementList({
      description: 'Conditions on the labels of the node; the cloud picks a machine that meets them all.',
      poolAllowed: true,
    }),
    resources: object({
      description: 'What the pods planned for this node need.',
      fields: {
        requests: resourceList({ description: 'The least that the node must be able to offer of each resource.' }),
      },
    }),
    taints: taintList({ description: 'Taints of the node. Pods must tolerate them to be placed there.' }),
    startupTaints: taintList({
      description: 'Taints that the node is born with and that something on it removes when it is ready.',
    }),
    expireAfter: durationOrNever({
      description:
        'The age at which the node is replaced, counted from the creation of the NodeClaim. Never lets it live on.',
      default: '720h',
    }),
    terminationGracePeriod: duration({
      description:
        'The longest time the node may take to drain, counted from its deletion. After it, pods are deleted even against PodDisruptionBudgets and the karpenter.sh/do-not-disrupt annotation. Left out, draining may take for ever.',
    }),
  },
  rules: [{ rule: 'self == oldSelf', message: 'the spec of a NodeClaim cannot be changed' }],
});
export type NodeClaimSpec = TypeOf<typeof nodeClaimSpec>;

const nodeClaimStatus = object({
  description: 'What became of the request.',
  fields: {
    nodeName: string({ description: 'The name of the Node object.' }),
    providerID: string({ description: "The cloud's identifier of the machine, as the Node carries it too." }),
    imageID: string({ description: 'The image that the machine runs.' }),
    capacity: resourceList({ description: 'What the node is expected to have in all.' }),
    allocatable: resourceList({ description: 'What the node is expected to have for pods.' }),
    conditions: relaxedConditionList,
    lastPodEventTime: dateTime({
      description: 'When a pod was last bound to the node or left it; ending and being deleted count as leaving.',
    }),
  },
});
export type NodeClaimStatus = TypeOf<typeof nodeClaimStatus>;

/** NodeClaim as the API server serves it. */
export const nodeClaimKind = defineKind({
  group: 'karpenter.sh',
  version: 'v1',
  kind: 'NodeClaim',
  plural: 'nodeclaims',
  categories: ['karpenter'],
  namespaced: false,
  description: 'A NodeClaim is one machine: asked of a cloud, launched, registered as a node, used, and given back.',
  spec: nodeClaimSpec,
  status: nodeClaimStatus,
  columns: [
    { name: 'Type', type: 'string', jsonPath: '.metadata.labels.node\\.kubernetes\\.io/instance-type' },
    { name: 'Capacity', type: 'string', jsonPath: '.metadata.labels.karpenter\\.sh/capacity-type' },
    { name: 'Zone', type: 'string', jsonPath: '.metadata.labels.topology\\.kubernetes\\.io/zone' },
    { name: 'Node', type: 'string', jsonPath: '.status.nodeName' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'ImageID', type: 'string', jsonPath: '.status.imageID', priority: 1 },
    { name: 'ID', type: 'string', jsonPath: '.status.providerID', priority: 1 },
    { name: 'NodePool', type: 'string', jsonPath: '.metadata.labels.karpenter\\.sh/nodepool', priority: 1 },
    { name: 'NodeClass', type: 'string', jsonPath: '.spec.nodeClassRef.name', priority: 1 },
    { name: 'Drifted', type: 'string', jsonPath: '.status.conditions[?(@.type=="Drifted")].status', priority: 1 },
  ],
});
export type NodeClaim = ObjectOf<typeof nodeClaimKind>;
