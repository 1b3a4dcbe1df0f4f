// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import {
  commonLabelSet,
  extendLabelSet,
  labelDomain,
  nodeClassLabel,
  normalizeLabelKey,
  normalizeLabelValue,
  restrictedLabelProblem,
} from './labels.ts';

describe('labels a user may set', () => {
  test.each([
    'team',
    'example.com/team',
    'kubernetes.io/team',
    'k8s.io/team',
    'node.kubernetes.io/team',
    'karpenter.sh/nodepool',
    'karpenter.sh/capacity-type',
    'topology.kubernetes.io/zone',
    'notkarpenter.sh/x',
    'karpenter.sh.example.com/x',
    'karpenter.sh',
  ])('%s is allowed', (key) => {
    expect(restrictedLabelProblem(commonLabelSet, key)).toBeUndefined();
  });

  test.each(['karpenter.sh/initialized', 'karpenter.sh/x', 'sub.karpenter.sh/x', 'kubernetes.io/hostname'])(
    '%s is not',
    (key) => {
      expect(restrictedLabelProblem(commonLabelSet, key)).toMatch(`label ${key} is reserved`);
    },
  );

  test('a provider extends the set without touching the common one', () => {
    const set = extendLabelSet(commonLabelSet, {
      wellKnown: ['cloud.example/cpu'],
      restrictedDomains: ['cloud.example'],
      normalized: [['old.example/zone', 'topology.kubernetes.io/zone']],
      normalizedValues: [['topology.kubernetes.io/zone', new Map([['', '0']])]],
    });
    expect(restrictedLabelProblem(set, 'cloud.example/cpu')).toBeUndefined();
    expect(restrictedLabelProblem(set, 'cloud.example/other')).toMatch('cloud.example, karpenter.sh');
    expect(restrictedLabelProblem(set, 'karpenter.sh/x')).toBeDefined();
    expect(restrictedLabelProblem(commonLabelSet, 'cloud.example/other')).toBeUndefined();
    expect(normalizeLabelKey(set, 'old.example/zone')).toBe('topology.kubernetes.io/zone');
    expect(normalizeLabelValue(set, 'topology.kubernetes.io/zone', '')).toBe('0');
    expect(normalizeLabelValue(commonLabelSet, 'topology.kubernetes.io/zone', '')).toBe('');
  });
});

test('deprecated keys have one meaning', () => {
  expect(normalizeLabelKey(commonLabelSet, 'beta.kubernetes.io/arch')).toBe('kubernetes.io/arch');
  expect(normalizeLabelKey(commonLabelSet, 'constructor')).toBe('constructor');
});

test('the domain is what stands before the first slash', () => {
  expect(labelDomain('a.b/c')).toBe('a.b');
  expect(labelDomain('c')).toBe('');
});

test('the label of a node class is its group and its kind in lower case', () => {
  expect(nodeClassLabel({ group: 'karpenter.k8s.aws', kind: 'EC2NodeClass' })).toBe('karpenter.k8s.aws/ec2nodeclass');
});
