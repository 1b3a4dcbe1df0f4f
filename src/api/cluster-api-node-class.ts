// SPDX-License-Identifier: Apache-2.0
// ClusterAPINodeClass (karpenter.cluster.x-k8s.io/v1alpha1): which MachineDeployments and MachineSets of a Cluster API
// management cluster may be scaled, and how they are read.
import { type ConditionTypes, readyCondition } from './conditions.ts';
import { defineKind, type ObjectOf } from './kind.ts';
import { array, integer, map, object, string, type TypeOf } from './schema.ts';
import { conditionList, resourceList } from './shared-schemas.ts';

const labelSelectorSchema = object({
  description: 'Conditions on labels; all of them must hold.',
  fields: {
    matchLabels: map(string(), { description: 'Labels that must be there with exactly these values.' }),
    matchExpressions: array(
      object({
        description: 'A condition on one label.',
        required: ['key', 'operator'],
        fields: {
          key: string({ description: 'The label key.' }),
          operator: string({ description: 'One of In, NotIn, Exists and DoesNotExist.' }),
          values: array(string(), {
            description: 'The values to compare with: some for In and NotIn, none for Exists and DoesNotExist.',
            listType: 'atomic',
          }),
        },
      }),
      { description: 'Conditions on single labels.', listType: 'atomic' },
    ),
  },
});

/** A selector that is replaced as a whole by whoever writes it. */
function atomicSelector(description: string): typeof labelSelectorSchema {
  return { openapi: { ...labelSelectorSchema.openapi, description, 'x-kubernetes-map-type': 'atomic' } };
}

const configMapReference = object({
  description:
    'A ConfigMap in the cluster of this NodeClass that holds prices per hour by instance type; the key <type>.spot is the price of its spot capacity. An annotation of the resource itself goes before it.',
  required: ['namespace', 'name'],
  fields: {
    namespace: string({ description: 'The namespace of the ConfigMap.', minLength: 1 }),
    name: string({ description: 'The name of the ConfigMap.', minLength: 1 }),
  },
});

const clusterApiNodeClassSpec = object({
  description: 'Which scalable resources belong to this class, and how they are read.',
  fields: {
    scalableResourceSelector: atomicSelector(
      'Which MachineDeployments and MachineSets belong to the class, among those that carry the label node.cluster.x-k8s.io/karpenter-member. Left out, all of them do.',
    ),
    namespace: string({
      description: 'Only resources of this namespace of the management cluster. Left out, those of all namespaces.',
      maxLength: 63,
    }),
    clusterName: string({
      description:
        'Only resources of the Cluster with this name, so that many clusters can share a management cluster. Left out, those of every Cluster.',
      maxLength: 63,
    }),
    priceTable: configMapReference,
    overhead: resourceList({
      description:
        'What the system of each machine keeps for itself, and pods cannot have: by resource. Left out, 100Mi of memory, which is what a kubelet keeps free by default.',
    }),
    machineAdoption: string({
      description:
        'What happens to Machines that were there before: Never leaves them alone, IfUnclaimed lets a NodeClaim take one of them instead of growing the resource.',
      enum: ['Never', 'IfUnclaimed'],
    }),
    orphanMachines: string({
      description:
        'Whether infrastructure templates that carry the label node.cluster.x-k8s.io/karpenter-member are members too: with Enabled, Machines are made straight from them, without a MachineDeployment or MachineSet above.',
      enum: ['Disabled', 'Enabled'],
    }),
    drift: string({
      description:
        'Who replaces machines after their template changed. Karpenter does it, within disruption budgets, where Cluster API does not roll out by itself (strategy OnDelete); Defer leaves it to Cluster API always.',
      enum: ['Karpenter', 'Defer'],
    }),
  },
});
export type ClusterApiNodeClassSpec = TypeOf<typeof clusterApiNodeClassSpec>;

const clusterApiNodeClassStatus = object({
  description: 'Whether the class can be used, and what it found.',
  fields: {
    members: integer({
      description: 'How many MachineDeployments and MachineSets can be used.',
      format: 'int32',
      minimum: 0,
    }),
    conditions: conditionList,
  },
});
export type ClusterApiNodeClassStatus = TypeOf<typeof clusterApiNodeClassStatus>;

export const clusterApiNodeClassConditions = {
  /** The management cluster answers and serves the kinds of Cluster API. */
  hubReachable: 'HubReachable',
  /** At least one resource can be used. */
  membersFound: 'MembersFound',
  /** No resource had to be left out. Does not gate Ready: the others go on. */
  membersValid: 'MembersValid',
} as const;

export const clusterApiNodeClassConditionTypes: ConditionTypes = {
  root: readyCondition,
  dependents: [clusterApiNodeClassConditions.hubReachable, clusterApiNodeClassConditions.membersFound],
};

/** ClusterAPINodeClass as the API server serves it. */
export const clusterApiNodeClassKind = defineKind({
  group: 'karpenter.cluster.x-k8s.io',
  version: 'v1alpha1',
  kind: 'ClusterAPINodeClass',
  plural: 'clusterapinodeclasses',
  shortNames: ['capinc', 'capincs'],
  categories: ['karpenter'],
  namespaced: false,
  description:
    'A ClusterAPINodeClass says which MachineDeployments and MachineSets of a Cluster API management cluster become nodes.',
  spec: clusterApiNodeClassSpec,
  specRequired: false,
  status: clusterApiNodeClassStatus,
  columns: [
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Members', type: 'integer', jsonPath: '.status.members' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    {
      name: 'Reason',
      type: 'string',
      jsonPath: '.status.conditions[?(@.type=="Ready")].message',
      priority: 1,
    },
  ],
});
export type ClusterApiNodeClass = ObjectOf<typeof clusterApiNodeClassKind>;
