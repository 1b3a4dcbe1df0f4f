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

describe('of pods that nobody has looked at', () => {
  const of = (name: string, owner?: string): Pod => ({
    ...pod(),
    metadata: {
      name,
      namespace: 'default',
      uid: name,
      ...(owner
        ? {
            ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: owner, uid: owner, controller: true }],
          }
        : {}),
    },
  });
  const names = (pods: Iterable<Pod>): (string | undefined)[] => [...pods].map(({ metadata }) => metadata.name);

  test('the siblings of a refused one are known, others are not', () => {
    const { arrivals, pods } = setUp();
    for (const one of [of('web-1', 'web'), of('api-1', 'api'), of('alone')]) pods.added(one);
    expect(names(arrivals.siblingsOf([of('web-0', 'web'), of('single')]))).toEqual(['web-1']);
    expect(names(arrivals.siblingsOf([]))).toEqual([]);
  });

  test('those are told as they are now, and no longer once they are decided, or too old', async () => {
    const { clock, arrivals, pods } = setUp();
    const refusedSibling = [of('web-0', 'web')];
    pods.added(of('web-1', 'web'));
    const changed = { ...of('web-1', 'web'), spec: { containers: [], priority: 7 } };
    pods.updated(changed);
    expect([...arrivals.siblingsOf(refusedSibling)]).toEqual([changed]);
    pods.added(of('web-2', 'web'));
    pods.updated({ ...of('web-1', 'web'), spec: { containers: [], nodeName: 'a' } });
    expect(names(arrivals.siblingsOf(refusedSibling))).toEqual(['web-2']);
    await clock.step(10_000);
    expect(names(arrivals.siblingsOf(refusedSibling))).toEqual([]);
  });
});
