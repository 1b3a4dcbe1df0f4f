// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type NodePool, nodePoolKind } from '../../../api/node-pool.ts';
import { type DaemonSet, kinds } from '../../../kube/kinds.ts';
import type { ResourceType } from '../../../kube/object.ts';
import { ownedBy, pendingPod } from '../../../state/testing/objects.ts';
import { ControllerContext } from '../context.ts';
import { disruptionConditionsController } from '../disruption/controller.ts';
import { type ClaimWorld, claimWorld } from '../testing/claim-world.ts';
import { podEventsController } from './controller.ts';

const daemonSet: DaemonSet = {
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: { name: 'agent', namespace: 'default' },
  spec: {
    selector: { matchLabels: { app: 'agent' } },
    template: { metadata: { labels: { app: 'agent' } }, spec: { containers: [{ name: 'main', image: 'agent' }] } },
  },
};

let w: ClaimWorld;
let node: string;
beforeEach(async () => {
  w = await claimWorld({ lifecycle: true });
  await w.write('a');
  await w.world.advance(60_000);
  node = (await w.nodeOf('a'))!.metadata.name!;
});
afterEach(() => w.world.close());

async function lastEvent(): Promise<string | undefined> {
  return (await w.claim('a'))?.status?.lastPodEventTime;
}

function now(): string {
  return `${new Date(w.world.clock.now()).toISOString().slice(0, 19)}Z`;
}

async function bind(name: string): Promise<void> {
  const [pod] = await w.world.apply(pendingPod(name));
  await w.world.bind(pod, node);
}

describe('pods that come and go', () => {
  test('are written down: bound, over, deleted', async () => {
    await w.run(podEventsController);
    await bind('p');
    expect(await lastEvent()).toBe(now());
    await w.world.advance(60_000);
    const pods = w.world.workload.resource(kinds.Pod);
    await pods.patchStatus('p', { status: { phase: 'Succeeded' } }, { namespace: 'default' });
    await w.world.settle();
    expect(await lastEvent()).toBe(now());
    await w.world.advance(60_000);
    await pods.delete('p', { namespace: 'default', gracePeriodSeconds: 0 });
    await w.world.settle();
    expect(await lastEvent()).toBe(now());
  });

  test('are written at most every ten seconds, and the last one is not lost', async () => {
    await w.run(podEventsController);
    await bind('p1');
    const first = now();
    await w.world.advance(4000);
    await bind('p2');
    const second = now();
    expect(await lastEvent()).toBe(first);
    await w.world.advance(6000);
    expect(await lastEvent()).toBe(second);
  });

  test.each([
    ['0s', 60_000],
    ['Never', 60_000],
    ['30s', 10_000],
    ['2m', 12_000],
    ['1h', 60_000],
  ])('are written as often as a node that must be quiet for %s needs it', async (consolidateAfter, intervalMs) => {
    const pool = await w.world.pool({ spec: { disruption: { consolidateAfter } } });
    await w.write('b', { pool });
    await w.world.advance(60_000);
    await w.run(podEventsController);
    const other = (await w.nodeOf('b'))!.metadata.name!;
    const told = async () => (await w.claim('b'))?.status?.lastPodEventTime;
    const [first] = await w.world.apply(pendingPod('p1'));
    await w.world.bind(first, other);
    const before = now();
    await w.world.advance(4000);
    const [second] = await w.world.apply(pendingPod('p2'));
    await w.world.bind(second, other);
    const after = now();
    await w.world.advance(intervalMs - 5000);
    expect(await told()).toBe(before);
    await w.world.advance(1000);
    expect(await told()).toBe(after);
  });

  test('are written sooner when a node has to be quiet for a shorter time from now on', async () => {
    const pool = await w.world.pool({ spec: { disruption: { consolidateAfter: '1h' } } });
    await w.write('b', { pool });
    await w.world.advance(60_000);
    await w.run(podEventsController);
    const other = (await w.nodeOf('b'))!.metadata.name!;
    for (const name of ['p1', 'p2']) {
      const [pod] = await w.world.apply(pendingPod(name));
      await w.world.bind(pod, other);
      await w.world.advance(15_000);
    }
    const told = (await w.claim('b'))?.status?.lastPodEventTime;
    const pools = w.world.karpenter.resource(nodePoolKind as ResourceType<NodePool>);
    await pools.patch('default', { spec: { disruption: { consolidateAfter: '30s' } } });
    await w.world.settle();
    expect(Date.parse((await w.claim('b'))?.status?.lastPodEventTime ?? '') - Date.parse(told ?? '')).toBe(15_000);
  });

  test('do not matter when a DaemonSet brings them, or when nothing happens to them', async () => {
    await w.run(podEventsController);
    const [set] = await w.world.apply(daemonSet);
    const owned = ownedBy(pendingPod('d'), 'apps/v1', 'DaemonSet', 'agent');
    owned.metadata.ownerReferences![0]!.uid = set.metadata.uid!;
    const [daemon] = await w.world.apply(owned);
    await w.world.bind(daemon, node);
    expect(await lastEvent()).toBeUndefined();
    await bind('p');
    const bound = now();
    await w.world.advance(60_000);
    await w.world.workload
      .resource(kinds.Pod)
      .patch('p', { metadata: { labels: { a: 'b' } } }, { namespace: 'default' });
    await w.world.settle();
    expect(await lastEvent()).toBe(bound);
  });

  test('end the quiet of a node in the same write', async () => {
    await w.run(podEventsController);
    await w.run(disruptionConditionsController);
    const pool = await w.world.pool({ spec: { disruption: { consolidateAfter: '30s' } } });
    await w.write('b', { pool });
    await w.world.advance(120_000);
    expect(await w.condition('b', 'consolidatable')).toBe('True Consolidatable');
    const other = (await w.nodeOf('b'))!.metadata.name!;
    const seen: string[] = [];
    w.world.state.sources.nodeClaims.addHandler({
      updated: ({ metadata, status }) => {
        const isQuiet = status?.conditions?.some(({ type }) => type === 'Consolidatable') ?? false;
        if (metadata.name === 'b') seen.push(`${status?.lastPodEventTime} ${isQuiet ? 'quiet' : 'busy'}`);
      },
    });
    const [pod] = await w.world.apply(pendingPod('p'));
    await w.world.bind(pod, other);
    expect(seen).toEqual([`${now()} busy`]);
    await w.world.advance(40_000);
    expect(await w.condition('b', 'consolidatable')).toBe('True Consolidatable');
  });

  test('a restart is no event, but what happened before it is', async () => {
    await bind('p');
    const bound = now();
    const pods = w.world.workload.resource(kinds.Pod);
    const conditions = [{ type: 'PodScheduled', status: 'True', lastTransitionTime: bound }];
    await pods.patchStatus('p', { status: { conditions } }, { namespace: 'default' });
    await w.world.advance(600_000);
    w.world.run(podEventsController(new ControllerContext(w.world)));
    await w.world.advance(1000);
    expect(await lastEvent()).toBe(bound);
  });

  test('a pod that no scheduler bound came when its kubelet took it', async () => {
    await bind('p');
    const startTime = now();
    const pods = w.world.workload.resource(kinds.Pod);
    await pods.patchStatus('p', { status: { conditions: null, startTime } }, { namespace: 'default' });
    await w.world.advance(600_000);
    w.world.run(podEventsController(new ControllerContext(w.world)));
    await w.world.advance(1000);
    expect(await lastEvent()).toBe(startTime);
  });
});
