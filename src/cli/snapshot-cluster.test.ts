// SPDX-License-Identifier: Apache-2.0
// A snapshot is what the controller sees: solving it gives the NodeClaims that the controller then creates.
import { expect, test } from 'vitest';
import { labels } from '../api/labels.ts';
import { nodeClaimKind } from '../api/node-claim.ts';
import { nodePoolKind } from '../api/node-pool.ts';
import { VirtualClock } from '../base/clock.ts';
import { SeededRandom } from '../base/random.ts';
import { EmbeddedCluster, systemNode } from '../embedded/cluster.ts';
import { type Deployment, kinds } from '../kube/kinds.ts';
import { Cluster, Clusters } from '../runtime/clusters.ts';
import { silentLogger } from '../runtime/logging.ts';
import { defaultSettings } from '../runtime/settings.ts';
import type { Problem, SolveResult } from '../scheduling/problem.ts';
import { solve } from '../scheduling/solve.ts';
import { deployment } from './demo/objects.ts';
import { drive } from './demo/pace.ts';
import { startEmbeddedAutoscaler } from './embedded-autoscaler.ts';
import { programSettings } from './program-settings.ts';
import { snapshotCluster } from './snapshot-cluster.ts';

const spread = (app: string, topologyKey: string) => ({
  topologySpreadConstraints: [
    { maxSkew: 1, topologyKey, whenUnsatisfiable: 'DoNotSchedule', labelSelector: { matchLabels: { app } } },
  ],
});

async function begin() {
  const clock = new VirtualClock();
  const random = new SeededRandom(5);
  const baseNodes = [systemNode('system-1', 'test-zone-a')];
  const cluster = await EmbeddedCluster.start({ clock, random, baseNodes, heartbeatMs: 0 });
  const failures: unknown[] = [];
  const autoscaler = await startEmbeddedAutoscaler({
    cluster,
    clock,
    random,
    log: { write: () => undefined },
    node: 'system-1',
    onFailure: (error) => failures.push(error),
  });
  const client = cluster.client();
  await clock.step(2000);
  const settings = defaultSettings(programSettings);
  const warnings: string[] = [];
  const snapshot = async (): Promise<Problem> => {
    const stop = new AbortController();
    const transport = cluster.transport();
    const one = new Cluster({ name: 'karpenter', transport, clock, random: new SeededRandom(1), log: silentLogger });
    const problem = await drive(
      clock,
      snapshotCluster({
        clusters: new Clusters(one, one),
        registry: autoscaler.registry,
        settings,
        clock,
        timeoutMs: 1000,
        warn: (message) => warnings.push(message),
        signal: stop.signal,
      }),
    );
    stop.abort(new Error('done'));
    await one.close();
    // As a file, and back.
    return JSON.parse(JSON.stringify(problem)) as Problem;
  };
  const end = async (): Promise<void> => {
    expect(failures).toEqual([]);
    await drive(clock, autoscaler.stop());
    await drive(clock, cluster.close());
  };
  return { clock, client, snapshot, warnings, end };
}

/** What was decided, whatever the names: which machines would do, for what, with which pods in mind. */
function planned({ newNodeClaims }: SolveResult): string[] {
  return newNodeClaims
    .map(({ requests, instanceTypes, requirements }) => decision(requests, instanceTypes, requirements))
    .sort();
}

function decision(
  requests: Readonly<Record<string, unknown>>,
  types: readonly string[],
  requirements: readonly { key: string; values?: readonly string[] | undefined }[],
): string {
  const of = (key: string): readonly string[] =>
    requirements.find((requirement) => requirement.key === key)?.values?.toSorted() ?? [];
  const amounts = Object.entries(requests).toSorted(([a], [b]) => (a < b ? -1 : 1));
  // A NodeClaim names the capacity types also where the plan leaves them open.
  const capacityTypes = of(labels.capacityType).join() || 'on-demand,spot';
  return JSON.stringify([amounts, types.toSorted(), of(labels.zone), capacityTypes]);
}

test('solving it gives what the controller then does, also with nodes and other pods in place', async () => {
  const { clock, client, snapshot, warnings, end } = await begin();
  const deploy = (object: Deployment) => client.resource(kinds.Deployment).create(object);
  const known = new Set<string>();
  const created = async (): Promise<string[]> => {
    const { items } = await client.resource(nodeClaimKind).list();
    const fresh = items.filter(({ metadata }) => !known.has(metadata.name!));
    for (const { metadata } of items) known.add(metadata.name!);
    return fresh
      .map(({ spec }) => {
        const types = spec.requirements.find(({ key }) => key === labels.instanceType)?.values ?? [];
        return decision(spec.resources?.requests ?? {}, types, spec.requirements);
      })
      .sort();
  };
  const rounds: [string, () => Promise<unknown>, number][] = [
    ['one shape', () => deploy(deployment('a', { replicas: 7, requests: { cpu: '1', memory: '1Gi' } })), 1],
    [
      'spread over zones and hosts, beside what is there',
      async () => {
        await deploy(deployment('b', { replicas: 6, requests: { cpu: '700m' }, spec: spread('b', labels.zone) }));
        await deploy(deployment('c', { replicas: 3, requests: { cpu: '3' }, spec: spread('c', labels.hostname) }));
      },
      4,
    ],
    [
      'one that nobody can host, one on demand',
      async () => {
        await deploy(deployment('d', { replicas: 1, requests: { cpu: '5000' } }));
        const onDemand = { nodeSelector: { [labels.capacityType]: 'on-demand' } };
        await deploy(deployment('e', { replicas: 4, requests: { memory: '6Gi' }, spec: onDemand }));
      },
      1,
    ],
  ];
  for (const [name, act, least] of rounds) {
    await act();
    // Pods are there, and the batch is still open.
    await clock.step(300);
    const problem = await snapshot();
    await clock.step(5000);
    const decided = await created();
    expect(decided.length, name).toBeGreaterThanOrEqual(least);
    expect(planned(solve(problem)), name).toEqual(decided);
    await clock.step(5000);
  }
  expect(warnings).toEqual([]);
  await end();
});

test('what cannot buy now is left out, and the reader told why', async () => {
  const { clock, client, snapshot, warnings, end } = await begin();
  const [pool] = (await client.resource(nodePoolKind).list()).items;
  const template = structuredClone(pool!.spec.template);
  const add = (name: string, ref: object) =>
    client.resource(nodePoolKind).create({
      ...pool!,
      metadata: { name },
      spec: { template: { ...template, spec: { ...template.spec, nodeClassRef: ref as never } } },
    });
  await add('elsewhere', { group: 'karpenter.k8s.linode', kind: 'LinodeNodeClass', name: 'default' });
  await add('early', { ...template.spec.nodeClassRef, name: 'not-there' });
  await clock.step(2000);
  const { nodePools } = await snapshot();
  expect(nodePools.map(({ metadata }) => metadata.name)).toEqual(['kwok']);
  expect(warnings.toSorted()).toEqual([
    'NodePool early is left out: it is not ready',
    'NodePool elsewhere is left out: no provider serves LinodeNodeClass.karpenter.k8s.linode',
  ]);
  await end();
});
