// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { annotations, labels } from '../../../api/labels.ts';
import { kinds } from '../../../kube/kinds.ts';
import { type ClaimWorld, claimWorld } from '../testing/claim-world.ts';

let w: ClaimWorld;
afterEach(() => w.world.close());

const startup = { key: 'cni', effect: 'NoExecute' } as const;

describe('initializing a Node', () => {
  beforeEach(async () => {
    w = await claimWorld({ lifecycle: true });
  });

  /** A launched NodeClaim and its Node, with these taints, ready or not. */
  async function appear(
    parts: Parameters<ClaimWorld['write']>[1],
    node: { taints?: { key: string; effect: string }[]; ready?: boolean } = {},
  ): Promise<string> {
    w.world.cloud.nodesAppear = false;
    await w.write('a', parts);
    await w.world.settle();
    const { providerID = '' } = (await w.claim('a'))!.status!;
    const status = node.ready === false ? { status: { conditions: [] } } : {};
    await w.world.cloud.appear(providerID, { spec: { providerID, taints: node.taints ?? [] }, ...status });
    await w.world.settle();
    return (await w.nodeOf('a'))!.metadata.name!;
  }

  async function untaint(name: string): Promise<void> {
    await w.world.workload.resource(kinds.Node).patch(name, { spec: { taints: null } });
    await w.world.settle();
  }

  test('happens at once when nothing is missing, and is the last step to Ready', async () => {
    const node = await appear({});
    expect((await w.world.find(kinds.Node, node))?.metadata.labels?.[labels.initialized]).toBe('true');
    expect(await w.condition('a', 'initialized')).toBe('True Initialized');
    expect(await w.condition('a', 'Ready')).toBe('True Ready');
    expect(w.world.log.messages()).toContain('initialized nodeclaim');
  });

  test('waits for the Node to be ready', async () => {
    const node = await appear({}, { ready: false });
    expect(await w.condition('a', 'initialized')).toBe('Unknown NodeNotReady');
    await w.world.workload
      .resource(kinds.Node)
      .patchStatus(node, { status: { capacity: { cpu: '1' }, allocatable: { cpu: '1' } } });
    await w.setReady(node, 'True');
    expect(await w.condition('a', 'initialized')).toBe('True Initialized');
  });

  test('waits for startup taints to go', async () => {
    const node = await appear({ spec: { startupTaints: [startup] } });
    expect(await w.condition('a', 'initialized')).toBe('Unknown StartupTaintsExist');
    await untaint(node);
    expect(await w.condition('a', 'initialized')).toBe('True Initialized');
  });

  test.each([
    { key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule' },
    { key: 'node.cloudprovider.kubernetes.io/uninitialized', effect: 'NoSchedule' },
    { key: 'readiness.k8s.io/network', effect: 'NoSchedule' },
  ])('waits for $key to go', async (taint) => {
    const node = await appear({}, { taints: [taint] });
    expect(await w.condition('a', 'initialized')).toBe('Unknown KnownEphemeralTaintsExist');
    await untaint(node);
    expect(await w.condition('a', 'initialized')).toBe('True Initialized');
  });

  test('does not wait for taints that are meant to stay', async () => {
    await appear(
      { spec: { taints: [{ key: 'gpu', effect: 'NoSchedule' }] } },
      { taints: [{ key: 'own', effect: 'NoExecute' }] },
    );
    expect(await w.condition('a', 'initialized')).toBe('True Initialized');
  });

  test('waits for resources that were asked for', async () => {
    const node = await appear({ spec: { resources: { requests: { 'vendor.com/gpu': '1', 'vendor.com/nic': '0' } } } });
    expect(await w.condition('a', 'initialized')).toBe('Unknown ResourceNotRegistered');
    const resources = { 'vendor.com/gpu': '2' };
    await w.world.workload
      .resource(kinds.Node)
      .patchStatus(node, { status: { capacity: resources, allocatable: resources } });
    await w.world.settle();
    expect(await w.condition('a', 'initialized')).toBe('True Initialized');
  });
});

describe('initializing a Node with devices', () => {
  beforeEach(async () => {
    w = await claimWorld({ lifecycle: true, settings: { ignoreDraRequests: false } });
  });

  test('waits until every driver has published all slices of a pool', async () => {
    await w.write('a', { annotations: { [annotations.requestedDraDrivers]: 'gpu.example.com' } });
    await w.world.settle();
    expect(await w.condition('a', 'initialized')).toBe('Unknown DRADriverPoolsNotPublished');
    const nodeName = (await w.nodeOf('a'))!.metadata.name!;
    const slice = (name: string, generation: number) => ({
      apiVersion: 'resource.k8s.io/v1',
      kind: 'ResourceSlice',
      metadata: { name },
      spec: { driver: 'gpu.example.com', nodeName, pool: { name: nodeName, generation, resourceSliceCount: 2 } },
    });
    await w.world.apply(slice('old', 1), slice('one', 2));
    await w.world.settle();
    expect(await w.condition('a', 'initialized')).toBe('Unknown DRADriverPoolsNotPublished');
    await w.world.apply(slice('two', 2));
    await w.world.settle();
    expect(await w.condition('a', 'initialized')).toBe('True Initialized');
  });
});
