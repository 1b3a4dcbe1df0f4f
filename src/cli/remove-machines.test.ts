// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, expect, test } from 'vitest';
import { allCrds } from '../api/crd.ts';
import { type NodeClaim, nodeClaimKind } from '../api/node-claim.ts';
import { type NodePool, nodePoolKind } from '../api/node-pool.ts';
import { VirtualClock } from '../base/clock.ts';
import { SeededRandom } from '../base/random.ts';
import { ApiServer } from '../embedded/api-server.ts';
import { KubeClient } from '../kube/client.ts';
import { kinds } from '../kube/kinds.ts';
import { type CleanupOptions, cleanUp } from './remove-machines.ts';

let clock: VirtualClock;
let server: ApiServer;
let client: KubeClient;
let said: string[];

beforeEach(() => {
  clock = new VirtualClock();
  server = new ApiServer({ clock, random: new SeededRandom(1) });
  client = new KubeClient({ transport: server.transport(), clock, fieldManager: 'test' });
  said = [];
});
afterEach(() => server.close());

const nodeClassRef = { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' };

async function furnish(): Promise<void> {
  for (const crd of allCrds()) await client.resource(kinds.CustomResourceDefinition).create(crd as never);
  await client.resource(nodePoolKind).create({
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: 'default' },
    spec: { template: { spec: { nodeClassRef, requirements: [] } } },
  } as NodePool);
  for (const name of ['a', 'b']) await claim(name);
}

function claim(name: string): Promise<NodeClaim> {
  return client.resource(nodeClaimKind).create({
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name, finalizers: ['karpenter.sh/termination'] },
    spec: { nodeClassRef, requirements: [] },
  } as NodeClaim);
}

/** What the controller does once a machine is gone. */
async function letGo(name: string): Promise<void> {
  await client.resource(nodeClaimKind).patch(name, { metadata: { finalizers: null } });
}

function run(options: Partial<CleanupOptions> = {}) {
  const { signal } = new AbortController();
  const tell = (line: string): void => void said.push(line);
  const cleaning = cleanUp({ client, clock, timeoutMs: 600_000, dryRun: false, tell, signal, ...options });
  return clock.finish(cleaning, 700_000);
}

async function there(): Promise<string[]> {
  const [pools, claims] = [await client.resource(nodePoolKind).list(), await client.resource(nodeClaimKind).list()];
  return [...pools.items, ...claims.items].map(({ metadata }) => metadata.name ?? '');
}

test('NodePools and NodeClaims are deleted, and it waits until the last machine is gone', async () => {
  await furnish();
  clock.after(30_000, () => void letGo('a'));
  clock.after(90_000, () => void letGo('b'));
  const started = clock.monotonic();
  const report = await run();
  expect(report).toMatchObject({ done: true, nodePools: ['default'], nodeClaims: ['a', 'b'], left: [] });
  expect(clock.monotonic() - started).toBeGreaterThanOrEqual(90_000);
  expect(await there()).toEqual([]);
  expect(said[0]).toMatch(/^1 NodePools and 2 NodeClaims left: a /);
  expect(said.some((line) => line.startsWith('0 NodePools and 1 NodeClaims left: b (waits for the controller)'))).toBe(
    true,
  );
});

test('what the controller had begun to buy meanwhile goes as well', async () => {
  await furnish();
  for (const name of ['a', 'b']) clock.after(10_000, () => void letGo(name));
  clock.after(5000, () => void claim('late'));
  clock.after(40_000, () => void letGo('late'));
  expect(await run()).toMatchObject({ done: true, nodeClaims: ['a', 'b', 'late'] });
  expect(await there()).toEqual([]);
});

test('what does not go in time is named, with the reason', async () => {
  await furnish();
  clock.after(10_000, () => void letGo('a'));
  const condition = { type: 'Drained', status: 'False', reason: 'Draining', message: 'pod default/db-0 has a budget' };
  const conditions = [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }];
  await client.resource(nodeClaimKind).patchStatus('b', { status: { conditions } });
  const report = await run({ timeoutMs: 120_000 });
  expect(report).toMatchObject({ done: false, seconds: expect.toSatisfy((s: number) => s > 100 && s <= 120) });
  expect(report.left).toEqual([
    { kind: 'NodeClaim', name: 'b', why: 'its node is drained: pod default/db-0 has a budget' },
  ]);
});

test('a dry run changes nothing', async () => {
  await furnish();
  expect(await run({ dryRun: true })).toMatchObject({ dryRun: true, nodePools: ['default'], nodeClaims: ['a', 'b'] });
  expect(await there()).toEqual(['default', 'a', 'b']);
});

test('a cluster that does not know NodePools has nothing to clean up', async () => {
  expect(await run()).toMatchObject({ done: true, nodePools: [], nodeClaims: [] });
});

test('an API server that fails for a while is asked again', async () => {
  await furnish();
  for (const name of ['a', 'b']) await letGo(name);
  const transport = server.transport();
  let fails = 3;
  const flaky = new KubeClient({
    transport: {
      ...transport,
      request: (request) =>
        fails-- > 0 ? Promise.reject(new Error('connection refused')) : transport.request(request),
    },
    clock,
    fieldManager: 'test',
  });
  expect(await run({ client: flaky })).toMatchObject({ done: true });
  expect(said.some((line) => line.startsWith('trying again'))).toBe(true);
});
