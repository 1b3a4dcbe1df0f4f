// SPDX-License-Identifier: Apache-2.0
// CapacityBuffer (autoscaling.x-k8s.io/v1beta1): room kept free ahead of demand. The API is shared with other autoscalers.
import { defineKind, type ObjectOf } from './kind.ts';
import { integer, object, string, type TypeOf } from './schema.ts';
import { conditionList, resourceList } from './shared-schemas.ts';

/** The strategy that keeps nodes ready for the buffer: the only one we act on. */
export const activeCapacityStrategy = 'buffer.x-k8s.io/active-capacity';

function podTemplateRef(description: string) {
  return object({
    description,
    required: ['name'],
    fields: { name: string({ description: 'The name of the PodTemplate.', minLength: 1 }) },
  });
}

const capacityBufferSpec = object({
  description: 'How much room is kept free, in chunks of one pod each, and what such a pod looks like.',
  fields: {
    provisioningStrategy: string({
      description:
        'How the room is kept. buffer.x-k8s.io/active-capacity makes nodes for it in advance; buffers with another strategy are left alone.',
      default: activeCapacityStrategy,
    }),
    podTemplateRef: podTemplateRef(
      'The PodTemplate in the same namespace that gives the shape of one chunk. Needs replicas or limits. Excludes scalableRef.',
    ),
    scalableRef: object({
      description:
        'A workload in the same namespace whose pods give the shape of one chunk: a Deployment, ReplicaSet or StatefulSet. Excludes podTemplateRef.',
      required: ['kind', 'name'],
      fields: {
        apiGroup: string({ description: 'The API group of the workload. Left out, it is apps.' }),
        kind: string({ description: 'The kind of the workload.', minLength: 1 }),
        name: string({ description: 'The name of the workload.', minLength: 1 }),
      },
    }),
    replicas: integer({
      description: 'The number of chunks. With percentage too, the smaller of the two counts.',
      format: 'int32',
      minimum: 0,
    }),
    percentage: integer({
      description:
        'The number of chunks as a share of the replicas of scalableRef, rounded up, at least one. Means nothing without scalableRef.',
      format: 'int32',
      minimum: 0,
    }),
    limits: resourceList({
      description:
        'The most that all chunks together may request of each resource. Without replicas and percentage, as many chunks as fit are kept.',
    }),
  },
  rules: [
    {
      rule: '!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)',
      message: 'podTemplateRef needs replicas or limits beside it',
    },
    {
      rule: '!(has(self.podTemplateRef) && has(self.scalableRef))',
      message: 'podTemplateRef and scalableRef exclude each other',
    },
  ],
});
export type CapacityBufferSpec = TypeOf<typeof capacityBufferSpec>;

const capacityBufferStatus = object({
  description: 'What the buffer amounts to now.',
  fields: {
    podTemplateRef: podTemplateRef('The PodTemplate that the chunks were last made from.'),
    replicas: integer({ description: 'How many chunks the buffer has now.', format: 'int32' }),
    podTemplateGeneration: integer({
      description: 'The generation of the PodTemplate that the chunks were last made from.',
      format: 'int64',
    }),
    conditions: conditionList,
    provisioningStrategy: string({ description: 'The strategy that was last acted on.' }),
  },
});
export type CapacityBufferStatus = TypeOf<typeof capacityBufferStatus>;

/** CapacityBuffer as the API server serves it. */
export const capacityBufferKind = defineKind({
  group: 'autoscaling.x-k8s.io',
  version: 'v1beta1',
  kind: 'CapacityBuffer',
  plural: 'capacitybuffers',
  shortNames: ['cb'],
  categories: ['autoscaling'],
  namespaced: true,
  description:
    'A CapacityBuffer keeps room for pods that do not exist yet, so that they start without waiting for a node.',
  spec: capacityBufferSpec,
  status: capacityBufferStatus,
  columns: [
    { name: 'Strategy', type: 'string', jsonPath: '.spec.provisioningStrategy', description: 'How the room is kept.' },
    {
      name: 'PodTemplate',
      type: 'string',
      jsonPath: '.status.podTemplateRef.name',
      description: 'Where the shape comes from.',
    },
    { name: 'Replicas', type: 'integer', jsonPath: '.status.replicas', description: 'How many chunks there are.' },
    {
      name: 'ConditionsType',
      type: 'string',
      jsonPath: '.status.conditions[*].type',
      description: 'The types of all conditions.',
    },
    {
      name: 'ConditionsStatus',
      type: 'string',
      jsonPath: '.status.conditions[*].status',
      description: 'The statuses of all conditions.',
    },
    {
      name: 'ConditionsReason',
      type: 'string',
      jsonPath: '.status.conditions[*].reason',
      description: 'The reasons of all conditions.',
    },
    {
      name: 'Age',
      type: 'date',
      jsonPath: '.metadata.creationTimestamp',
      description: 'How long the buffer has existed.',
    },
  ],
});
export type CapacityBuffer = ObjectOf<typeof capacityBufferKind>;
