// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { annotations, labels } from '../../../api/labels.ts';
import { kinds } from '../../../kube/kinds.ts';
import { ControllerContext } from '../context.ts';
import { type ClaimWorld, claimType, claimWorld } from '../testing/claim-world.ts';
import { lifecycleController } from './controller.ts';

let w: ClaimWorld;
beforeEach(async () => {
  w = await claimWorld({ lifecycle: true });
});
afterEach(() => w.world.close());

async function remove(name: string): Promise<void> {
  await w.world.karpenter.resource(claimType).delete(name);
  await w.world.settle();
}

/** Plays the end of a drain: the Node is let go. */
async function drained(nodeName: string): Promise<void> {
  await w.world.workload.resource(kinds.Node).patch(nodeName, { metadata: { finalizers: null } });
  await w.world.settle();
}

describe('deleting a NodeClaim', () => {
  test('deletes its Node and waits for it before the machine goes', async () => {
    await w.write('a');
    await w.world.settle();
    const node = (await w.nodeOf('a'))!.metadata.name!;
    await remove('a');
    expect((await w.world.find(kinds.Node, node))?.metadata.deletionTimestamp).toBeDefined();
    await w.world.advance(600_000);
    expect(w.world.cloud.instances.size).toBe(1);
    await drained(node);
    await w.world.advance(5000);
    expect(w.world.cloud.instances.size).toBe(0);
    expect(await w.claim('a')).toBeUndefined();
    expect(w.world.log.messages().filter((message) => message === 'deleted nodeclaim')).toHaveLength(1);
    const { metrics } = w.world;
    const gone = { nodepool: '', capacity_type: 'on-demand', zone: 'zone-a' };
    expect(await metrics.value('karpenter_nodeclaims_terminated_total', gone)).toBe(1);
    expect(await metrics.value('karpenter_nodeclaims_termination_duration_seconds')).toBe(1);
    expect(await metrics.value('karpenter_nodeclaims_instance_termination_duration_seconds')).toBe(1);
  });

  test('asks the cloud every five seconds until the machine is gone', async () => {
    w.world.cloud.nodesAppear = false;
    w.world.cloud.deletesAtOnce = false;
    await w.write('a');
    await w.world.settle();
    await remove('a');
    expect(await w.condition('a', 'instanceTerminating')).toBe('True InstanceTerminating');
    await w.world.advance(20_000);
    expect(w.world.cloud.calls.filter(({ method }) => method === 'delete')).toHaveLength(5);
    w.world.cloud.finishDeletions();
    await w.world.advance(5000);
    expect(await w.claim('a')).toBeUndefined();
  });

  test('tries again when the cloud fails', async () => {
    w.world.cloud.nodesAppear = false;
    await w.write('a');
    await w.world.settle();
    w.world.cloud.fail('delete', new Error('throttled'));
    await remove('a');
    expect(await w.claim('a')).toBeDefined();
    await w.world.advance(10_000);
    expect(await w.claim('a')).toBeUndefined();
  });

  test('leaves the Node of one that never registered to its machine', async () => {
    w.world.cloud.registrationHooks = [{ name: 'never', registered: () => Promise.resolve({ requeueAfterMs: 1000 }) }];
    await w.write('a');
    await w.world.settle();
    const node = (await w.nodeOf('a'))!.metadata.name!;
    w.world.cloud.deletesAtOnce = false;
    await remove('a');
    await w.world.advance(60_000);
    expect((await w.world.find(kinds.Node, node))?.metadata.deletionTimestamp).toBeUndefined();
    w.world.cloud.finishDeletions();
    await w.world.advance(5000);
    expect(await w.claim('a')).toBeUndefined();
  });

  test('takes the Node along where no owner reference can', async () => {
    await w.world.close();
    w = await claimWorld({ lifecycle: true, apart: true });
    w.world.cloud.registrationHooks = [{ name: 'never', registered: () => Promise.resolve({ requeueAfterMs: 1000 }) }];
    await w.write('a');
    await w.world.settle();
    const node = (await w.nodeOf('a'))!.metadata.name!;
    await remove('a');
    await w.world.advance(5000);
    expect(await w.claim('a')).toBeUndefined();
    expect((await w.world.find(kinds.Node, node))?.metadata.deletionTimestamp).toBeDefined();
  });

  test('drains a Node that pods could come to, also when its NodeClaim does not know yet', async () => {
    w.world.cloud.registrationHooks = [{ name: 'never', registered: () => Promise.resolve({ requeueAfterMs: 1e9 }) }];
    await w.write('a');
    await w.world.settle();
    const node = (await w.nodeOf('a'))!.metadata.name!;
    await w.world.workload.resource(kinds.Node).patch(node, { metadata: { labels: { [labels.registered]: 'true' } } });
    await remove('a');
    expect((await w.world.find(kinds.Node, node))?.metadata.deletionTimestamp).toBeDefined();
    expect(w.world.cloud.instances.size).toBe(1);
  });

  test('writes down until when the node may drain', async () => {
    await w.write('a', { spec: { terminationGracePeriod: '1h' } });
    await w.world.settle();
    const deadline = new RegExp('^2026-01-01T01:00:0\\dZ$');
    await remove('a');
    const { annotations: own } = (await w.claim('a'))!.metadata;
    expect(own?.[annotations.terminationTimestamp]).toMatch(deadline);
    expect(await w.world.events('TerminationGracePeriodExpiring')).toHaveLength(1);
    expect(w.world.log.messages()).toContain('annotated nodeclaim');
  });

  test('obeys an earlier time that somebody else wrote', async () => {
    const stamp = { [annotations.terminationTimestamp]: '2026-01-01T00:00:30Z' };
    await w.write('a', { annotations: stamp, spec: { terminationGracePeriod: '1h' } });
    await w.world.settle();
    await remove('a');
    expect((await w.claim('a'))?.metadata.annotations).toMatchObject(stamp);
    expect(await w.world.events('TerminationGracePeriodExpiring')).toEqual([]);
  });

  test('finds the machine of a launch that was never written down', async () => {
    await w.world.close();
    w = await claimWorld();
    const { world } = w;
    world.cloud.nodesAppear = false;
    const claim = await w.write('a');
    // The process died between the launch and the write.
    await world.karpenter.resource(claimType).patch('a', { metadata: { finalizers: ['karpenter.sh/termination'] } });
    await world.cloud.create(claim, world.signal);
    await world.karpenter.resource(claimType).delete('a');
    await world.settle();
    world.run(lifecycleController(new ControllerContext(world)));
    await world.advance(10_000);
    expect(await w.claim('a')).toBeUndefined();
    expect(world.cloud.instances.size).toBe(0);
  });

  test('touches nothing that has no finalizer of ours', async () => {
    await w.write('a', { spec: { nodeClassRef: { group: 'other.sh', kind: 'OtherClass', name: 'x' } } });
    await remove('a');
    expect(await w.claim('a')).toBeUndefined();
    expect(w.world.cloud.calls).toEqual([]);
  });
});
