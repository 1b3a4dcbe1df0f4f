// SPDX-License-Identifier: Apache-2.0
// Objects as large as an API server takes, Nodes that lie, and nonsense in annotations that mean something to us: what they
// achieve and what they do not. docs/security.md names these tests, claim by claim.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { annotations } from '../api/labels.ts';
import { type NodeClaim, nodeClaimKind } from '../api/node-claim.ts';
import { type NodePool, nodePoolKind } from '../api/node-pool.ts';
import { nodeClaim, nodePool } from '../api/testing/objects.ts';
import { kinds, type Node, type Pod } from '../kube/kinds.ts';
import type { KubeObject, ResourceType } from '../kube/object.ts';
import { registerControllers } from './index.ts';
import { deployment } from './testing/deployment.ts';
import { type TestWorld, testWorld } from './testing/world.ts';

const minute = 60_000;
let world: TestWorld;

beforeEach(async () => {
  world = await testWorld({ live: true });
  registerControllers(world.manager, world);
});
afterEach(() => world.close());

const running = (app?: string): number =>
  world.state.sources.pods
    .list()
    .filter(({ metadata, status }) => status?.phase === 'Running' && (!app || metadata.labels?.['app'] === app)).length;

/** So many texts of a kilobyte each. */
const kilobytes = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`example.com/k${i}`, 'x'.repeat(1000)]));

/** Runs a service and says what it cost, in seconds of CPU. */
async function serve(name: string, replicas: number): Promise<number> {
  const before = process.cpuUsage();
  await world.apply(deployment(name, replicas));
  await world.until(() => running(name) === replicas, 20 * minute);
  await world.advance(10 * minute);
  return process.cpuUsage(before).user / 1e6;
}

/** The condition ValidationSucceeded of a pool, and why. */
async function readiness(name: string): Promise<string> {
  const pool = await world.find(nodePoolKind as ResourceType<NodePool>, name);
  const found = pool?.status?.conditions?.find(({ type }) => type === 'ValidationSucceeded');
  return `${found?.status} ${found?.message}`;
}

/** Machines are those of NodeClaims, one each. */
async function machines(): Promise<string[]> {
  const claims = (await world.claims()).map(({ status }) => status?.providerID ?? '').sort();
  expect([...world.cloud.instances.keys()].sort()).toEqual(claims);
  return claims;
}

describe('an object of a megabyte', () => {
  const usual = async (): Promise<void> => {
    await world.apply(nodePool({ name: 'web' }));
    expect(await serve('first', 3)).toBeLessThan(10);
  };

  test('that is a NodePool holds up no other', async () => {
    const pool = nodePool({ name: 'huge' });
    const { template } = pool.spec;
    const values = Array.from({ length: 20_000 }, (_, i) => `value-${i}-${'x'.repeat(20)}`);
    const requirement = { key: 'example.com/huge', operator: 'In' as const, values };
    const requirements = [...(template.spec.requirements ?? []), requirement];
    const metadata = { annotations: kilobytes(400) };
    const spec = {
      ...pool.spec,
      weight: 100,
      template: { ...template, metadata, spec: { ...template.spec, requirements } },
    };
    expect(JSON.stringify(spec).length).toBeGreaterThan(1_000_000);
    await world.apply({ ...pool, spec });
    await usual();
    await machines();
    expect(await readiness('huge')).toMatch(/^False .*annotations: \d+ bytes are more than/);
    // With as much as it may have it is a pool like others.
    const metadataInBounds = { annotations: kilobytes(200) };
    await world.apply({ ...pool, spec: { ...spec, template: { ...spec.template, metadata: metadataInBounds } } });
    expect(await serve('second', 3)).toBeLessThan(10);
    expect((await readiness('huge')).split(' ')[0]).toBe('True');
    await machines();
  });

  test('that is a Node holds up no other', async () => {
    const images = Array.from({ length: 1000 }, (_, i) => ({ names: [`${'x'.repeat(1000)}${i}`], sizeBytes: 1 }));
    const metadata = { name: 'huge', annotations: kilobytes(200), labels: { huge: 'x' } };
    await world.apply({ apiVersion: 'v1', kind: 'Node', metadata, status: { images } });
    await usual();
    expect(await world.find(kinds.Node, 'huge')).toBeDefined();
  });

  test('that is a NodeClaim holds up no other, and ends as every NodeClaim does', async () => {
    const values = Array.from({ length: 30_000 }, (_, i) => `value-${i}-${'x'.repeat(20)}`);
    const requirements = [{ key: 'example.com/huge', operator: 'In' as const, values }];
    const claim = nodeClaim({ name: 'huge', spec: { requirements } });
    const [made] = await world.apply<[NodeClaim]>({
      ...claim,
      metadata: { ...claim.metadata, annotations: kilobytes(200) },
    });
    await usual();
    await world.delete(made);
    await world.advance(30 * minute);
    expect((await world.claims()).filter(({ metadata }) => metadata.name === 'huge')).toEqual([]);
    await machines();
  });

  test('that is a pod holds up no other', async () => {
    const env = Array.from({ length: 1000 }, (_, i) => ({ name: `K${i}`, value: 'x'.repeat(1000) }));
    const pods = ['a', 'b', 'c'].map(
      (name): Pod => ({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace: 'default', annotations: kilobytes(200) },
        spec: { containers: [{ name: 'main', image: 'pause', env, resources: { requests: { cpu: '1' } } }] },
      }),
    );
    await world.apply(...pods);
    await usual();
    expect(running()).toBe(6);
  });
});

describe('a Node that lies about its size', () => {
  /** A pool whose nodes nobody replaces meanwhile. */
  const still = (name: string, spec: Partial<NodePool['spec']> = {}): NodePool =>
    nodePool({ name, spec: { disruption: { budgets: [{ nodes: '0' }] } as never, ...spec } });

  /** One machine with a pod on it, whose Node says that it is a thousand times as large, over and over. */
  async function liar(): Promise<Node> {
    await world.apply(still('web', { limits: { cpu: '100' } }));
    await serve('first', 1);
    const [node] = await world.nodes();
    await lie(node!);
    return node!;
  }

  async function lie({ metadata, status }: Node): Promise<void> {
    const room = { ...status?.allocatable, cpu: '1000', memory: '4000Gi', pods: '1000' };
    await world.workload
      .resource(kinds.Node)
      .patchStatus(metadata.name!, { status: { capacity: room, allocatable: room } } as never);
    await world.settle();
  }

  test('gets the pods that kube-scheduler believes it has room for, and no machine is made or lost for it', async () => {
    const node = await liar();
    const launched = world.cloud.launched.length;
    await serve('more', 20);
    for (let i = 0; i < 60; i++) {
      await lie(node);
      await world.advance(minute);
    }
    expect([running(), world.cloud.launched.length]).toEqual([21, launched]);
    expect(await machines()).toEqual([node.spec?.providerID]);
  });

  test('takes up the limits of its own pool, and of no other', async () => {
    const node = await liar();
    await world.apply(still('other'));
    const apart = { labelSelector: { matchLabels: { app: 'first' } }, topologyKey: 'kubernetes.io/hostname' };
    const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [apart] } };
    const podOf = (pool: string): Pod => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: pool, namespace: 'default', labels: { app: pool } },
      spec: {
        nodeSelector: { 'karpenter.sh/nodepool': pool },
        affinity,
        containers: [{ name: 'main', image: 'pause', resources: { requests: { cpu: '1' } } }],
      },
    });
    await world.apply(podOf('web'), podOf('other'));
    for (let i = 0; i < 40; i++) {
      await lie(node);
      await world.advance(minute / 4);
    }
    expect([running('first'), running('other'), running('web')]).toEqual([1, 1, 0]);
    await machines();
  });
});

test('a Node that names a machine before its own Node comes takes its place, until somebody deletes it', async () => {
  world.cloud.nodesAppear = false;
  await world.apply(
    nodePool({ name: 'web', spec: { disruption: { consolidateAfter: 'Never' } } }),
    deployment('first', 1),
  );
  await world.until(() => world.cloud.launched.length === 1, 20 * minute);
  await world.advance(minute);
  const [providerID] = world.cloud.launched as [string];
  const status = {
    capacity: { cpu: '4', memory: '8Gi', pods: '10' },
    allocatable: { cpu: '4', memory: '8Gi', pods: '10' },
    conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' }],
  };
  await world.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'first-come' }, spec: { providerID }, status });
  await world.advance(minute);
  await world.cloud.appear(providerID);
  world.cloud.nodesAppear = true;
  await world.advance(30 * minute);
  await machines();
  await world.workload.resource(kinds.Node).delete('first-come');
  await world.until(() => running('first') === 1, 60 * minute);
  await world.advance(30 * minute);
  expect(await machines()).toHaveLength(1);
});

test('nonsense in annotations and labels that mean something to us stops nothing', async () => {
  const nonsense = ['', 'NaN', '-1', '99999999999999999999h', '{"a":', '\u0000', '💥', 'x'.repeat(10_000)];
  const keys = Object.values(annotations).filter((key) => key !== annotations.doNotDisrupt);
  await world.apply(nodePool({ name: 'web' }));
  for (const [i, value] of nonsense.entries()) {
    const all = Object.fromEntries(keys.map((key) => [key, value]));
    await world.apply(deployment('first', i + 1));
    await world.until(() => running('first') === i + 1, 60 * minute);
    for (const type of [kinds.Node, kinds.Pod, nodeClaimKind, nodePoolKind] as ResourceType<KubeObject>[]) {
      for (const { metadata } of await world.list(type)) {
        const where = metadata.namespace ? { namespace: metadata.namespace } : {};
        await world.workload.resource(type).patch(metadata.name!, { metadata: { annotations: all } }, where);
      }
    }
    await world.advance(10 * minute);
  }
  await world.workload.resource(kinds.Deployment).delete('first', { namespace: 'default' });
  await world.until(() => world.cloud.instances.size === 0, 60 * minute);
  await world.advance(minute);
  expect(await world.claims()).toEqual([]);
});
