// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { commonLabelSet, extendLabelSet } from './labels.ts';
import type { Requirement, Taint } from './shared-schemas.ts';
import { nodeOverlay, nodePool } from './testing/objects.ts';
import { validateNodeOverlay, validateNodePool } from './validation.ts';

const problemsOf = (options: Parameters<typeof nodePool>[0]): readonly string[] =>
  validateNodePool(nodePool(options)).problems;
const withRequirement = (requirement: Requirement): readonly string[] =>
  problemsOf({ template: { requirements: [requirement] } });
const withTaints = (taints: Taint[], startupTaints: Taint[] = []): readonly string[] =>
  problemsOf({ template: { taints, startupTaints } });

test('a plain pool and a plain overlay have no problems', () => {
  expect(validateNodePool(nodePool())).toMatchObject({ problems: [], warnings: [] });
  expect(validateNodeOverlay(nodeOverlay())).toMatchObject({ problems: [], warnings: [] });
});

describe('labels of the template', () => {
  test.each([
    ['karpenter.sh/nodepool', 'a', /set by the NodePool itself/],
    ['karpenter.sh/other', 'a', /reserved/],
    ['kubernetes.io/hostname', 'a', /reserved/],
    ['spaces are bad', 'a', /must consist of/],
    ['a/b/c', 'a', /must consist of/],
    ['/a', 'a', /1 to 253/],
    [`${'a'.repeat(254)}/a`, 'a', /1 to 253/],
    ['UPPER.example/a', 'a', /DNS name/],
    ['a'.repeat(64), 'a', /1 to 63/],
    ['a', 'a'.repeat(64), /at most 63/],
    ['a', '-a', /must consist of/],
  ])('%s: %s', (key, value, expected) => {
    expect(problemsOf({ labels: { [key]: value } })).toEqual([expect.stringMatching(expected)]);
  });

  test('may be empty, and well-known', () => {
    expect(problemsOf({ labels: { a: '', 'topology.kubernetes.io/zone': 'b' } })).toEqual([]);
  });
});

test('annotations of the template are such that an API server takes them', () => {
  const withAnnotations = (annotations: Record<string, string>): readonly string[] => {
    const pool = nodePool();
    const template = { ...pool.spec.template, metadata: { annotations } };
    return validateNodePool({ ...pool, spec: { ...pool.spec, template } }).problems;
  };
  expect(withAnnotations({ 'Example.com/Any-case': 'ü'.repeat(100_000) })).toEqual([]);
  expect(withAnnotations({ 'no key': 'x' })).toEqual([expect.stringMatching(/^annotation no key: .*must consist of/)]);
  expect(withAnnotations({ a: 'ü'.repeat(130_000) })).toEqual([expect.stringMatching(/^annotations: 260001 bytes/)]);
});

describe('taints', () => {
  test('may differ in the effect only', () => {
    expect(
      withTaints([
        { key: 'a', effect: 'NoSchedule' },
        { key: 'a', effect: 'NoExecute' },
      ]),
    ).toEqual([]);
  });
  test('may not repeat, not even as a startup taint', () => {
    const taint: Taint = { key: 'a', effect: 'NoSchedule' };
    expect(withTaints([taint, { ...taint, value: 'x' }])).toHaveLength(1);
    expect(withTaints([taint], [taint])).toEqual([
      'startup taint a: there is another taint with the effect NoSchedule',
    ]);
  });
  test.each<Taint>([
    { key: '', effect: 'NoSchedule' },
    { key: '???', effect: 'NoSchedule' },
    { key: 'a', value: '???', effect: 'NoSchedule' },
    { key: 'a', effect: 'Sometimes' as 'NoSchedule' },
  ])('%j is refused', (taint) => {
    expect(withTaints([taint])).toHaveLength(1);
  });
});

describe('requirements', () => {
  test.each<Requirement>([
    { key: 'a', operator: 'In', values: ['1'] },
    { key: 'a', operator: 'NotIn' },
    { key: 'a', operator: 'Exists' },
    { key: 'a', operator: 'DoesNotExist' },
    { key: 'a', operator: 'Gt', values: ['0'] },
    { key: 'a', operator: 'Lte', values: ['007'] },
    { key: 'beta.kubernetes.io/arch', operator: 'In', values: ['amd64'] },
    { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['spot', 'on-demand'], minValues: 2 },
    { key: 'karpenter.sh/capacity-type', operator: 'NotIn', values: ['cheap'] },
  ])('%j is fine', (requirement) => {
    expect(withRequirement(requirement)).toEqual([]);
  });

  test.each<[Requirement, RegExp]>([
    [{ key: 'a', operator: 'Is' as 'In', values: ['1'] }, /operator "Is" is unknown/],
    [{ key: 'karpenter.sh/x', operator: 'Exists' }, /reserved/],
    [{ key: 'karpenter.sh/nodepool', operator: 'Exists' }, /set by the NodePool itself/],
    [{ key: '?', operator: 'Exists' }, /must consist of/],
    [{ key: 'a', operator: 'In', values: ['?'] }, /value "\?"/],
    [{ key: 'a', operator: 'In' }, /at least one value/],
    [{ key: 'a', operator: 'In', values: ['1'], minValues: 2 }, /minValues 2/],
    [{ key: 'a', operator: 'Gt' }, /exactly one value/],
    [{ key: 'a', operator: 'Lt', values: ['1', '2'] }, /exactly one value/],
    [{ key: 'a', operator: 'Gte', values: ['x'] }, /exactly one value/],
    [{ key: 'a', operator: 'Lte', values: ['9223372036854775808'] }, /exactly one value/],
    [{ key: 'karpenter.sh/capacity-type', operator: 'In', values: ['cheap'] }, /none of its values/],
    [
      { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['spot', 'cheap'], minValues: 2 },
      /only 1 of its values/,
    ],
  ])('%j is refused', (requirement, expected) => {
    expect(withRequirement(requirement)).toEqual([expect.stringMatching(expected)]);
  });

  test('a known capacity type among unknown ones is used, with a warning', () => {
    const pool = nodePool({
      template: {
        requirements: [{ key: 'karpenter.sh/capacity-type', operator: 'In', values: ['spot', 'cheap'] }],
      },
    });
    const { problems, warnings } = validateNodePool(pool);
    expect(problems).toEqual([]);
    expect(warnings).toEqual([expect.stringMatching(/cheap are ignored/)]);
  });

  test("a provider's label set decides", () => {
    const set = extendLabelSet(commonLabelSet, { restrictedDomains: ['cloud.example'] });
    const pool = nodePool({ template: { requirements: [{ key: 'cloud.example/x', operator: 'Exists' }] } });
    expect(validateNodePool(pool).problems).toEqual([]);
    expect(validateNodePool(pool, set).problems).toHaveLength(1);
  });
});

test('durations that nobody can count to are named', () => {
  const pool = nodePool({
    template: { expireAfter: '99999999999h', terminationGracePeriod: '99999999999h' },
    spec: { disruption: { consolidateAfter: '99999999999h' } },
  });
  expect(validateNodePool(pool).problems.map((problem) => problem.split(':')[0])).toEqual([
    'expireAfter',
    'terminationGracePeriod',
    'consolidateAfter',
  ]);
});

test('every problem is reported at once', () => {
  expect(problemsOf({ labels: { '?': '?', 'karpenter.sh/x': '' } })).toHaveLength(3);
});

describe('overlays', () => {
  test('need values for NotIn and leave standard resources alone', () => {
    const overlay = nodeOverlay({
      spec: {
        requirements: [
          { key: 'a', operator: 'NotIn' },
          { key: 'karpenter.sh/nodepool', operator: 'In', values: ['a'] },
        ],
        capacity: { cpu: '1', 'example.com/gpu': 1 },
      },
    });
    expect(validateNodeOverlay(overlay).problems).toEqual([
      'requirement a: operator NotIn needs at least one value',
      'capacity cpu: an overlay may only add extended resources',
    ]);
  });
});
