// SPDX-License-Identifier: Apache-2.0
// Verdicts on CapacityBuffers and KWOKNodeClasses.
import { CaseList, condition, without } from './verdict-case.ts';

type Fields = Readonly<Record<string, unknown>>;

const buffers = new CaseList('CapacityBuffer');
const buffer = (spec: Fields): Fields => ({ spec });
const podTemplateRef = { name: 'chunk' };
const scalableRef = { apiGroup: 'apps', kind: 'Deployment', name: 'web' };

buffers.valid('empty', buffer({}), 'nothing in the spec is required');
buffers.invalid('no-spec', {}, 'but the spec itself');
buffers.valid('template-replicas', buffer({ podTemplateRef, replicas: 3 }), 'a template and a number');
buffers.valid('template-limits', buffer({ podTemplateRef, limits: { cpu: '10' } }), 'a template and a bound');
buffers.valid('template-both', buffer({ podTemplateRef, replicas: 0, limits: { cpu: '10' } }), 'or both');
buffers.invalid('template-only', buffer({ podTemplateRef }), 'a template needs one of them');
buffers.invalid(
  'template-percentage',
  buffer({ podTemplateRef, percentage: 10 }),
  'a share of a template means nothing',
);
buffers.valid('scalable', buffer({ scalableRef, percentage: 10 }), 'a share of a workload');
buffers.valid('scalable-only', buffer({ scalableRef }), 'a workload needs neither');
buffers.valid(
  'scalable-no-group',
  buffer({ scalableRef: without(scalableRef, 'apiGroup'), replicas: 1 }),
  'the group may be left out',
);
buffers.valid('scalable-other', buffer({ scalableRef: { kind: 'Job', name: 'x' } }), 'admission takes any kind');
buffers.invalid(
  'both-refs',
  buffer({ podTemplateRef, scalableRef, replicas: 1 }),
  'template and workload exclude each other',
);
buffers.invalid('template-empty-name', buffer({ podTemplateRef: { name: '' }, replicas: 1 }), 'a name is not empty');
buffers.invalid('template-no-name', buffer({ podTemplateRef: {}, replicas: 1 }), 'and required');
buffers.invalid('scalable-no-kind', buffer({ scalableRef: without(scalableRef, 'kind') }), 'the kind is required');
buffers.invalid('scalable-empty-kind', buffer({ scalableRef: { ...scalableRef, kind: '' } }), 'and not empty');
buffers.invalid('scalable-no-name', buffer({ scalableRef: without(scalableRef, 'name') }), 'the name is required');
buffers.invalid('scalable-empty-name', buffer({ scalableRef: { ...scalableRef, name: '' } }), 'and not empty');
buffers.invalid('replicas-negative', buffer({ podTemplateRef, replicas: -1 }), 'a number is not negative');
buffers.invalid('replicas-int32', buffer({ podTemplateRef, replicas: 2_147_483_648 }), 'and has 32 bits');
buffers.valid('replicas-int32-most', buffer({ podTemplateRef, replicas: 2_147_483_647 }), 'which is a lot');
buffers.invalid('replicas-text', buffer({ podTemplateRef, replicas: '1' }), 'and no text');
buffers.invalid('percentage-negative', buffer({ scalableRef, percentage: -1 }), 'a share is not negative');
buffers.valid('percentage-large', buffer({ scalableRef, percentage: 1000 }), 'but may be more than all');
buffers.invalid('limits-word', buffer({ podTemplateRef, limits: { cpu: 'much' } }), 'bounds are quantities');
buffers.valid(
  'strategy-other',
  buffer({ provisioningStrategy: 'example.com/own', scalableRef }),
  'any strategy is taken',
);
buffers.valid('strategy-empty', buffer({ provisioningStrategy: '', scalableRef }), 'even none');
buffers.invalid('strategy-number', buffer({ provisioningStrategy: 1 }), 'as a text');
buffers.validUpdate(
  'update-ref',
  buffer({ podTemplateRef, replicas: 1 }),
  buffer({ scalableRef }),
  'everything may change',
);
buffers.invalidUpdate(
  'update-remove',
  buffer({ podTemplateRef, replicas: 1 }),
  buffer({ podTemplateRef }),
  'as long as the rules hold',
);
buffers.validStatus(
  'status',
  buffer({ scalableRef }),
  {
    podTemplateRef,
    replicas: 1,
    podTemplateGeneration: 2,
    provisioningStrategy: 'buffer.x-k8s.io/active-capacity',
    conditions: [condition({ type: 'ReadyForProvisioning', reason: 'Resolved' })],
  },
  'a full status',
);
buffers.invalidStatus('status-empty-name', buffer({}), { podTemplateRef: { name: '' } }, 'a name is not empty');
buffers.invalidStatus(
  'status-twice',
  buffer({}),
  { conditions: [condition(), condition()] },
  'each type is there once',
);
buffers.invalidStatus(
  'status-no-reason',
  buffer({}),
  { conditions: [without(condition(), 'reason')] },
  'a condition needs a reason',
);

const classes = new CaseList('KWOKNodeClass');
classes.valid('empty', {}, 'nothing is required');
classes.valid('empty-spec', { spec: {} }, 'an empty spec');
classes.valid('spec-null', { spec: null }, 'null counts as absent');
classes.invalid('spec-list', { spec: [] }, 'a spec is no list');
classes.valid('delay', { spec: { nodeRegistrationDelay: '30s' } }, 'a delay');
classes.valid('delay-0', { spec: { nodeRegistrationDelay: '0s' } }, 'of nothing');
classes.invalid('delay-never', { spec: { nodeRegistrationDelay: 'Never' } }, 'a delay has an end');
classes.invalid('delay-fraction', { spec: { nodeRegistrationDelay: '1.5s' } }, 'and no fraction');
classes.invalid('delay-number', { spec: { nodeRegistrationDelay: 30 } }, 'and a unit');
classes.validUpdate('update', { spec: { nodeRegistrationDelay: '30s' } }, { spec: {} }, 'everything may change');
classes.validStatus(
  'status',
  {},
  { conditions: [condition({ status: 'False' })] },
  'the class may be declared unusable',
);
classes.validStatus(
  'status-twice',
  {},
  { conditions: [condition(), condition()] },
  'upstream declares no key here, so types may repeat',
);
classes.invalidStatus(
  'status-no-reason',
  {},
  { conditions: [without(condition(), 'reason')] },
  'a condition needs a reason',
);

export const capacityBufferCases = buffers.cases;
export const kwokNodeClassCases = classes.cases;
