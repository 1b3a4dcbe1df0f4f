// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { annotations } from '../../../api/labels.ts';
import { disruptedTaint } from '../../../api/taints.ts';
import type { Pod } from '../../../kube/kinds.ts';
import { formatTime } from '../../../kube/time.ts';
import { isEvictable } from '../../../state/pod-predicates.ts';
import { boundPod, ownedBy } from '../../../state/testing/objects.ts';
import { nextDrainStep, nextDrainStepAt } from './drain.ts';

const now = Date.UTC(2026, 0, 1);
const minute = 60_000;

function namesOf(pods: readonly Pod[]): (string | undefined)[] {
  return pods.map(({ metadata }) => metadata.name);
}

function critical(name: string): Pod {
  return boundPod(name, 'node', { priorityClassName: 'system-cluster-critical' });
}

function deleting(pod: Pod, at: number): Pod {
  return { ...pod, metadata: { ...pod.metadata, deletionTimestamp: formatTime(at) } };
}

const ordinary = boundPod('web', 'node');
const daemon = ownedBy(boundPod('daemon', 'node'), 'apps/v1', 'DaemonSet');
const dns = critical('dns');
const proxy = ownedBy(critical('proxy'), 'apps/v1', 'DaemonSet');

describe('a drain', () => {
  test('takes ordinary pods first, then daemons, then critical pods, then critical daemons', () => {
    const left = [proxy, dns, daemon, ordinary];
    const order: (string | undefined)[] = [];
    while (left.length > 0) {
      const { evict, waiting } = nextDrainStep(left, undefined, now);
      expect(waiting).toBe(left.length);
      order.push(...namesOf(evict));
      for (const pod of evict) left.splice(left.indexOf(pod), 1);
    }
    expect(order).toEqual(['web', 'daemon', 'dns', 'proxy']);
  });

  test('waits for a pod that is going before the next tier begins', () => {
    const step = nextDrainStep([deleting(ordinary, now + minute), daemon], undefined, now);
    expect(step).toEqual({ evict: [], force: [], waiting: 2 });
  });

  test('does not wait for pods that are over, static, tolerate disruption or are stuck for more than a minute', () => {
    const over: Pod = { ...ordinary, status: { phase: 'Succeeded' } };
    const fixed = ownedBy(boundPod('static', 'node'), 'v1', 'Node');
    const tolerant = boundPod('tolerant', 'node', { tolerations: [{ key: disruptedTaint.key, operator: 'Exists' }] });
    const stuck = deleting(boundPod('stuck', 'node'), now - minute - 1);
    expect(nextDrainStep([over, fixed, tolerant, stuck], undefined, now).waiting).toBe(0);
  });

  describe('with a deadline', () => {
    const patient = boundPod('patient', 'node', { terminationGracePeriodSeconds: 600 });
    const lateCritical = { ...dns, spec: { ...dns.spec, terminationGracePeriodSeconds: 600 } };

    test('forces pods of every tier once their grace period no longer fits', () => {
      const deadline = now + 10 * minute;
      expect(nextDrainStep([patient, lateCritical], deadline, now).force).toEqual([]);
      expect(nextDrainStep([patient, lateCritical], deadline, now + 1).force).toEqual([patient, lateCritical]);
    });

    test('still waits for the forced before the next tier is asked', () => {
      const step = nextDrainStep([patient, daemon], now + minute, now);
      expect(namesOf(step.force)).toEqual(['patient']);
      expect(step.evict).toEqual([]);
    });

    test('hurries pods that are going but would take longer than that', () => {
      const deadline = now + minute;
      expect(nextDrainStep([deleting(patient, deadline + 1000)], deadline, now).force).toHaveLength(1);
      expect(nextDrainStep([deleting(patient, deadline)], deadline, now).force).toEqual([]);
    });

    test('never forces a pod that names no grace period', () => {
      expect(nextDrainStep([ordinary], now - minute, now).force).toEqual([]);
    });
  });
});

describe('the next step of a drain without a change', () => {
  const patient = boundPod('patient', 'node', { terminationGracePeriodSeconds: 600 });
  const at = (pod: Pod, deadline?: number): number => nextDrainStepAt([pod], deadline, now);

  test('never comes for a pod that nothing limits', () => {
    expect(at(ordinary)).toBe(Number.POSITIVE_INFINITY);
    expect(at(deleting(ordinary, now - 2 * minute))).toBe(Number.POSITIVE_INFINITY);
  });

  test.each<[string, Pod, number | undefined]>([
    ['its grace period no longer fits', patient, now + 15 * minute],
    ['it is stuck', deleting(ordinary, now + 4 * minute), undefined],
    ['its protection ends', guarded('5m', now), undefined],
  ])('comes when %s, not before', (_what, pod, deadline) => {
    const next = at(pod, deadline);
    expect(next).toBe(now + 5 * minute + 1);
    const step = (ms: number): unknown => nextDrainStep([pod], deadline, ms);
    const evictable = (ms: number): boolean => isEvictable(pod, ms);
    expect([step(next - 2), evictable(next - 2)]).toEqual([step(now), evictable(now)]);
    expect([step(next), evictable(next)]).not.toEqual([step(now), evictable(now)]);
  });
});

function guarded(lasts: string, startedAt: number): Pod {
  const pod = boundPod('guarded', 'node');
  const metadata = { ...pod.metadata, annotations: { [annotations.doNotDisrupt]: lasts } };
  return { ...pod, metadata, status: { ...pod.status, startTime: formatTime(startedAt) } };
}
