// SPDX-License-Identifier: Apache-2.0
// NodeOverlay (karpenter.sh/v1alpha1): corrections to the prices and capacities that clouds report.
import { chain, compareStrings } from '../base/order.ts';
import { type ConditionTypes, readyCondition } from './conditions.ts';
import { defineKind, type ObjectOf } from './kind.ts';
import { integer, object, string, type TypeOf } from './schema.ts';
import { conditionList, overlayRequirementList, resourceList } from './shared-schemas.ts';

/** The resources every machine has: an overlay may not touch them. */
export const standardResources = ['cpu', 'memory', 'ephemeral-storage', 'pods'] as const;

const nodeOverlaySpec = object({
  description: 'Which instance types are corrected, and how.',
  required: ['requirements'],
  fields: {
    requirements: overlayRequirementList({
      description:
        'Conditions on the labels of instance types, their offerings and the NodePool; the overlay applies where all hold.',
    }),
    price: string({
      description: 'The price per hour that replaces the one the cloud reports. Excludes priceAdjustment.',
      pattern: '^\\d+(\\.\\d+)?$',
    }),
    priceAdjustment: string({
      description:
        'A change of the price that the cloud reports: a signed amount such as +0.05 or -1, or a signed share such as +10% or -25.5%, down to -100%. Excludes price.',
      pattern: '^(([+-]{1}(\\d*\\.?\\d+))|(\\+{1}\\d*\\.?\\d+%)|(^(-\\d{1,2}(\\.\\d+)?%)$)|(-100%))$',
    }),
    capacity: resourceList({
      description:
        'Extended resources that the instance types have in addition. cpu, memory, ephemeral-storage and pods cannot be changed.',
      rules: [
        {
          rule: "self.all(name, !(name in ['cpu', 'memory', 'ephemeral-storage', 'pods']))",
          message: 'cpu, memory, ephemeral-storage and pods cannot be changed by an overlay',
        },
      ],
    }),
    weight: integer({
      description:
        'Where overlays contradict each other, the higher weight wins. Left out, it counts as 0. Between equal weights the name later in the alphabet wins.',
      format: 'int32',
      minimum: 1,
      maximum: 10000,
    }),
  },
  rules: [
    { rule: '!has(self.price) || !has(self.priceAdjustment)', message: 'price and priceAdjustment exclude each other' },
  ],
});
export type NodeOverlaySpec = TypeOf<typeof nodeOverlaySpec>;

const nodeOverlayStatus = object({
  description: 'Whether the overlay is in force.',
  fields: { conditions: conditionList },
});
export type NodeOverlayStatus = TypeOf<typeof nodeOverlayStatus>;

/** NodeOverlay as the API server serves it. */
export const nodeOverlayKind = defineKind({
  group: 'karpenter.sh',
  version: 'v1alpha1',
  kind: 'NodeOverlay',
  plural: 'nodeoverlays',
  shortNames: ['overlays'],
  categories: ['karpenter'],
  namespaced: false,
  description:
    'Alpha. A NodeOverlay changes the price or adds extended resources of instance types as the scheduler sees them.',
  spec: nodeOverlaySpec,
  status: nodeOverlayStatus,
  columns: [
    { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Weight', type: 'integer', jsonPath: '.spec.weight', priority: 1 },
  ],
});
export type NodeOverlay = ObjectOf<typeof nodeOverlayKind>;

/** It is valid, and contradicts no other of the same weight. */
export const overlayValidationSucceeded = 'ValidationSucceeded';

export const nodeOverlayConditionTypes: ConditionTypes = {
  root: readyCondition,
  dependents: [overlayValidationSucceeded],
};

/** The order of precedence: higher weight first, then the name later in the alphabet. For `Array.prototype.sort`. */
export const byOverlayPrecedence: (a: NodeOverlay, b: NodeOverlay) => number = chain(
  (a, b) => (b.spec.weight ?? 0) - (a.spec.weight ?? 0),
  (a, b) => compareStrings(b.metadata.name ?? '', a.metadata.name ?? ''),
);
