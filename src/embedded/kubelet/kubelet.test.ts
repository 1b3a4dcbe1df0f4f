// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import type { Pod } from '../../kube/kinds.ts';
import { aNode, aPod } from '../testing/objects.ts';
import { AddressBook } from './addresses.ts';
import { reportedStatus } from './fake-node.ts';
import { creatingStatus, finishedStatus, qosClass, readinessMatches, runningStatus } from './pod-status.ts';

const context = { now: Date.UTC(2026, 0, 1), hostIP: '172.18.0.2', podIP: '10.244.0.2' };
const conditions = (status: Pod['status']): string[] => status!.conditions!.map((c) => `${c.type}=${c.status}`);

describe('addresses', () => {
  test('are unique, stay with their holder, and are given out again when it is gone', () => {
    const book = new AddressBook();
    const first = book.assign('a', 'pod');
    expect(book.assign('a', 'pod')).toBe(first);
    const second = book.assign('b', 'pod');
    expect(second).not.toBe(first);
    book.release('a');
    expect(book.assign('c', 'pod')).not.toBe(second);
  });

  test('that were in use before a restart are not given out twice', () => {
    const book = new AddressBook();
    book.note('a', '10.244.0.2');
    expect(book.assign('b', 'pod')).toBe('10.244.0.3');
    expect(book.assign('n', 'node')).toBe('172.18.0.2');
  });

  test('go on beyond one block', () => {
    const book = new AddressBook();
    const all = new Set(Array.from({ length: 70_000 }, (_, i) => book.assign(String(i), 'pod')));
    expect(all.size).toBe(70_000);
    expect(book.assign('next', 'pod')).toMatch(/^10\.243\./);
  });
});

describe('the status of a pod', () => {
  test('says that containers are being created, then that they run, then that they have ended', () => {
    const pod = aPod('p', { node: 'n' });
    const creating = creatingStatus(pod, context);
    expect(creating).toMatchObject({ phase: 'Pending', startTime: '2026-01-01T00:00:00Z', hostIP: '172.18.0.2' });
    expect(creating.containerStatuses![0]!.state).toEqual({ waiting: { reason: 'ContainerCreating' } });
    expect(conditions(creating)).toContain('Ready=False');
    const running = runningStatus({ ...pod, status: creating }, context);
    expect(running).toMatchObject({ phase: 'Running', podIP: '10.244.0.2' });
    expect(conditions(running)).toEqual(
      expect.arrayContaining(['Ready=True', 'ContainersReady=True', 'Initialized=True', 'PodScheduled=True']),
    );
    const ended = finishedStatus({ ...pod, status: running }, { ...context, now: context.now + 5000 }, 0);
    expect(ended.phase).toBe('Succeeded');
    expect(ended.containerStatuses![0]!.state!.terminated).toMatchObject({
      exitCode: 0,
      startedAt: '2026-01-01T00:00:00Z',
      finishedAt: '2026-01-01T00:00:05Z',
    });
    expect(finishedStatus(pod, context, 1).phase).toBe('Failed');
  });

  test('is not ready while a readiness gate is closed', () => {
    const pod = aPod('p', { node: 'n', spec: { readinessGates: [{ conditionType: 'lb' }] } });
    expect(conditions(runningStatus(pod, context))).toContain('Ready=False');
    const open: Pod = { ...pod, status: { conditions: [{ type: 'lb', status: 'True' }] } };
    expect(readinessMatches(open)).toBe(false);
    expect(conditions(runningStatus(open, context))).toContain('Ready=True');
  });

  test.each([
    ['BestEffort', {}],
    ['Burstable', { requests: { cpu: '1' } }],
    ['Burstable', { requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '2', memory: '1Gi' } }],
    ['Guaranteed', { limits: { cpu: '1', memory: '1Gi' } }],
  ])('has the class %s with resources %j', (expected, resources) => {
    expect(qosClass(aPod('p', { spec: { containers: [{ name: 'c', resources }] } }))).toBe(expected);
  });
});

describe('the status of a node', () => {
  test('is filled in where it is empty, and left as it is where it is not', () => {
    const bare = reportedStatus({ metadata: { name: 'n' } }, '172.18.0.2', context.now);
    expect(bare.capacity).toEqual({ cpu: '8', memory: '32Gi', 'ephemeral-storage': '100Gi', pods: '110' });
    expect(bare.conditions!.find((c) => c.type === 'Ready')).toMatchObject({ status: 'True', reason: 'KubeletReady' });
    const own = reportedStatus(aNode('n', { allocatable: { cpu: '3' } }), '172.18.0.2', context.now);
    expect(own.allocatable!['cpu']).toBe('3');
  });

  test('stays broken when somebody broke it on purpose, and recovers from silence', () => {
    const ready = (reason: string) => ({ type: 'Ready', status: 'False', reason, message: '' });
    const status = (reason: string) =>
      reportedStatus({ metadata: { name: 'n' }, status: { conditions: [ready(reason)] } }, '', context.now);
    const after = (reason: string) => status(reason).conditions!.find((c) => c.type === 'Ready')!.status;
    expect(after('DiskOnFire')).toBe('False');
    expect(after('NodeStatusUnknown')).toBe('True');
  });
});
