// SPDX-License-Identifier: Apache-2.0
// The NodeClass of the scripted cloud: it has no settings, only a condition that says whether it can be used.
import { defineKind, type ObjectOf } from '../../api/kind.ts';
import { object } from '../../api/schema.ts';
import { plainConditionList } from '../../api/shared-schemas.ts';

export const scriptedNodeClassKind = defineKind({
  group: 'simulation.karpenter-ts.dev',
  version: 'v1',
  kind: 'ScriptedNodeClass',
  plural: 'scriptednodeclasses',
  categories: ['karpenter'],
  namespaced: false,
  description: 'A ScriptedNodeClass stands for the machines of the cloud that the simulator scripts.',
  spec: object({ description: 'Nothing.', fields: {} }),
  specRequired: false,
  status: object({
    description: 'Whether the class can be used.',
    default: {
      conditions: [
        { type: 'Ready', status: 'True', lastTransitionTime: '2024-01-01T01:01:01Z', reason: 'Ready', message: '' },
      ],
    },
    fields: { conditions: plainConditionList },
  }),
  columns: [],
});
export type ScriptedNodeClass = ObjectOf<typeof scriptedNodeClassKind>;
