// SPDX-License-Identifier: Apache-2.0
// The server as its in-process clients see it.
import { expect, test } from 'vitest';
import { VirtualClock } from '../base/clock.ts';
import { SeededRandom } from '../base/random.ts';
import type { KubeObject, WatchEvent } from '../kube/object.ts';
import { isWatchStream, type PatchType, type WatchStream } from '../kube/transport.ts';
import { ApiServer } from './api-server.ts';

const pods = '/api/v1/namespaces/default/pods';

function world() {
  const clock = new VirtualClock();
  const server = new ApiServer({ clock, random: new SeededRandom(1) });
  const transport = server.transport();
  const call = async (
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    body?: unknown,
    contentType?: PatchType,
  ) => {
    const [pathname = '', search = ''] = path.split('?');
    const query = Object.fromEntries(new URLSearchParams(search));
    const answer = await transport.request({
      method,
      path: pathname,
      query,
      body,
      ...(contentType ? { contentType } : {}),
    });
    // oxlint-disable-next-line typescript/no-explicit-any -- tests look at answers of any kind
    return { status: answer.status, body: answer.body as any, headers: answer.headers };
  };
  const watch = async (path: string, query: Record<string, string> = {}): Promise<WatchStream> => {
    const stream = await transport.watch({ method: 'GET', path, query });
    if (!isWatchStream(stream)) throw new Error(`the watch was refused: ${JSON.stringify(stream.body)}`);
    return stream;
  };
  return { clock, server, call, watch };
}

function pod(name: string, extra: { labels?: Record<string, string>; spec?: object; metadata?: object } = {}): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...(extra.labels ? { labels: extra.labels } : {}), ...extra.metadata },
    spec: { containers: [{ name: 'app', image: 'app:1' }], ...extra.spec },
  };
}

async function take(stream: WatchStream, count: number): Promise<WatchEvent[]> {
  const events: WatchEvent[] = [];
  for await (const event of stream) {
    events.push(event);
    if (events.length === count) break;
  }
  return events;
}

const brief = (event: WatchEvent) => `${event.type} ${(event.object as KubeObject).metadata.name ?? ''}`.trim();

test('a pod is created with defaults, a uid, a version and a phase', async () => {
  const { call } = world();
  const { status, body } = await call('POST', pods, pod('web'));
  expect(status).toBe(201);
  expect(body.metadata).toMatchObject({
    name: 'web',
    namespace: 'default',
    generation: 1,
    creationTimestamp: '2026-01-01T00:00:00Z',
  });
  expect(body.metadata.uid).toMatch(/^[0-9a-f-]{36}$/);
  expect(body.spec).toMatchObject({
    restartPolicy: 'Always',
    schedulerName: 'default-scheduler',
    terminationGracePeriodSeconds: 30,
    priority: 0,
  });
  expect(body.status).toEqual({ phase: 'Pending', qosClass: 'BestEffort' });
  expect(Object.isFrozen(body.spec.containers[0])).toBe(true);
});

test('the body a caller passed stays the caller’s', async () => {
  const { call } = world();
  const mine = pod('web') as { spec: { nodeName?: string }; metadata: { uid?: string } };
  await call('POST', pods, mine);
  expect(mine.metadata.uid).toBeUndefined();
  mine.spec.nodeName = 'changed later';
  expect((await call('GET', `${pods}/web`)).body.spec.nodeName).toBeUndefined();
});

test('a second object of the same name, a missing one and a stale write are refused as Kubernetes does', async () => {
  const { call } = world();
  await call('POST', pods, pod('web'));
  expect((await call('POST', pods, pod('web'))).body).toMatchObject({
    code: 409,
    reason: 'AlreadyExists',
    message: 'pods "web" already exists',
  });
  expect((await call('GET', `${pods}/nope`)).body).toMatchObject({
    code: 404,
    reason: 'NotFound',
    details: { name: 'nope', kind: 'pods' },
  });
  const stale = await call('PUT', `${pods}/web`, pod('web', { metadata: { resourceVersion: '1' } }));
  expect(stale.body).toMatchObject({ code: 409, reason: 'Conflict' });
});

test('an update that changes nothing does not make a new version', async () => {
  const { call } = world();
  const { body } = await call('POST', pods, pod('web'));
  const again = await call('PUT', `${pods}/web`, body);
  expect(again.body.metadata.resourceVersion).toBe(body.metadata.resourceVersion);
});

test('a status write shares what it leaves alone with what was stored', async () => {
  const { call } = world();
  const { body: created } = await call('POST', pods, pod('web', { labels: { app: 'web' } }));
  const status = { status: { phase: 'Running' } };
  const patched = await call('PATCH', `${pods}/web/status`, status, 'application/strategic-merge-patch+json');
  expect(patched.body.status.phase).toBe('Running');
  expect(patched.body.spec).toBe(created.spec);
  expect(patched.body.metadata.labels).toBe(created.metadata.labels);
  const sent = { ...patched.body, status: { phase: 'Succeeded' } };
  const put = await call('PUT', `${pods}/web/status`, sent);
  expect(put.body.spec).toBe(created.spec);
  // What is not the stored part itself is copied: it stays the caller's.
  const spec = { ...created.spec };
  const again = await call('PUT', `${pods}/web/status`, { ...put.body, spec, status: { phase: 'Failed' } });
  expect(again.body.status.phase).toBe('Failed');
  expect(Object.isFrozen(spec)).toBe(false);
});

test('a watch sees what enters and leaves its selection', async () => {
  const { call, watch } = world();
  const stream = await watch(pods, { labelSelector: 'app=web' });
  await call('POST', pods, pod('a', { labels: { app: 'web' } }));
  await call('POST', pods, pod('b', { labels: { app: 'db' } }));
  await call('PATCH', `${pods}/b`, { metadata: { labels: { app: 'web' } } }, 'application/merge-patch+json');
  await call('PATCH', `${pods}/a`, { metadata: { labels: { app: 'db' } } }, 'application/merge-patch+json');
  await call('DELETE', `${pods}/b`);
  expect((await take(stream, 5)).map(brief)).toEqual(['ADDED a', 'ADDED b', 'DELETED a', 'MODIFIED b', 'DELETED b']);
});

test('a watch resumes from a version, and is told when that is too old', async () => {
  const { call, watch, server } = world();
  const { body } = await call('POST', pods, pod('a'));
  await call('POST', pods, pod('b'));
  const resumed = await watch(pods, { resourceVersion: body.metadata.resourceVersion });
  expect((await take(resumed, 1)).map(brief)).toEqual(['ADDED b']);
  server.store.collection('pods').compact();
  const late = await watch(pods, { resourceVersion: body.metadata.resourceVersion });
  const [event] = await take(late, 1);
  expect(event).toMatchObject({ type: 'ERROR', object: { code: 410, reason: 'Expired' } });
});

test('a watch list sends what is there, then says so, then follows', async () => {
  const { call, watch } = world();
  await call('POST', pods, pod('a'));
  const stream = await watch(pods, {
    sendInitialEvents: 'true',
    resourceVersionMatch: 'NotOlderThan',
    allowWatchBookmarks: 'true',
  });
  const [added, bookmark] = await take(stream, 2);
  expect(brief(added!)).toBe('ADDED a');
  expect(bookmark).toMatchObject({
    type: 'BOOKMARK',
    object: { metadata: { annotations: { 'k8s.io/initial-events-end': 'true' } } },
  });
});

test('pages of a list are of one moment', async () => {
  const { call } = world();
  for (const name of ['a', 'b', 'c', 'd']) await call('POST', pods, pod(name));
  const first = await call('GET', `${pods}?limit=2`);
  expect(first.body.metadata.remainingItemCount).toBe(2);
  await call('DELETE', `${pods}/c`);
  await call('POST', pods, pod('bb'));
  const second = await call('GET', `${pods}?limit=2&continue=${encodeURIComponent(first.body.metadata.continue)}`);
  expect(second.body.items.map((item: KubeObject) => item.metadata.name)).toEqual(['c', 'd']);
  expect(second.body.metadata.resourceVersion).toBe(first.body.metadata.resourceVersion);
});

test('a continue token expires, and the answer carries one that goes on', async () => {
  const { call, clock } = world();
  for (const name of ['a', 'b', 'c']) await call('POST', pods, pod(name));
  const first = await call('GET', `${pods}?limit=1`);
  await clock.step(6 * 60_000);
  const late = await call('GET', `${pods}?limit=1&continue=${encodeURIComponent(first.body.metadata.continue)}`);
  expect(late.body).toMatchObject({ code: 410, reason: 'Expired' });
  const rest = await call('GET', `${pods}?continue=${encodeURIComponent(late.body.metadata.continue)}`);
  expect(rest.body.items.map((item: KubeObject) => item.metadata.name)).toEqual(['b', 'c']);
});

test('a pod on a node is deleted with grace, an unscheduled one at once', async () => {
  const { call } = world();
  await call('POST', pods, pod('pending'));
  await call('DELETE', `${pods}/pending`);
  expect((await call('GET', `${pods}/pending`)).status).toBe(404);
  await call('POST', pods, pod('running'));
  await call('POST', `${pods}/running/binding`, {
    metadata: { name: 'running' },
    target: { kind: 'Node', name: 'n1' },
  });
  const { body } = await call('DELETE', `${pods}/running`);
  expect(body.metadata).toMatchObject({ deletionGracePeriodSeconds: 30, deletionTimestamp: '2026-01-01T00:00:30Z' });
  await call('DELETE', `${pods}/running`, { gracePeriodSeconds: 0 });
  expect((await call('GET', `${pods}/running`)).status).toBe(404);
});

test('finalizers hold a deleted object until the last is gone', async () => {
  const { call } = world();
  const maps = '/api/v1/namespaces/default/configmaps';
  await call('POST', maps, { metadata: { name: 'held', finalizers: ['example.com/hold'] } });
  const { body } = await call('DELETE', `${maps}/held`);
  expect(body.metadata.deletionTimestamp).toBeDefined();
  const more = await call(
    'PATCH',
    `${maps}/held`,
    { metadata: { finalizers: ['example.com/hold', 'example.com/new'] } },
    'application/merge-patch+json',
  );
  expect(more.body).toMatchObject({ code: 422, message: expect.stringContaining('no new finalizers can be added') });
  await call('PATCH', `${maps}/held`, { metadata: { finalizers: null } }, 'application/merge-patch+json');
  expect((await call('GET', `${maps}/held`)).status).toBe(404);
});

test('what lives in a missing or terminating namespace cannot be created', async () => {
  const { call } = world();
  expect((await call('POST', '/api/v1/namespaces/nope/pods', pod('a'))).body.message).toBe(
    'namespaces "nope" not found',
  );
  await call('POST', '/api/v1/namespaces', { metadata: { name: 'going' } });
  await call('DELETE', '/api/v1/namespaces/going');
  expect((await call('GET', '/api/v1/namespaces/going')).body.status.phase).toBe('Terminating');
  expect((await call('POST', '/api/v1/namespaces/going/pods', pod('a'))).body).toMatchObject({
    code: 403,
    message: 'pods "a" is forbidden: unable to create new content in namespace going because it is being terminated',
  });
  await call('PUT', '/api/v1/namespaces/going/finalize', { metadata: { name: 'going' }, spec: { finalizers: [] } });
  expect((await call('GET', '/api/v1/namespaces/going')).status).toBe(404);
});

test('eviction asks the budget, counts, and refuses with a reason', async () => {
  const { call } = world();
  const budgets = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
  await call('POST', budgets, {
    metadata: { name: 'web' },
    spec: { minAvailable: 1, selector: { matchLabels: { app: 'web' } } },
  });
  await call(
    'PATCH',
    `${budgets}/web/status`,
    { status: { observedGeneration: 1, disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1, expectedPods: 2 } },
    'application/merge-patch+json',
  );
  for (const name of ['a', 'b']) {
    await call('POST', pods, pod(name, { labels: { app: 'web' } }));
    await call('POST', `${pods}/${name}/binding`, { metadata: { name }, target: { kind: 'Node', name: 'n1' } });
    await call(
      'PATCH',
      `${pods}/${name}/status`,
      { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } },
      'application/merge-patch+json',
    );
  }
  expect((await call('POST', `${pods}/a/eviction`, { metadata: { name: 'a' } })).status).toBe(201);
  const evicted = (await call('GET', `${pods}/a`)).body;
  expect(evicted.metadata.deletionTimestamp).toBeDefined();
  expect(evicted.status.conditions).toContainEqual(
    expect.objectContaining({ type: 'DisruptionTarget', status: 'True', reason: 'EvictionByEvictionAPI' }),
  );
  const refused = await call('POST', `${pods}/b/eviction`, { metadata: { name: 'b' } });
  expect(refused.body).toMatchObject({
    code: 429,
    reason: 'TooManyRequests',
    details: {
      causes: [
        { reason: 'DisruptionBudget', message: 'The disruption budget web needs 1 healthy pods and has 2 currently' },
      ],
    },
  });
});

test('dependents go when their owner goes; orphans stay; foreground waits', async () => {
  const { call, clock } = world();
  const sets = '/apis/apps/v1/namespaces/default/replicasets';
  const spec = {
    replicas: 0,
    selector: { matchLabels: { a: 'b' } },
    template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
  };
  const owned = async (policy: string) => {
    const name = policy.toLowerCase();
    const owner = (await call('POST', sets, { metadata: { name }, spec })).body;
    const ownerReferences = [
      { apiVersion: 'apps/v1', kind: 'ReplicaSet', name, uid: owner.metadata.uid, blockOwnerDeletion: true },
    ];
    await call('POST', pods, pod(name, { metadata: { ownerReferences } }));
    await call('DELETE', `${sets}/${name}`, { propagationPolicy: policy });
    await clock.step(10);
    return [(await call('GET', `${sets}/${name}`)).status, (await call('GET', `${pods}/${name}`)).status];
  };
  expect(await owned('Background')).toEqual([404, 404]);
  expect(await owned('Orphan')).toEqual([404, 200]);
  expect(await owned('Foreground')).toEqual([404, 404]);
  expect((await call('GET', `${pods}/orphan`)).body.metadata.ownerReferences ?? []).toEqual([]);
});

test('events are one store behind two groups', async () => {
  const { call } = world();
  await call('POST', '/apis/events.k8s.io/v1/namespaces/default/events', {
    metadata: { name: 'e' },
    regarding: { kind: 'Pod', name: 'x', namespace: 'default' },
    note: 'hello',
    reason: 'R',
    type: 'Normal',
  });
  const core = await call('GET', '/api/v1/namespaces/default/events/e');
  expect(core.body).toMatchObject({ apiVersion: 'v1', involvedObject: { name: 'x' }, message: 'hello' });
  const again = await call('GET', '/apis/events.k8s.io/v1/namespaces/default/events?fieldSelector=regarding.name%3Dx');
  expect(again.body.items[0]).toMatchObject({ apiVersion: 'events.k8s.io/v1', note: 'hello' });
});

test('scale reads and writes replicas, and generation follows', async () => {
  const { call } = world();
  const deployments = '/apis/apps/v1/namespaces/default/deployments';
  await call('POST', deployments, {
    metadata: { name: 'web' },
    spec: {
      selector: { matchLabels: { a: 'b' } },
      template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    },
  });
  expect((await call('GET', `${deployments}/web/scale`)).body).toMatchObject({
    kind: 'Scale',
    spec: { replicas: 1 },
    status: { selector: 'a=b' },
  });
  await call('PATCH', `${deployments}/web/scale`, { spec: { replicas: 5 } }, 'application/merge-patch+json');
  expect((await call('GET', `${deployments}/web`)).body).toMatchObject({
    metadata: { generation: 2 },
    spec: { replicas: 5 },
  });
});

test('bad requests get the codes and words of a real API server', async () => {
  const { call } = world();
  await call('POST', pods, pod('a'));
  const message = async (...args: Parameters<typeof call>) => {
    const { status, body } = await call(...args);
    return `${status} ${typeof body === 'string' ? body.trim() : body.message}`;
  };
  expect(await message('GET', `${pods}?labelSelector=a%3Db%3Dc`)).toBe(
    "400 found '=', expected: ',' or 'end of string'",
  );
  expect(await message('GET', `${pods}?fieldSelector=spec.foo%3Dc`)).toBe('400 field label not supported: spec.foo');
  expect(await message('GET', `${pods}?limit=x`)).toBe('400 strconv.ParseInt: parsing "x": invalid syntax');
  expect(await message('GET', `${pods}?resourceVersion=99999999`)).toMatch(
    /^504 Timeout: Too large resource version: 99999999, current: /,
  );
  expect(await message('GET', '/api/v1/foos')).toBe('404 the server could not find the requested resource');
  expect(await message('GET', '/apis/nope/v1/foos')).toBe('404 404 page not found');
  expect(await message('POST', `${pods}/a`, {})).toBe(
    '405 the server does not allow this method on the requested resource',
  );
  expect(await message('DELETE', `${pods}/a`, { propagationPolicy: 'Foo' })).toMatch(
    /^422 DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Foo"/,
  );
  expect(await message('DELETE', `${pods}/a`, { preconditions: { uid: { odd: true } } })).toMatch(
    /^400 DeleteOptions in version "v1"/,
  );
  expect(await message('POST', pods, { metadata: { name: 'b' }, spec: { containers: [] } })).toBe(
    '422 Pod "b" is invalid: spec.containers: Required value',
  );
  expect(
    await message(
      'PATCH',
      `${pods}/a`,
      [{ op: 'test', path: '/metadata/name', value: 'x' }],
      'application/json-patch+json',
    ),
  ).toBe('422 the server rejected our request due to an error in our request');
});

test('a job that is deleted without a word on its pods leaves them, and says so', async () => {
  const { call, clock } = world();
  const jobs = '/apis/batch/v1/namespaces/default/jobs';
  const spec = { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'c', image: 'i' }] } } };
  const job = (await call('POST', jobs, { metadata: { name: 'once' }, spec })).body;
  const ownerReferences = [{ apiVersion: 'batch/v1', kind: 'Job', name: 'once', uid: job.metadata.uid }];
  await call('POST', pods, pod('left', { metadata: { ownerReferences } }));
  const { headers } = await call('DELETE', `${jobs}/once`);
  expect(headers?.['warning']).toContain('child pods are preserved by default');
  await clock.step(10);
  expect([(await call('GET', `${jobs}/once`)).status, (await call('GET', `${pods}/left`)).status]).toEqual([404, 200]);
});
