// SPDX-License-Identifier: Apache-2.0
// Our client against a real API server: what it promises must hold where it matters.
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { tool } from '../../hack/tools/tools.ts';
import { RealClock } from '../../src/base/clock.ts';
import { SystemRandom } from '../../src/base/random.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { machineIo } from '../../src/kube/credential-io.ts';
import { HttpTransport } from '../../src/kube/http-transport.ts';
import { Informer } from '../../src/kube/informer.ts';
import { type ConfigMap, kinds } from '../../src/kube/kinds.ts';
import { type ClusterConnection, findConnection } from '../../src/kube/kubeconfig.ts';
import { LeaderElector } from '../../src/kube/lease.ts';
import { keyOf } from '../../src/kube/object.ts';
import { clientSuite, eventually } from '../conformance/kube-client/suite.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { freePort, RunningProgram } from './processes.ts';

const clock = new RealClock();
let plane: ControlPlane;
let connection: ClusterConnection;
let client: KubeClient;

beforeAll(async () => {
  plane = await startControlPlane();
  connection = findConnection({ path: plane.kubeconfig, env: {}, homeDirectory: '/', io: machineIo({}, false), clock });
  client = new KubeClient({
    transport: new HttpTransport({ ...connection, userAgent: 'karpenter-test' }),
    fieldManager: 'test',
  });
}, 120_000);

afterAll(async () => {
  await client?.close();
  await plane?.stop();
});

clientSuite(() => client);

test('an informer finds a kind once its definition is there', async () => {
  const type = { group: 'example.com', version: 'v1', kind: 'Thing', plural: 'things', namespaced: false } as const;
  const stop = new AbortController();
  const informer = new Informer({ client, type, tolerateMissing: true });
  informer.start(stop.signal);
  await informer.waitForSync();
  await client.resource(kinds.CustomResourceDefinition).create({
    metadata: { name: 'things.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Cluster',
      names: { kind: 'Thing', plural: 'things' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
    },
  });
  await eventually(async () => expect(await client.serves(type)).toBe(true));
  await client.resource(type).create({ metadata: { name: 'one' } });
  const deadline = clock.monotonic() + 20_000;
  while (informer.size === 0 && clock.monotonic() < deadline) await clock.sleep(100);
  expect(informer.list().map(keyOf)).toEqual(['one']);
  stop.abort();
}, 60_000);

test('an informer stays in step over a line that breaks all the time', async () => {
  const server = new URL(connection.server);
  const sockets = new Set<Socket>();
  const line = createServer((near) => {
    const far = connect(Number(server.port), server.hostname);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.pipe(to);
      from.on('error', () => to.destroy()).on('close', () => to.destroy());
    }
  });
  const port = await freePort();
  line.listen(port, '127.0.0.1');
  const shaky = new KubeClient({
    transport: new HttpTransport({ ...connection, server: `https://127.0.0.1:${port}`, insecureSkipTlsVerify: true }),
  });
  const stop = new AbortController();
  const informer = new Informer({
    client: shaky,
    type: kinds.ConfigMap,
    namespace: 'default',
    labelSelector: 'set=shaky',
  });
  const mirror = new Set<string>();
  informer.addHandler({
    added: (map) => mirror.add(keyOf(map)),
    deleted: (map) => expect(mirror.delete(keyOf(map))).toBe(true),
  });
  informer.start(stop.signal);
  const maps = client.resource(kinds.ConfigMap);
  for (let i = 0; i < 60; i++) {
    await maps.create({ metadata: { name: `shaky-${i}`, namespace: 'default', labels: { set: 'shaky' } } });
    if (i % 3 === 0) await maps.delete(`shaky-${i}`, { namespace: 'default' });
    if (i % 10 === 5) {
      for (const socket of sockets) socket.destroy();
      sockets.clear();
    }
    await clock.sleep(20);
  }
  await eventually(async () => {
    const truth = await maps.list({ namespace: 'default', labelSelector: 'set=shaky' });
    const state = (maps: readonly ConfigMap[]) =>
      new Map(maps.map((map) => [keyOf(map), map.metadata.resourceVersion]));
    expect(state(informer.list())).toEqual(state(truth.items));
    expect(truth.items.length).toBe(40);
  });
  expect(mirror.size).toBe(40);
  stop.abort();
  await shaky.close();
  line.close();
}, 60_000);

test('shares an election with client-go: each waits for the other, and takes over', async () => {
  const seen: string[] = [];
  const election = { name: 'shared-election', namespace: 'kube-system' };
  const candidate = () => {
    const stop = new AbortController();
    const elector = new LeaderElector({
      client,
      ...election,
      identity: 'ours',
      clock,
      random: new SystemRandom(),
      retryPeriodMs: 500,
      onNewLeader: (identity) => seen.push(identity.replace(/_.*/, '')),
    });
    return { elector, stop, done: elector.run(stop.signal) };
  };
  const first = candidate();
  await eventually(() => expect(first.elector.isLeader).toBe(true));
  const folder = mkdtempSync(join(tmpdir(), 'karpenter-election-'));
  const scheduler = new RunningProgram('kube-scheduler', await tool('kube-scheduler'), [
    `--kubeconfig=${plane.kubeconfig}`,
    '--leader-elect=true',
    `--leader-elect-resource-name=${election.name}`,
    `--leader-elect-resource-namespace=${election.namespace}`,
    '--leader-elect-retry-period=500ms',
    `--secure-port=${await freePort()}`,
    `--cert-dir=${folder}`,
  ]);
  try {
    const holder = async () =>
      (await client.resource(kinds.Lease).get(election.name, { namespace: election.namespace })).spec;
    await scheduler.until(() => scheduler.output.includes('Attempting to acquire leader lease'));
    await clock.sleep(2000);
    expect(await holder()).toMatchObject({ holderIdentity: 'ours', leaseTransitions: 0 });

    first.stop.abort();
    await first.done;
    await scheduler.until(() => scheduler.output.includes('Successfully acquired lease'));
    expect(await holder()).toMatchObject({ leaseTransitions: 1 });
    const second = candidate();
    await clock.sleep(2000);
    expect(second.elector.isLeader).toBe(false);
    expect(second.elector.leader).not.toBe('ours');

    // It dies without a word: its lease has to run out.
    await scheduler.stop('SIGKILL');
    const deadline = clock.monotonic() + 25_000;
    while (!second.elector.isLeader && clock.monotonic() < deadline) await clock.sleep(200);
    expect(await holder()).toMatchObject({ holderIdentity: 'ours', leaseTransitions: 2 });
    expect(seen).toEqual(['ours', hostname(), 'ours']);
    second.stop.abort();
    await second.done;
  } finally {
    await scheduler.stop('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  }
}, 120_000);
