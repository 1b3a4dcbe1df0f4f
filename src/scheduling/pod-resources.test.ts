// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { Axis } from './axis.ts';
import type { PodSpec } from './objects.ts';
import { amountsOf, podRequests } from './pod-resources.ts';

const cpu = (spec: PodSpec): string => String(Number(podRequests(spec).get('cpu') ?? 0n) / 1e9);
const asks = (amount: string, extra = {}) => ({ resources: { requests: { cpu: amount } }, ...extra });

describe('what a pod requests', () => {
  test('is the sum of its containers', () => {
    expect(cpu({ containers: [asks('1'), asks('500m')] })).toBe('1.5');
  });
  test('is at least its largest init container', () => {
    expect(cpu({ containers: [asks('1')], initContainers: [asks('3'), asks('2')] })).toBe('3');
  });
  test('counts sidecars beside the containers and beside later init containers', () => {
    const sidecar = asks('1', { restartPolicy: 'Always' });
    expect(cpu({ containers: [asks('1')], initContainers: [sidecar] })).toBe('2');
    expect(cpu({ containers: [asks('1')], initContainers: [sidecar, asks('4')] })).toBe('5');
    expect(cpu({ containers: [asks('1')], initContainers: [asks('4'), sidecar] })).toBe('4');
  });
  test('is what the pod says as a whole, where it does, plus overhead', () => {
    expect(cpu({ containers: [asks('1')], resources: { requests: { cpu: '2' } }, overhead: { cpu: '250m' } })).toBe(
      '2.25',
    );
  });
  test('takes limits for missing requests, as the API server does', () => {
    expect(cpu({ containers: [{ resources: { limits: { cpu: '2' } } }] })).toBe('2');
  });
  test('is what the kubelet has allocated while a resize is under way', () => {
    const status = { containerStatuses: [{ name: 'c', allocatedResources: { cpu: '3' } }] };
    const requests = podRequests({ containers: [{ name: 'c', resources: { requests: { cpu: '1' } } }] }, status);
    expect(requests.get('cpu')).toBe(3_000_000_000n);
  });
});

describe('the axis of resources', () => {
  test('rounds what is available down without changing what fits', () => {
    const axis = new Axis([{ amounts: amountsOf({ cpu: '250m' }) }, { amounts: amountsOf({ cpu: '1' }) }]);
    const at = axis.names.indexOf('cpu');
    expect(axis.request(amountsOf({ cpu: '1' }))[at]).toBe(4);
    expect(axis.available(amountsOf({ cpu: '1999m' }))[at]).toBe(7);
    expect(axis.available(amountsOf({ cpu: '-1m' }))[at]).toBe(-1);
  });
  test('stays exact for memory in single bytes beside petabytes', () => {
    const axis = new Axis([{ amounts: amountsOf({ memory: '1' }) }, { amounts: amountsOf({ memory: '1Pi' }) }]);
    const at = axis.names.indexOf('memory');
    expect(axis.request(amountsOf({ memory: '1Pi' }))[at]).toBe(2 ** 50);
    expect(axis.available(amountsOf({ memory: '1Pi' }))[at]).toBe(2 ** 50);
  });
  test('never lets an absurd request fit', () => {
    const axis = new Axis([{ amounts: amountsOf({ cpu: '1n' }) }, { amounts: amountsOf({ cpu: '1E' }) }]);
    const at = axis.names.indexOf('cpu');
    expect(axis.request(amountsOf({ cpu: '1E' }))[at]).toBe(Number.POSITIVE_INFINITY);
    expect(axis.available(amountsOf({ cpu: '1E' }))[at]).toBeLessThan(2 ** 53);
  });
});
