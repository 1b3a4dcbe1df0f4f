// SPDX-License-Identifier: Apache-2.0
// The server on the wire: TLS, tokens, bodies, watches.
import { Agent, request } from 'node:https';
import { afterEach, expect, test } from 'vitest';
import { RealClock } from '../base/clock.ts';
import { SeededRandom } from '../base/random.ts';
import { ApiServer } from './api-server.ts';
import type { HttpListener } from './http.ts';

const pods = '/api/v1/namespaces/default/pods';
const cleanUp: (() => Promise<void> | void)[] = [];

afterEach(async () => {
  for (const clean of cleanUp.splice(0)) await clean();
});

interface Answer {
  status: number;
  text: string;
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at answers of any kind
  body: any;
  headers: Record<string, string | string[] | undefined>;
}

async function world() {
  const server = new ApiServer({
    clock: new RealClock(),
    random: new SeededRandom(1),
    tokens: {
      admin: { username: 'admin', groups: ['system:masters'] },
      joe: { username: 'joe', groups: ['devs'] },
    },
  });
  const listener = await server.listen();
  const agent = new Agent({ ca: listener.certificateAuthority, keepAlive: true });
  cleanUp.push(async () => {
    agent.destroy();
    await server.close();
  });
  return { server, listener, call: caller(listener, agent) };
}

function caller(listener: HttpListener, agent: Agent) {
  return (
    method: string,
    path: string,
    options: { body?: string | Buffer; headers?: Record<string, string>; token?: string | null } = {},
  ): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const token = options.token === undefined ? 'admin' : options.token;
      const call = request(
        `${listener.url}${path}`,
        { method, agent, headers: { ...(token ? { authorization: `Bearer ${token}` } : {}), ...options.headers } },
        (response) => {
          const chunks: Buffer[] = [];
          response.on('data', (chunk: Buffer) => chunks.push(chunk));
          response.on('end', () => {
            const text = Buffer.concat(chunks).toString();
            const json = response.headers['content-type']?.includes('json') && !response.headers['content-encoding'];
            resolve({
              status: response.statusCode!,
              text,
              body: json ? JSON.parse(text) : undefined,
              headers: response.headers,
            });
          });
          response.on('error', reject);
        },
      );
      call.on('error', reject);
      call.end(options.body);
    });
}

const json = { 'content-type': 'application/json' };
const pod = (name: string): string =>
  JSON.stringify({ metadata: { name }, spec: { containers: [{ name: 'c', image: 'i' }] } });

test('clients that trust the generated authority get through; the certificate names loopback', async () => {
  const { call, listener } = await world();
  expect(listener.url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
  expect((await call('GET', '/version')).body.gitVersion).toBe('v1.36.1');
  expect((await call('POST', pods, { body: pod('a'), headers: json })).status).toBe(201);
});

test('without a token, or with a wrong one, only health and version are told', async () => {
  const { call } = await world();
  expect((await call('GET', '/readyz', { token: null })).text).toBe('ok');
  const nobody = await call('GET', pods, { token: null });
  expect([nobody.status, nobody.body.message]).toEqual([
    403,
    'pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in the namespace "default"',
  ]);
  const { status, body } = await call('GET', pods, { token: 'wrong' });
  expect([status, body.reason, body.message]).toEqual([401, 'Unauthorized', 'Unauthorized']);
});

test('roles are enforced, and refusals say who may not do what', async () => {
  const { call } = await world();
  const refused = await call('GET', pods, { token: 'joe' });
  expect(refused.body).toMatchObject({
    code: 403,
    message: 'pods is forbidden: User "joe" cannot list resource "pods" in API group "" in the namespace "default"',
  });
  const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings';
  const binding = {
    metadata: { name: 'joe' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
    subjects: [{ kind: 'User', name: 'joe' }],
  };
  await call('POST', rbac, { body: JSON.stringify(binding), headers: json });
  expect((await call('GET', pods, { token: 'joe' })).status).toBe(200);
  expect((await call('POST', pods, { body: pod('x'), headers: json, token: 'joe' })).status).toBe(403);
  expect((await call('GET', '/api/v1/pods', { token: 'joe' })).status).toBe(403);
});

test('bodies that are no JSON, too large, or in a language we do not speak are refused, and the server goes on', async () => {
  const { call } = await world();
  expect((await call('POST', pods, { body: '{bad', headers: json })).body.message).toBe(
    "the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: invalid character 'b' looking for beginning of object key string ({bad)",
  );
  const huge = await call('POST', pods, { body: Buffer.alloc(3 * 1024 * 1024 + 1, 32), headers: json });
  expect(huge.body).toMatchObject({
    code: 413,
    reason: 'RequestEntityTooLarge',
    message: 'Request entity too large: limit is 3145728',
  });
  expect((await call('POST', pods, { body: 'x', headers: { 'content-type': 'text/plain' } })).status).toBe(415);
  expect(
    (await call('POST', pods, { body: `${'['.repeat(100_000)}${']'.repeat(100_000)}`, headers: json })).status,
  ).toBe(400);
  expect((await call('GET', pods, { headers: { accept: 'application/vnd.kubernetes.protobuf' } })).status).toBe(406);
  expect(
    (
      await call('POST', pods, {
        body: 'k8s\0garbage',
        headers: { 'content-type': 'application/vnd.kubernetes.protobuf' },
      })
    ).status,
  ).toBe(400);
  expect((await call('GET', '/%zz')).status).toBe(404);
  expect((await call('GET', '/healthz')).status).toBe(200);
});

test('a protobuf body of a typed client is understood', async () => {
  const { call } = await world();
  // ConfigMap{metadata: {name: "a"}, data: {k: "v"}} in the Kubernetes envelope, as client-go encodes it.
  const field = (number: number, bytes: Buffer): Buffer =>
    Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes]);
  const type = Buffer.concat([field(1, Buffer.from('v1')), field(2, Buffer.from('ConfigMap'))]);
  const raw = Buffer.concat([
    field(1, Buffer.concat([field(1, Buffer.from('a')), field(3, Buffer.alloc(0))])),
    field(2, Buffer.concat([field(1, Buffer.from('k')), field(2, Buffer.from('v'))])),
  ]);
  const body = Buffer.concat([Buffer.from('k8s\0'), field(1, type), field(2, raw)]);
  const { status, body: created } = await call('POST', '/api/v1/namespaces/default/configmaps', {
    body,
    headers: { 'content-type': 'application/vnd.kubernetes.protobuf' },
  });
  expect([status, created.data, created.metadata.name]).toEqual([201, { k: 'v' }, 'a']);
});

test('half of a surrogate pair is read as the character for what cannot be read', async () => {
  const { call } = await world();
  const body = '{"metadata":{"name":"a"},"data":{"k":"x\\ud800y","pair":"\\ud83d\\ude00"}}';
  const path = '/api/v1/namespaces/default/configmaps';
  const { status, body: made } = await call('POST', path, { body, headers: json });
  expect([status, made.data]).toEqual([201, { k: 'x\ufffdy', pair: '😀' }]);
});

test('warnings in any script travel as UTF-8', async () => {
  const { call } = await world();
  const body = JSON.stringify({ metadata: { name: 'a' }, 'größe\ufffd\u007f': 1 });
  const path = '/api/v1/namespaces/default/configmaps?fieldValidation=Warn';
  const { headers, status } = await call('POST', path, { body, headers: json });
  const warning = Buffer.from(String(headers['warning']), 'latin1').toString('utf8');
  expect([status, warning]).toEqual([201, '299 - "unknown field \\"größe\ufffd \\""']);
});

test('who sends no bearer token is anonymous, who sends a wrong one is refused', async () => {
  const { call } = await world();
  const codes = [];
  for (const authorization of ['', 'Basic eDp5', 'Bearer', 'Bearer wrong']) {
    codes.push((await call('GET', pods, { headers: { authorization } })).status);
  }
  expect(codes).toEqual([403, 403, 403, 401]);
});

test('warnings travel in headers', async () => {
  const { call } = await world();
  const body = JSON.stringify({ metadata: { name: 'a' }, spec: { foo: 1, containers: [{ name: 'c', image: 'i' }] } });
  const { headers, status } = await call('POST', `${pods}?fieldValidation=Warn`, { body, headers: json });
  expect([status, headers['warning']]).toEqual([201, '299 - "unknown field \\"spec.foo\\""']);
  const strict = await call('POST', `${pods}?fieldValidation=Strict`, { body, headers: json });
  expect(strict.body.message).toBe(
    'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.foo"',
  );
});

test('large answers are compressed for those who can read it', async () => {
  const { call } = await world();
  const body = JSON.stringify({ metadata: { name: 'big' }, data: { x: 'y'.repeat(200_000) } });
  await call('POST', '/api/v1/namespaces/default/configmaps', { body, headers: json });
  const { headers, text } = await call('GET', '/api/v1/namespaces/default/configmaps/big', {
    headers: { 'accept-encoding': 'gzip' },
  });
  expect(headers['content-encoding']).toBe('gzip');
  expect(text.length).toBeLessThan(20_000);
});

test('a watch streams line by line and ends when the server closes', async () => {
  const { call, listener, server } = await world();
  const lines: string[] = [];
  const ended = Promise.withResolvers<void>();
  const first = Promise.withResolvers<void>();
  request(
    `${listener.url}${pods}?watch=true`,
    { ca: listener.certificateAuthority, headers: { authorization: 'Bearer admin' } },
    (response) => {
      response.on('data', (chunk: Buffer) => {
        lines.push(
          ...chunk
            .toString()
            .split('\n')
            .filter((line) => line !== ''),
        );
        first.resolve();
      });
      response.on('error', () => ended.resolve());
      response.on('close', () => ended.resolve());
    },
  ).end();
  await call('POST', pods, { body: pod('a'), headers: json });
  await first.promise;
  expect(JSON.parse(lines[0]!)).toMatchObject({ type: 'ADDED', object: { kind: 'Pod', metadata: { name: 'a' } } });
  await server.close();
  await ended.promise;
});

test('discovery, old and new, lists what is served', async () => {
  const { call } = await world();
  const aggregated = await call('GET', '/apis', {
    headers: { accept: 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList' },
  });
  expect(aggregated.body.kind).toBe('APIGroupDiscoveryList');
  expect(aggregated.body.items.map((group: { metadata: { name: string } }) => group.metadata.name)).toContain('apps');
  const old = await call('GET', '/apis/apps/v1');
  expect(old.body.resources.find((resource: { name: string }) => resource.name === 'deployments')).toMatchObject({
    kind: 'Deployment',
    shortNames: ['deploy'],
  });
  expect((await call('GET', '/openapi/v3')).body.paths['apis/apps/v1'].serverRelativeURL).toMatch(
    /^\/openapi\/v3\/apis\/apps\/v1\?hash=/,
  );
});
