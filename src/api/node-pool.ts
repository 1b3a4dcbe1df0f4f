// SPDX-License-Identifier: Apache-2.0
// NodePool (karpenter.sh/v1): which nodes may be made, how many, and how freely they may be replaced.
import { defineKind, type ObjectOf } from './kind.ts';
import { array, integer, map, object, string, type TypeOf } from './schema.ts';
import {
  conditionList,
  duration,
  durationOrNever,
  nodeClassRef,
  requirementList,
  resourceList,
  taintList,
  templateLabels,
} from './shared-schemas.ts';

/** Why a node is disrupted voluntarily, as budgets name it. */
export const disruptionReasons = ['Underutilized', 'Empty', 'Drifted'] as const;
export type DisruptionReason = (typeof disruptionReasons)[number];

/** How eagerly a pool is consolidated. */
export const consolidationPolicies = ['WhenEmpty', 'WhenEmptyOrUnderutilized', 'Balanced'] as const;
export type ConsolidationPolicy = (typeof consolidationPolicies)[number];

const budget = object({
  description: 'A bound on how many nodes of the pool may be disrupted at the same time.',
  required: ['nodes'],
  fields: {
    nodes: string({
      description:
        'How many nodes may be going away at once: a count, or a share of the nodes of the pool such as 10%, rounded up. 0 stops voluntary disruption.',
      pattern: '^((100|[0-9]{1,2})%|[0-9]+)$',
      default: '10%',
    }),
    reasons: array(string({ enum: disruptionReasons }), {
      description: 'The reasons the budget is for. Left out, it holds for every reason.',
      listType: 'set',
      maxItems: 50,
    }),
    schedule: string({
      description:
        'When the budget begins to hold: five cron fields or a shorthand such as @daily, in UTC. Left out, it always holds. Must be set together with duration.',
      pattern: '^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\\s(.+)\\s(.+)\\s(.+)\\s(.+))$',
    }),
    duration: string({
      description:
        'How long the budget holds after each hit of the schedule, in hours and minutes such as 8h or 1h30m. Must be set together with schedule.',
      pattern: '^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$',
    }),
  },
});
export type Budget = TypeOf<typeof budget>;

const disruption = object({
  description: 'When and how fast nodes of this pool may be replaced or removed to save money or to follow changes.',
  default: { consolidateAfter: '0s' },
  fields: {
    consolidateAfter: durationOrNever({
      description:
        'How long a node must have seen no pod come or go before it is considered for consolidation. Never switches consolidation off, removal of empty nodes included. Ignored when replicas is set.',
      default: '0s',
    }),
    consolidationPolicy: string({
      description:
        'Which nodes consolidation may touch: WhenEmpty only those without workload pods, WhenEmptyOrUnderutilized also those whose pods fit elsewhere or on cheaper machines, Balanced the latter where the saving is worth the disturbance. Ignored when replicas is set.',
      enum: consolidationPolicies,
      default: 'WhenEmptyOrUnderutilized',
    }),
    budgets: array(budget, {
      description:
        'Bounds on simultaneous disruption; the tightest that holds counts. An empty list means no bound. Left out, it is one budget of 10%.',
      default: [{ nodes: '10%' }],
      listType: 'atomic',
      maxItems: 50,
      rules: [
        {
          rule: 'self.all(x, has(x.schedule) == has(x.duration))',
          message: 'schedule and duration must be set together or not at all',
        },
      ],
    }),
  },
});
export type Disruption = TypeOf<typeof disruption>;

const nodeClaimTemplateSpec = object({
  description: 'What every NodeClaim of the pool asks for.',
  required: ['nodeClassRef', 'requirements'],
  fields: {
    nodeClassRef: nodeClassRef({
      rules: [
        { rule: 'self.group == oldSelf.group', message: 'the group of nodeClassRef cannot be changed' },
        { rule: 'self.kind == oldSelf.kind', message: 'the kind of nodeClassRef cannot be changed' },
      ],
    }),
    requirements: requirementList({
      description:
        'Conditions on the labels of the nodes: instance type, zone, architecture, capacity type or labels of your own. Pods narrow them further.',
      poolAllowed: false,
    }),
    taints: taintList({ description: 'Taints of every node. Pods must tolerate them to be placed there.' }),
    startupTaints: taintList({
      description:
        'Taints that every node is born with and that something on the node, usually a DaemonSet, removes when it is ready. Pods need not tolerate them for a node to be made.',
    }),
    expireAfter: durationOrNever({
      description:
        'The age at which a node is replaced, counted from the creation of its NodeClaim. Never lets it live on.',
      default: '720h',
    }),
    terminationGracePeriod: duration({
      description:
        'The longest time a node may take to drain, counted from its deletion. After it, pods are deleted even against PodDisruptionBudgets and the karpenter.sh/do-not-disrupt annotation; pods are deleted early enough to get their own grace period. Left out, draining may take for ever.',
    }),
  },
});
export type NodeClaimTemplateSpec = TypeOf<typeof nodeClaimTemplateSpec>;

const nodeClaimTemplate = object({
  description: 'The mould of the NodeClaims of this pool. A NodeClaim is usually narrower than the mould.',
  required: ['spec'],
  fields: {
    metadata: object({
      description: 'Labels and annotations for every NodeClaim and Node of the pool.',
      fields: {
        labels: templateLabels,
        annotations: map(string(), {
          description: 'Annotations for every NodeClaim and Node of the pool.',
          mapType: 'granular',
        }),
      },
    }),
    spec: nodeClaimTemplateSpec,
  },
});
export type NodeClaimTemplate = TypeOf<typeof nodeClaimTemplate>;

const nodePoolSpec = object({
  description: 'What the pool may make, up to which bounds, and how it is kept in shape.',
  required: ['template'],
  fields: {
    template: nodeClaimTemplate,
    disruption,
    limits: resourceList({
      description:
        'The most that all nodes of the pool together may have of each resource; the name nodes bounds their number. With replicas, only nodes may be given.',
    }),
    weight: integer({
      description: 'Pools with a higher weight are tried first. Left out, it counts as 0. Not allowed with replicas.',
      format: 'int32',
      minimum: 1,
      maximum: 100,
    }),
    replicas: integer({
      description:
        'Alpha. Makes the pool static: exactly this many nodes are kept whatever the pods ask for. A pool cannot change between static and dynamic.',
      format: 'int64',
      minimum: 0,
    }),
  },
  rules: [
    {
      rule: 'has(self.replicas) == has(oldSelf.replicas)',
      message: 'a pool cannot change between static (with replicas) and dynamic (without)',
    },
    {
      rule: "!has(self.replicas) || !has(self.limits) || size(self.limits) == 0 || (size(self.limits) == 1 && 'nodes' in self.limits)",
      message: 'with replicas, limits may only name nodes',
    },
    { rule: '!has(self.replicas) || !has(self.weight)', message: 'weight cannot be combined with replicas' },
  ],
});
export type NodePoolSpec = TypeOf<typeof nodePoolSpec>;

const nodePoolStatus = object({
  description: 'What the pool has made so far.',
  fields: {
    resources: resourceList({ description: 'The sum of the resources of all nodes of the pool.' }),
    nodes: integer({ description: 'How many nodes the pool has.', format: 'int64', default: 0 }),
    nodeClassObservedGeneration: integer({
      description:
        'The generation of the NodeClass that registration health was last judged by; a new one starts the judgement afresh.',
      format: 'int64',
    }),
    conditions: conditionList,
  },
});
export type NodePoolStatus = TypeOf<typeof nodePoolStatus>;

/** NodePool as the API server serves it. */
export const nodePoolKind = defineKind({
  group: 'karpenter.sh',
  version: 'v1',
  kind: 'NodePool',
  plural: 'nodepools',
  categories: ['karpenter'],
  namespaced: false,
  description:
    'A NodePool says which nodes the autoscaler may make, up to which limits, and how freely it may replace them.',
  spec: nodePoolSpec,
  status: nodePoolStatus,
  columns: [
    { name: 'NodeClass', type: 'string', jsonPath: '.spec.template.spec.nodeClassRef.name' },
    { name: 'Nodes', type: 'string', jsonPath: '.status.nodes' },
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Weight', type: 'integer', jsonPath: '.spec.weight', priority: 1 },
    { name: 'CPU', type: 'string', jsonPath: '.status.resources.cpu', priority: 1 },
    { name: 'Memory', type: 'string', jsonPath: '.status.resources.memory', priority: 1 },
  ],
  scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.nodes' },
});
export type NodePool = ObjectOf<typeof nodePoolKind>;
