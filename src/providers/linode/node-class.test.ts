// SPDX-License-Identifier: Apache-2.0
// What a LinodeNodeClass says about itself, and what becomes of tags that change.
import { describe, expect, test } from 'vitest';
import { type LinodeNodeClass, type LinodeNodeClassSpec, linodeNodeClassKind } from '../../api/linode-node-class.ts';
import { type NodeClaim, nodeClaimKind } from '../../api/node-claim.ts';
import { formatTime } from '../../kube/time.ts';
import { linodeAnnotations } from './names.ts';
import { nodeClassHash } from './node-class.ts';
import { type LinodeWorld, token } from './testing/world.ts';
import { worldsPerTest } from './testing/worlds.ts';

const start = worldsPerTest({ withControllers: true });

const classOf = (world: LinodeWorld, name = 'default'): Promise<LinodeNodeClass> =>
  world.client.resource(linodeNodeClassKind).get(name);

/** Status and reason of a condition. */
async function condition(world: LinodeWorld, type: string, name = 'default'): Promise<string> {
  const found = (await classOf(world, name)).status?.conditions?.find((one) => one.type === type);
  return `${found?.status} ${found?.reason}`;
}

async function verdict(world: LinodeWorld, spec: LinodeNodeClassSpec): Promise<string> {
  await world.nodeClass('checked', spec);
  await world.pass(5000);
  return condition(world, 'ValidationSucceeded', 'checked');
}

describe('the account', () => {
  test('a class in a good account is ready, and marked', async () => {
    const world = await start();
    expect(await condition(world, 'Ready')).toBe('True Ready');
    const { metadata } = await classOf(world);
    expect(metadata.finalizers).toEqual(['karpenter.k8s.linode/termination']);
    expect(metadata.annotations).toMatchObject({ 'karpenter.k8s.linode/linodenodeclass-hash-version': 'v1' });
  });

  test('a token that is revoked shows, and so does one that works again', async () => {
    const world = await start();
    world.api.revoke(token);
    await world.pass(700_000);
    expect(await condition(world, 'AccountReady')).toBe('False TokenRejected');
    expect(await condition(world, 'Ready')).toMatch(/^False/);
    const { status } = await classOf(world);
    expect(JSON.stringify([status, world.log.lines])).not.toContain(token);
    world.api.issue(token);
    await world.pass(120_000);
    expect(await condition(world, 'Ready')).toBe('True Ready');
  });

  test('an unknown cluster is named', async () => {
    const world = await start({ withoutCluster: true });
    expect(await condition(world, 'AccountReady')).toBe('False ClusterNotFound');
  });

  test('of two clusters with the name, none is guessed', async () => {
    const world = await start();
    const body = { region: world.region, k8s_version: '1.34', node_pools: [{ type: 'g6-standard-1', count: 1 }] };
    try {
      await world.person('POST', '/lke/clusters', { ...body, label: world.clusterName });
    } catch {
      // Linode keeps labels apart: then the answer of the list is made up here.
      const twice = { data: [1, 2].map((id) => ({ id, label: world.clusterName, region: world.region })), pages: 1 };
      world.fault = ({ path }) =>
        path.includes('/lke/clusters?') ? { status: 200, headers: {}, body: JSON.stringify(twice) } : undefined;
    }
    await world.pass(700_000);
    expect(await condition(world, 'AccountReady')).toBe('False ClusterAmbiguous');
  });

  test('an API in maintenance changes nothing that is known', async () => {
    const world = await start();
    world.api.maintenance = true;
    await world.pass(700_000);
    expect(await condition(world, 'Ready')).toBe('True Ready');
  });
});

describe('what a class names', () => {
  test.each([
    'karpenter.sh/nodeclaim=x',
    'Name=x',
    'kubernetes.io/cluster/other=owned',
    // The record of shared pools.
    'karpenter.k8s.linode/shared=0123456789abcdef',
    'karpenter.sh/node=0123456789ab.4711',
    'karpenter.sh/gone=0123456789abcdef0123456789abcdef',
    // What LKE Enterprise says of its Linodes.
    'nodepool=4711',
    'lke4711',
  ])('a user’s tag may not be taken for one of ours: %s', async (tag) => {
    const world = await start();
    expect(await verdict(world, { tags: [tag, 'fine'] })).toBe('False TagValidationFailed');
  });

  test('a firewall that does not exist', async () => {
    expect(await verdict(await start(), { firewallID: 4711 })).toBe('False FirewallNotFound');
  });

  test('a version on a standard cluster, and another than the control plane’s on an enterprise one', async () => {
    expect(await verdict(await start(), { lkeK8sVersion: '1.34' })).toBe('False LKEK8sVersionUnsupported');
    const enterprise = await start({ tier: 'enterprise' });
    expect(await verdict(enterprise, { lkeK8sVersion: 'v1.0.0+lke1' })).toBe('False LKEK8sVersionControlPlaneMismatch');
    await enterprise.nodeClass('right', { lkeK8sVersion: 'v1.31.8+lke1' });
    await enterprise.pass(5000);
    expect(await condition(enterprise, 'Ready', 'right')).toBe('True Ready');
  });

  test.each<[string, LinodeNodeClassSpec]>([
    ['ImageNotFound', { image: 'linode/no-such-image' }],
    ['VPCNotFound', { vpcID: 4711 }],
    ['PlacementGroupNotFound', { placementGroup: { id: 4711 } }],
    ['KernelNotFound', { configuration: { kernel: 'linode/no-such-kernel' } }],
    ['UserNotFound', { authorizedUsers: ['nobody-here'] }],
    ['AuthorizedKeyInvalid', { authorizedKeys: ['hello'] }],
    ['DiskIDUnsupported', { osDisk: { diskID: 5, size: '10Gi' } }],
    ['UserDataInvalid', { userData: '#cloud-config\nhostname: ${NODENAME}\n' }],
  ])('[GAP 9.1] in Instance mode: %s', async (reason, spec) => {
    expect(await verdict(await start({ mode: 'instance', region: 'us-iad' }), spec)).toBe(`False ${reason}`);
  });

  test('all that is wrong is said at once', async () => {
    const world = await start({ mode: 'instance' });
    await verdict(world, { vpcID: 4711, image: 'linode/nope', tags: ['Name=x'] });
    const found = (await classOf(world, 'checked')).status?.conditions?.find(
      ({ type }) => type === 'ValidationSucceeded',
    );
    for (const word of ['VPC 4711', 'linode/nope', 'Name=x']) expect(found?.message).toContain(word);
  });

  test('the image is shown', async () => {
    const world = await start({ mode: 'instance' });
    expect((await classOf(world)).status?.linodeImages).toMatchObject([{ id: 'linode/ubuntu22.04' }]);
  });
});

describe('the hash', () => {
  const hashed = (spec: LinodeNodeClassSpec): string => nodeClassHash({ metadata: {}, spec });

  test('[TRAP 3e] follows what machines are made of, not how it is written (swapSize, swap_size), and not tags', () => {
    expect(hashed({ authorizedUsers: ['a', 'b'] })).toBe(hashed({ authorizedUsers: ['b', 'a'], tags: ['x'] }));
    expect(hashed({ swap_size: 5 })).toBe(hashed({ swapSize: 5 }));
    expect(hashed({ image: 'a' })).not.toBe(hashed({ image: 'b' }));
    expect(hashed({ kubelet: { maxPods: 5 } })).not.toBe(hashed({}));
    const commands = (...preJoinCommands: string[]) => hashed({ bootstrap: { preJoinCommands } });
    expect(commands('mount', 'format')).not.toBe(commands('format', 'mount'));
  });
});

/** A NodeClaim in the API server whose machine runs and whose Node is there. */
async function running(world: LinodeWorld, name: string): Promise<NodeClaim> {
  const claims = world.client.resource(nodeClaimKind);
  const { metadata, ...rest } = world.claim(name);
  const { uid: _, ...kept } = metadata;
  const made = await claims.create({ ...rest, metadata: kept });
  const instance = await world.create(made);
  await world.pass(60_000);
  const lastTransitionTime = formatTime(world.clock.now());
  const conditions = ['Launched', 'Registered', 'Initialized'].map((type) => ({
    type,
    status: 'True' as const,
    lastTransitionTime,
    reason: type,
    message: '',
  }));
  await claims.patchStatus(name, { status: { providerID: instance.providerID, nodeName: `node-${name}`, conditions } });
  await world.pass(5000);
  return claims.get(name);
}

describe('tags', () => {
  test('follow the class in place, and leave those of others', async () => {
    const world = await start({ nodeClass: { tags: ['team=a'] } });
    const claim = await running(world, 'a');
    const id = claim.status!.providerID!.slice('linode://'.length);
    const tags = async (): Promise<string[]> =>
      (await world.person<{ tags: string[] }>('GET', `/linode/instances/${id}`)).tags;
    expect(await tags()).toEqual(expect.arrayContaining(['team=a', 'Name=node-a']));
    expect(claim.metadata.annotations?.['karpenter.k8s.linode/tagged']).toBe('true');
    await world.person('PUT', `/linode/instances/${id}`, { tags: [...(await tags()), 'by-hand'] });
    await world.client.resource(linodeNodeClassKind).patch('default', { spec: { tags: ['team=b'] } });
    await world.pass(10_000);
    const after = await tags();
    expect(after).toEqual(expect.arrayContaining(['team=b', 'by-hand', 'Name=node-a']));
    expect(after).not.toContain('team=a');
  });

  // The existing provider asks for the machine at every event of its NodeClaim, for ever.
  test('[BUG 2a] [BUG 9.4] that are as they should be cost no call', async () => {
    const world = await start();
    await running(world, 'a');
    const calls = (): number =>
      world.api.ledger.calls.filter(({ path }) => /instances\/\d+$|pools\/\d+$/.test(path)).length;
    const before = calls();
    for (let i = 0; i < 5; i++) {
      const annotations = { touched: String(i) };
      await world.client.resource(nodeClaimKind).patch('a', { metadata: { annotations } });
      await world.pass(2000);
    }
    expect(calls()).toBe(before);
  });

  test.each(['lke', 'instance'] as const)('that a person takes off (%s) are put back within minutes', async (mode) => {
    const world = await start({ mode, nodeClass: { tags: ['team=a'] } });
    const claim = await running(world, 'a');
    const path = `/linode/instances/${claim.status!.providerID!.slice('linode://'.length)}`;
    const tags = async (): Promise<string[]> => (await world.person<{ tags: string[] }>('GET', path)).tags;
    const before = (await tags()).filter((tag) => !tag.includes('/hash='));
    await world.person('PUT', path, { tags: ['by-hand'] });
    await world.pass(11 * 60_000);
    expect(await tags()).toEqual(expect.arrayContaining([...before, 'by-hand']));
    expect((await world.finish(world.provider.get(claim.status!.providerID!, world.signal))).nodeClaim?.uid).toBe(
      claim.metadata.uid,
    );
  });

  test('of a machine on its way out are left as they are', async () => {
    const world = await start({ nodeClass: { tags: ['team=a'] } });
    const claim = await running(world, 'a');
    const claims = world.client.resource(nodeClaimKind);
    await claims.patch('a', { metadata: { finalizers: ['karpenter.sh/termination'] } });
    await claims.delete('a');
    await world.pass(5000);
    await world.client.resource(linodeNodeClassKind).patch('default', { spec: { tags: ['team=b'] } });
    await world.pass(11 * 60_000);
    const path = `/linode/instances/${claim.status!.providerID!.slice('linode://'.length)}`;
    expect((await world.person<{ tags: string[] }>('GET', path)).tags).toContain('team=a');
  });

  test('a node that is up keeps no taint in its pool that it is rid of', async () => {
    const world = await start();
    await running(world, 'a');
    const pool = (await world.pools()).find(({ id }) => id !== world.basePool);
    expect(pool?.taints).toEqual([]);
  });

  test('taints of a pool that is rid of them are not written again with its tags', async () => {
    const world = await start();
    await running(world, 'a');
    await world.pass(5 * 60_000);
    const written: unknown[] = [];
    world.fault = ({ method, path, body }) =>
      void (method === 'PUT' && path.includes('/pools/') && written.push(JSON.parse(body ?? '{}')));
    await world.client.resource(linodeNodeClassKind).patch('default', { spec: { tags: ['team=b'] } });
    await world.pass(10_000);
    expect(written).not.toEqual([]);
    for (const body of written) expect(body).not.toHaveProperty('taints');
  });
});

test('hashes of another algorithm make nothing drift, and what has drifted stays so', async () => {
  const world = await start();
  const claims = world.client.resource(nodeClaimKind);
  const { hash, hashVersion } = linodeAnnotations;
  const old = { metadata: { annotations: { [hash]: 'old', [hashVersion]: 'v0' } } };
  for (const name of ['good', 'drifted']) {
    const { status } = await running(world, name);
    await claims.patch(name, old);
    const lastTransitionTime = formatTime(world.clock.now());
    const drifted = {
      type: 'Drifted',
      status: 'True',
      lastTransitionTime,
      reason: 'NodePoolDrifted',
      message: '',
    } as const;
    if (name === 'drifted')
      await claims.patchStatus(name, { status: { conditions: [...status!.conditions!, drifted] } });
  }
  await world.client.resource(linodeNodeClassKind).patch('default', old);
  await world.pass(5000);
  const wanted = nodeClassHash(await classOf(world));
  const hashes = async (name: string): Promise<unknown[]> => {
    const { annotations = {} } = (await claims.get(name)).metadata;
    return [annotations[hash], annotations[hashVersion]];
  };
  expect(await hashes('good')).toEqual([wanted, 'v1']);
  expect(await hashes('drifted')).toEqual(['old', 'v1']);
});

test('a class that is deleted waits for its NodeClaims', async () => {
  const world = await start();
  await running(world, 'a');
  await world.client.resource(linodeNodeClassKind).delete('default');
  await world.pass(5000);
  expect((await classOf(world)).metadata.deletionTimestamp).toBeDefined();
  await world.client.resource(nodeClaimKind).delete('a');
  await world.pass(5000);
  await expect(classOf(world)).rejects.toThrow(/not found/);
});
