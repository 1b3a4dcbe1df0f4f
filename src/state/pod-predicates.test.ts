// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import type { Pod } from '../kube/kinds.ts';
import {
  doNotDisrupt,
  evictionCost,
  isActive,
  isDisruptable,
  isDrainable,
  isEvictable,
  isProvisionable,
  isReschedulable,
  isWaitingEviction,
} from './pod-predicates.ts';
import { boundPod, ownedBy, pendingPod } from './testing/objects.ts';

const start = Date.parse('2026-01-01T00:00:00Z');
const minutes = (count: number): number => count * 60_000;

function annotated(pod: Pod, annotations: Record<string, string>): Pod {
  return { ...pod, metadata: { ...pod.metadata, annotations } };
}

function deleted(pod: Pod, at = '2026-01-01T00:00:00Z'): Pod {
  return { ...pod, metadata: { ...pod.metadata, deletionTimestamp: at } };
}

function tolerating(pod: Pod): Pod {
  return { ...pod, spec: { ...pod.spec, tolerations: [{ key: 'karpenter.sh/disrupted', operator: 'Exists' }] } };
}

describe('a pod is provisionable', () => {
  test('when the scheduler found no node for it', () => {
    expect(isProvisionable(pendingPod('web'))).toBe(true);
  });

  test('also while it is being deleted, and whatever its phase', () => {
    expect(isProvisionable(deleted(pendingPod('web')))).toBe(true);
  });

  test.each([
    ['the scheduler has not looked at it', { ...pendingPod('web'), status: { phase: 'Pending' } }],
    ['it has a node', boundPod('web', 'node-1')],
    [
      'it waits for a preemption',
      { ...pendingPod('web'), status: { ...pendingPod('web').status, nominatedNodeName: 'node-1' } },
    ],
    ['a DaemonSet makes it', ownedBy(pendingPod('web'), 'apps/v1', 'DaemonSet')],
    ['it mirrors a static pod', ownedBy(pendingPod('web'), 'v1', 'Node')],
  ])('but not when %s', (_, pod) => {
    expect(isProvisionable(pod)).toBe(false);
  });
});

describe('a pod is reschedulable', () => {
  test('while it is active', () => {
    expect(isReschedulable(boundPod('web', 'node-1'))).toBe(true);
    expect(isReschedulable({ ...boundPod('web', 'node-1'), status: { phase: 'Succeeded' } })).toBe(false);
  });

  test('and a terminating one only when a StatefulSet will make it again', () => {
    expect(isReschedulable(deleted(boundPod('web', 'node-1')))).toBe(false);
    expect(isReschedulable(deleted(ownedBy(boundPod('db-0', 'node-1'), 'apps/v1', 'StatefulSet')))).toBe(true);
  });

  test('never when it belongs to its node', () => {
    expect(isReschedulable(ownedBy(boundPod('agent', 'node-1'), 'apps/v1', 'DaemonSet'))).toBe(false);
    expect(isReschedulable(ownedBy(boundPod('etcd', 'node-1'), 'v1', 'Node'))).toBe(false);
  });
});

describe('do-not-disrupt', () => {
  const running: Pod = {
    ...boundPod('web', 'node-1'),
    status: { phase: 'Running', startTime: '2026-01-01T00:00:00Z' },
  };
  const asked = (value: string, pod = running): Pod => annotated(pod, { 'karpenter.sh/do-not-disrupt': value });

  test('"true" protects for ever', () => {
    expect(doNotDisrupt(asked('true'), start + minutes(100_000))).toEqual({ state: 'active' });
  });

  test('a duration protects from the start of the pod until it is over', () => {
    expect(doNotDisrupt(asked('10m'), start + minutes(10) - 1)).toEqual({
      state: 'active',
      untilMs: start + minutes(10),
    });
    expect(doNotDisrupt(asked('10m'), start + minutes(10))).toEqual({ state: 'elapsed', sinceMs: start + minutes(10) });
  });

  test('a duration protects a pod that has not started', () => {
    expect(doNotDisrupt(asked('10m', boundPod('web', 'node-1')), start + minutes(600))).toEqual({ state: 'active' });
  });

  test.each(['false', 'yes', '', '0s', '-5m', 'True'])('%j protects nothing and is reported', (value) => {
    expect(doNotDisrupt(asked(value), start)).toEqual({ state: 'invalid', value });
    expect(isDisruptable(asked(value), start)).toBe(true);
  });

  test('keeps an active pod from being disrupted and evicted, but not one that is over', () => {
    expect(isDisruptable(asked('true'), start)).toBe(false);
    expect(isEvictable(asked('true'), start)).toBe(false);
    expect(isDisruptable(asked('true', { ...running, status: { phase: 'Failed' } }), start)).toBe(true);
  });
});

describe('a drain', () => {
  const pod = boundPod('web', 'node-1');

  test('waits for ordinary pods, also while they terminate', () => {
    expect(isWaitingEviction(pod, start)).toBe(true);
    expect(isWaitingEviction(deleted(pod), start + minutes(1))).toBe(true);
  });

  test('gives up on a pod that is a minute past its time', () => {
    expect(isDrainable(deleted(pod), start + minutes(1) + 1)).toBe(false);
  });

  test('leaves alone what tolerates disruption, mirror pods and pods that are over', () => {
    expect(isWaitingEviction(tolerating(pod), start)).toBe(false);
    expect(isWaitingEviction(ownedBy(pod, 'v1', 'Node'), start)).toBe(false);
    expect(isWaitingEviction({ ...pod, status: { phase: 'Succeeded' } }, start)).toBe(false);
  });

  test('evicts only active pods', () => {
    expect(isActive(deleted(pod))).toBe(false);
    expect(isEvictable(pod, start)).toBe(true);
    expect(isEvictable(deleted(pod), start)).toBe(false);
    expect(isEvictable(tolerating(pod), start)).toBe(false);
  });
});

describe('the cost of an eviction', () => {
  const pod = boundPod('web', 'node-1');
  const prioritised = (priority: number): Pod => ({ ...pod, spec: { ...pod.spec, priority } });

  test('is 1 for an ordinary pod, and follows deletion cost and priority', () => {
    expect(evictionCost(pod)).toBe(1);
    expect(evictionCost(annotated(pod, { 'controller.kubernetes.io/pod-deletion-cost': String(2 ** 27) }))).toBe(2);
    expect(evictionCost(prioritised(2 ** 25))).toBe(2);
  });

  test('stays within -10 and 10, and ignores a cost that is no number', () => {
    expect(evictionCost(prioritised(2_000_000_000))).toBe(10);
    expect(evictionCost(prioritised(-2_000_000_000))).toBe(-10);
    expect(evictionCost(annotated(pod, { 'controller.kubernetes.io/pod-deletion-cost': 'much' }))).toBe(1);
  });
});
