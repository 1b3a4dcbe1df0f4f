// SPDX-License-Identifier: Apache-2.0
// Verdicts on ClusterAPINodeClass: how members are selected and read.
import { CaseList, condition, without } from './verdict-case.ts';

const classes = new CaseList('ClusterAPINodeClass');
const spec = (fields: Readonly<Record<string, unknown>>) => ({ spec: fields });

classes.valid('empty', {}, 'nothing is required');
classes.valid('empty-spec', spec({}), 'an empty spec');
classes.invalid('spec-text', { spec: 'all' }, 'a spec is no text');
classes.valid(
  'full',
  spec({
    scalableResourceSelector: {
      matchLabels: { team: 'a' },
      matchExpressions: [
        { key: 'tier', operator: 'In', values: ['gold'] },
        { key: 'old', operator: 'DoesNotExist' },
      ],
    },
    namespace: 'machines',
    clusterName: 'prod',
    priceTable: { namespace: 'karpenter', name: 'prices' },
    overhead: { memory: '200Mi', cpu: '100m', 'ephemeral-storage': 1024 },
    machineAdoption: 'IfUnclaimed',
    orphanMachines: 'Enabled',
    drift: 'Defer',
  }),
  'everything at once',
);
classes.invalid('selector-text', spec({ scalableResourceSelector: 'team=a' }), 'a selector is an object');
classes.invalid(
  'selector-value-number',
  spec({ scalableResourceSelector: { matchLabels: { team: 1 } } }),
  'values of labels are text',
);
classes.invalid(
  'selector-no-key',
  spec({ scalableResourceSelector: { matchExpressions: [{ operator: 'Exists' }] } }),
  'an expression needs a key',
);
classes.invalid(
  'selector-no-operator',
  spec({ scalableResourceSelector: { matchExpressions: [{ key: 'team' }] } }),
  'and an operator',
);
classes.valid('namespace-63', spec({ namespace: 'n'.repeat(63) }), 'as long as a name of a namespace may be');
classes.invalid('namespace-64', spec({ namespace: 'n'.repeat(64) }), 'and no longer');
classes.invalid('cluster-64', spec({ clusterName: 'c'.repeat(64) }), 'nor may the name of a Cluster be');
classes.invalid('prices-no-name', spec({ priceTable: { namespace: 'karpenter' } }), 'a ConfigMap has a name');
classes.invalid('prices-no-namespace', spec({ priceTable: { name: 'prices' } }), 'and a namespace');
classes.invalid('prices-empty-name', spec({ priceTable: { namespace: 'a', name: '' } }), 'which is not empty');
classes.invalid('overhead-words', spec({ overhead: { memory: 'much' } }), 'overhead is in quantities');
classes.invalid('adoption-always', spec({ machineAdoption: 'Always' }), 'adoption is one of two');
classes.invalid('orphans-true', spec({ orphanMachines: true }), 'a word, not a truth value');
classes.invalid('drift-lower-case', spec({ drift: 'defer' }), 'words are as they are written');
classes.validUpdate('update', spec({ namespace: 'a' }), spec({ namespace: 'b' }), 'everything may change');
classes.invalidUpdate('update-invalid', spec({}), spec({ drift: 'Never' }), 'but only to what is valid');
classes.validStatus(
  'status',
  {},
  { members: 3, conditions: [condition({ type: 'HubReachable' })] },
  'what the controller found',
);
classes.invalidStatus('status-members', {}, { members: -1 }, 'there is no negative number of members');
classes.invalidStatus(
  'status-no-reason',
  {},
  { conditions: [without(condition(), 'reason')] },
  'a condition needs a reason',
);

export const clusterApiNodeClassCases = classes.cases;
