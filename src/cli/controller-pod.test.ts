// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { VirtualClock } from '../base/clock.ts';
import { SeededRandom } from '../base/random.ts';
import { EmbeddedCluster } from '../embedded/cluster.ts';
import { LogBuffer } from '../embedded/logs/log-buffer.ts';
import type { KubeClient } from '../kube/client.ts';
import { kinds, type Pod } from '../kube/kinds.ts';
import { silent } from '../kube/log.ts';
import { controllerLogs, keepControllerPod } from './controller-pod.ts';
import { drive } from './demo/pace.ts';

const namespace = 'kube-system';
let clock: VirtualClock;
let cluster: EmbeddedCluster;
let client: KubeClient;
let log: LogBuffer;
let letGo: () => Promise<void>;

beforeEach(async () => {
  clock = new VirtualClock();
  log = new LogBuffer({ now: () => clock.now(), maxBytes: 1000 });
  const random = new SeededRandom(1);
  cluster = await EmbeddedCluster.start({ clock, random, heartbeatMs: 0, crds: [], logs: controllerLogs(log) });
  client = cluster.client();
  letGo = await keepControllerPod({ client, clock, log: silent, node: 'base-1' });
  await clock.step(5000);
});
afterEach(async () => {
  await drive(clock, letGo());
  await drive(clock, cluster.close());
});

const found = async (): Promise<Pod | undefined> =>
  (await client.resource(kinds.Pod).list({ namespace, fieldSelector: 'metadata.name=karpenter' })).items[0];

async function text(): Promise<string> {
  const path = `/api/v1/namespaces/${namespace}/pods/karpenter/log`;
  const { status, body } = await cluster.transport().request({ method: 'GET', path });
  expect(status).toBe(200);
  return String(body);
}

describe("the controller's pod", () => {
  test('comes back when it is deleted, with all that was logged before', async () => {
    log.write('{"message":"before"}\n');
    const first = await found();
    expect(first!.status!.phase).toBe('Running');
    for (const options of [{ gracePeriodSeconds: 0 }, {}]) {
      const before = await found();
      await client.resource(kinds.Pod).delete('karpenter', { namespace, ...options });
      await clock.step(60_000);
      const after = await found();
      expect(after!.metadata.uid).not.toBe(before!.metadata.uid);
      expect(after).toMatchObject({ spec: { nodeName: 'base-1' }, status: { phase: 'Running' } });
    }
    log.write('{"message":"after"}\n');
    expect(await text()).toBe('{"message":"before"}\n{"message":"after"}\n');
  });

  test('moves when its node is gone, and waits when there is no other', async () => {
    const nodes = client.resource(kinds.Node);
    await nodes.delete('base-1');
    await clock.step(300_000);
    expect((await found())!.spec.nodeName).toBe('base-2');
    const node = await nodes.get('base-2');
    await nodes.delete('base-2');
    await clock.step(300_000);
    expect(await found()).toBeUndefined();
    const { resourceVersion: _, uid: _uid, ...metadata } = node.metadata;
    await nodes.create({ ...node, metadata });
    await clock.step(10_000);
    expect((await found())!.status!.phase).toBe('Running');
  });

  test('stays away once nobody keeps it', async () => {
    await drive(clock, letGo());
    await client.resource(kinds.Pod).delete('karpenter', { namespace });
    await clock.step(60_000);
    expect(await found()).toBeUndefined();
  });
});
