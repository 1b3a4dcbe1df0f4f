// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { terminationFinalizer } from '../../../api/labels.ts';
import { nodeClaim } from '../../../api/testing/objects.ts';
import { kinds } from '../../../kube/kinds.ts';
import { type ClaimWorld, claimWorld } from '../testing/claim-world.ts';
import { garbageCollectionController } from './controller.ts';

let w: ClaimWorld;
beforeEach(async () => {
  w = await claimWorld({ lifecycle: true });
  await w.run(garbageCollectionController);
});
afterEach(() => w.world.close());

const round = 120_000;

/** A NodeClaim with a registered node. */
async function running(name: string): Promise<{ providerID: string; node: string }> {
  await w.write(name);
  await w.world.settle();
  return { providerID: (await w.claim(name))!.status!.providerID!, node: (await w.nodeOf(name))!.metadata.name! };
}

/** A machine that was launched for a NodeClaim that is not there, with a Node that has our finalizer. */
async function orphan(name: string): Promise<{ providerID: string; node: string }> {
  const claim = nodeClaim({ name });
  claim.metadata.uid = 'gone';
  const { providerID } = await w.world.cloud.create(claim, w.world.signal);
  const node = (await w.world.nodes()).find(({ spec }) => spec?.providerID === providerID)?.metadata.name ?? '';
  const metadata = { finalizers: [terminationFinalizer] };
  if (node !== '') await w.world.workload.resource(kinds.Node).patch(node, { metadata });
  await w.world.settle();
  return { providerID, node };
}

async function letGo(node: string): Promise<void> {
  await w.world.workload.resource(kinds.Node).patch(node, { metadata: { finalizers: null } });
  await w.world.settle();
}

describe('a NodeClaim whose machine is gone', () => {
  test('is deleted once its node is not ready', async () => {
    const { providerID, node } = await running('a');
    w.world.cloud.instances.delete(providerID);
    await w.world.advance(round);
    // The kubelet still speaks: the cloud may be wrong.
    expect((await w.claim('a'))?.metadata.deletionTimestamp).toBeUndefined();
    await w.setReady(node, 'False');
    await w.world.advance(round);
    expect((await w.claim('a'))?.metadata.deletionTimestamp).toBeDefined();
    const labelled = { reason: 'garbage_collected', nodepool: '' };
    expect(await w.world.metrics.value('karpenter_nodeclaims_disrupted_total', labelled)).toBe(1);
  });

  test('is deleted when its node is gone as well', async () => {
    const { providerID, node } = await running('a');
    w.world.cloud.instances.delete(providerID);
    await w.world.workload.resource(kinds.Node).delete(node);
    await letGo(node);
    await w.world.advance(round);
    expect(await w.claim('a')).toBeUndefined();
  });

  test('is kept when only the list left it out', async () => {
    const { node } = await running('a');
    await w.setReady(node, 'False');
    w.world.cloud.list = () => Promise.resolve([]);
    await w.world.advance(3 * round);
    expect((await w.claim('a'))?.metadata.deletionTimestamp).toBeUndefined();
  });

  test('has its own time limit before it is registered', async () => {
    w.world.cloud.nodesAppear = false;
    await w.write('a');
    await w.world.settle();
    w.world.cloud.instances.clear();
    await w.world.advance(2 * round);
    expect(await w.claim('a')).toBeDefined();
  });

  test('is looked for again after the cloud failed', async () => {
    const { providerID, node } = await running('a');
    await w.setReady(node, 'False');
    w.world.cloud.instances.delete(providerID);
    w.world.cloud.fail('list', new Error('throttled'));
    await w.world.advance(2 * round);
    expect((await w.claim('a'))?.metadata.deletionTimestamp).toBeDefined();
  });

  test('is found within a round once the cloud answers, however long it did not', async () => {
    const { providerID, node } = await running('a');
    await w.setReady(node, 'False');
    w.world.cloud.instances.delete(providerID);
    const list = vi.spyOn(w.world.cloud, 'list').mockRejectedValue(new Error('unreachable'));
    await w.world.advance(12 * round);
    // It is not pressed either: a few times soon after the first failure, then no more than when it is well.
    expect(list.mock.calls.length).toBeLessThan(20);
    list.mockRestore();
    await w.world.advance(round);
    expect((await w.claim('a'))?.metadata.deletionTimestamp).toBeDefined();
  });
});

describe('a machine whose NodeClaim is gone', () => {
  test('is drained although its Node was never registered', async () => {
    const { node } = await orphan('a');
    await letGo(node);
    await w.world.advance(3 * round);
    const going = await w.world.find(kinds.Node, node);
    expect(going?.metadata.deletionTimestamp).toBeDefined();
    expect(going?.metadata.finalizers).toContain(terminationFinalizer);
    expect(w.world.cloud.instances.size).toBe(1);
  });

  test('is removed after a while, its node drained first', async () => {
    const { node } = await orphan('a');
    await w.world.advance(3 * round);
    expect((await w.world.find(kinds.Node, node))?.metadata.deletionTimestamp).toBeDefined();
    expect(w.world.cloud.instances.size).toBe(1);
    await letGo(node);
    await w.world.advance(round);
    expect(w.world.cloud.instances.size).toBe(0);
    expect(w.world.log.messages()).toContain('garbage collected instance without nodeclaim');
  });

  test('is still drained while its node is not ready for a moment, and removed when it stays so', async () => {
    const { node } = await orphan('a');
    await w.world.advance(3 * round);
    await w.setReady(node, 'False');
    await w.world.advance(round);
    expect(w.world.cloud.instances.size).toBe(1);
    await w.setReady(node, 'True');
    await w.world.advance(round);
    await w.setReady(node, 'False');
    await w.world.advance(2 * round);
    expect(w.world.cloud.instances.size).toBe(1);
    await w.world.advance(round);
    expect(w.world.cloud.instances.size).toBe(0);
  });

  test('without a node is removed after a while, not at once', async () => {
    w.world.cloud.nodesAppear = false;
    await w.world.advance(round - 1000);
    await orphan('a');
    await w.world.advance(30_000);
    expect(w.world.cloud.instances.size).toBe(1);
    await w.world.advance(60_000);
    expect(w.world.cloud.instances.size).toBe(0);
  });

  test('is removed although the cloud does not answer about another machine', async () => {
    const { providerID, node } = await running('a');
    await w.setReady(node, 'False');
    w.world.cloud.instances.delete(providerID);
    w.world.cloud.fail('get', new Error('internal error'), 100);
    w.world.cloud.nodesAppear = false;
    await orphan('b');
    await w.world.advance(3 * round);
    expect(w.world.cloud.instances.size).toBe(0);
    expect((await w.claim('a'))?.metadata.deletionTimestamp).toBeUndefined();
  });

  test('is removed once when it is listed twice', async () => {
    w.world.cloud.nodesAppear = false;
    await orphan('a');
    const list = w.world.cloud.list.bind(w.world.cloud);
    w.world.cloud.list = async (signal) => (await list(signal)).flatMap((instance) => [instance, instance]);
    await w.world.advance(3 * round);
    expect(w.world.cloud.instances.size).toBe(0);
    expect(w.world.cloud.calls.filter(({ method }) => method === 'delete')).toHaveLength(1);
  });

  test('is kept when the cloud cannot say for whom it was made', async () => {
    const { providerID } = await orphan('a');
    const { nodeClaim: _, ...unknown } = w.world.cloud.instances.get(providerID)!;
    w.world.cloud.instances.set(providerID, unknown);
    await w.world.advance(5 * round);
    expect(w.world.cloud.instances.size).toBe(1);
  });

  test('is found out to have one after all when it is looked up past the cache', async () => {
    w.world.cloud.nodesAppear = false;
    const { providerID } = await orphan('a');
    const { claims } = w.context;
    const known = nodeClaim({ name: 'a' });
    claims.readAll = () => Promise.resolve([{ ...known, status: { providerID } }]);
    await w.world.advance(3 * round);
    expect(w.world.cloud.instances.size).toBe(1);
  });

  test('is not looked up past the cache before its time has come', async () => {
    const readAll = vi.spyOn(w.context.claims, 'readAll');
    w.world.cloud.nodesAppear = false;
    await w.world.advance(round - 1000);
    await orphan('a');
    await w.world.advance(10_000);
    expect(readAll).not.toHaveBeenCalled();
    await w.world.advance(80_000);
    expect(readAll).toHaveBeenCalled();
  });

  test('is kept when NodeClaims cannot be read', async () => {
    w.world.cloud.nodesAppear = false;
    await orphan('a');
    const { claims } = w.context;
    claims.readAll = () => Promise.reject(new Error('not served'));
    await w.world.advance(3 * round);
    expect(w.world.cloud.instances.size).toBe(1);
  });
});
