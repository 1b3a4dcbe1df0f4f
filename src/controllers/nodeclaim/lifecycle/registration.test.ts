// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { nodePoolConditions } from '../../../api/conditions.ts';
import { annotations, labels, nodeClassLabel, terminationFinalizer } from '../../../api/labels.ts';
import { type NodePool, nodePoolKind } from '../../../api/node-pool.ts';
import { unregisteredTaint } from '../../../api/taints.ts';
import { kinds, type Node } from '../../../kube/kinds.ts';
import type { ResourceType } from '../../../kube/object.ts';
import { type ClaimWorld, claimWorld } from '../testing/claim-world.ts';

let w: ClaimWorld;
beforeEach(async () => {
  w = await claimWorld({ lifecycle: true });
});
afterEach(() => w.world.close());

const taint = { key: 'gpu', value: 'yes', effect: 'NoSchedule' } as const;
const startup = { key: 'cni', effect: 'NoExecute' } as const;

/** Launches a NodeClaim whose Node the test brings itself. */
async function launchOnly(name: string, parts: Parameters<ClaimWorld['write']>[1] = {}): Promise<string> {
  w.world.cloud.nodesAppear = false;
  await w.write(name, parts);
  await w.world.settle();
  return (await w.claim(name))!.status!.providerID!;
}

async function appear(providerID: string, parts: Partial<Node> = {}): Promise<void> {
  await w.world.cloud.appear(providerID, parts);
  await w.world.settle();
}

describe('registering a Node', () => {
  test('gives it what its NodeClaim promises, and lets pods come', async () => {
    await w.write('a', {
      labels: { team: 'red' },
      annotations: { [annotations.doNotDisrupt]: 'true' },
      spec: { taints: [taint], startupTaints: [startup] },
    });
    await w.world.settle();
    const node = (await w.nodeOf('a'))!;
    const claim = (await w.claim('a'))!;
    expect(node.metadata.labels).toMatchObject({ ...claim.metadata.labels, team: 'red', [labels.registered]: 'true' });
    expect(node.metadata.annotations).toMatchObject({ [annotations.doNotDisrupt]: 'true' });
    expect(node.metadata.finalizers).toEqual([terminationFinalizer]);
    expect(node.metadata.ownerReferences).toEqual([
      {
        apiVersion: 'karpenter.sh/v1',
        kind: 'NodeClaim',
        name: 'a',
        uid: claim.metadata.uid,
        blockOwnerDeletion: true,
      },
    ]);
    expect(node.spec?.taints).toEqual([taint, startup]);
    expect(claim.status?.nodeName).toBe(node.metadata.name);
    expect(await w.condition('a', 'registered')).toBe('True Registered');
    expect(w.world.log.messages()).toContain('registered nodeclaim');
    expect(await w.world.metrics.value('karpenter_nodes_created_total', { nodepool: '', zone: 'zone-a' })).toBe(1);
  });

  test('asks the API server nothing where a cloud has no hooks', async () => {
    const read = vi.spyOn(w.context.claims, 'read');
    await w.write('a');
    await w.world.settle();
    expect(await w.condition('a', 'registered')).toBe('True Registered');
    expect(read).not.toHaveBeenCalled();
  });

  test('keeps the taints and values that the Node brought itself', async () => {
    const id = await launchOnly('a', { spec: { taints: [taint] } });
    const own = { key: 'gpu', value: 'other', effect: 'NoSchedule' };
    await appear(id, { spec: { providerID: id, taints: [{ ...unregisteredTaint }, own] } });
    expect((await w.nodeOf('a'))?.spec?.taints).toEqual([own]);
  });

  test('leaves taints to the cloud when the Node asks for it', async () => {
    const id = await launchOnly('a', { spec: { taints: [taint] } });
    await appear(id, { metadata: { name: 'n', labels: { [labels.doNotSyncTaints]: 'true' } } });
    expect((await w.nodeOf('a'))?.spec?.taints ?? []).toEqual([]);
    expect(await w.condition('a', 'registered')).toBe('True Registered');
  });

  test('tells that the taint of unregistered nodes was missing, and goes on', async () => {
    const id = await launchOnly('a');
    await appear(id, { spec: { providerID: id } });
    expect(await w.world.events('UnregisteredTaintMissing')).toHaveLength(1);
    expect(await w.condition('a', 'registered')).toBe('True Registered');
  });

  test('stops at two Nodes of one machine, and goes on when one of them is gone', async () => {
    let ready = false;
    const registered = () => Promise.resolve(ready ? ({ done: true } as const) : { requeueAfterMs: 1e9 });
    w.world.cloud.registrationHooks = [{ name: 'gate', registered }];
    const id = await launchOnly('a');
    for (const name of ['n1', 'n2']) await appear(id, { metadata: { name } });
    expect(await w.condition('a', 'registered')).toBe('False MultipleNodesFound');
    ready = true;
    await w.world.workload.resource(kinds.Node).patch('n2', { metadata: { finalizers: null } });
    await w.world.workload.resource(kinds.Node).delete('n2');
    await w.world.settle();
    expect(await w.condition('a', 'registered')).toBe('True Registered');
  });

  test('puts no owner on a Node of another cluster', async () => {
    await w.world.close();
    w = await claimWorld({ lifecycle: true, apart: true });
    await w.write('a');
    await w.world.settle();
    expect((await w.nodeOf('a'))?.metadata.ownerReferences).toBeUndefined();
    expect(await w.condition('a', 'initialized')).toBe('True Initialized');
  });

  test('waits for every hook, asks again after the shortest time, and keeps pods away until then', async () => {
    const asked: string[] = [];
    let ready = false;
    w.world.cloud.registrationHooks = [
      { name: 'slow', registered: () => Promise.resolve(ready ? { done: true } : { requeueAfterMs: 30_000 }) },
      { name: 'none', registered: () => Promise.resolve({ done: true }) },
      {
        name: 'quick',
        registered: (claim) => {
          asked.push(claim.metadata.name ?? '');
          return Promise.resolve(ready ? { done: true } : { requeueAfterMs: 5000 });
        },
      },
    ];
    const id = await launchOnly('a', { labels: { team: 'red' } });
    await appear(id);
    expect(await w.condition('a', 'registered')).toBe('Unknown RegistrationHookPending');
    expect((await w.claim('a'))?.status?.conditions?.find(({ type }) => type === 'Registered')?.message).toBe(
      'slow, quick',
    );
    const node = (await w.nodeOf('a'))!;
    expect(node.metadata.labels).toMatchObject({ team: 'red' });
    expect(node.metadata.labels?.[labels.registered]).toBeUndefined();
    expect(node.spec?.taints).toContainEqual(expect.objectContaining(unregisteredTaint));
    const before = asked.length;
    await w.world.advance(4999);
    expect(asked).toHaveLength(before);
    ready = true;
    await w.world.advance(1);
    expect(await w.condition('a', 'registered')).toBe('True Registered');
    expect((await w.nodeOf('a'))?.spec?.taints ?? []).toEqual([]);
  });

  test('brings what a hook wrote into the NodeClaim onto the Node', async () => {
    w.world.cloud.registrationHooks = [
      {
        name: 'labeller',
        registered: async () => {
          await w.world.karpenter
            .resource(w.context.claims.informer.type)
            .patch('a', { metadata: { labels: { rack: '7' } } });
          return { done: true };
        },
      },
    ];
    await w.write('a');
    await w.world.advance(1000);
    expect((await w.nodeOf('a'))?.metadata.labels).toMatchObject({ rack: '7', [labels.registered]: 'true' });
  });

  test('tries again when a hook fails', async () => {
    let broken = true;
    w.world.cloud.registrationHooks = [
      {
        name: 'shaky',
        registered: () => (broken ? Promise.reject(new Error('boom')) : Promise.resolve({ done: true })),
      },
    ];
    await w.write('a');
    await w.world.settle();
    expect(await w.condition('a', 'registered')).toBe('Unknown RegistrationHookPending');
    expect(w.world.log.lines.at(-1)?.fields['error']).toMatchObject({ message: 'registration hook shaky: boom' });
    broken = false;
    await w.world.advance(2000);
    expect(await w.condition('a', 'registered')).toBe('True Registered');
  });

  test('speaks for the NodePool that owns the NodeClaim, and for no other', async () => {
    const pool = await w.world.pool();
    const health = async (): Promise<string | undefined> =>
      (await w.world.find(nodePoolKind as ResourceType<NodePool>, 'default'))?.status?.conditions?.find(
        ({ type }) => type === nodePoolConditions.nodeRegistrationHealthy,
      )?.status;
    await w.write('stranger', { labels: { [labels.nodePool]: 'default' } });
    await w.world.settle();
    expect(await health()).toBeUndefined();
    await w.write('own', { pool });
    await w.world.settle();
    expect(await health()).toBe('True');
  });

  test('a NodeClaim that a person wrote needs no NodePool', async () => {
    await w.write('a', {
      labels: { [nodeClassLabel({ group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass' })]: 'default' },
    });
    await w.world.settle();
    expect(await w.condition('a', 'Ready')).toBe('True Ready');
  });
});
