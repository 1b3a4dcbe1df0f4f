// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { VirtualClock } from '../../base/clock.ts';
import type { Pod } from '../../kube/kinds.ts';
import { PodArrivals } from './arrivals.ts';

function setUp() {
  const clock = new VirtualClock();
  const handlers: Parameters<ConstructorParameters<typeof PodArrivals>[0]['pods']['addHandler']>[0][] = [];
  const arrivals = new PodArrivals({ clock, pods: { addHandler: (one) => handlers.push(one) }, countMs: 10_000 });
  return { clock, arrivals, pods: handlers[0]! };
}

function pod(changes: { spec?: Partial<Pod['spec']>; status?: Pod['status'] } = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web', namespace: 'default', uid: 'web' },
    spec: { containers: [], ...changes.spec },
    ...(changes.status ? { status: changes.status } : {}),
  };
}

const refused = pod({ status: { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }] } });

describe('pods are under way', () => {
  test.each([
    ['placed', (pods: ReturnType<typeof setUp>['pods']) => pods.updated(pod({ spec: { nodeName: 'a' } }))],
    ['refused', (pods: ReturnType<typeof setUp>['pods']) => pods.updated(refused)],
    ['deleted', (pods: ReturnType<typeof setUp>['pods']) => pods.deleted(pod())],
  ])('from their creation until they are %s', (_, decide) => {
    const { arrivals, pods } = setUp();
    expect(arrivals.areUnderWay).toBe(false);
    pods.added(pod());
    expect(arrivals.areUnderWay).toBe(true);
    decide(pods);
    expect(arrivals.areUnderWay).toBe(false);
  });

  test('for a while only: one that no scheduler looks at delays nobody for ever', async () => {
    const { clock, arrivals, pods } = setUp();
    pods.added(pod());
    await clock.step(9999);
    expect(arrivals.areUnderWay).toBe(true);
    await clock.step(1);
    expect(arrivals.areUnderWay).toBe(false);
    pods.updated(pod());
    expect(arrivals.areUnderWay).toBe(false);
  });

  test('unless they wait for something else: their gates, or the node of their daemon', () => {
    const { arrivals, pods } = setUp();
    pods.added(pod({ status: { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }] } }));
    const daemon = pod();
    const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'logs', uid: '1' }];
    pods.added({ ...daemon, metadata: { ...daemon.metadata, ownerReferences } });
    expect(arrivals.areUnderWay).toBe(false);
  });
});
