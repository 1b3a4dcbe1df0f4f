// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { annotations } from '../api/labels.ts';
import type { Pod } from '../kube/kinds.ts';
import { formatTime } from '../kube/time.ts';
import { boundPod } from '../state/testing/objects.ts';
import { protectionEvents } from './pod-protection.ts';

const started = Date.UTC(2026, 0, 1);
const minute = 60_000;

function annotated(value: string): Pod {
  const pod = boundPod('web', 'node');
  return {
    ...pod,
    metadata: { ...pod.metadata, annotations: { [annotations.doNotDisrupt]: value } },
    status: { phase: 'Running', startTime: formatTime(started) },
  };
}

function told(pod: Pod, now: number): string[] {
  return protectionEvents(pod, now).map(({ reason, message }) => `${reason}: ${message}`);
}

describe('a pod that protects itself', () => {
  test('for ever, or not at all, is nothing to talk about', () => {
    expect(told(annotated('true'), started)).toEqual([]);
    expect(told(boundPod('web', 'node'), started)).toEqual([]);
  });

  test('for a time hears until when, and once that it is over', () => {
    expect(told(annotated('10m'), started + minute)).toEqual([
      'DoNotDisruptUntil: The karpenter.sh/do-not-disrupt grace period will elapse at 2026-01-01T00:10:00Z',
    ]);
    expect(told(annotated('10m'), started + 10 * minute)).toEqual([
      'DoNotDisruptGracePeriodElapsed: The karpenter.sh/do-not-disrupt grace period has elapsed, pod is now disruptable',
    ]);
    expect(told(annotated('10m'), started + 13 * minute)).toEqual([]);
  });

  test.each([
    ['0s', 'duration "0s" must be positive'],
    ['-5m', 'duration "-5m" must be positive'],
    ['soon', 'failed to parse "soon" as a duration: '],
  ])('with %s hears what is wrong', (value, problem) => {
    const [line] = told(annotated(value), started);
    expect(line).toContain(`InvalidDoNotDisruptAnnotation: Invalid karpenter.sh/do-not-disrupt annotation: ${problem}`);
    expect(line).toMatch(/, ignoring annotation$/);
  });

  test('hears nothing more when it is going', () => {
    const pod = annotated('soon');
    const leaving = { ...pod, metadata: { ...pod.metadata, deletionTimestamp: formatTime(started) } };
    expect(told(leaving, started)).toEqual([]);
  });
});
