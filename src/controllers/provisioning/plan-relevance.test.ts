// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { Pod } from '../../kube/kinds.ts';
import { pendingPod } from '../../state/testing/objects.ts';
import { isSameToPlanPod } from './plan-relevance.ts';

const web = pendingPod('web');
const waiting = (status: NonNullable<Pod['status']>): Pod => ({ ...web, status });
const scheduled = (reason: string) => ({ conditions: [{ type: 'PodScheduled', status: 'False' as const, reason }] });

test('a plan sees where a waiting pod is expected, and what kube-scheduler says of it, each on its own', () => {
  const before = waiting({ nominatedNodeName: 'a', ...scheduled('Unschedulable') });
  expect(
    isSameToPlanPod(before, waiting({ nominatedNodeName: 'a', phase: 'Pending', ...scheduled('Unschedulable') })),
  ).toBe(true);
  expect(isSameToPlanPod(before, waiting({ nominatedNodeName: 'b', ...scheduled('Unschedulable') }))).toBe(false);
  expect(isSameToPlanPod(before, waiting({ nominatedNodeName: 'a', ...scheduled('SchedulingGated') }))).toBe(false);
});
