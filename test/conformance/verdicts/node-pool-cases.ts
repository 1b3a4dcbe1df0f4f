// SPDX-License-Identifier: Apache-2.0
// Verdicts on NodePools.
import { addMinValuesCases, addRequirementCases, addTaintCases } from './requirement-cases.ts';
import { CaseList, condition, without } from './verdict-case.ts';

type Fields = Readonly<Record<string, unknown>>;

const ref = { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' };
const templateSpec = (fields: Fields = {}): Fields => ({ nodeClassRef: ref, requirements: [], ...fields });
const pool = (spec: Fields = {}): Fields => ({ spec: { template: { spec: templateSpec() }, ...spec } });
const withTemplate = (fields: Fields): Fields => pool({ template: { spec: templateSpec(fields) } });
const withMetadata = (metadata: unknown): Fields => pool({ template: { metadata, spec: templateSpec() } });
const withLabels = (labels: unknown): Fields => withMetadata({ labels });
const withRef = (fields: Fields): Fields => withTemplate({ nodeClassRef: { ...ref, ...fields } });
const withDisruption = (disruption: unknown): Fields => pool({ disruption });
const withBudget = (budget: unknown): Fields => withDisruption({ consolidateAfter: '0s', budgets: [budget] });
const withLimit = (amount: unknown): Fields => pool({ limits: { cpu: amount } });

const list = new CaseList('NodePool');
addSpecCases();
addDisruptionCases();
addTemplateCases();
addUpdateCases();
addStatusCases();

function addSpecCases(): void {
  list.valid('minimal', pool(), 'a template with a node class is enough');
  list.invalid('no-spec', {}, 'the spec is required');
  list.invalid('spec-string', { spec: 'x' }, 'the spec is an object');
  list.invalid('no-template', { spec: {} }, 'the template is required');
  list.invalid('template-no-spec', pool({ template: {} }), 'the spec of the template is required');
  list.valid('unknown-field', pool({ colour: 'red' }), 'unknown fields are dropped, not refused');

  list.valid('weight-1', pool({ weight: 1 }), 'the least weight');
  list.valid('weight-100', pool({ weight: 100 }), 'the greatest weight');
  list.invalid('weight-0', pool({ weight: 0 }), 'the weight is at least 1');
  list.invalid('weight-101', pool({ weight: 101 }), 'the weight is at most 100');
  list.invalid('weight-text', pool({ weight: '10' }), 'the weight is a number');
  list.invalid('weight-fraction', pool({ weight: 1.5 }), 'a whole one');
  list.valid('weight-null', pool({ weight: null }), 'null counts as absent');
  list.valid('replicas-most', pool({ replicas: 2_147_483_647 }), 'as many as the scale subresource can say');
  list.invalid('replicas-more', pool({ replicas: 2_147_483_648 }), 'and not more', { beyondSchema: true });
  list.invalid('weight-int32', pool({ weight: 2_147_483_648 }), 'but not beyond their bounds');

  list.valid('replicas-0', pool({ replicas: 0 }), 'a static pool may be empty');
  list.valid('replicas-10', pool({ replicas: 10 }), 'a static pool');
  list.invalid('replicas-negative', pool({ replicas: -1 }), 'replicas are not negative');
  list.valid('replicas-nodes', pool({ replicas: 3, limits: { nodes: 5 } }), 'a static pool may bound its nodes');
  list.valid('replicas-no-limits', pool({ replicas: 3, limits: {} }), 'an empty map bounds nothing');
  list.invalid('replicas-cpu', pool({ replicas: 3, limits: { cpu: 5 } }), 'but nothing else');
  list.invalid('replicas-nodes-cpu', pool({ replicas: 3, limits: { nodes: 5, cpu: 5 } }), 'nor anything in addition');
  list.invalid('replicas-weight', pool({ replicas: 3, weight: 1 }), 'a static pool has no weight');

  list.valid('limits-integer', withLimit(10), 'a quantity may be a number');
  list.valid('limits-text', withLimit('10'), 'or a text');
  list.valid('limits-suffix', withLimit('1.5Gi'), 'with a suffix');
  list.valid('limits-exponent', withLimit('1e3'), 'or an exponent');
  list.valid('limits-sign', withLimit('-1'), 'the pattern allows a sign');
  list.valid('limits-dot', withLimit('.5'), 'and a number that begins with a point');
  list.invalid('limits-number-fraction', withLimit(1.5), 'a number in JSON is a whole one');
  list.invalid('limits-word', withLimit('many'), 'a quantity is no word');
  list.invalid('limits-empty', withLimit(''), 'and not empty');
  list.invalid('limits-lower-suffix', withLimit('5ki'), 'suffixes have their spelling');
  list.invalid('limits-boolean', withLimit(true), 'a quantity is no truth value');
  list.valid('limits-null', withLimit(null), 'null counts as absent in maps too');
  list.invalid('limits-newline', withLimit('5\n'), 'nothing follows a quantity');
  list.valid('limits-any-resource', pool({ limits: { nodes: 3, 'nvidia.com/gpu': 1 } }), 'any resource may be bounded');
}

function addDisruptionCases(): void {
  list.valid('disruption-empty', withDisruption({}), 'everything in it has a default', { upstreamValid: false });
  list.valid(
    'disruption-budgets-only',
    withDisruption({ budgets: [{ nodes: '1' }] }),
    'consolidateAfter has a default',
    {
      upstreamValid: false,
    },
  );
  list.valid('consolidate-null', withDisruption({ consolidateAfter: null }), 'null becomes the default', {
    upstreamValid: false,
  });
  for (const text of ['0s', '30s', '1h30m', '1m1h', 'Never'])
    list.valid(
      `consolidate-${text.toLowerCase()}`,
      withDisruption({ consolidateAfter: text }),
      `${text} is a duration`,
    );
  const bad = {
    never: 'never',
    negative: '-1s',
    bare: '30',
    milli: '30ms',
    fraction: '1.5h',
    empty: '',
    day: '1d',
    space: '1h 30m',
  };
  for (const [name, text] of Object.entries(bad))
    list.invalid(
      `consolidate-bad-${name}`,
      withDisruption({ consolidateAfter: text }),
      `${JSON.stringify(text)} is no duration`,
    );
  list.invalid('consolidate-number', withDisruption({ consolidateAfter: 30 }), 'a duration is a text');
  for (const policy of ['WhenEmpty', 'WhenEmptyOrUnderutilized', 'Balanced'])
    list.valid(
      `policy-${policy.toLowerCase()}`,
      withDisruption({ consolidateAfter: '0s', consolidationPolicy: policy }),
      `the policy ${policy}`,
    );
  list.invalid(
    'policy-unknown',
    withDisruption({ consolidateAfter: '0s', consolidationPolicy: 'Always' }),
    'policies are a closed set',
  );
  list.invalid(
    'policy-old',
    withDisruption({ consolidateAfter: '0s', consolidationPolicy: 'WhenUnderutilized' }),
    'the name of v1beta1 is gone',
  );

  list.valid('budgets-none', withDisruption({ consolidateAfter: '0s', budgets: [] }), 'no budgets');
  list.valid(
    'budgets-50',
    withDisruption({ consolidateAfter: '0s', budgets: Array(50).fill({ nodes: '1' }) }),
    'fifty budgets',
  );
  list.invalid(
    'budgets-51',
    withDisruption({ consolidateAfter: '0s', budgets: Array(51).fill({ nodes: '1' }) }),
    'not more',
  );
  list.valid('budget-default', withBudget({}), 'the nodes of a budget have a default');
  for (const nodes of ['0', '10', '0%', '100%', '007'])
    list.valid(`budget-${nodes.replace('%', '-percent')}`, withBudget({ nodes }), `${nodes} nodes`);
  for (const [name, nodes] of Object.entries({
    '101-percent': '101%',
    negative: '-1',
    'negative-percent': '-10%',
    fraction: '1.5%',
    word: 'all',
    newline: '10%\n',
  }))
    list.invalid(`budget-${name}`, withBudget({ nodes }), `${JSON.stringify(nodes)} is no number of nodes`);
  list.invalid('budget-number', withBudget({ nodes: 10 }), 'the nodes of a budget are a text');
  list.valid(
    'budget-reasons',
    withBudget({ nodes: '1', reasons: ['Underutilized', 'Empty', 'Drifted'] }),
    'the three reasons',
  );
  list.invalid('budget-reason-unknown', withBudget({ nodes: '1', reasons: ['Expired'] }), 'reasons are a closed set');
  list.invalid('budget-reason-twice', withBudget({ nodes: '1', reasons: ['Empty', 'Empty'] }), 'each at most once');
  list.invalid(
    'budget-schedule-only',
    withBudget({ nodes: '1', schedule: '* * * * *' }),
    'a schedule needs a duration',
  );
  list.invalid('budget-duration-only', withBudget({ nodes: '1', duration: '1h' }), 'a duration needs a schedule');
  list.invalid(
    'budget-second-half',
    withDisruption({ consolidateAfter: '0s', budgets: [{ nodes: '1' }, { nodes: '1', schedule: '@daily' }] }),
    'in every budget',
  );
  const schedule = (text: unknown): Fields => withBudget({ nodes: '1', schedule: text, duration: '1h' });
  list.valid('schedule-fields', schedule('0 9 * * mon-fri'), 'five cron fields');
  list.valid('schedule-daily', schedule('@daily'), 'a shorthand');
  list.valid('schedule-nonsense', schedule('a b c d e'), 'admission counts the fields only');
  list.valid('schedule-tail', schedule('@dailyish'), 'the pattern is open at the end of a shorthand');
  list.invalid('schedule-four', schedule('* * * *'), 'four fields are too few');
  list.invalid('schedule-every', schedule('@every 5m'), 'intervals are no shorthand');
  list.invalid('schedule-word', schedule('daily'), 'a shorthand begins with @');
  list.invalid('schedule-nbsp', schedule('*\u00a0*\u00a0*\u00a0*\u00a0*'), 'a space is an ASCII one');
  list.valid('schedule-tabs', schedule('*\t*\t*\t*\t*'), 'tabs separate too');
  const duration = (text: unknown): Fields => withBudget({ nodes: '1', schedule: '@daily', duration: text });
  for (const text of ['1h', '30m', '1h30m', '1h30m0s', '8h0s', '100h'])
    list.valid(`budget-duration-${text}`, duration(text), `${text} is hours and minutes`);
  for (const text of ['30s', '1h30s', '30m1h', '-1h', 'never'])
    list.invalid(`budget-duration-${text.replace(/^-/, 'minus-')}`, duration(text), `${text} is not`);
}

function addTemplateCases(): void {
  addRequirementCases(list, (requirements) => withTemplate({ requirements }));
  addMinValuesCases(list, (requirements) => withTemplate({ requirements }));
  addTaintCases(list, 'taint', (taints) => withTemplate({ taints }));
  list.valid(
    'startup-taint',
    withTemplate({ startupTaints: [{ key: 'a', effect: 'NoSchedule' }] }),
    'startup taints look the same',
  );
  list.invalid(
    'startup-taint-bad',
    withTemplate({ startupTaints: [{ key: 'a', effect: 'x' }] }),
    'and are checked the same',
  );
  list.invalid('requirements-absent', pool({ template: { spec: { nodeClassRef: ref } } }), 'requirements are required');
  list.invalid(
    'key-nodepool',
    withTemplate({ requirements: [{ key: 'karpenter.sh/nodepool', operator: 'Exists' }] }),
    'a pool does not choose its own label',
  );

  list.valid('labels-none', withLabels({}), 'no labels');
  list.valid('labels', withLabels({ team: 'a', 'example.com/tier': '' }), 'labels of your own');
  list.valid(
    'labels-capacity-type',
    withLabels({ 'karpenter.sh/capacity-type': 'spot' }),
    'the capacity type may be fixed',
  );
  list.valid('labels-zone', withLabels({ 'topology.kubernetes.io/zone': 'a' }), 'so may the zone');
  list.valid(
    'labels-bad-key',
    withLabels({ 'no label key!': 'a' }),
    'admission does not look into keys: the run-time check does',
  );
  list.invalid('labels-nodepool', withLabels({ 'karpenter.sh/nodepool': 'a' }), 'the label of the pool may not be set');
  list.invalid('labels-domain', withLabels({ 'karpenter.sh/other': 'a' }), 'the domain karpenter.sh is reserved');
  list.invalid('labels-subdomain', withLabels({ 'sub.karpenter.sh/other': 'a' }), 'with its sub-domains');
  list.invalid('labels-hostname', withLabels({ 'kubernetes.io/hostname': 'a' }), 'the host name may not be set');
  list.valid('labels-value-63', withLabels({ team: 'a'.repeat(63) }), 'a value has at most 63 characters');
  list.invalid('labels-value-64', withLabels({ team: 'a'.repeat(64) }), 'and not more');
  list.invalid('labels-value-bad', withLabels({ team: 'a b' }), 'a value has no spaces');
  list.valid('labels-value-null', withLabels({ team: null }), 'null counts as absent');
  list.valid('labels-null', withLabels(null), 'null counts as absent');
  list.invalid('labels-value-number', withLabels({ team: 1 }), 'a value is a text');
  list.valid('labels-100', withLabels(numbered(100)), 'a hundred labels');
  list.invalid('labels-101', withLabels(numbered(101)), 'not more');
  list.valid(
    'annotations',
    withMetadata({ annotations: { 'karpenter.sh/any': 'any text at all \n ☃' } }),
    'annotations are free',
  );
  list.invalid('annotations-number', withMetadata({ annotations: { a: 1 } }), 'but texts');

  list.invalid('ref-absent', pool({ template: { spec: { requirements: [] } } }), 'the node class is required');
  for (const field of ['group', 'kind', 'name']) {
    list.invalid(`ref-no-${field}`, withTemplate({ nodeClassRef: without(ref, field) }), `with its ${field}`);
    list.invalid(`ref-empty-${field}`, withRef({ [field]: '' }), `which is not empty`);
  }
  list.invalid('ref-group-version', withRef({ group: 'karpenter.kwok.sh/v1alpha1' }), 'a group has no version');

  list.valid('expire-never', withTemplate({ expireAfter: 'Never' }), 'nodes may live for ever');
  list.valid('expire-hours', withTemplate({ expireAfter: '24h' }), 'or a day');
  list.invalid('expire-negative', withTemplate({ expireAfter: '-1h' }), 'not less than nothing');
  list.invalid('expire-days', withTemplate({ expireAfter: '7d' }), 'days are no unit');
  list.valid('expire-null', withTemplate({ expireAfter: null }), 'null becomes the default');
  list.valid('grace', withTemplate({ terminationGracePeriod: '48h' }), 'a grace period');
  list.valid('grace-0', withTemplate({ terminationGracePeriod: '0s' }), 'of nothing');
  list.invalid('grace-never', withTemplate({ terminationGracePeriod: 'Never' }), 'for ever is said by leaving it out');
  list.invalid('grace-negative', withTemplate({ terminationGracePeriod: '-1s' }), 'not less than nothing');
}

function addUpdateCases(): void {
  list.validUpdate('update-nothing', pool(), pool(), 'an update that changes nothing');
  list.validUpdate('update-weight', pool(), pool({ weight: 10 }), 'most fields may change');
  list.validUpdate('update-class-name', pool(), withRef({ name: 'other' }), 'the name of the node class may change');
  list.invalidUpdate('update-class-kind', pool(), withRef({ kind: 'EC2NodeClass' }), 'its kind may not');
  list.invalidUpdate('update-class-group', pool(), withRef({ group: 'karpenter.k8s.aws' }), 'nor its group');
  list.validUpdate('update-replicas', pool({ replicas: 1 }), pool({ replicas: 5 }), 'a static pool may be scaled');
  list.validUpdate('update-replicas-0', pool({ replicas: 1 }), pool({ replicas: 0 }), 'to nothing too');
  list.invalidUpdate('update-to-static', pool(), pool({ replicas: 1 }), 'a dynamic pool stays dynamic');
  list.invalidUpdate('update-to-dynamic', pool({ replicas: 1 }), pool(), 'a static one stays static');
  list.invalidUpdate(
    'update-static-weight',
    pool({ replicas: 1 }),
    pool({ replicas: 1, weight: 5 }),
    'rules hold for updates too',
  );
  list.validUpdate(
    'update-requirements',
    pool(),
    withTemplate({ requirements: [{ key: 'a', operator: 'Exists' }] }),
    'requirements may change',
  );
}

function addStatusCases(): void {
  const status = (conditions: unknown[]): Fields => ({ nodes: 1, conditions });
  list.validStatus(
    'status',
    pool(),
    { nodes: 3, resources: { cpu: '4', nodes: 3 }, nodeClassObservedGeneration: 1, conditions: [condition()] },
    'a full status',
  );
  list.invalidStatus(
    'status-no-reason',
    pool(),
    status([without(condition(), 'reason')]),
    'a condition needs a reason',
  );
  list.invalidStatus('status-empty-reason', pool(), status([condition({ reason: '' })]), 'which is not empty');
  list.invalidStatus('status-reason-spaces', pool(), status([condition({ reason: 'Not ready' })]), 'and one word');
  list.invalidStatus('status-no-message', pool(), status([without(condition(), 'message')]), 'a message, be it empty');
  list.invalidStatus('status-unknown-status', pool(), status([condition({ status: 'Maybe' })]), 'a status of three');
  list.invalidStatus('status-boolean', pool(), status([condition({ status: true })]), 'as a text');
  list.invalidStatus('status-no-time', pool(), status([without(condition(), 'lastTransitionTime')]), 'a time');
  list.invalidStatus('status-bad-time', pool(), status([condition({ lastTransitionTime: 'now' })]), 'that is one');
  list.invalidStatus('status-twice', pool(), status([condition(), condition()]), 'each type is there once');
  list.validStatus('status-two', pool(), status([condition(), condition({ type: 'NodeClassReady' })]), 'several types');
  list.validStatus(
    'status-long-message',
    pool(),
    status([condition({ message: '🚀'.repeat(32768) })]),
    'characters are counted, not their halves',
  );
  list.invalidStatus(
    'status-longer-message',
    pool(),
    status([condition({ message: 'a'.repeat(32769) })]),
    'up to 32768',
  );
  list.invalidStatus(
    'status-generation',
    pool(),
    status([condition({ observedGeneration: -1 })]),
    'generations are not negative',
  );
  list.invalidStatus('status-nodes-text', pool(), { nodes: '3' }, 'the number of nodes is a number');
  list.invalidStatus('status-resources', pool(), { resources: { cpu: 'many' } }, 'resources are quantities');
}

function numbered(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`label-${i}`, 'x']));
}

export const nodePoolCases = list.cases;
