// SPDX-License-Identifier: Apache-2.0
// A pod keeps the machine that was bought for it, on a living cluster: as long as that machine may still take it, and not a
// pass longer.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type NodeClaim, nodeClaimKind } from '../../api/node-claim.ts';
import { unregisteredTaint } from '../../api/taints.ts';
import { InsufficientCapacityError } from '../../cloud/errors.ts';
import { kinds, type Pod } from '../../kube/kinds.ts';
import { registerControllers } from '../index.ts';
import { deployment } from '../testing/deployment.ts';
import { type TestWorld, testWorld } from '../testing/world.ts';

const minute = 60_000;
let world: TestWorld;

beforeEach(async () => {
  world = await testWorld({ live: true });
  registerControllers(world.manager, world);
  await world.pool({ spec: { disruption: { consolidateAfter: 'Never' } } });
  world.cloud.nodesAppear = false;
});
afterEach(() => world.close());

function running(app: string): number {
  const isRunning = ({ metadata, status }: Pod): boolean =>
    metadata.labels?.['app'] === app && status?.phase === 'Running';
  return world.state.sources.pods.list().filter(isRunning).length;
}

/** A pod that waits, and the machine that was bought for it: launched, and not a Node yet. */
async function bought(): Promise<{ claim: NodeClaim; providerID: string }> {
  await world.apply(deployment('web', 1, '3'));
  await world.until(() => world.cloud.instances.size === 1, minute);
  await world.advance(1000);
  const [claim] = await world.claims();
  return { claim: claim!, providerID: claim!.status!.providerID! };
}

/** The pod runs within this long, on a machine that was bought after the first. */
async function expectAnother(first: NodeClaim, limitMs: number): Promise<void> {
  world.cloud.nodesAppear = true;
  await world.until(() => running('web') === 1, limitMs);
  const pod = world.state.sources.pods.list().find(({ metadata }) => metadata.labels?.['app'] === 'web');
  const machine = world.state.nodeByName(pod?.spec.nodeName ?? '');
  expect(machine?.nodeClaim?.metadata.name).toBeDefined();
  expect(machine?.nodeClaim?.metadata.name).not.toBe(first.metadata.name);
  expect(world.cloud.launched).toHaveLength(2);
}

describe('a pod waits for the machine that was bought for it', () => {
  test('through all the passes that others cause, and nothing more is bought for it', async () => {
    const { providerID } = await bought();
    for (let i = 0; i < 6; i++) {
      await world.apply(deployment(`other-${i}`, 1, '3'));
      await world.advance(10_000);
    }
    expect(world.cloud.launched).toHaveLength(7);
    world.cloud.nodesAppear = true;
    for (const id of world.cloud.launched.filter((launched) => launched !== providerID)) await world.cloud.appear(id);
    await world.cloud.appear(providerID);
    await world.until(() => running('web') === 1, 2 * minute);
    await world.advance(minute);
    expect(world.cloud.launched).toHaveLength(7);
  });
});

describe('a pod is bought another machine soon', () => {
  const soon = 40_000;

  test('when the NodeClaim of the first is deleted', async () => {
    const { claim } = await bought();
    await world.karpenter.resource(nodeClaimKind).delete(claim.metadata.name!);
    await expectAnother(claim, soon);
  });

  test('when the cloud has none of the kind after all', async () => {
    world.cloud.nodesAppear = true;
    world.cloud.fail('create', new InsufficientCapacityError('sold out'));
    await world.apply(deployment('web', 1, '3'));
    await world.until(() => running('web') === 1, minute);
    expect(world.cloud.launched).toHaveLength(1);
    expect(await world.claims()).toHaveLength(1);
  });

  test('when the first comes with a taint that it does not tolerate', async () => {
    const { claim, providerID } = await bought();
    const theirs = { key: 'example.com/broken', effect: 'NoSchedule' } as const;
    await world.cloud.appear(providerID, { spec: { providerID, taints: [{ ...unregisteredTaint }, theirs] } });
    await expectAnother(claim, soon);
  });

  test('when the first is cordoned before anything runs there', async () => {
    const { claim, providerID } = await bought();
    const taints = [
      { ...unregisteredTaint },
      { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' } as const,
    ];
    await world.cloud.appear(providerID, { spec: { providerID, unschedulable: true, taints } });
    await expectAnother(claim, soon);
  });

  test('when others are on the first before it', async () => {
    const { claim, providerID } = await bought();
    const taken = deployment('taken', 1, '3').spec.template;
    const name = providerID.slice('fake://'.length);
    await world.cloud.appear(providerID);
    await world.apply({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'taken', namespace: 'default', labels: { app: 'taken' } },
      spec: { ...taken.spec, nodeName: name, tolerations: [{ operator: 'Exists' }] },
    } as Pod);
    await expectAnother(claim, soon);
    expect(running('taken')).toBe(1);
  });

  test('when the first turns out smaller than its cloud said', async () => {
    const { claim, providerID } = await bought();
    const lastTransitionTime = claim.metadata.creationTimestamp!;
    const conditions = [{ type: 'Ready', status: 'True', reason: 'KubeletReady', lastTransitionTime }];
    const room = { cpu: '2', memory: '8Gi', pods: '110' };
    await world.cloud.appear(providerID, { status: { capacity: room, allocatable: room, conditions } as never });
    await expectAnother(claim, soon);
  });
});

test('a pod whose machine never joins gets another when the time to join is over', async () => {
  const { claim } = await bought();
  await world.advance(14 * minute);
  expect(world.cloud.launched).toHaveLength(1);
  await expectAnother(claim, 3 * minute);
  await world.until(() => world.cloud.instances.size === 1, 10 * minute);
  expect((await world.workload.resource(kinds.Node).list()).items).toHaveLength(1);
});
