// SPDX-License-Identifier: Apache-2.0
// Requirements and taints are checked alike in NodePools, NodeClaims and (requirements) NodeOverlays: one list for all.
import type { CaseList } from './verdict-case.ts';

type Fields = Readonly<Record<string, unknown>>;

/** Adds the cases that hold for the requirements of every kind. `make` puts a list of requirements into a valid object. */
export function addRequirementCases(list: CaseList, make: (requirements: unknown) => Fields): void {
  const one = (requirement: unknown): Fields => make([requirement]);
  const exists = (key: string): Fields => one({ key, operator: 'Exists' });
  const compare = (value: unknown, operator = 'Gt'): Fields => one({ key: 'a', operator, values: [value] });

  list.valid('requirements-empty', make([]), 'an empty list asks for nothing');
  list.invalid('requirements-null', make(null), 'requirements must be a list');
  list.invalid('requirements-object', make({}), 'requirements must be a list, not an object');
  list.valid('requirements-100', make(repeat(100)), 'a hundred requirements are allowed');
  list.invalid('requirements-101', make(repeat(101)), 'more than a hundred are not');
  list.invalid('requirement-null', one(null), 'a requirement is not null');
  list.invalid('requirement-string', one('a'), 'a requirement is an object');
  list.invalid('requirement-no-key', one({ operator: 'Exists' }), 'the key is required');
  list.invalid('requirement-no-operator', one({ key: 'a' }), 'the operator is required');

  list.valid('key-plain', exists('team'), 'a key needs no domain');
  list.valid('key-qualified', exists('example.com/team'), 'a key may have a domain');
  list.valid('key-kubernetes', exists('kubernetes.io/arch'), 'the domain kubernetes.io is open');
  list.valid('key-subdomain-kubernetes', exists('node.kubernetes.io/team'), 'so are its sub-domains');
  list.valid('key-k8s', exists('k8s.io/team'), 'the domain k8s.io is open');
  list.valid('key-capacity-type', exists('karpenter.sh/capacity-type'), 'the capacity type may be chosen');
  list.valid(
    'key-316',
    exists(`example.com/${'a'.repeat(304)}`),
    'a key may have 316 characters, admission does not look closer',
  );
  list.invalid('key-317', exists(`example.com/${'a'.repeat(305)}`), 'a key has at most 316 characters');
  list.invalid('key-empty', exists(''), 'a key is not empty');
  list.invalid('key-number', one({ key: 1, operator: 'Exists' }), 'a key is a text');
  list.invalid('key-upper-domain', exists('Example.com/team'), 'a domain is in lower case');
  list.invalid('key-two-slashes', exists('a/b/c'), 'a key has one slash at most');
  list.invalid('key-slash-last', exists('example.com/'), 'a name follows the slash');
  list.invalid('key-slash-first', exists('/team'), 'a domain precedes the slash');
  list.invalid('key-brace', exists('example.com}'), 'a key has no braces');
  list.invalid('key-newline', exists('team\n'), 'the end of the pattern is the end of the text');
  list.invalid('key-domain', exists('karpenter.sh/other'), 'the domain karpenter.sh is reserved');
  list.invalid('key-initialized', exists('karpenter.sh/initialized'), 'also for labels that exist');
  list.invalid('key-subdomain', exists('sub.karpenter.sh/other'), 'so are its sub-domains');
  list.invalid(
    'key-suffix-domain',
    exists('mykarpenter.sh/other'),
    'admission also refuses domains that only end alike',
  );
  list.invalid('key-domain-only', exists('karpenter.sh'), 'and a key that is nothing but the domain');
  list.valid('key-domain-inside', exists('karpenter.sh.example.com/other'), 'a domain that begins alike is open');
  list.invalid('key-hostname', exists('kubernetes.io/hostname'), 'the host name may not be chosen');

  list.valid('operator-in', one({ key: 'a', operator: 'In', values: ['b'] }), 'In takes values');
  list.invalid('operator-in-none', one({ key: 'a', operator: 'In', values: [] }), 'In needs a value');
  list.invalid('operator-in-absent', one({ key: 'a', operator: 'In' }), 'In needs values at all');
  list.valid('operator-not-in', one({ key: 'a', operator: 'NotIn', values: ['b', 'c'] }), 'NotIn takes values');
  list.valid('operator-exists', one({ key: 'a', operator: 'Exists' }), 'Exists takes none');
  list.valid(
    'operator-exists-values',
    one({ key: 'a', operator: 'Exists', values: ['b'] }),
    'admission does not mind values of Exists',
  );
  list.valid('operator-absent', one({ key: 'a', operator: 'DoesNotExist' }), 'DoesNotExist takes none');
  for (const operator of ['Gt', 'Lt', 'Gte', 'Lte']) {
    const id = operator.toLowerCase();
    list.valid(`operator-${id}`, compare('8', operator), `${operator} takes a whole number`);
    list.invalid(`operator-${id}-none`, one({ key: 'a', operator, values: [] }), `${operator} needs a value`);
    list.invalid(`operator-${id}-absent`, one({ key: 'a', operator }), `${operator} needs values at all`);
    list.invalid(`operator-${id}-two`, one({ key: 'a', operator, values: ['1', '2'] }), `${operator} takes one value`);
    list.invalid(`operator-${id}-word`, compare('a', operator), `${operator} takes a number`);
    list.invalid(`operator-${id}-negative`, compare('-1', operator), `${operator} takes no negative number`);
  }
  list.valid('number-zero', compare('0'), 'zero is not negative');
  list.valid('number-zeros', compare('007'), 'leading zeros do not matter');
  list.valid('number-plus', compare('+1'), 'a sign is read as part of the number');
  list.valid('number-minus-zero', compare('-0'), 'minus zero is zero');
  list.valid('number-largest', compare('9223372036854775807'), 'the number may have 63 bits');
  list.invalid('number-too-large', compare('9223372036854775808'), 'but not more');
  list.invalid('number-fraction', compare('1.5'), 'a number has no fraction');
  list.invalid('number-exponent', compare('1e3'), 'and no exponent');
  list.invalid('number-hex', compare('0x10'), 'and is decimal');
  list.invalid('number-underscore', compare('1_000'), 'without separators');
  list.invalid('number-space', compare(' 1'), 'and without spaces');
  list.invalid('number-empty', compare(''), 'and not empty');
  list.invalid('operator-unknown', one({ key: 'a', operator: 'Is', values: ['b'] }), 'the operators are a closed set');
  list.invalid('operator-case', one({ key: 'a', operator: 'in', values: ['b'] }), 'in their spelling');
  list.invalid('values-number', one({ key: 'a', operator: 'In', values: [1] }), 'values are texts');
  list.invalid('values-null-item', one({ key: 'a', operator: 'In', values: [null] }), 'not null');
  list.invalid('values-null', one({ key: 'a', operator: 'In', values: null }), 'null counts as absent');
  list.invalid('values-string', one({ key: 'a', operator: 'In', values: 'b' }), 'values are a list');
  list.valid(
    'values-no-label',
    one({ key: 'a', operator: 'In', values: ['not a label!'] }),
    'admission does not look into values: the run-time check does',
  );
  list.valid('values-long', one({ key: 'a', operator: 'In', values: ['a'.repeat(100)] }), 'nor at their length');
  list.valid('values-same', one({ key: 'a', operator: 'In', values: ['b', 'b'] }), 'values may repeat');
}

/** Adds the cases of `minValues`: NodePools and NodeClaims have it. */
export function addMinValuesCases(list: CaseList, make: (requirements: unknown) => Fields): void {
  const min = (minValues: unknown, values: string[], operator = 'In'): Fields =>
    make([{ key: 'a', operator, values, minValues }]);
  list.valid('min-values', min(2, ['1', '2']), 'as many values as minValues');
  list.invalid('min-values-few', min(3, ['1', '2']), 'In needs at least minValues values');
  list.valid(
    'min-values-exists',
    make([{ key: 'a', operator: 'Exists', minValues: 10 }]),
    'Exists names no values to count',
  );
  list.valid('min-values-not-in', min(10, ['1'], 'NotIn'), 'the values of NotIn are not counted');
  list.invalid('min-values-0', min(0, ['1']), 'minValues is at least 1');
  list.valid('min-values-50', make([{ key: 'a', operator: 'Exists', minValues: 50 }]), 'minValues is at most 50');
  list.invalid('min-values-51', make([{ key: 'a', operator: 'Exists', minValues: 51 }]), 'and not more');
  list.invalid('min-values-text', min('1', ['1']), 'minValues is a number');
  list.invalid('min-values-fraction', min(1.5, ['1', '2']), 'a whole one');
}

/** Adds the cases of taints. `make` puts a list of taints into a valid object. */
export function addTaintCases(list: CaseList, prefix: string, make: (taints: unknown) => Fields): void {
  const taint = (fields: Fields): Fields => make([{ key: 'a', effect: 'NoSchedule', ...fields }]);
  list.valid(`${prefix}-none`, make([]), 'an empty list of taints');
  for (const effect of ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])
    list.valid(`${prefix}-${effect.toLowerCase()}`, taint({ effect }), `the effect ${effect}`);
  list.invalid(`${prefix}-effect-unknown`, taint({ effect: 'Sometimes' }), 'effects are a closed set');
  list.invalid(`${prefix}-effect-empty`, taint({ effect: '' }), 'the empty effect is not one of them');
  list.invalid(`${prefix}-effect-absent`, make([{ key: 'a' }]), 'the effect is required');
  list.invalid(`${prefix}-key-absent`, make([{ effect: 'NoSchedule' }]), 'the key is required');
  list.invalid(`${prefix}-key-empty`, taint({ key: '' }), 'the key is not empty');
  list.invalid(`${prefix}-key-bad`, taint({ key: '???' }), 'the key is a qualified name');
  list.valid(`${prefix}-key-qualified`, taint({ key: 'example.com/a' }), 'the key may have a domain');
  list.valid(`${prefix}-key-reserved`, taint({ key: 'karpenter.sh/a' }), 'domains of taints are free');
  list.valid(`${prefix}-value`, taint({ value: 'b' }), 'a taint may have a value');
  list.invalid(`${prefix}-value-empty`, taint({ value: '' }), 'a value that is there is not empty');
  list.invalid(`${prefix}-value-bad`, taint({ value: '???' }), 'a value is a qualified name');
  list.valid(`${prefix}-value-qualified`, taint({ value: 'example.com/b' }), 'and may have a domain');
  list.valid(`${prefix}-time`, taint({ timeAdded: '2026-01-01T00:00:00Z' }), 'a time in RFC 3339');
  list.valid(`${prefix}-time-offset`, taint({ timeAdded: '2026-01-01T00:00:00.5+02:00' }), 'with fraction and offset');
  list.valid(`${prefix}-time-leap`, taint({ timeAdded: '2024-02-29T23:59:59Z' }), 'on a day that exists');
  list.invalid(`${prefix}-time-no-day`, taint({ timeAdded: '2026-02-30T00:00:00Z' }), 'not on one that does not');
  list.invalid(`${prefix}-time-no-hour`, taint({ timeAdded: '2026-01-01T25:00:00Z' }), 'at an hour of the day');
  list.invalid(`${prefix}-time-no-zone`, taint({ timeAdded: '2026-01-01T00:00:00' }), 'in a zone');
  list.invalid(`${prefix}-time-date`, taint({ timeAdded: '2026-01-01' }), 'a date is not enough');
  list.valid(`${prefix}-time-lower`, taint({ timeAdded: '2026-01-01t00:00:00z' }), 'in small letters too');
  list.invalid(`${prefix}-time-space`, taint({ timeAdded: '2026-01-01 00:00:00Z' }), 'but not with a space');
  list.invalid(`${prefix}-time-empty`, taint({ timeAdded: '' }), 'nor empty');
  list.invalid(`${prefix}-time-word`, taint({ timeAdded: 'yesterday' }), 'a time is no word');
  list.invalid(`${prefix}-time-number`, taint({ timeAdded: 1 }), 'and no number');
  list.valid(
    `${prefix}-same`,
    make([
      { key: 'a', effect: 'NoSchedule' },
      { key: 'a', effect: 'NoSchedule' },
    ]),
    'the run-time check finds repeated taints',
  );
}

function repeat(count: number): unknown[] {
  return Array.from({ length: count }, (_, i) => ({ key: `key-${i}`, operator: 'Exists' }));
}
