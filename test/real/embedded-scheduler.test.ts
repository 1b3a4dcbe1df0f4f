// SPDX-License-Identifier: Apache-2.0
// The embedded scheduler against the real kube-scheduler 1.36: the same verdict, the same message, and for a pod that
// is placed one of the nodes that we would have chosen.
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { tool } from '../../hack/tools/tools.ts';
import { RealClock } from '../../src/base/clock.ts';
import { SeededRandom } from '../../src/base/random.ts';
import { clusterState, noLookups } from '../../src/embedded/scheduler/cluster-state.ts';
import { podInfo } from '../../src/embedded/scheduler/pod-info.ts';
import { schedulePod } from '../../src/embedded/scheduler/schedule-pod.ts';
import { RandomPlacements } from '../../src/embedded/testing/random-placements.ts';
import { KubeClient } from '../../src/kube/client.ts';
import { HttpTransport } from '../../src/kube/http-transport.ts';
import { kinds, type Pod } from '../../src/kube/kinds.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { RunningProgram } from './processes.ts';

const clock = new RealClock();
const nodeCount = 12;
const runningCount = 22;
const podCount = 150;

let plane: ControlPlane;
let scheduler: RunningProgram;
let client: KubeClient;

beforeAll(async () => {
  plane = await startControlPlane();
  scheduler = new RunningProgram('kube-scheduler', await tool('kube-scheduler'), [
    `--kubeconfig=${plane.kubeconfig}`,
    '--leader-elect=false',
    '--secure-port=0',
    '--kube-api-qps=500',
    '--kube-api-burst=500',
    `--cert-dir=${join(plane.kubeconfig, '..', 'scheduler')}`,
  ]);
  const headers = { authorization: 'Bearer test-admin-token' };
  client = new KubeClient({
    transport: new HttpTransport({ server: plane.url, headers, insecureSkipTlsVerify: true }),
    clock,
  });
}, 60_000);

afterAll(async () => {
  await client?.close();
  await scheduler?.stop();
  await plane?.stop();
});

/** What the real scheduler made of a pod: a node, or a message. */
async function realVerdict(pod: Pod): Promise<{ node: string } | { message: string }> {
  const { name, namespace } = pod.metadata;
  for (let tries = 0; tries < 1000; tries++) {
    const { spec, status } = await client.resource(kinds.Pod).get(name!, { namespace });
    if (spec.nodeName) return { node: spec.nodeName };
    const condition = status?.conditions?.find((c) => c.type === 'PodScheduled' && c.status === 'False');
    if (condition) return { message: condition.message ?? '' };
    await clock.sleep(10);
  }
  throw new Error(`the real scheduler did not look at ${namespace}/${name}`);
}

test(`${podCount} random pods get the real scheduler's verdict`, { timeout: 120_000 }, async () => {
  const random = new SeededRandom(2026);
  const placements = new RandomPlacements(random);
  const nodes = client.resource(kinds.Node);
  const pods = client.resource(kinds.Pod);
  for (let i = 0; i < nodeCount; i++) {
    const node = placements.node(`n${i}`);
    await nodes.create(node);
    // The API server taints a new node until its kubelet reports; there is none.
    await nodes.patch(`n${i}`, { spec: { taints: node.spec?.taints ?? null } });
  }
  const shop = { metadata: { name: 'shop', labels: { team: 'shop' } } };
  await client.resource(kinds.Namespace).create({ apiVersion: 'v1', kind: 'Namespace', ...shop });
  for (let i = 0; i < runningCount; i++) {
    const pod = placements.pod(`running-${i}`, 0.6);
    pod.spec.nodeName = `n${random.int(nodeCount)}`;
    await pods.create(pod);
  }
  const { items: namespaces } = await client.resource(kinds.Namespace).list();
  let placed = 0;
  let decisive = 0;
  for (let i = 0; i < podCount; i++) {
    const state = clusterState((await nodes.list()).items, (await pods.list()).items, {
      ...noLookups,
      namespaces: () => namespaces,
    });
    const pod = await pods.create(placements.pod(`new-${i}`));
    const verdict = await realVerdict(pod);
    const choices = new Set<string>();
    // Ties fall by chance: many seeds show all of them.
    for (let seed = 0; seed < 60; seed++) {
      const ours = schedulePod(podInfo(pod), state, new SeededRandom(seed));
      choices.add('node' in ours ? ours.node.name : ours.message);
    }
    const wanted = 'node' in verdict ? verdict.node : verdict.message;
    expect([...choices], JSON.stringify(pod.spec)).toContain(wanted);
    if ('node' in verdict) placed++;
    if (choices.size === 1) decisive++;
    if ('message' in verdict || random.next() < 0.7) {
      await pods.delete(pod.metadata.name!, { namespace: pod.metadata.namespace, gracePeriodSeconds: 0 });
    }
  }
  // A world in which all or none fit, or in which every node is as good as another, would prove nothing.
  expect(placed).toBeGreaterThan(podCount / 10);
  expect(podCount - placed).toBeGreaterThan(podCount / 10);
  expect(decisive).toBeGreaterThan(podCount / 2);
});
