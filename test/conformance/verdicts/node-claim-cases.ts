// SPDX-License-Identifier: Apache-2.0
// Verdicts on NodeClaims.
import { addMinValuesCases, addRequirementCases, addTaintCases } from './requirement-cases.ts';
import { CaseList, condition, without } from './verdict-case.ts';

type Fields = Readonly<Record<string, unknown>>;

const ref = { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' };
const claim = (spec: Fields = {}): Fields => ({ spec: { nodeClassRef: ref, requirements: [], ...spec } });

const list = new CaseList('NodeClaim');
list.valid('minimal', claim(), 'a node class and requirements are enough');
list.invalid('no-spec', {}, 'the spec is required');
list.invalid('no-ref', { spec: { requirements: [] } }, 'the node class is required');
list.invalid('no-requirements', { spec: { nodeClassRef: ref } }, 'so are requirements');
for (const field of ['group', 'kind', 'name'])
  list.invalid(`ref-empty-${field}`, claim({ nodeClassRef: { ...ref, [field]: '' } }), `the ${field} is not empty`);
list.invalid('ref-group-version', claim({ nodeClassRef: { ...ref, group: 'a/v1' } }), 'a group has no version');
addRequirementCases(list, (requirements) => claim({ requirements }));
addMinValuesCases(list, (requirements) => claim({ requirements }));
addTaintCases(list, 'taint', (taints) => claim({ taints }));
addTaintCases(list, 'startup-taint', (startupTaints) => claim({ startupTaints }));
list.valid(
  'key-nodepool',
  claim({ requirements: [{ key: 'karpenter.sh/nodepool', operator: 'In', values: ['a'] }] }),
  'a claim may name its pool',
);
list.valid('requests', claim({ resources: { requests: { cpu: '1', memory: '1Gi', pods: 5 } } }), 'what the pods need');
list.invalid('requests-word', claim({ resources: { requests: { cpu: 'much' } } }), 'in quantities');
list.invalid('requests-list', claim({ resources: { requests: ['cpu'] } }), 'by name');
list.valid('expire', claim({ expireAfter: 'Never' }), 'a node may live for ever');
list.invalid('expire-bad', claim({ expireAfter: 'soon' }), 'or for a duration');
list.valid('grace', claim({ terminationGracePeriod: '1h' }), 'a grace period');
list.invalid('grace-never', claim({ terminationGracePeriod: 'Never' }), 'has an end');

const full = claim({
  requirements: [
    { key: 'a', operator: 'In', values: ['1', '2'] },
    { key: 'b', operator: 'Exists' },
  ],
  resources: { requests: { cpu: 1 } },
  terminationGracePeriod: '1h',
});
const changed = (spec: Fields): Fields => ({ spec: { ...(full['spec'] as Fields), ...spec } });
list.validUpdate('update-nothing', full, full, 'the same spec again');
list.validUpdate('update-labels', full, { ...full, metadata: { labels: { a: 'b' } } }, 'metadata may change');
list.validUpdate('update-default', full, changed({ expireAfter: '720h' }), 'the default is the same written out');
list.invalidUpdate('update-expire', full, changed({ expireAfter: '10h' }), 'no field of the spec may change');
list.invalidUpdate('update-expire-same-length', full, changed({ expireAfter: '43200m' }), 'not even in its spelling');
list.invalidUpdate(
  'update-requests',
  full,
  changed({ resources: { requests: { cpu: '1' } } }),
  'a number is not a text',
);
list.invalidUpdate(
  'update-add',
  full,
  changed({ taints: [{ key: 'a', effect: 'NoSchedule' }] }),
  'nothing may be added',
);
list.invalidUpdate(
  'update-remove',
  full,
  { spec: without(full['spec'] as Fields, 'terminationGracePeriod') },
  'nothing may be removed',
);
list.invalidUpdate(
  'update-order',
  full,
  changed({
    requirements: [
      { key: 'b', operator: 'Exists' },
      { key: 'a', operator: 'In', values: ['1', '2'] },
    ],
  }),
  'nor put in another order',
);
list.invalidUpdate(
  'update-class-name',
  full,
  changed({ nodeClassRef: { ...ref, name: 'other' } }),
  'the node class neither',
);

const status = (conditions: unknown[]): Fields => ({ conditions });
list.validStatus(
  'status',
  claim(),
  {
    nodeName: 'n',
    providerID: 'kwok://n',
    imageID: 'i',
    capacity: { cpu: '4' },
    allocatable: { cpu: '3900m' },
    conditions: [condition({ type: 'Launched' })],
    lastPodEventTime: '2026-01-01T00:00:00Z',
  },
  'a full status',
);
list.validStatus(
  'status-bare',
  claim(),
  status([without(without(condition(), 'reason'), 'message')]),
  'reason and message may be left out',
);
list.validStatus('status-empty-reason', claim(), status([condition({ reason: '' })]), 'the reason may be empty');
list.invalidStatus('status-bad-reason', claim(), status([condition({ reason: 'Not ready' })]), 'but not two words');
list.invalidStatus('status-no-type', claim(), status([without(condition(), 'type')]), 'the type is required');
list.invalidStatus('status-no-status', claim(), status([without(condition(), 'status')]), 'so is the status');
list.invalidStatus('status-no-time', claim(), status([without(condition(), 'lastTransitionTime')]), 'and the time');
list.invalidStatus(
  'status-twice',
  claim(),
  status([condition(), condition({ status: 'False' })]),
  'each type is there once',
);
list.invalidStatus('status-event-time', claim(), { lastPodEventTime: 'now' }, 'times are times');
list.invalidStatus('status-name', claim(), { nodeName: 1 }, 'names are texts');

export const nodeClaimCases = list.cases;
