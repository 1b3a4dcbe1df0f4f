// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { allCrds } from '../../api/crd.ts';
import { kwokNodeClassKind } from '../../api/kwok-node-class.ts';
import { labels } from '../../api/labels.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import { settle, VirtualClock } from '../../base/clock.ts';
import { SeededRandom } from '../../base/random.ts';
import { isInsufficientCapacity, isNodeClaimNotFound, isNodeClassNotReady } from '../../cloud/errors.ts';
import type { InstanceType } from '../../cloud/provider.ts';
import { ApiServer } from '../../embedded/api-server.ts';
import { KubeClient } from '../../kube/client.ts';
import { kinds } from '../../kube/kinds.ts';
import { silentLogger } from '../../runtime/logging.ts';
import { defaultInstanceTypes } from './instance-types.ts';
import { KwokProvider } from './provider.ts';

const signal = new AbortController().signal;

async function world(options: { delay?: string; types?: readonly InstanceType[] } = {}) {
  const clock = new VirtualClock();
  const client = new KubeClient({
    transport: new ApiServer({ clock, random: new SeededRandom(1) }).transport(),
    clock,
    fieldManager: 'test',
  });
  for (const crd of allCrds()) {
    await client.request({
      method: 'POST',
      path: '/apis/apiextensions.k8s.io/v1/customresourcedefinitions',
      body: crd,
    });
  }
  await client.resource(kwokNodeClassKind).create({
    apiVersion: 'karpenter.kwok.sh/v1alpha1',
    kind: 'KWOKNodeClass',
    metadata: { name: 'default' },
    spec: options.delay ? { nodeRegistrationDelay: options.delay } : {},
  });
  const { types } = options;
  const start = (): KwokProvider =>
    new KwokProvider({ karpenter: client, workload: client, clock, log: silentLogger, ...(types ? { types } : {}) });
  return { clock, client, start, nodes: client.resource(kinds.Node) };
}

function claim(overrides: { name?: string; uid?: string; types?: string[]; nodeClass?: string } = {}): NodeClaim {
  const { name = 'pool-abcde', uid = '6e8bc430-9c3a-11d9-9669-0800200c9a66', nodeClass = 'default' } = overrides;
  return {
    metadata: { name, uid, labels: { [labels.nodePool]: 'pool' } },
    spec: {
      nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: nodeClass },
      requirements: [
        {
          key: labels.instanceType,
          operator: 'In',
          values: overrides.types ?? ['c-2x-amd64-linux', 'c-1x-amd64-linux'],
        },
        { key: labels.capacityType, operator: 'In', values: ['on-demand'] },
        // What a provisioned NodeClaim says beyond what a cloud sells.
        { key: labels.nodePool, operator: 'In', values: ['pool'] },
        { key: 'karpenter.kwok.sh/kwoknodeclass', operator: 'In', values: ['default'] },
      ],
      resources: { requests: { cpu: '500m', 'example.com/gpu': '1' } },
    },
  };
}

const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('the pretended cloud', () => {
  test('launches the cheapest of all types that the requirements allow where none is listed: one of a static pool', async () => {
    const { start } = await world();
    const { spec, metadata } = claim();
    const requirements = spec.requirements.filter(({ key }) => key !== labels.instanceType);
    const of = (uid: string, cpu: string, arch: string): NodeClaim => ({
      metadata: { ...metadata, uid },
      spec: {
        ...spec,
        requirements: [...requirements, { key: labels.arch, operator: 'In', values: [arch] }],
        resources: { requests: { cpu } },
      },
    });
    const provider = start();
    const typeOf = async (...given: Parameters<typeof of>): Promise<string | undefined> =>
      (await provider.create(of(...given), signal)).labels[labels.instanceType];
    expect(await typeOf('a', '100m', 'amd64')).toBe('c-1x-amd64-linux');
    expect(await typeOf('b', '100m', 'arm64')).toBe('c-1x-arm64-linux');
    expect(await typeOf('c', '3', 'amd64')).toBe('c-4x-amd64-linux');
    expect(isInsufficientCapacity(await failure(provider.create(of('d', '1000', 'amd64'), signal)))).toBe(true);
  });

  test('launches the cheapest listed type that the requirements allow', async () => {
    const { clock, nodes, start } = await world();
    const instance = await start().create(claim(), signal);
    expect(instance.labels).toMatchObject({
      [labels.instanceType]: 'c-1x-amd64-linux',
      [labels.capacityType]: 'on-demand',
      [labels.nodePool]: 'pool',
      [labels.hostname]: 'pool-abcde',
      'eks-node-viewer/instance-price': '0.027147',
      'karpenter.kwok.sh/instance-family': 'c',
      'kwok.x-k8s.io/node': 'fake',
    });
    expect(instance.capacity).toEqual({
      cpu: '1',
      memory: '2Gi',
      pods: '16',
      'ephemeral-storage': '20Gi',
      'example.com/gpu': '1',
    });
    expect(instance.allocatable).toMatchObject({ cpu: '900m', memory: '2038Mi' });
    await clock.step(1);
    const node = await nodes.get(instance.providerID.replace('kwok://', ''));
    expect(node.spec?.taints).toContainEqual({ key: 'karpenter.sh/unregistered', effect: 'NoExecute' });
  });

  test('sells the same as before, in the same list: whoever looked at it need not look again', async () => {
    const provider = (await world()).start();
    const types = await provider.instanceTypes();
    expect(types).toHaveLength(144);
    expect(await provider.instanceTypes()).toBe(types);
  });

  test('sells what is told apart by labels of its own file, whether a NodeClaim names them or not', async () => {
    const [type] = defaultInstanceTypes();
    const offerings = ['a', 'b'].map((rack, i) => ({
      ...type!.offerings[i]!,
      requirements: [
        ...type!.offerings[1]!.requirements,
        { key: 'example.com/rack', operator: 'In' as const, values: [rack] },
      ],
    }));
    const { start } = await world({ types: [{ ...type!, offerings }] });
    const any = claim({ types: [type!.name] });
    expect((await start().create(any, signal)).labels['example.com/rack']).toBe('a');
    const requirements = [
      ...any.spec.requirements,
      { key: 'example.com/rack', operator: 'In' as const, values: ['b'] },
    ];
    const named = { ...any, metadata: { ...any.metadata, uid: 'b' }, spec: { ...any.spec, requirements } };
    expect((await start().create(named, signal)).labels['example.com/rack']).toBe('b');
  });

  test('finds the machine of an earlier launch, also after a restart', async () => {
    const { clock, nodes, start } = await world();
    const first = await start().create(claim(), signal);
    await clock.step(1);
    const again = await start().create(claim(), signal);
    await clock.step(1);
    expect(again.providerID).toBe(first.providerID);
    expect(again.labels).toEqual(first.labels);
    expect((await nodes.list()).items).toHaveLength(1);
  });

  test('makes a Node for a NodeClaim of any name that may be', async () => {
    const { clock, nodes, start } = await world();
    const provider = start();
    for (const [i, name] of [`${'n'.repeat(61)}.${'a'.repeat(62)}`, `x.${'y'.repeat(251)}`, 'dots.are.fine'].entries())
      await provider.create(claim({ name, uid: `${i}e8bc430-9c3a-11d9-9669-0800200c9a66` }), signal);
    await clock.step(1000);
    const names = (await nodes.list()).items.map(({ metadata }) => metadata.labels?.[labels.hostname] ?? '');
    expect(names.toSorted()).toEqual(['dots.are.fine', `${'n'.repeat(61)}.a`, `x.${'y'.repeat(61)}`]);
  });

  test('spreads equal offerings over the zones', async () => {
    const { start } = await world();
    const provider = start();
    const zones = new Set<string | undefined>();
    for (let i = 0; i < 40; i++) {
      const one = await provider.create(claim({ name: `n-${i}`, uid: `${i}-6e8bc430` }), signal);
      zones.add(one.labels[labels.zone]);
    }
    expect(zones.size).toBe(4);
  });

  test('lets the node appear after the registration delay, and lists the machine before it', async () => {
    const { clock, nodes, start } = await world({ delay: '30s' });
    const provider = start();
    const { providerID } = await provider.create(claim(), signal);
    await clock.step(29_000);
    expect((await nodes.list()).items).toHaveLength(0);
    expect((await provider.list(signal)).map((machine) => machine.providerID)).toEqual([providerID]);
    expect((await provider.get(providerID, signal)).providerID).toBe(providerID);
    await clock.step(2000);
    expect((await nodes.list()).items).toHaveLength(1);
    expect(await provider.list(signal)).toHaveLength(1);
  });

  test('resumes a machine that a crash kept from appearing', async () => {
    const { clock, nodes, start } = await world({ delay: '30s' });
    const crashed = start();
    const { providerID } = await crashed.create(claim(), signal);
    crashed.close();
    const restarted = start();
    await restarted.resume({ ...claim(), status: { providerID } }, signal);
    await clock.step(31_000);
    expect((await nodes.list()).items.map((node) => node.spec?.providerID)).toEqual([providerID]);
  });

  test('keeps nobody waiting once it is closed, not even for a machine that is asked for too late', async () => {
    const { clock, nodes, start } = await world({ delay: '30s' });
    const provider = start();
    await provider.create(claim(), signal);
    provider.close();
    await provider.create(claim({ name: 'pool-fghij', uid: '7e8bc430-9c3a-11d9-9669-0800200c9a66' }), signal);
    await clock.step(60_000);
    expect((await nodes.list()).items).toEqual([]);
  });

  test('deletes a machine once, and then says that it is gone', async () => {
    const { clock, nodes, start } = await world();
    const provider = start();
    const { providerID } = await provider.create(claim(), signal);
    await clock.step(1);
    const launched = { ...claim(), status: { providerID } };
    await provider.delete(launched, signal);
    expect((await nodes.list()).items).toHaveLength(0);
    expect(isNodeClaimNotFound(await failure(provider.delete(launched, signal)))).toBe(true);
    expect(isNodeClaimNotFound(await failure(provider.get(providerID, signal)))).toBe(true);
  });

  test('has a machine for as long as its node is being drained', async () => {
    const { clock, nodes, start } = await world();
    const provider = start();
    const { providerID } = await provider.create(claim(), signal);
    await clock.step(1);
    const [node] = (await nodes.list()).items;
    await nodes.patch(node!.metadata.name!, { metadata: { finalizers: ['karpenter.sh/termination'] } });
    await nodes.delete(node!.metadata.name!);
    // Its pods still run: a node that is not ready is let go at once when its machine is gone.
    expect(await provider.get(providerID, signal)).toMatchObject({ providerID, deleting: true });
    // But there is nothing left to ask for.
    const launched = { ...claim(), status: { providerID } };
    expect(isNodeClaimNotFound(await failure(provider.delete(launched, signal)))).toBe(true);
  });

  test('never lets a node appear whose machine was deleted before', async () => {
    const { clock, nodes, start } = await world({ delay: '10s' });
    const provider = start();
    const { providerID } = await provider.create(claim(), signal);
    expect(isNodeClaimNotFound(await failure(provider.delete({ ...claim(), status: { providerID } }, signal)))).toBe(
      true,
    );
    await clock.step(60_000);
    await settle();
    expect((await nodes.list()).items).toHaveLength(0);
  });

  test('says for which NodeClaim a machine was made, before and after its node appeared', async () => {
    const { clock, start } = await world({ delay: '30s' });
    const provider = start();
    const { name, uid } = claim().metadata;
    const { nodeClaim, annotations } = await provider.create(claim(), signal);
    expect(nodeClaim).toEqual({ name, uid });
    // The NodeClaim itself need not carry it.
    expect(annotations).toEqual({ 'kwok.x-k8s.io/node': 'fake' });
    await clock.step(30_000);
    expect((await provider.list(signal)).map((instance) => instance.nodeClaim)).toEqual([{ name, uid }]);
  });

  test('has no machine under an id that is none of its own', async () => {
    const { start } = await world();
    const providerID = 'Provider:///AZ/i-01234567890123456';
    expect(isNodeClaimNotFound(await failure(start().get(providerID, signal)))).toBe(true);
    const foreign = { ...claim(), status: { providerID } };
    expect(isNodeClaimNotFound(await failure(start().delete(foreign, signal)))).toBe(true);
  });

  test('says what kind of failure a launch is', async () => {
    const { client, start } = await world();
    const provider = start();
    expect(isInsufficientCapacity(await failure(provider.create(claim({ nodeClass: 'missing' }), signal)))).toBe(true);
    expect(isInsufficientCapacity(await failure(provider.create(claim({ types: ['x-large'] }), signal)))).toBe(true);
    expect(await failure(provider.create(claim({ types: [] }), signal))).toMatchObject({ code: 'KRP_CREATE_FAILED' });
    const nodeClass = await client.resource(kwokNodeClassKind).get('default');
    const broken = {
      type: 'Ready',
      status: 'False',
      reason: 'Broken',
      message: 'out of order',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    } as const;
    await client.resource(kwokNodeClassKind).updateStatus({ ...nodeClass, status: { conditions: [broken] } });
    const refused = await failure(provider.create(claim(), signal));
    expect(isNodeClassNotReady(refused)).toBe(true);
    expect(refused).toMatchObject({ message: 'out of order' });
  });
});
