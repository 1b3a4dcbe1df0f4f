// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { annotations } from '../../api/labels.ts';
import { nodePool } from '../../api/testing/objects.ts';
import type { Pod } from '../../kube/kinds.ts';
import { pod } from '../../state/testing/objects.ts';
import { Clockwork } from './clockwork.ts';

function guarded(value: string): Pod {
  const plain = pod('web');
  return { ...plain, metadata: { ...plain.metadata, annotations: { [annotations.doNotDisrupt]: value } } };
}

test('time changes nothing for pools without windows and pods without times', () => {
  const pools = [nodePool(), nodePool({ spec: { disruption: { budgets: [{ nodes: '10%' }] } } as never })];
  expect(new Clockwork().runs(pools, [pod('web'), guarded('true')])).toBe(false);
});

test('the window of a budget begins and ends', () => {
  const budgets = [{ nodes: '0', schedule: '0 9 * * *', duration: '8h' }];
  expect(new Clockwork().runs([nodePool({ spec: { disruption: { budgets } } as never })], [])).toBe(true);
});

test('a protection that runs out is found in each new list of pods', () => {
  const clockwork = new Clockwork();
  expect(clockwork.runs([], [guarded('10m')])).toBe(true);
  expect(clockwork.runs([], [pod('web')])).toBe(false);
  expect(clockwork.runs([], [pod('web'), guarded('1h')])).toBe(true);
});
