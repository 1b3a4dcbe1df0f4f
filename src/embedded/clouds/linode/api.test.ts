// SPDX-License-Identifier: Apache-2.0
import { afterEach, describe, expect, it } from 'vitest';
import { ConnectionLost } from './api.ts';
import { linodeWorld, type World } from './testing/client.ts';

const cluster = {
  label: 'prod',
  region: 'us-east',
  k8s_version: '1.35',
  node_pools: [{ type: 'g6-standard-2', count: 1 }],
};
const instance = { region: 'us-east', type: 'g6-standard-1', image: 'linode/ubuntu22.04', root_pass: 'aComplex-P4ss' };
const reasons = (answer: { body: { errors: { reason: string; field?: string }[] } }) =>
  answer.body.errors.map(({ reason, field }) => (field === undefined ? reason : `${field}: ${reason}`));

let world: World;
afterEach(() => world.api.close());

describe('who asks', () => {
  it('anybody may look at plans and regions, and only a token at the rest', async () => {
    world = linodeWorld();
    const anonymous = { headers: {} };
    const open = await world.api.handle({ method: 'GET', path: '/v4/linode/types', ...anonymous });
    const closed = await world.api.handle({ method: 'GET', path: '/v4/linode/instances', ...anonymous });
    expect([open.status, closed.status]).toEqual([200, 401]);
    expect(JSON.parse(closed.body)).toEqual({ errors: [{ reason: 'Invalid Token' }] });
  });

  it('a token that was revoked is none', async () => {
    world = linodeWorld();
    world.api.revoke('linode-token');
    expect((await world.ask('GET', '/linode/instances')).status).toBe(401);
    expect((await world.ask('GET', '/linode/types')).status).toBe(401);
  });

  it('a token that may read may not write, nor may a user without grants', async () => {
    world = linodeWorld({ tokens: { reader: { scope: 'read' }, guest: { scope: 'restricted' } } });
    const asked = async (token: string, method: string) =>
      (await world.ask(method, '/tags', { label: 'abc' }, { authorization: `Bearer ${token}` })).status;
    expect([await asked('reader', 'GET'), await asked('reader', 'POST')]).toEqual([200, 401]);
    expect([await asked('guest', 'GET'), await asked('guest', 'POST')]).toEqual([200, 403]);
  });
});

describe('lists', () => {
  it('come in pages of a hundred, or of as many as one asks for', async () => {
    world = linodeWorld({ limits: 'none' });
    for (let n = 0; n < 120; n++) await world.ask('POST', '/tags', { label: `tag-${String(n).padStart(3, '0')}` });
    const first = await world.ask('GET', '/tags');
    expect([first.body.data.length, first.body.page, first.body.pages, first.body.results]).toEqual([100, 1, 2, 120]);
    const last = await world.ask('GET', '/tags?page=5&page_size=25');
    expect(last.body.data.map(({ label }: { label: string }) => label)[0]).toBe('tag-100');
    expect(reasons(await world.ask('GET', '/tags?page_size=501'))).toEqual(['page_size: Must be 25-500']);
    expect((await world.ask('GET', '/tags?page=3')).status).toBe(404);
  });

  it('are filtered and ordered by X-Filter', async () => {
    world = linodeWorld();
    const ids = async (filter: unknown): Promise<string[]> => {
      const answer = await world.ask('GET', '/linode/types', undefined, { 'x-filter': JSON.stringify(filter) });
      return answer.body.data.map(({ id }: { id: string }) => id);
    };
    expect(await ids({ id: 'g6-standard-2' })).toEqual(['g6-standard-2']);
    expect(
      await ids({ '+and': [{ class: 'standard' }, { vcpus: { '+gte': 20 } }, { memory: { '+lt': 190_000 } }] }),
    ).toEqual(['g6-standard-20', 'g6-standard-24']);
    expect(await ids({ '+or': [{ id: 'g6-nanode-1' }, { label: { '+contains': 'rtx6000 gpu x4' } }] })).toEqual([
      'g6-nanode-1',
      'g1-gpu-rtx6000-4',
    ]);
    const largest = await ids({ class: 'standard', '+order_by': 'memory', '+order': 'desc' });
    expect(largest.slice(0, 2)).toEqual(['g6-standard-32', 'g6-standard-24']);
  });

  it('refuse a filter that is none', async () => {
    world = linodeWorld();
    const refused = async (filter: string) =>
      (await world.ask('GET', '/linode/instances', undefined, { 'x-filter': filter })).status;
    expect(await refused('{"tags":')).toBe(400);
    expect(await refused('{"tags":{"+contains":["a","b"]}}')).toBe(400);
    expect(await refused('{"tags":{"+like":"a"}}')).toBe(400);
  });
});

describe('a Linode', () => {
  it('is provisioned, boots, runs, and is gone a moment after it was deleted', async () => {
    const seen: string[] = [];
    world = linodeWorld({
      machines: {
        booted: ({ providerId }) => void seen.push(`booted ${providerId}`),
        gone: ({ providerId }) => void seen.push(`gone ${providerId}`),
      },
    });
    const { id } = (await world.ask('POST', '/linode/instances', { ...instance, tags: ['karpenter'] })).body;
    const status = async () => (await world.ask('GET', `/linode/instances/${id}`)).body.status;
    expect(await status()).toBe('provisioning');
    await world.clock.step(20_000);
    expect(await status()).toBe('booting');
    await world.clock.step(30_000);
    expect(await status()).toBe('running');
    expect((await world.ask('DELETE', `/linode/instances/${id}`)).body).toEqual({});
    expect(await status()).toBe('deleting');
    await world.clock.step(3000);
    expect((await world.ask('GET', `/linode/instances/${id}`)).status).toBe(404);
    expect(seen).toEqual([`booted linode://${id}`, `gone linode://${id}`]);
  });

  it('without an image stays off', async () => {
    world = linodeWorld();
    const { id } = (await world.ask('POST', '/linode/instances', { region: 'us-east', type: 'g6-standard-1' })).body;
    await world.clock.step(600_000);
    expect((await world.ask('GET', `/linode/instances/${id}`)).body.status).toBe('offline');
  });

  it('is refused with every field that is wrong', async () => {
    world = linodeWorld();
    const answer = await world.ask('POST', '/linode/instances', {
      region: 'mars',
      type: 'g9-standard-1',
      label: 'a--b',
      image: 'linode/ubuntu22.04',
      tags: ['x'.repeat(51)],
      metadata: { user_data: 'not base64!' },
      firewall_id: 7,
    });
    expect(answer.status).toBe(400);
    expect(reasons(answer)).toEqual([
      'region: Region is not valid',
      'type: A valid plan type by that ID was not found',
      'label: Must not contain two dashes, underscores or periods in a row',
      'root_pass: root_pass is required',
      'tags: Length must be 3-50 characters',
      'metadata.user_data: Must be a base64-encoded string',
      'firewall_id: Invalid Firewall',
    ]);
  });

  it('has a label that no other has', async () => {
    world = linodeWorld();
    const first = await world.ask('POST', '/linode/instances', { ...instance, label: 'node-1' });
    const again = await world.ask('POST', '/linode/instances', { ...instance, label: 'node-1' });
    expect(reasons(again)).toEqual(['label: Label must be unique among your linodes']);
    await world.ask('DELETE', `/linode/instances/${first.body.id}`);
    expect((await world.ask('POST', '/linode/instances', { ...instance, label: 'node-1' })).status).toBe(200);
  });

  it('rebuilt by a person starts again with what it is given', async () => {
    const booted: (string | undefined)[] = [];
    world = linodeWorld({ machines: { booted: ({ userData }) => void booted.push(userData), gone: () => undefined } });
    const userData = Buffer.from('#cloud-config').toString('base64');
    const { id } = (await world.ask('POST', '/linode/instances', { ...instance, metadata: { user_data: userData } }))
      .body;
    await world.clock.step(60_000);
    const rebuilt = await world.ask('POST', `/linode/instances/${id}/rebuild`, {
      image: 'linode/debian12',
      root_pass: 'aComplex-P4ss',
    });
    expect([rebuilt.body.status, rebuilt.body.has_user_data]).toEqual(['rebuilding', false]);
    expect(reasons(await world.ask('POST', `/linode/instances/${id}/reboot`))).toEqual(['Linode busy.']);
    await world.clock.step(60_000);
    expect(booted).toEqual(['#cloud-config', undefined]);
  });
});

describe('capacity', () => {
  it('runs out, is announced, and comes back with what is deleted', async () => {
    world = linodeWorld();
    world.api.capacity.set('g6-standard-1', 'us-east', 1);
    const announced = async () => (await world.ask('GET', '/regions/us-east/availability')).body;
    const line = (available: boolean) => ({ region: 'us-east', plan: 'g6-standard-1', available });
    expect(await announced()).toContainEqual(line(true));
    const { id } = (await world.ask('POST', '/linode/instances', instance)).body;
    expect(await announced()).toContainEqual(line(false));
    const refused = await world.ask('POST', '/linode/instances', instance);
    expect([refused.status, reasons(refused)[0]]).toEqual([400, expect.stringContaining('not currently available')]);
    await world.ask('DELETE', `/linode/instances/${id}`);
    expect((await world.ask('POST', '/linode/instances', instance)).status).toBe(200);
  });

  it('of a family that a region does not sell is never there', async () => {
    world = linodeWorld();
    const refused = await world.ask('POST', '/linode/instances', { ...instance, type: 'g7-premium-2' });
    expect(reasons(refused)[0]).toContain('not currently available');
    const offered = await world.ask('POST', '/linode/instances', {
      ...instance,
      type: 'g7-premium-2',
      region: 'us-ord',
    });
    expect(offered.status).toBe(200);
  });
});

describe('LKE', () => {
  it('gives a pool its nodes one step after the other', async () => {
    world = linodeWorld();
    const { id } = (await world.ask('POST', '/lke/clusters', cluster)).body;
    const pool = (
      await world.ask('POST', `/lke/clusters/${id}/pools`, { type: 'g6-standard-2', count: 2, tags: ['mine'] })
    ).body;
    expect(pool.nodes.map((node: { instance_id: null }) => node.instance_id)).toEqual([null, null]);
    const nodes = async () => (await world.ask('GET', `/lke/clusters/${id}/pools/${pool.id}`)).body.nodes;
    await world.clock.step(4000);
    const [assigned] = await nodes();
    expect([typeof assigned.instance_id, assigned.status]).toEqual(['number', 'not_ready']);
    const linode = (await world.ask('GET', `/linode/instances/${assigned.instance_id}`)).body;
    expect([linode.lke_cluster_id, linode.tags, linode.label]).toEqual([id, [], `lke${id}-${assigned.id}`]);
    await world.clock.step(130_000);
    expect((await nodes()).map(({ status }: { status: string }) => status)).toEqual(['ready', 'ready']);
  });

  it('hands tags down, and lists nodes late, only on the enterprise tier', async () => {
    world = linodeWorld();
    const enterprise = { ...cluster, tier: 'enterprise', region: 'us-lax', k8s_version: 'v1.34.6+lke2' };
    const { id, tier } = (await world.ask('POST', '/lke/clusters', enterprise)).body;
    const pool = (
      await world.ask('POST', `/lke/clusters/${id}/pools`, { type: 'g6-standard-2', count: 1, tags: ['mine'] })
    ).body;
    expect([tier, pool.nodes, pool.k8s_version, pool.update_strategy]).toEqual([
      'enterprise',
      [],
      'v1.34.6+lke2',
      'on_recycle',
    ]);
    await world.clock.step(4000);
    const filter = { '+and': [{ tags: 'mine' }, { tags: `lke${id}` }] };
    const found = await world.ask('GET', '/linode/instances', undefined, { 'x-filter': JSON.stringify(filter) });
    expect(found.body.data.map(({ tags }: { tags: string[] }) => tags)).toEqual([
      ['mine', `nodepool=${pool.id}`, `lke${id}`],
    ]);
    await world.clock.step(30_000);
    expect((await world.ask('GET', `/lke/clusters/${id}/pools/${pool.id}`)).body.nodes).toHaveLength(1);
  });

  it('scales, deletes a node, recycles, and leaves nothing behind', async () => {
    world = linodeWorld();
    const { id } = (await world.ask('POST', '/lke/clusters', cluster)).body;
    const pool = (await world.ask('POST', `/lke/clusters/${id}/pools`, { type: 'g6-standard-2', count: 1 })).body;
    const path = `/lke/clusters/${id}/pools/${pool.id}`;
    expect((await world.ask('PUT', path, { count: 3 })).body.nodes).toHaveLength(3);
    await world.clock.step(100_000);
    const [node] = (await world.ask('GET', path)).body.nodes;
    await world.ask('DELETE', `/lke/clusters/${id}/nodes/${node.id}`);
    expect((await world.ask('GET', path)).body.count).toBe(2);
    await world.ask('POST', `${path}/recycle`);
    await world.clock.step(100_000);
    expect(world.api.ledger.instances()).toHaveLength(3);
    expect(world.api.ledger.everCreated).toBe(6);
    await world.ask('DELETE', `/lke/clusters/${id}`);
    await world.clock.step(3000);
    expect(world.api.ledger.instances()).toEqual([]);
  });

  it('replaces a node whose Linode somebody deleted', async () => {
    world = linodeWorld();
    const { id } = (await world.ask('POST', '/lke/clusters', cluster)).body;
    await world.clock.step(100_000);
    const [linode] = world.api.ledger.instances();
    await world.ask('DELETE', `/linode/instances/${linode!.id}`);
    await world.clock.step(70_000);
    const [other] = world.api.ledger.living();
    expect(other!.id).not.toBe(linode!.id);
    expect(world.api.ledger.pools(id)[0]!.nodes.map(({ instanceId }) => instanceId)).toEqual([other!.id]);
  });

  it('tells its tier only in the beta', async () => {
    world = linodeWorld();
    await world.ask('POST', '/lke/clusters', cluster);
    const headers = { authorization: 'Bearer linode-token' };
    const stable = await world.api.handle({ method: 'GET', path: '/v4/lke/clusters', headers });
    expect(JSON.parse(stable.body).data[0]).not.toHaveProperty('tier');
    expect((await world.ask('GET', '/lke/clusters')).body.data[0].tier).toBe('standard');
  });

  it('says no to what a pool cannot be', async () => {
    world = linodeWorld({ maxPoolsPerCluster: 2 });
    const { id } = (await world.ask('POST', '/lke/clusters', cluster)).body;
    const post = (body: object) =>
      world.ask('POST', `/lke/clusters/${id}/pools`, { type: 'g6-standard-2', count: 1, ...body });
    expect(reasons(await post({ count: 101 }))).toEqual(['count: Must be 1-100']);
    expect(reasons(await post({ type: 'g6-nanode-1' }))[0]).toContain('not supported');
    expect(reasons(await post({ labels: { 'kubernetes.io/arch': 'amd64' } }))[0]).toContain('reserved');
    expect(reasons(await post({ taints: [{ key: 'a', value: 'b', effect: 'Never' }] }))[0]).toContain('effect');
    expect(reasons(await post({ k8s_version: '1.35' }))[0]).toContain('enterprise');
    expect((await post({})).status).toBe(200);
    expect(reasons(await post({}))[0]).toContain('limit of 2 node pools');
  });

  it('takes orders for machines that never come, where capacity stalls', async () => {
    world = linodeWorld();
    const { id } = (await world.ask('POST', '/lke/clusters', cluster)).body;
    world.api.capacity.stall('g6-standard-4', 'us-east');
    const pool = (await world.ask('POST', `/lke/clusters/${id}/pools`, { type: 'g6-standard-4', count: 1 })).body;
    await world.clock.step(600_000);
    expect(world.api.ledger.nodes(pool.id).map(({ instanceId }) => instanceId)).toEqual([null]);
  });
});

describe('limits', () => {
  it('refuse the 21st Linode in 15 seconds, and say when to come back', async () => {
    world = linodeWorld();
    for (let n = 0; n < 20; n++) expect((await world.ask('POST', '/linode/instances', instance)).status).toBe(200);
    await world.clock.step(5000);
    const refused = await world.ask('POST', '/linode/instances', instance);
    expect([refused.status, refused.headers['retry-after'], refused.headers['x-ratelimit-remaining']]).toEqual([
      429,
      '10',
      '0',
    ]);
    expect(reasons(refused)).toEqual(['Too many requests']);
    await world.clock.step(10_000);
    expect((await world.ask('POST', '/linode/instances', instance)).status).toBe(200);
  });

  it('count lists apart from the rest, and each token by itself', async () => {
    world = linodeWorld({ tokens: { 'linode-token': { scope: 'write' }, other: { scope: 'write' } } });
    for (let n = 0; n < 200; n++) await world.ask('GET', '/linode/instances');
    expect((await world.ask('GET', '/lke/clusters')).status).toBe(429);
    expect((await world.ask('GET', '/profile')).headers['x-ratelimit-limit']).toBe('1600');
    expect((await world.ask('GET', '/lke/clusters', undefined, { authorization: 'Bearer other' })).status).toBe(200);
  });
});

describe('faults', () => {
  it('lose the answer, not the work', async () => {
    world = linodeWorld();
    world.api.faults.add({ kind: 'lost-response', method: 'POST', path: /instances$/ });
    await expect(world.ask('POST', '/linode/instances', instance)).rejects.toThrow(ConnectionLost);
    expect(world.api.ledger.everCreated).toBe(1);
    expect(world.api.ledger.calls.map(({ status }) => status)).toEqual([0]);
  });

  it('lose the request, and nothing is done', async () => {
    world = linodeWorld();
    world.api.faults.add({ kind: 'lost-request', method: 'POST' });
    await expect(world.ask('POST', '/linode/instances', instance)).rejects.toThrow(ConnectionLost);
    expect(world.api.ledger.everCreated).toBe(0);
  });

  it('fail with a status, before or after the work', async () => {
    world = linodeWorld();
    world.api.faults.add({ kind: { status: 502 }, method: 'POST' });
    world.api.faults.add({ kind: { status: 504, applied: true }, method: 'POST' });
    const statuses = [(await world.ask('POST', '/linode/instances', instance)).status];
    statuses.push((await world.ask('POST', '/linode/instances', instance)).status);
    expect([statuses, world.api.ledger.everCreated]).toEqual([[502, 504], 1]);
  });

  it('cut the body, take their time, and hit only what they are meant for', async () => {
    world = linodeWorld();
    world.api.faults.add({ kind: 'truncated', path: /^\/regions/, skip: 1 });
    expect((await world.ask('GET', '/regions')).status).toBe(200);
    await expect(world.ask('GET', '/regions')).rejects.toThrow(SyntaxError);
    world.api.faults.add({ kind: { slowMs: 5000 } });
    let answered = false;
    const slow = world.ask('GET', '/profile').then(() => (answered = true));
    await world.clock.step(4999);
    expect(answered).toBe(false);
    await world.clock.step(1);
    await slow;
  });

  it('answer everything with 503 in maintenance', async () => {
    world = linodeWorld();
    world.api.maintenance = true;
    const answer = await world.ask('GET', '/linode/types');
    expect([answer.status, answer.headers['x-maintenance-mode']]).toEqual([503, expect.any(String)]);
  });
});

it('lists lag behind what was written, where that is asked for', async () => {
  world = linodeWorld({ consistency: { listLagMs: 5000 }, delays: { deleteMs: 0 } });
  const labels = async () =>
    (await world.ask('GET', '/linode/instances')).body.data.map(({ tags }: { tags: string[] }) => tags.join());
  const { id } = (await world.ask('POST', '/linode/instances', { ...instance, tags: ['one'] })).body;
  expect(await labels()).toEqual([]);
  await world.clock.step(5000);
  expect(await labels()).toEqual(['one']);
  await world.ask('PUT', `/linode/instances/${id}`, { tags: ['two'] });
  expect(await labels()).toEqual(['one']);
  expect((await world.ask('GET', `/linode/instances/${id}`)).body.tags).toEqual(['two']);
  await world.ask('DELETE', `/linode/instances/${id}`);
  await world.clock.step(4000);
  expect(await labels()).toEqual(['one']);
  await world.clock.step(1000);
  expect(await labels()).toEqual([]);
});

it('is spoken to over HTTP as well', async () => {
  world = linodeWorld();
  const { url } = await world.api.listen();
  const headers = { authorization: 'Bearer linode-token' };
  const answer = await fetch(`${url}/v4/linode/types/g6-standard-2`, { headers });
  expect([answer.status, ((await answer.json()) as { vcpus: number }).vcpus]).toEqual([200, 2]);
  world.api.faults.add({ kind: 'lost-response' });
  await expect(fetch(`${url}/v4/profile`, { headers })).rejects.toThrow('fetch failed');
});
