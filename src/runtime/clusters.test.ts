// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { settle, VirtualClock } from '../base/clock.ts';
import { SeededRandom } from '../base/random.ts';
import { kinds } from '../kube/kinds.ts';
import { MemoryApi } from '../kube/testing/memory-api.ts';
import { Cluster, Clusters, ownerReference } from './clusters.ts';
import { RecordingLogger } from './logging.ts';
import { Metrics } from './metrics.ts';

function makeCluster(name = 'main', options: { qps?: number; burst?: number } = {}) {
  const clock = new VirtualClock();
  const api = new MemoryApi();
  const metrics = new Metrics();
  const cluster = new Cluster({
    name,
    transport: api,
    clock,
    random: new SeededRandom(1),
    log: new RecordingLogger(),
    metrics,
    ...options,
  });
  return { clock, api, cluster, metrics };
}

const pod = (name: string) => ({ metadata: { name, namespace: 'default' }, spec: { containers: [] } });

describe('informers of a cluster', () => {
  test('are shared by all who ask for the same, and apart for others', () => {
    const { informers } = makeCluster().cluster;
    expect(informers.get(kinds.Pod)).toBe(informers.get(kinds.Pod));
    expect(informers.get(kinds.Pod)).not.toBe(informers.get(kinds.Node));
    expect(informers.get(kinds.Pod)).not.toBe(informers.get(kinds.Pod, { labelSelector: 'a=b' }));
    expect(informers.get(kinds.Pod)).not.toBe(informers.get(kinds.Pod, { namespace: 'x' }));
  });

  test('follow the cluster from its start, also those that come later', async () => {
    const { cluster } = makeCluster();
    await cluster.client.resource(kinds.Pod).create(pod('a'));
    const early = cluster.informers.get(kinds.Pod);
    await settle();
    expect(early.hasSynced).toBe(false);
    expect(cluster.informers.unsynced).toEqual(['Pod']);
    cluster.start(new AbortController().signal);
    const late = cluster.informers.get(kinds.Node);
    await cluster.informers.waitForSync(new AbortController().signal);
    expect(early.get('default/a')?.metadata.uid).toBe('uid-1');
    expect(late.hasSynced).toBe(true);
    expect(cluster.informers.unsynced).toEqual([]);
    await cluster.close();
  });

  test('stop when the last share is given back, and start anew when asked again', async () => {
    const { api, cluster } = makeCluster();
    cluster.start(new AbortController().signal);
    const first = cluster.informers.acquire(kinds.Pod);
    const second = cluster.informers.acquire(kinds.Pod);
    await settle();
    first.release();
    first.release();
    expect(api.watches.some((watch) => !watch.closed)).toBe(true);
    second.release();
    await first.informer.stopped();
    expect(api.watches.some((watch) => !watch.closed)).toBe(false);
    expect(cluster.informers.get(kinds.Pod)).not.toBe(first.informer);
    await cluster.close();
  });

  test('leave nothing behind when the cluster is closed', async () => {
    const { api, clock, cluster } = makeCluster();
    cluster.start(new AbortController().signal);
    cluster.informers.get(kinds.Pod);
    await settle();
    await cluster.close();
    expect(api.watches.some((watch) => !watch.closed)).toBe(false);
    expect(clock.pendingTimers).toBe(0);
  });
});

test('requests are counted, and throttled when a rate is given', async () => {
  const { clock, cluster, metrics } = makeCluster('main', { qps: 10, burst: 1 });
  const pods = cluster.client.resource(kinds.Pod);
  let done = 0;
  const all = Promise.all(['a', 'b', 'c'].map((name) => pods.create(pod(name)).then(() => done++)));
  await settle();
  expect(done).toBe(1);
  await clock.step(200);
  await all;
  expect(await metrics.value('client_go_request_total', { code: '201', method: 'POST' })).toBe(3);
});

describe('the clusters of a program', () => {
  test('are one by default, and one object under both names', () => {
    const { cluster } = makeCluster();
    const clusters = new Clusters(cluster);
    expect(clusters.karpenter).toBe(clusters.workload);
    expect(clusters.all).toEqual([cluster]);
    expect(clusters.get('workload')).toBe(cluster);
  });

  test('can be apart, with more from providers', () => {
    const [karpenter, workload, hub] = ['karpenter', 'workload', 'hub'].map((name) => makeCluster(name).cluster);
    const clusters = new Clusters(karpenter!, workload);
    clusters.add('hub', hub!);
    expect(clusters.all).toEqual([karpenter, workload, hub]);
    expect(clusters.get('hub')).toBe(hub);
    expect(() => clusters.add('workload', hub!)).toThrow('there is a cluster named workload already');
    expect(() => clusters.get('moon')).toThrow('there is no cluster named moon; there are karpenter, workload, hub');
  });
});

describe('an owner reference', () => {
  const owner = { apiVersion: 'karpenter.sh/v1', kind: 'NodeClaim', metadata: { name: 'n-1', uid: 'u-1' } };

  test('names its owner within a cluster', () => {
    const { cluster } = makeCluster();
    expect(ownerReference({ cluster, object: owner }, cluster, { blockOwnerDeletion: true })).toEqual({
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodeClaim',
      name: 'n-1',
      uid: 'u-1',
      blockOwnerDeletion: true,
    });
  });

  test('never crosses clusters', () => {
    const [one, other] = [makeCluster('karpenter').cluster, makeCluster('workload').cluster];
    expect(() => ownerReference({ cluster: one, object: owner }, other)).toThrow(
      'NodeClaim n-1 of cluster karpenter cannot own an object of cluster workload',
    );
  });

  test('needs an owner that exists', () => {
    const { cluster } = makeCluster();
    expect(() => ownerReference({ cluster, object: { ...owner, metadata: { name: 'n-1' } } }, cluster)).toThrow('uid');
  });
});
