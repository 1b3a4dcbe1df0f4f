// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import type { Pod } from '../../kube/kinds.ts';
import { formatTime } from '../../kube/time.ts';
import { aPod } from '../testing/objects.ts';
import { byDeletionOrder, isPodAvailable } from './pods.ts';

const now = Date.UTC(2026, 0, 1, 12);
const ago = (seconds: number): string => formatTime(now - seconds * 1000);

interface Options {
  node?: string;
  readyFor?: number;
  age?: number;
  restarts?: number;
  cost?: string;
}

/** A pod that has been ready for an hour, unless told otherwise; without a node it is pending. */
function pod(name: string, { node = name, readyFor = 3600, age = 3600, restarts = 0, cost }: Options = {}): Pod {
  const made = aPod(name, {
    node,
    ...(cost ? { annotations: { 'controller.kubernetes.io/pod-deletion-cost': cost } } : {}),
  });
  made.metadata.creationTimestamp = ago(age);
  made.status = {
    phase: 'Running',
    conditions: [
      { type: 'Ready', status: readyFor > 0 ? 'True' : 'False', lastTransitionTime: ago(Math.max(0, readyFor)) },
    ],
    containerStatuses: [{ name: 'app', image: 'x', imageID: '', ready: true, restartCount: restarts }],
  };
  return made;
}

function pending(name: string, node?: string): Pod {
  const made = aPod(name, node ? { node } : {});
  made.metadata.creationTimestamp = ago(3600);
  made.status = { phase: 'Pending' };
  return made;
}

function order(pods: Pod[], related: Pod[] = pods): string[] {
  return byDeletionOrder(pods, related, now).map((p) => p.metadata.name!);
}

describe('the order in which replicas are given up', () => {
  test.each<[string, Pod[], string[]]>([
    ['unplaced before placed', [pending('placed', 'n'), pending('unplaced')], ['unplaced', 'placed']],
    ['pending before running', [pod('running'), pending('starting', 'n')], ['starting', 'running']],
    ['not ready before ready', [pod('ready'), pod('broken', { readyFor: 0 })], ['broken', 'ready']],
    ['cheap before dear', [pod('dear', { cost: '10' }), pod('cheap', { cost: '-5' })], ['cheap', 'dear']],
    ['a cost that is no number counts as none', [pod('b', { cost: '1' }), pod('a', { cost: '+7' })], ['a', 'b']],
    ['shortly ready before long ready', [pod('old', { readyFor: 3600 }), pod('new', { readyFor: 5 })], ['new', 'old']],
    ['often restarted before steady', [pod('steady'), pod('shaky', { restarts: 4 })], ['shaky', 'steady']],
    ['young before old', [pod('old', { age: 9000 }), pod('young', { age: 3600 })], ['young', 'old']],
  ])('%s', (_, pods, expected) => {
    expect(order(pods)).toEqual(expected);
    expect(order(pods.toReversed())).toEqual(expected);
  });

  test('doubled up on a node before alone, counting all replicas of the owner', () => {
    const alone = pod('a-alone', { node: 'x' });
    const crowded = pod('z-crowded', { node: 'y' });
    expect(order([alone, crowded], [alone, crowded, pod('sibling', { node: 'y' })])).toEqual(['z-crowded', 'a-alone']);
  });
});

test('a pod is available once it has been ready for long enough', () => {
  expect(isPodAvailable(pod('p', { readyFor: 10 }), 0, now)).toBe(true);
  expect(isPodAvailable(pod('p', { readyFor: 10 }), 10, now)).toBe(true);
  expect(isPodAvailable(pod('p', { readyFor: 10 }), 11, now)).toBe(false);
  expect(isPodAvailable(pod('p', { readyFor: 0 }), 0, now)).toBe(false);
});
