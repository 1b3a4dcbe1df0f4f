// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { Container } from '../kube/kinds.ts';
import { formatAmounts } from './amounts.ts';
import { PodUsages } from './pod-usage.ts';
import { pod } from './testing/objects.ts';

function container(requests: Record<string, string>, limits: Record<string, string> = {}): Container {
  return { name: `c-${JSON.stringify(requests)}`, image: 'app', resources: { requests, limits } };
}

test('a pod takes the sum of its containers and one place', () => {
  const { requests, limits } = new PodUsages().of(
    pod('web', { containers: [container({ cpu: '500m' }, { cpu: '1' }), container({ cpu: '250m', memory: '1Gi' })] }),
  );
  expect(formatAmounts(requests)).toEqual({ cpu: '750m', memory: '1Gi', pods: '1' });
  expect(formatAmounts(limits)).toEqual({ cpu: '1' });
});

test('init containers count where they need more, sidecars always', () => {
  const sidecar = { ...container({ cpu: '100m' }, { cpu: '200m' }), restartPolicy: 'Always' };
  const { requests, limits } = new PodUsages().of(
    pod('web', {
      initContainers: [sidecar, container({ cpu: '2' }, { cpu: '3' })],
      containers: [container({ cpu: '1' }, { cpu: '1' })],
    }),
  );
  expect(formatAmounts(requests)['cpu']).toBe('2100m');
  expect(formatAmounts(limits)['cpu']).toBe('3200m');
});

test('overhead comes on top of requests, and of limits where there are some', () => {
  const overhead = { cpu: '100m', memory: '10Mi' };
  const { requests, limits } = new PodUsages().of(
    pod('vm', { overhead, containers: [container({ cpu: '1' }, { cpu: '2' })] }),
  );
  expect(formatAmounts(requests)).toEqual({ cpu: '1100m', memory: '10Mi', pods: '1' });
  expect(formatAmounts(limits)).toEqual({ cpu: '2100m' });
});

test('a pod being resized takes the larger of what it asks for and what it has', () => {
  const usages = new PodUsages();
  const asked = pod('web', { containers: [{ name: 'main', image: 'app', resources: { requests: { cpu: '1' } } }] });
  const had = {
    ...asked,
    status: {
      containerStatuses: [
        { name: 'main', image: '', imageID: '', ready: true, restartCount: 0, resources: { requests: { cpu: '2' } } },
      ],
    },
  };
  expect(formatAmounts(usages.of(asked).requests)['cpu']).toBe('1');
  expect(formatAmounts(usages.of(had).requests)['cpu']).toBe('2');
});

test('pods of one shape share what was worked out', () => {
  const usages = new PodUsages();
  expect(usages.of(pod('a'))).toBe(usages.of(pod('b')));
});

test('an amount that cannot be read counts as nothing', () => {
  const { requests } = new PodUsages().of(pod('odd', { containers: [container({ cpu: 'much' })] }));
  expect(formatAmounts(requests)).toEqual({ pods: '1' });
});
