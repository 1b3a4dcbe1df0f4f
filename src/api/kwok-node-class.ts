// SPDX-License-Identifier: Apache-2.0
// KWOKNodeClass (karpenter.kwok.sh/v1alpha1): settings of the cloud whose machines are only pretended.
import { defineKind, type ObjectOf } from './kind.ts';
import { object, type TypeOf } from './schema.ts';
import { duration, plainConditionList } from './shared-schemas.ts';

const kwokNodeClassSpec = object({
  description: 'How the pretended machines behave.',
  fields: {
    nodeRegistrationDelay: duration({
      description: 'How long a machine takes from its launch until its Node appears. Left out, it appears at once.',
    }),
  },
});
export type KwokNodeClassSpec = TypeOf<typeof kwokNodeClassSpec>;

const kwokNodeClassStatus = object({
  description: 'Whether the class can be used: always, unless somebody says otherwise.',
  default: {
    conditions: [
      { type: 'Ready', status: 'True', lastTransitionTime: '2024-01-01T01:01:01Z', reason: 'Ready', message: '' },
    ],
  },
  fields: { conditions: plainConditionList },
});
export type KwokNodeClassStatus = TypeOf<typeof kwokNodeClassStatus>;

/** KWOKNodeClass as the API server serves it. */
export const kwokNodeClassKind = defineKind({
  group: 'karpenter.kwok.sh',
  version: 'v1alpha1',
  kind: 'KWOKNodeClass',
  plural: 'kwoknodeclasses',
  shortNames: ['kwoknc', 'kwokncs'],
  categories: ['karpenter'],
  namespaced: false,
  description:
    'A KWOKNodeClass configures machines that exist only as Node objects: for trying things out and for tests.',
  spec: kwokNodeClassSpec,
  specRequired: false,
  status: kwokNodeClassStatus,
  columns: [],
});
export type KwokNodeClass = ObjectOf<typeof kwokNodeClassKind>;
