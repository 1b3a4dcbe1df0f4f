// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { VirtualClock } from '../base/clock.ts';
import { ApiError, isTooManyRequests } from './api-error.ts';
import { KubeClient, type RequestReport } from './client.ts';
import { kinds, type Pod } from './kinds.ts';
import type { ResourceType } from './object.ts';
import { TokenBucket } from './rate-limiter.ts';
import { collect } from './testing/collect.ts';
import { FakeTransport, failure } from './testing/fake-transport.ts';
import type { TransportResponse, WatchStream } from './transport.ts';
import { TransportError } from './transport-error.ts';

const pod = (name = 'web', more: Partial<Pod> = {}): Pod => ({
  metadata: { name, namespace: 'shop' },
  spec: { containers: [] },
  ...more,
});

function setup(answer: ConstructorParameters<typeof FakeTransport>[0] = () => ({ status: 200, body: pod() })) {
  const transport = new FakeTransport(answer);
  const clock = new VirtualClock();
  const reports: RequestReport[] = [];
  const client = new KubeClient({ transport, clock, onRequest: (report) => reports.push(report) });
  return {
    transport,
    clock,
    reports,
    client,
    pods: client.resource(kinds.Pod),
    last: () => transport.requests.at(-1)!,
  };
}

describe('ResourceClient', () => {
  test('addresses core and other groups, namespaced or not', async () => {
    const { client, pods, last } = setup(() => ({ status: 200, body: { ...pod(), items: [] } }));
    await pods.get('web', { namespace: 'shop' });
    expect(last()).toMatchObject({ method: 'GET', path: '/api/v1/namespaces/shop/pods/web' });
    await client.resource(kinds.Deployment).list();
    expect(last()).toMatchObject({ method: 'GET', path: '/apis/apps/v1/deployments' });
    await client.resource(kinds.Node).get('n:1');
    expect(last().path).toBe('/api/v1/nodes/n%3A1');
    // A namespace given for a cluster-scoped kind means nothing.
    await client.resource(kinds.Node).get('n1', { namespace: 'shop' });
    expect(last().path).toBe('/api/v1/nodes/n1');
  });

  test('takes what is no list for no answer, not for an empty collection', async () => {
    for (const body of [
      {},
      'ok',
      undefined,
      [],
      { items: {} },
      { items: [null] },
      { items: [{}] },
      { items: [], metadata: 1 },
    ]) {
      const { pods } = setup(() => ({ status: 200, body }));
      await expect(pods.listAll()).rejects.toMatchObject({ code: 'KRP_MALFORMED_ANSWER' });
    }
    const { pods } = setup(() => ({ status: 200, body: 'ok' }));
    await expect(pods.get('web', { namespace: 'shop' })).rejects.toMatchObject({ code: 'KRP_MALFORMED_ANSWER' });
  });

  test('takes what is no event for a broken watch, not for a change', async () => {
    const metadata = { name: 'web', namespace: 'shop' };
    for (const event of [
      null,
      'x',
      { type: 'ADDED' },
      { type: 'DELETED', object: {} },
      { type: 'X', object: { metadata } },
    ]) {
      async function* stream(): AsyncGenerator {
        yield event;
      }
      const answer = { status: 500, body: undefined };
      const transport = {
        request: () => Promise.resolve(answer),
        watch: () => Promise.resolve(Object.assign(stream(), { close: () => undefined }) as WatchStream),
        close: () => Promise.resolve(),
      };
      const watch = await new KubeClient({ transport }).resource(kinds.Pod).watch();
      await expect(watch[Symbol.asyncIterator]().next()).rejects.toMatchObject({ code: 'KRP_MALFORMED_ANSWER' });
    }
  });

  test('never addresses a collection by accident', async () => {
    const { pods, client, transport } = setup();
    for (const name of ['', '.', '..', 'a/b', 'a%2fb']) {
      await expect(pods.delete(name, { namespace: 'shop' })).rejects.toThrow(/name|part of an API path/);
    }
    await expect(pods.delete('web')).rejects.toThrow('without a namespace');
    await expect(pods.deleteCollection()).rejects.toThrow('without a namespace');
    await expect(pods.create({ ...pod(), metadata: { name: 'x' } })).rejects.toThrow('without a namespace');
    await expect(pods.get('web', { namespace: '..' })).rejects.toThrow('part of an API path');
    await expect(client.resource(kinds.Node).delete('')).rejects.toThrow('without a name');
    expect(transport.requests).toEqual([]);
  });

  test('writes objects with their type, manager, validation and dry run', async () => {
    const { pods, last } = setup();
    await pods.create(pod(), { dryRun: true, fieldManager: 'me', fieldValidation: 'Strict' });
    expect(last()).toMatchObject({
      method: 'POST',
      path: '/api/v1/namespaces/shop/pods',
      query: { dryRun: 'All', fieldManager: 'me', fieldValidation: 'Strict' },
      body: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web' } },
    });
    await pods.update(pod());
    expect(last()).toMatchObject({ method: 'PUT', path: '/api/v1/namespaces/shop/pods/web' });
    await pods.updateStatus(pod());
    expect(last()).toMatchObject({ method: 'PUT', path: '/api/v1/namespaces/shop/pods/web/status' });
  });

  test('patches in each of the four ways', async () => {
    const { pods, last } = setup();
    const at = { namespace: 'shop' };
    await pods.patch('web', { a: 1 }, at);
    expect(last()).toMatchObject({ method: 'PATCH', contentType: 'application/merge-patch+json', body: { a: 1 } });
    await pods.patch('web', [], { ...at, type: 'json' });
    expect(last().contentType).toBe('application/json-patch+json');
    await pods.patchStatus('web', {}, { ...at, type: 'strategic' });
    expect(last()).toMatchObject({
      path: '/api/v1/namespaces/shop/pods/web/status',
      contentType: 'application/strategic-merge-patch+json',
    });
    await pods.patch('web', {}, { ...at, type: 'application/merge-patch+json' });
    expect(last().contentType).toBe('application/merge-patch+json');
    await pods.apply(pod(), { fieldManager: 'me', force: true });
    expect(last()).toMatchObject({
      path: '/api/v1/namespaces/shop/pods/web',
      contentType: 'application/apply-patch+yaml',
      query: { fieldManager: 'me', force: 'true' },
      body: { apiVersion: 'v1', kind: 'Pod' },
    });
    await pods.apply(
      { ...pod(), metadata: { name: 'web', namespace: 'shop', managedFields: [{}] } },
      { fieldManager: 'me' },
    );
    expect(last().body).toMatchObject({ metadata: { name: 'web', namespace: 'shop' } });
    expect(last().body).not.toHaveProperty('metadata.managedFields');
    await expect(pods.apply(pod())).rejects.toThrow('field manager');
  });

  test('deletes with its options in the body, and says what is left', async () => {
    const { pods, last, transport } = setup();
    const left = await pods.delete('web', {
      namespace: 'shop',
      gracePeriodSeconds: 0,
      propagationPolicy: 'Foreground',
      preconditions: { uid: 'u' },
      dryRun: true,
    });
    expect(left?.metadata.name).toBe('web');
    expect(last().body).toEqual({
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      gracePeriodSeconds: 0,
      propagationPolicy: 'Foreground',
      preconditions: { uid: 'u' },
      dryRun: ['All'],
    });
    transport.answer = () => ({ status: 200, body: { kind: 'Status', status: 'Success' } });
    expect(await pods.delete('web', { namespace: 'shop' })).toBeUndefined();
    await pods.deleteCollection({ namespace: 'shop', labelSelector: 'app=web' });
    expect(last()).toMatchObject({
      method: 'DELETE',
      path: '/api/v1/namespaces/shop/pods',
      query: { labelSelector: 'app=web' },
    });
  });

  test('speaks to subresources: scale, eviction, binding, log', async () => {
    const { client, pods, last, transport } = setup();
    const deployments = client.resource(kinds.Deployment);
    await deployments.getScale('d', { namespace: 'shop' });
    expect(last().path).toBe('/apis/apps/v1/namespaces/shop/deployments/d/scale');
    await deployments.updateScale('d', 3, { namespace: 'shop' });
    expect(last()).toMatchObject({ method: 'PATCH', body: { spec: { replicas: 3 } } });
    await pods.evict('web', { namespace: 'shop', gracePeriodSeconds: 5, preconditions: { uid: 'u' } });
    expect(last()).toMatchObject({
      method: 'POST',
      path: '/api/v1/namespaces/shop/pods/web/eviction',
      body: {
        kind: 'Eviction',
        apiVersion: 'policy/v1',
        metadata: { name: 'web', namespace: 'shop' },
        deleteOptions: { gracePeriodSeconds: 5 },
      },
    });
    await pods.bind('web', 'node-1', { namespace: 'shop', uid: 'u' });
    expect(last()).toMatchObject({
      path: '/api/v1/namespaces/shop/pods/web/binding',
      body: { kind: 'Binding', metadata: { uid: 'u' }, target: { kind: 'Node', name: 'node-1' } },
    });
    transport.answer = () => ({ status: 200, body: 'one\ntwo\n' });
    expect(await pods.log('web', { namespace: 'shop', tailLines: 2 })).toBe('one\ntwo\n');
    expect(last()).toMatchObject({ query: { tailLines: '2' } });
  });

  test('gives list items the type that the server leaves out', async () => {
    const { pods, transport } = setup(() => ({ status: 200, body: { metadata: {}, items: [pod()] } }));
    expect((await pods.list()).items[0]).toMatchObject({ apiVersion: 'v1', kind: 'Pod' });
    transport.answer = () => ({ status: 200, body: { metadata: {}, items: null } });
    expect((await pods.list()).items).toEqual([]);
  });

  test('knows whether a kind is served', async () => {
    const type: ResourceType = {
      group: 'karpenter.sh',
      version: 'v1',
      kind: 'NodePool',
      plural: 'nodepools',
      namespaced: false,
    };
    const { client, transport, last } = setup(() => failure(404, 'NotFound'));
    expect(await client.serves(type)).toBe(false);
    expect(last().path).toBe('/apis/karpenter.sh/v1');
    transport.answer = () => ({ status: 200, body: { resources: [{ name: 'nodeclaims' }] } });
    expect(await client.serves(type)).toBe(false);
    transport.answer = () => ({ status: 200, body: { resources: [{ name: 'nodepools' }] } });
    expect(await client.serves(type)).toBe(true);
    transport.answer = () => failure(403, 'Forbidden');
    await expect(client.serves(type)).rejects.toThrow('Forbidden');
  });
});

describe('reading a whole collection', () => {
  const page = (names: string[], next?: string): TransportResponse => ({
    status: 200,
    body: {
      metadata: { resourceVersion: '7', ...(next ? { continue: next } : {}) },
      items: names.map((name) => pod(name)),
    },
  });
  const names = (items: readonly Pod[]) => items.map((item) => item.metadata.name);

  test('reads page after page', async () => {
    const { pods, transport } = setup(({ query }) => (query?.['continue'] ? page(['c']) : page(['a', 'b'], 'next')));
    const list = await pods.listAll({
      labelSelector: 'x=y',
      resourceVersion: '5',
      resourceVersionMatch: 'NotOlderThan',
    });
    expect(names(list.items)).toEqual(['a', 'b', 'c']);
    expect(list.metadata).toEqual({ resourceVersion: '7' });
    expect(transport.requests.map((request) => request.query)).toEqual([
      { labelSelector: 'x=y', limit: '500', resourceVersion: '5', resourceVersionMatch: 'NotOlderThan' },
      { labelSelector: 'x=y', limit: '500', continue: 'next' },
    ]);
  });

  test('starts over in one piece when the token expires', async () => {
    const { pods, transport } = setup(({ query }) =>
      query?.['continue'] ? failure(410, 'Expired') : query?.['limit'] ? page(['a'], 'next') : page(['b', 'c']),
    );
    expect(names((await pods.listAll()).items)).toEqual(['b', 'c']);
    expect(transport.requests.length).toBe(3);
  });

  test('one by one: goes on where the server offers to', async () => {
    const { pods } = setup(({ query }) => {
      if (query?.['continue'] === 'stale') return failure(410, 'Expired', 'old', { metadata: { continue: 'fresh' } });
      return query?.['continue'] === 'fresh' ? page(['b']) : page(['a'], 'stale');
    });
    expect(names(await collect(pods.iterate()))).toEqual(['a', 'b']);
  });

  test('one by one: stops asking when the reader stops', async () => {
    const { pods, transport } = setup(() => page(['a', 'b'], 'more'));
    for await (const item of pods.iterate()) {
      expect(item.metadata.name).toBe('a');
      break;
    }
    expect(transport.requests.length).toBe(1);
  });
});

describe('retries', () => {
  const busy = (code: number, retryAfter?: string): TransportResponse => ({
    ...failure(code, 'Busy'),
    headers: retryAfter === undefined ? {} : { 'retry-after': retryAfter },
  });

  test('waits as long as the server asks and tries again, writes included', async () => {
    let left = 2;
    const { pods, clock, transport } = setup(() => (left-- > 0 ? busy(429, '2') : { status: 201, body: pod() }));
    const created = pods.create(pod());
    await clock.step(1999);
    expect(transport.requests.length).toBe(1);
    await clock.step(2001);
    await created;
    expect(transport.requests.length).toBe(3);
    expect(clock.monotonic()).toBe(4000);
  });

  test('gives up after ten retries', async () => {
    const { pods, clock, transport } = setup(() => busy(429, '1'));
    const result = expect(pods.list()).rejects.toThrow(ApiError);
    await clock.step(60_000);
    await result;
    expect(transport.requests.length).toBe(11);
  });

  test.each([
    ['a refusal without Retry-After', 'GET', busy(429)],
    ['a server error without Retry-After', 'GET', busy(503)],
    ['a wait beyond reason', 'GET', busy(429, '3600')],
    ['a create that may have happened', 'POST', busy(500, '1')],
    ['an eviction, whatever the server asks', 'evict', busy(429, '10')],
  ])('does not repeat %s', async (_, verb, response) => {
    const { pods, transport } = setup(() => response);
    const call =
      verb === 'GET' ? pods.list() : verb === 'POST' ? pods.create(pod()) : pods.evict('web', { namespace: 'shop' });
    await expect(call).rejects.toThrow(ApiError);
    expect(transport.requests.length).toBe(1);
    if (verb === 'evict') await expect(call.catch((e: unknown) => isTooManyRequests(e))).resolves.toBe(true);
  });

  test('repeats reads over a broken connection, never writes', async () => {
    let left = 2;
    const { pods, clock, transport } = setup(() =>
      left-- > 0 ? new TransportError('broken', 'reset') : { status: 200, body: pod() },
    );
    const got = pods.get('web', { namespace: 'shop' });
    await clock.step(1000);
    expect((await got).metadata.name).toBe('web');
    left = 1;
    await expect(pods.update(pod())).rejects.toThrow('reset');
    expect(transport.requests.length).toBe(4);
  });

  test('an abort is thrown as it was given, whatever it is', async () => {
    const { pods } = setup();
    const signal = AbortSignal.abort('just a word');
    await expect(pods.list({ signal })).rejects.toBe('just a word');
    await expect(pods.watch({ signal })).rejects.toBe('just a word');
  });

  test('an abort ends the wait', async () => {
    const { pods, clock } = setup(() => busy(429, '20'));
    const stop = new AbortController();
    const result = expect(pods.list({ signal: stop.signal })).rejects.toThrow('enough');
    await clock.step(10);
    stop.abort(new Error('enough'));
    await result;
  });
});

describe('KubeClient', () => {
  test('reports every request, retries one by one', async () => {
    let left = 1;
    const { pods, reports, clock } = setup(() =>
      left-- > 0 ? { ...failure(503, 'x'), headers: { 'retry-after': '1' } } : { status: 200, body: pod() },
    );
    const done = pods.getScale('web', { namespace: 'shop' });
    await clock.step(1000);
    await done;
    const common = {
      verb: 'get',
      method: 'GET',
      group: '',
      version: 'v1',
      kind: 'Pod',
      subresource: 'scale',
      throttledMs: 0,
    };
    expect(reports).toEqual([
      { ...common, code: '503', durationMs: 0 },
      { ...common, code: '200', durationMs: 0 },
    ]);
  });

  test('reports what never got an answer', async () => {
    const { pods, reports } = setup(() => new TransportError('timeout', 'slow'));
    await expect(pods.list()).rejects.toThrow('slow');
    expect(reports).toMatchObject([{ code: '<error>' }]);
  });

  test('throttles all requests together', async () => {
    const clock = new VirtualClock();
    const reports: RequestReport[] = [];
    const client = new KubeClient({
      transport: new FakeTransport(() => ({ status: 200, body: pod() })),
      clock,
      limiter: new TokenBucket({ qps: 1, burst: 1, clock }),
      onRequest: (report) => reports.push(report),
    });
    const all = Promise.all([1, 2, 3].map(() => client.resource(kinds.Node).get('n')));
    await clock.step(2000);
    await all;
    expect(reports.map((report) => report.throttledMs)).toEqual([0, 1000, 2000]);
  });

  test('passes on what the server warns of', async () => {
    const warnings: string[] = [];
    const warning = '299 - "unknown field \\"spec.x\\"", 299 - "v1 Endpoints is deprecated, use EndpointSlice"';
    const client = new KubeClient({
      transport: new FakeTransport(() => ({ status: 200, body: pod(), headers: { warning } })),
      onWarning: (text) => warnings.push(text),
    });
    await client.resource(kinds.Pod).create(pod());
    expect(warnings).toEqual(['unknown field "spec.x"', 'v1 Endpoints is deprecated, use EndpointSlice']);
  });

  test('a watch gives events, and throws what the server says went wrong', async () => {
    const { pods, transport } = setup();
    const watch = await pods.watch({ resourceVersion: '5', allowWatchBookmarks: true, timeoutSeconds: 60 });
    expect(transport.lastWatch.request.query).toEqual({
      resourceVersion: '5',
      allowWatchBookmarks: 'true',
      timeoutSeconds: '60',
    });
    transport.lastWatch.send('ADDED', pod());
    transport.lastWatch.send('ERROR', failure(410, 'Expired', 'too old').body);
    const seen: string[] = [];
    await expect(async () => {
      for await (const event of watch) seen.push(event.type);
    }).rejects.toMatchObject({ status: 410, reason: 'Expired', message: 'too old' });
    expect(seen).toEqual(['ADDED']);
    expect(transport.lastWatch.closed).toBe(true);
  });

  test('a refused watch throws', async () => {
    const { pods, transport } = setup();
    transport.answerWatch = () => failure(403, 'Forbidden', 'no');
    await expect(pods.watch()).rejects.toMatchObject({ status: 403 });
  });
});
