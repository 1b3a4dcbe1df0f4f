// SPDX-License-Identifier: Apache-2.0
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { settle, VirtualClock } from '../base/clock.ts';
import { SeededRandom } from '../base/random.ts';
import { KubeClient } from '../kube/client.ts';
import { kinds, type Lease } from '../kube/kinds.ts';
import { MemoryApi } from '../kube/testing/memory-api.ts';
import { TransportError } from '../kube/transport-error.ts';
import { Cluster, Clusters } from './clusters.ts';
import { aborted, Controller } from './controller.ts';
import { candidateIdentity, leaseNamespace } from './leader.ts';
import { RecordingLogger } from './logging.ts';
import { cachesSynced, kindsServed, Manager, type ManagerOptions, type Runnable } from './manager.ts';
import { Metrics } from './metrics.ts';

const leasePath = '/apis/coordination.k8s.io/v1/namespaces/karpenter/leases/karpenter-leader-election';

function makeWorld(options: { elect?: boolean; hub?: boolean } & Partial<ManagerOptions> = {}) {
  const { elect = false, hub = false, ...rest } = options;
  const clock = new VirtualClock();
  const log = new RecordingLogger();
  const metrics = new Metrics();
  const api = new MemoryApi();
  const hubApi = new MemoryApi();
  const random = new SeededRandom(1);
  const cluster = new Cluster({ name: 'main', transport: api, clock, random, log, metrics });
  const clusters = new Clusters(cluster);
  if (hub) clusters.add('hub', new Cluster({ name: 'hub', transport: hubApi, clock, random, log, metrics }));
  const election = {
    client: new KubeClient({ transport: api, clock }),
    name: 'karpenter-leader-election',
    namespace: 'karpenter',
    identity: 'me',
    random,
  };
  const manager = new Manager({ clock, log, metrics, clusters, ...(elect ? { election } : {}), ...rest });
  const stop = new AbortController();
  const holder = (): string | undefined => (api.at(leasePath) as Lease | undefined)?.spec?.holderIdentity;
  return { clock, log, metrics, api, hubApi, cluster, clusters, manager, stop, holder };
}

/** Notes when it starts and stops. */
function probe(name: string, events: string[]): Runnable {
  return {
    name,
    async start(signal) {
      events.push(`${name} started`);
      await aborted(signal);
      events.push(`${name} stopped`);
    },
  };
}

/** The state of a promise without waiting for it. */
async function outcome(promise: Promise<unknown>): Promise<string> {
  await settle();
  return Promise.race([
    promise.then(
      () => 'resolved',
      (error: unknown) => (error as { code?: string }).code ?? String(error),
    ),
    settle().then(() => 'pending'),
  ]);
}

describe('a manager', () => {
  test('without an election starts everything, and stops it when asked', async () => {
    const { manager, stop, clock, log } = makeWorld();
    const events: string[] = [];
    manager.add(probe('a', events)).add(probe('b', events), { everyReplica: true });
    const run = manager.run(stop.signal);
    await settle();
    expect(events.toSorted()).toEqual(['a started', 'b started']);
    expect(manager.isLeader).toBe(true);
    stop.abort();
    await run;
    expect(events.slice(2).toSorted()).toEqual(['a stopped', 'b stopped']);
    expect(log.messages()).toEqual(['stopping', 'stopped']);
    expect(clock.pendingTimers).toBe(0);
  });

  test('fails as a whole when a part of it fails, after stopping the rest', async () => {
    const { manager, stop } = makeWorld();
    const events: string[] = [];
    manager.add(probe('a', events)).add({ name: 'broken', start: () => Promise.reject(new Error('no such socket')) });
    await expect(manager.run(stop.signal)).rejects.toThrow('running broken: no such socket');
    expect(events).toEqual(['a started', 'a stopped']);
  });

  test.each([true, false])('fails when a part throws at once (election: %s)', async (elect) => {
    const { manager, stop, holder } = makeWorld({ elect });
    manager.add({
      name: 'broken',
      start: () => {
        throw new Error('no such socket');
      },
    });
    await expect(manager.run(stop.signal)).rejects.toThrow('running broken: no such socket');
    expect(holder()).toBe(elect ? '' : undefined);
  });

  test('fails rather than hangs when the word of a lost lease cannot be told', async () => {
    const { api, clock, manager, stop } = makeWorld({
      elect: true,
      onLost: () => {
        throw new Error('cannot exit');
      },
    });
    const failed = expect(manager.run(stop.signal)).rejects.toMatchObject({ code: 'KRP_LEADERSHIP_LOST' });
    await clock.step(5000);
    api.answer = () => new TransportError('timeout', 'no answer');
    await clock.step(20_000);
    await failed;
  });

  test('gives up on what does not stop in time, and says what it is', async () => {
    const { clock, manager, stop } = makeWorld({ shutdownTimeoutMs: 5000 });
    manager.add({ name: 'stubborn', start: () => new Promise(() => undefined) });
    const run = manager.run(stop.signal);
    const failed = expect(run).rejects.toThrow('still running 5 s after the shutdown began: stubborn');
    await settle();
    stop.abort();
    await clock.step(5000);
    await failed;
  });

  test('does not start at all when it was asked to stop before', async () => {
    const { manager, stop } = makeWorld({ elect: true });
    stop.abort();
    const events: string[] = [];
    manager.add(probe('a', events));
    await manager.run(stop.signal);
    expect(events).toEqual([]);
  });

  test('starts a controller when its own caches are filled, whatever another cluster does', async () => {
    const { api, hubApi, clock, clusters, manager, stop } = makeWorld({ hub: true });
    hubApi.answer = () => new TransportError('refused', 'connection refused');
    const seen: string[] = [];
    const watching = (name: string, cluster: Cluster): Controller =>
      new Controller({
        name,
        clock,
        reconciler: { reconcile: async (key) => void seen.push(`${name} ${key}`) },
      }).watch(cluster.informers.get(kinds.Node));
    manager.add(watching('nodes', clusters.workload)).add(watching('machines', clusters.get('hub')));
    manager.readiness.add('caches', cachesSynced(clusters.workload));
    const run = manager.run(stop.signal);
    await clusters.workload.client.resource(kinds.Node).create({ metadata: { name: 'n-1' } });
    await clock.step(60_000);
    expect(seen).toEqual(['nodes n-1']);
    expect(await manager.readiness.run(stop.signal)).toEqual([
      { name: 'ping', failure: undefined },
      { name: 'shutdown', failure: undefined },
      { name: 'caches', failure: undefined },
    ]);
    hubApi.answer = (request) => hubApi.serve(request);
    await clusters
      .get('hub')
      .client.resource(kinds.Node)
      .create({ metadata: { name: 'm-1' } });
    await clock.step(60_000);
    expect(seen).toEqual(['nodes n-1', 'machines m-1']);
    stop.abort();
    await run;
    expect(clock.pendingTimers).toBe(0);
    expect(api.watches.filter((watch) => !watch.closed)).toEqual([]);
  });
});

describe('a manager with an election', () => {
  test('runs the leader part only once it holds the lease, and gives the lease back last', async () => {
    const { clock, holder, manager, metrics, stop } = makeWorld({ elect: true });
    const events: string[] = [];
    manager.add(probe('leader part', events)).add(probe('every part', events), { everyReplica: true });
    manager.add({
      name: 'slow',
      async start(signal) {
        await aborted(signal);
        await clock.sleep(3000);
        events.push(`slow stopped, lease held by ${holder()}`);
      },
    });
    const run = manager.run(stop.signal);
    await clock.step(100);
    expect(events).toEqual(['every part started', 'leader part started']);
    expect(holder()).toBe('me');
    expect(await metrics.value('leader_election_master_status', { name: 'karpenter-leader-election' })).toBe(1);
    stop.abort();
    await clock.step(3000);
    await run;
    expect(events.at(-1)).toBe('slow stopped, lease held by me');
    expect(holder()).toBe('');
    expect(await metrics.value('leader_election_master_status', { name: 'karpenter-leader-election' })).toBe(0);
  });

  test.each([
    [true, ['Node']],
    [false, []],
  ])('and warmup %s has these caches filled while another leads: %j', async (warmup, filled) => {
    const { api, clock, cluster, holder, manager, stop } = makeWorld({ elect: true, warmup });
    api.serve({
      method: 'POST',
      path: leasePath.slice(0, leasePath.lastIndexOf('/')),
      body: {
        metadata: { name: 'karpenter-leader-election', namespace: 'karpenter' },
        spec: { holderIdentity: 'other', leaseDurationSeconds: 15 },
      },
    });
    const nodes = cluster.informers.get(kinds.Node);
    const events: string[] = [];
    manager.add(probe('leader part', events));
    const run = manager.run(stop.signal);
    await clock.step(10_000);
    expect(nodes.hasSynced ? [nodes.type.kind] : []).toEqual(filled);
    expect(events).toEqual([]);
    expect(manager.isLeader).toBe(false);
    await clock.step(20_000);
    expect(holder()).toBe('me');
    expect(events).toEqual(['leader part started']);
    expect(nodes.hasSynced).toBe(true);
    stop.abort();
    await clock.step(100);
    await run;
  });

  test('stops waiting for the lease when it is asked to stop', async () => {
    const { api, manager, stop, clock, holder } = makeWorld({ elect: true });
    api.answer = () => new TransportError('refused', 'connection refused');
    const run = manager.run(stop.signal);
    await clock.step(60_000);
    expect(await outcome(run)).toBe('pending');
    stop.abort();
    expect(await outcome(run)).toBe('resolved');
    expect(holder()).toBeUndefined();
    expect(clock.pendingTimers).toBe(0);
  });

  test('ends at once when it loses the lease, and aborts what is running', async () => {
    const lost: string[] = [];
    const { api, clock, manager, stop } = makeWorld({ elect: true, onLost: (error) => lost.push(error.code) });
    let reason: unknown;
    const controller = new Controller({
      name: 'busy',
      clock,
      reconciler: {
        reconcile: async (_key, signal) => {
          await aborted(signal);
          reason = signal.reason;
        },
      },
    });
    controller.enqueue('a');
    manager.add(controller);
    const run = manager.run(stop.signal);
    const failed = expect(run).rejects.toMatchObject({ code: 'KRP_LEADERSHIP_LOST' });
    await clock.step(5000);
    expect(manager.isLeader).toBe(true);
    api.answer = () => new TransportError('timeout', 'no answer');
    await clock.step(20_000);
    await failed;
    expect(lost).toEqual(['KRP_LEADERSHIP_LOST']);
    expect(manager.isLeader).toBe(false);
    expect(reason).toMatchObject({ code: 'KRP_LEADERSHIP_LOST' });
  });
});

test('its servers answer on ports of their own, and no more after the stop', async () => {
  const { manager, stop, metrics } = makeWorld({ metricsPort: 0, healthPort: 0, host: '127.0.0.1' });
  metrics.gauge({ type: 'gauge', name: 'x', help: 'x', labels: [], stability: 'stable' }).set({}, 42);
  const run = manager.run(stop.signal);
  while (!manager.ports.health) await settle();
  const get = async (port: number | undefined, path: string): Promise<string> =>
    (await fetch(`http://127.0.0.1:${port}${path}`)).text();
  expect(await get(manager.ports.metrics, '/metrics')).toContain('x 42');
  expect(await get(manager.ports.health, '/healthz')).toBe('ok');
  expect(await get(manager.ports.health, '/readyz')).toBe('ok');
  stop.abort();
  await run;
  await expect(get(manager.ports.health, '/healthz')).rejects.toThrow();
});

test('a real process ends by itself when it is told to terminate, and hands the lease back', async () => {
  const child = spawn(process.execPath, [fileURLToPath(new URL('./testing/program.ts', import.meta.url))]);
  let output = '';
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    if (output === 'working\n') child.kill('SIGTERM');
  });
  const code = await new Promise((resolve) => child.on('exit', resolve));
  expect({ code, output }, errors).toEqual({ code: 0, output: 'working\nholder=""\n' });
  expect(errors).toContain('"signal":"SIGTERM","message":"shutting down"');
});

test('a port that is taken is an error that says which', async () => {
  const first = makeWorld({ healthPort: 0 });
  const run = first.manager.run(first.stop.signal);
  while (!first.manager.ports.health) await settle();
  const second = makeWorld({ healthPort: first.manager.ports.health, metricsPort: 0 });
  await expect(second.manager.run(second.stop.signal)).rejects.toThrow(
    `the health server cannot listen on port ${first.manager.ports.health}`,
  );
  first.stop.abort();
  await run;
});

test('readiness knows kinds that are not served', async () => {
  const { api, cluster } = makeWorld();
  const nodePools = { group: 'karpenter.sh', version: 'v1', kind: 'NodePool', plural: 'nodepools', namespaced: false };
  const check = kindsServed(cluster, [nodePools]);
  const signal = new AbortController().signal;
  api.answer = () => ({ status: 404, body: {} });
  await expect(check(signal)).rejects.toThrow('cluster main does not serve nodepools.karpenter.sh');
  api.answer = () => ({ status: 200, body: { resources: [{ name: 'nodepools' }] } });
  await check(signal);
});

describe('the namespace of the lease', () => {
  const none = { leaderElectionNamespace: '', systemNamespace: '' };

  test('is the flag, else the system namespace, else that of the pod', () => {
    const file = (): string => 'of-the-pod\n';
    expect(leaseNamespace({ leaderElectionNamespace: 'flag', systemNamespace: 'system' }, file)).toBe('flag');
    expect(leaseNamespace({ ...none, systemNamespace: 'system' }, file)).toBe('system');
    expect(leaseNamespace(none, file)).toBe('of-the-pod');
  });

  test('is an error outside a cluster that says which flag to set', () => {
    expect(() => leaseNamespace(none, () => undefined)).toThrow('set --leader-election-namespace');
  });
});

test('two candidates on one host are not the same', () => {
  const random = new SeededRandom(1);
  expect(candidateIdentity('host', random)).not.toBe(candidateIdentity('host', random));
});
