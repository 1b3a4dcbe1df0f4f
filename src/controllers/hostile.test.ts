// SPDX-License-Identifier: Apache-2.0
// What somebody who may write pods, NodePools or Nodes can and cannot achieve with them. docs/security.md names these
// tests, claim by claim.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { labels } from '../api/labels.ts';
import { type NodePool, nodePoolKind } from '../api/node-pool.ts';
import { nodePool } from '../api/testing/objects.ts';
import { kinds, type Node, type Pod } from '../kube/kinds.ts';
import type { ResourceType } from '../kube/object.ts';
import { registerControllers } from './index.ts';
import { deployment } from './testing/deployment.ts';
import { type TestWorld, testWorld } from './testing/world.ts';

const minute = 60_000;
const poolType = nodePoolKind as ResourceType<NodePool>;
let world: TestWorld;

beforeEach(async () => {
  world = await testWorld({ live: true });
  registerControllers(world.manager, world);
});
afterEach(() => world.close());

const running = (): number =>
  world.state.sources.pods.list().filter(({ status }) => status?.phase === 'Running').length;

function pod(name: string, more: Partial<Pod['spec']> = {}, metadata: Partial<Pod['metadata']> = {}): Pod {
  const containers = [{ name: 'main', image: 'pause', resources: { requests: { cpu: '1' } } }];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', ...metadata },
    spec: { containers, ...more },
  };
}

function strangeNode(name: string, more: Partial<Node['metadata']> = {}, providerID?: string): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, ...more },
    spec: providerID === undefined ? {} : { providerID },
  };
}

/** A pool whose nodes carry these labels. */
function labelled(name: string, given: Readonly<Record<string, string>>): NodePool {
  const pool = nodePool({ name });
  return { ...pool, spec: { ...pool.spec, template: { ...pool.spec.template, metadata: { labels: given } } } };
}

/** A pool with one machine and a pod on it. */
async function oneMachine(consolidateAfter = '0s'): Promise<{ providerID: string; node: string }> {
  await world.apply(nodePool({ name: 'web', spec: { disruption: { consolidateAfter } } }), deployment('web', 1));
  await world.until(() => running() === 1, 20 * minute);
  const [claim] = await world.claims();
  return { providerID: claim!.status!.providerID!, node: claim!.status!.nodeName! };
}

test('a Node that claims the machine of another neither takes it over nor takes it down', async () => {
  // Another size would be cheaper: the story is about the machine that is there.
  const { providerID, node } = await oneMachine('Never');
  await world.apply(strangeNode('impostor', {}, providerID));
  await world.advance(5 * minute);
  await world.workload.resource(kinds.Node).delete('impostor');
  await world.advance(5 * minute);
  expect(running()).toBe(1);
  const [claim] = await world.claims();
  expect(claim?.status).toMatchObject({ providerID, nodeName: node });
  expect(world.cloud.instances.size).toBe(1);
  expect(world.cloud.launched).toHaveLength(1);
});

describe('a Node that calls itself ours without a NodeClaim', () => {
  const ours = {
    [labels.nodePool]: 'web',
    [labels.registered]: 'true',
    [labels.initialized]: 'true',
    [labels.instanceType]: 'c-4x',
    'karpenter.kwok.sh/kwoknodeclass': 'default',
  };

  /** Adds the pretender; with room, it says that it is ready for pods, and nobody runs them there. */
  async function pretend(room?: Readonly<Record<string, string>>): Promise<void> {
    await world.apply(strangeNode('pretender', { labels: ours }, 'fake:///nothing/here'));
    if (!room) return;
    const ready = { type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' };
    const status = { capacity: room, allocatable: room, conditions: [ready] };
    await world.workload.resource(kinds.Node).patchStatus('pretender', { status } as never);
  }

  async function machinesOfClaims(): Promise<number> {
    const claims = (await world.claims()).map(({ status }) => status?.providerID ?? '').sort();
    expect([...world.cloud.instances.keys()].sort()).toEqual(claims);
    return claims.length;
  }

  test('leaves the cloud with one machine for each NodeClaim', async () => {
    await oneMachine();
    await pretend();
    await world.advance(15 * minute);
    await world.until(() => running() === 1, 20 * minute);
    expect(await machinesOfClaims()).toBe(1);
  });

  test('is not touched, and makes no noise', async () => {
    await oneMachine();
    // Whatever is done about the machine itself is over.
    await world.advance(15 * minute);
    const [said, launched] = [world.log.lines.length, world.cloud.launched.length];
    await pretend();
    const before = (await world.find(kinds.Node, 'pretender'))!;
    await world.advance(60 * minute);
    const after = (await world.find(kinds.Node, 'pretender'))!;
    expect([after.metadata.labels, after.metadata.finalizers, after.spec]).toEqual([
      before.metadata.labels,
      undefined,
      before.spec,
    ]);
    expect((await world.events()).filter((line) => line.includes('/pretender:'))).toEqual([]);
    expect(world.log.lines.slice(said).filter(({ level }) => level !== 'debug')).toEqual([]);
    expect([running(), world.cloud.launched.length]).toEqual([1, launched]);
  });

  test('has one machine given up for the room it pretends to have, not one after the other', async () => {
    await oneMachine();
    await world.advance(15 * minute);
    const launched = world.cloud.launched.length;
    await pretend({ cpu: '4', memory: '16Gi', pods: '110' });
    await world.advance(60 * minute);
    expect([await machinesOfClaims(), world.cloud.launched.length]).toEqual([0, launched]);
    // Its pod is where kube-scheduler put it; once the pretender is gone it gets a machine again.
    await world.workload.resource(kinds.Node).delete('pretender');
    for (const pod of world.state.sources.pods.list()) await world.delete(pod);
    await world.until(() => running() === 1, 20 * minute);
    await world.advance(15 * minute);
    expect(await machinesOfClaims()).toBe(1);
  });
});

test('keys named like what every JavaScript object has are labels and annotations like others', async () => {
  const keys = { constructor: 'x', toString: 'x', hasOwnProperty: 'x', valueOf: 'x' };
  const hostile = JSON.parse('{"__proto__":"x"}') as Record<string, string>;
  await world.apply(labelled('web', keys));
  await world.apply(pod('strange', { nodeSelector: keys }, { labels: keys, annotations: keys }));
  await world.apply(pod('plain'));
  // The API server itself refuses the one that could do harm.
  await expect(world.apply(pod('worst', {}, { labels: hostile }))).rejects.toThrow(/__proto__/);
  await world.until(() => running() === 2, 20 * minute);
  expect(({} as { x?: unknown }).x).toBeUndefined();
  expect(Object.keys(Object.prototype)).toEqual([]);
});

test('a pod that may never be disrupted keeps its node from consolidation, not from being deleted by its owner', async () => {
  await world.apply(nodePool({ name: 'web', template: { terminationGracePeriod: '5m' } as never }));
  const guard = { 'karpenter.sh/do-not-disrupt': 'true' };
  await world.apply(pod('guarded', {}, { annotations: guard }));
  await world.until(() => running() === 1, 20 * minute);
  await world.advance(60 * minute);
  expect(running()).toBe(1);
  const [claim] = await world.claims();
  await world.delete(claim!);
  await world.until(() => world.cloud.instances.size === 0, 60 * minute);
});

test('a finalizer on a pod holds its node up for the grace period of the node, and no longer', async () => {
  await world.apply(nodePool({ name: 'web', template: { terminationGracePeriod: '5m' } as never }));
  await world.apply(pod('stuck', {}, { finalizers: ['example.com/never'] }));
  await world.until(() => running() === 1, 20 * minute);
  const [claim] = await world.claims();
  await world.delete(claim!);
  await world.until(() => world.cloud.instances.size === 0, 60 * minute);
});

test('labels of the system cannot be taken by a NodePool', async () => {
  for (const key of ['kubernetes.io/hostname', 'karpenter.sh/nodepool', 'karpenter.sh/registered']) {
    await world.apply(labelled('greedy', { [key]: 'mine' })).catch(() => undefined);
    await world.advance(minute);
    const found = await world.find(poolType, 'greedy');
    const ready = found?.status?.conditions?.find(({ type }) => type === 'Ready')?.status;
    expect(`${key} ${found ? ready : 'refused'}`).toMatch(/ (?:False|refused)$/);
    if (found) await world.delete(found);
  }
  expect(world.cloud.launched).toEqual([]);
});

test('a pod cannot have more bought than the limits of the pools allow', async () => {
  await world.apply({
    ...nodePool({ name: 'web' }),
    spec: { ...nodePool({ name: 'web' }).spec, limits: { cpu: '8' } },
  });
  await world.apply(deployment('greedy', 50, '1'));
  await world.advance(30 * minute);
  const cpus = [...world.cloud.instances.values()].length;
  expect(cpus).toBeGreaterThan(0);
  const capacity = (await world.nodes()).reduce((sum, { status }) => sum + Number(status?.capacity?.['cpu'] ?? 0), 0);
  expect(capacity).toBeLessThanOrEqual(8);
});

test('a pod with dozens of terms holds up no other', async () => {
  await world.apply(nodePool({ name: 'web' }));
  const terms = Array.from({ length: 40 }, (_, i) => ({
    matchExpressions: [
      { key: `example.com/k${i}`, operator: 'In', values: Array.from({ length: 20 }, (_, j) => `v${j}`) },
    ],
  }));
  const affinity = {
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } },
  };
  await world.apply(pod('huge', { affinity } as never), pod('small'));
  const before = process.cpuUsage();
  await world.until(() => running() === 1, 20 * minute);
  await world.advance(2 * minute);
  expect(process.cpuUsage(before).user / 1e6).toBeLessThan(10);
});
