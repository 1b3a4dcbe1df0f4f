// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { deepFreeze } from '../../base/freeze.ts';
import type { DaemonSet, Job, Node, PodDisruptionBudget, StatefulSet, Toleration } from '../../kube/kinds.ts';
import { formatTime } from '../../kube/time.ts';
import { aNode, aPod } from '../testing/objects.ts';
import { template } from '../testing/world.ts';
import { withCondition } from './conditions.ts';
import { daemonFit, daemonPod } from './daemon-set.ts';
import { budgetNumbers } from './disruption-budget.ts';
import { scaled } from './int-or-percent.ts';
import { formatIndexes, parseIndexes, verdictOf, wantedActive } from './job-status.ts';
import { taintsFor } from './node-lifecycle.ts';
import { nextAction, statefulPod } from './stateful-set/ordinals.ts';
import { evictionTime } from './taint-eviction.ts';
import { templateHash } from './template-hash.ts';

const now = Date.UTC(2026, 0, 1);

describe('numbers', () => {
  test.each([
    [3, 10, 'up', 3],
    ['25%', 10, 'up', 3],
    ['25%', 10, 'down', 2],
    ['nonsense', 10, 'up', 0],
    [undefined, 10, 'up', 0],
  ] as const)('%s of %i, rounded %s, is %i', (value, total, round, expected) => {
    expect(scaled(value, total, round)).toBe(expected);
  });

  test('completed indexes are written as ranges and read back', () => {
    expect(formatIndexes(new Set([5, 0, 1, 2, 8, 9]))).toBe('0-2,5,8,9');
    expect(parseIndexes('0-2,5,8,9')).toEqual(new Set([0, 1, 2, 5, 8, 9]));
    expect(parseIndexes('')).toEqual(new Set());
  });
});

test('a template hash depends on what the template says, not on the order of its keys', () => {
  expect(templateHash({ a: 1, b: [{ c: 2 }] })).toBe(templateHash({ b: [{ c: 2 }], a: 1 }));
  expect(templateHash({ a: 1 })).not.toBe(templateHash({ a: 2 }));
  expect(templateHash({ a: 1 }, 1)).not.toBe(templateHash({ a: 1 }));
  expect(templateHash({ a: 1, b: undefined })).toBe(templateHash({ a: 1 }));
});

test('a condition keeps its time while its status stays, and all of it while its reason does', () => {
  const first = { type: 'Ready', status: 'True', reason: 'A', lastTransitionTime: '1' };
  expect(withCondition([first], { ...first, lastTransitionTime: '2' })).toEqual([first]);
  expect(withCondition([first], { ...first, reason: 'B', lastTransitionTime: '2' })).toEqual([
    { ...first, reason: 'B' },
  ]);
  const changed = { ...first, status: 'False', lastTransitionTime: '2' };
  expect(withCondition([first], changed)).toEqual([changed]);
});

describe('a disruption budget', () => {
  const budget = (spec: PodDisruptionBudget['spec']): PodDisruptionBudget => ({ metadata: {}, spec: spec! });
  test.each([
    ['minAvailable as a number counts the pods there are', { minAvailable: 2 }, { expectedPods: 3, desiredHealthy: 2 }],
    [
      'minAvailable in percent counts what the owner wants',
      { minAvailable: '50%' },
      { expectedPods: 5, desiredHealthy: 3 },
    ],
    ['maxUnavailable counts what the owner wants', { maxUnavailable: 1 }, { expectedPods: 5, desiredHealthy: 4 }],
    ['maxUnavailable in percent rounds up', { maxUnavailable: '30%' }, { expectedPods: 5, desiredHealthy: 3 }],
    ['more than all may go', { maxUnavailable: 9 }, { expectedPods: 5, desiredHealthy: 0 }],
  ])('%s', (_, spec, expected) => {
    expect(budgetNumbers(budget(spec), 3, () => 5)).toEqual(expected);
  });
});

describe('taints of a node', () => {
  const withReady = (status: string): Node => ({ ...aNode('n'), status: { conditions: [{ type: 'Ready', status }] } });
  const keys = (node: Node): string[] => taintsFor(node, now).map((taint) => `${taint.key}:${taint.effect}`);

  test.each([
    ['True', []],
    ['False', ['node.kubernetes.io/not-ready:NoSchedule', 'node.kubernetes.io/not-ready:NoExecute']],
    ['Unknown', ['node.kubernetes.io/unreachable:NoSchedule', 'node.kubernetes.io/unreachable:NoExecute']],
  ])('Ready=%s', (status, expected) => {
    expect(keys(withReady(status))).toEqual(expected);
  });

  test('those of others stay, ours keep the time they were added', () => {
    const added = { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute', timeAdded: '2020-01-01T00:00:00Z' };
    const node: Node = { ...withReady('False'), spec: { taints: [{ key: 'gpu', effect: 'NoSchedule' }, added] } };
    expect(taintsFor(node, now)).toContainEqual(added);
    expect(keys(node)[0]).toBe('gpu:NoSchedule');
  });

  test('a node that has not spoken yet keeps the taint it was born with', () => {
    const born = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };
    expect(taintsFor({ metadata: { name: 'n' }, spec: { taints: [born] } }, now)).toEqual([born]);
  });

  test('pressure is a taint as well', () => {
    const node: Node = {
      metadata: { name: 'n' },
      status: {
        conditions: [
          { type: 'Ready', status: 'True' },
          { type: 'DiskPressure', status: 'True' },
        ],
      },
    };
    expect(keys(node)).toEqual(['node.kubernetes.io/disk-pressure:NoSchedule']);
  });
});

describe('when a pod must leave a tainted node', () => {
  const node = aNode('n', { taints: [{ key: 'k', effect: 'NoExecute', timeAdded: formatTime(now - 10_000) }] });
  const due = (...tolerations: Toleration[]): number | undefined =>
    evictionTime(aPod('p', { node: 'n', spec: { tolerations } }), node, now);

  test('at once without a toleration, never with an endless one', () => {
    expect(due()).toBe(now);
    expect(due({ key: 'k', operator: 'Exists' })).toBeUndefined();
  });

  test('after the shortest time it tolerates, counted from when the taint came', () => {
    const for30 = { key: 'k', operator: 'Exists', tolerationSeconds: 30 };
    expect(due(for30)).toBe(now + 20_000);
    expect(due(for30, { operator: 'Exists', tolerationSeconds: 15 })).toBe(now + 5000);
  });

  test('NoSchedule taints make nobody leave', () => {
    const calm = aNode('n', { taints: [{ key: 'k', effect: 'NoSchedule' }] });
    expect(evictionTime(aPod('p'), calm, now)).toBeUndefined();
  });
});

describe('a daemon', () => {
  const set = (spec: object = {}): DaemonSet => ({
    metadata: { name: 'agent', namespace: 'default', uid: 'u' },
    spec: { selector: {}, template: { ...template('agent'), spec: { ...template('agent').spec, ...spec } } },
  });

  test('starts where its selector and tolerations let it, and stays under taints that only keep others out', () => {
    expect(daemonFit(set(), aNode('n'))).toEqual({ start: true, stay: true });
    const taint = (effect: string) => aNode('n', { taints: [{ key: 'k', effect }] });
    expect(daemonFit(set(), taint('NoSchedule'))).toEqual({ start: false, stay: true });
    expect(daemonFit(set(), taint('NoExecute'))).toEqual({ start: false, stay: false });
    expect(daemonFit(set({ nodeSelector: { disk: 'ssd' } }), aNode('n'))).toEqual({ start: false, stay: false });
  });

  test('fits a frozen node as it fits any other, however often that is asked', () => {
    const agent = deepFreeze(set());
    const [free, closed] = [{}, { taints: [{ key: 'k', effect: 'NoSchedule' }] }].map((spec) =>
      deepFreeze(aNode('n', spec)),
    );
    for (let i = 0; i < 2; i++) {
      expect(daemonFit(agent, free!)).toEqual({ start: true, stay: true });
      expect(daemonFit(agent, closed!)).toEqual({ start: false, stay: true });
      expect(daemonFit(deepFreeze(set({ tolerations: [{ operator: 'Exists' }] })), closed!).start).toBe(true);
    }
  });

  test('is pinned to its node by name, keeps its own preferences, and puts up with a cordon', () => {
    const preferred = [{ weight: 1, preference: {} }];
    const nodeAffinity = { preferredDuringSchedulingIgnoredDuringExecution: preferred };
    const pod = daemonPod(set({ affinity: { nodeAffinity } }), 'n', 'rev');
    expect(pod.spec.affinity!.nodeAffinity).toEqual({
      preferredDuringSchedulingIgnoredDuringExecution: preferred,
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['n'] }] }],
      },
    });
    expect(pod.spec.tolerations!.map((t) => t.key)).toContain('node.kubernetes.io/unschedulable');
    expect(pod.spec.nodeName).toBeUndefined();
  });
});

describe('a job', () => {
  const job = (spec: object, status: object = {}): Job => ({
    metadata: { name: 'j' },
    spec: { template: template('j'), ...spec },
    status,
  });

  test.each([
    ['goes on while completions are missing', { completions: 3 }, [2, 0, 1], undefined],
    ['is complete with all of them', { completions: 3 }, [3, 0, 0], 'Complete'],
    ['of a work queue waits for the others after the first success', {}, [1, 0, 1], undefined],
    ['of a work queue is complete when all have ended', {}, [1, 0, 0], 'Complete'],
    ['fails beyond its backoff limit', { completions: 1, backoffLimit: 2 }, [0, 3, 0], 'Failed'],
    ['does not fail at its backoff limit', { completions: 1, backoffLimit: 2 }, [0, 2, 0], undefined],
  ] as const)('%s', (_, spec, [succeeded, failed, active], expected) => {
    expect(verdictOf(job(spec), succeeded, failed, active, now)?.type).toBe(expected);
  });

  test('fails after its deadline', () => {
    const late = job({ completions: 1, activeDeadlineSeconds: 60 }, { startTime: formatTime(now - 60_000) });
    expect(verdictOf(late, 0, 0, 1, now)).toMatchObject({ type: 'Failed', reason: 'DeadlineExceeded' });
  });

  test('runs no more at once than it may, nor than are still needed', () => {
    expect(wantedActive(job({ completions: 10, parallelism: 3 }), 0, 0)).toBe(3);
    expect(wantedActive(job({ completions: 10, parallelism: 3 }), 9, 0)).toBe(1);
    expect(wantedActive(job({ parallelism: 3 }), 1, 2)).toBe(2);
    expect(wantedActive(job({ completions: 1, suspend: true }), 0, 0)).toBe(0);
  });
});

describe('a stateful set', () => {
  const set = (spec: object = {}): StatefulSet => ({
    metadata: { name: 'db', namespace: 'default', uid: 'u' },
    spec: { serviceName: 'db', selector: {}, template: template('db'), replicas: 3, ...spec },
  });
  const pod = (ordinal: number, { ready = true, revision = 'r1', leaving = false } = {}) => {
    const made = statefulPod(set(), template('db'), ordinal, revision);
    if (leaving) made.metadata.deletionTimestamp = formatTime(now);
    made.status = {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime: formatTime(now) }],
    };
    return made;
  };
  const steps = (spec: object, pods: ReturnType<typeof pod>[], update = 'r1'): string[] =>
    nextAction({ set: set(spec), pods, current: 'r1', update, now }).map((action) =>
      action.kind === 'create' ? `+${action.ordinal}@${action.revision}` : `-${action.pod.metadata.name}`,
    );

  test.each([
    ['starts with the first', {}, [], 'r1', ['+0@r1']],
    ['waits for each to be ready', {}, [pod(0, { ready: false })], 'r1', []],
    ['goes on with the next', {}, [pod(0)], 'r1', ['+1@r1']],
    ['in parallel starts all', { podManagementPolicy: 'Parallel' }, [], 'r1', ['+0@r1', '+1@r1', '+2@r1']],
    ['shrinks from the end', { replicas: 1 }, [pod(0), pod(1), pod(2)], 'r1', ['-db-2']],
    ['one at a time', { replicas: 1 }, [pod(0), pod(1), pod(2, { leaving: true })], 'r1', []],
    ['updates from the end', {}, [pod(0), pod(1), pod(2)], 'r2', ['-db-2']],
    ['waits for the updated one', {}, [pod(0), pod(1), pod(2, { revision: 'r2', ready: false })], 'r2', []],
    [
      'stops at the partition',
      { updateStrategy: { type: 'RollingUpdate', rollingUpdate: { partition: 2 } } },
      [pod(0), pod(1), pod(2, { revision: 'r2' })],
      'r2',
      [],
    ],
    [
      'leaves updates to the user on delete',
      { updateStrategy: { type: 'OnDelete' } },
      [pod(0), pod(1), pod(2)],
      'r2',
      [],
    ],
    ['begins where its ordinals do', { ordinals: { start: 5 } }, [], 'r1', ['+5@r1']],
  ] as const)('%s', (_, spec, pods, update, expected) => {
    expect(steps(spec, [...pods], update)).toEqual(expected);
  });

  test('gives each pod its name, host name and claims', () => {
    const claims = [{ metadata: { name: 'data' }, spec: {} }];
    const made = statefulPod(set({ volumeClaimTemplates: claims }), template('db'), 1, 'r1');
    expect(made.metadata.name).toBe('db-1');
    expect(made.spec).toMatchObject({
      hostname: 'db-1',
      subdomain: 'db',
      volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data-db-1' } }],
    });
  });
});
