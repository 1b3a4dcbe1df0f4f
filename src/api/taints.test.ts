// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { disruptedTaint, isKnownEphemeralTaint, mergeTaints, unregisteredTaint } from './taints.ts';

test('a starting node may carry taints that will go away', () => {
  expect(isKnownEphemeralTaint(unregisteredTaint)).toBe(true);
  expect(isKnownEphemeralTaint({ key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' })).toBe(true);
  expect(isKnownEphemeralTaint({ key: 'readiness.k8s.io/gpu', effect: 'NoSchedule' })).toBe(true);
  expect(isKnownEphemeralTaint({ key: 'node.cloudprovider.kubernetes.io/uninitialized', effect: 'NoSchedule' })).toBe(
    true,
  );
});

test('others stay: the effect counts too', () => {
  expect(isKnownEphemeralTaint(disruptedTaint)).toBe(false);
  expect(isKnownEphemeralTaint({ key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' })).toBe(false);
  expect(isKnownEphemeralTaint({ key: 'readiness.k8s.io', effect: 'NoSchedule' })).toBe(false);
});

test('merging keeps the first of two taints with the same key and effect', () => {
  const first = [{ key: 'a', value: '1', effect: 'NoSchedule' }];
  const second = [
    { key: 'a', value: '2', effect: 'NoSchedule' },
    { key: 'a', value: '2', effect: 'NoExecute' },
  ];
  expect(mergeTaints(first, second)).toEqual([first[0], second[1]]);
});
