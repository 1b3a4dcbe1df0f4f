// SPDX-License-Identifier: Apache-2.0
// Whatever is sent, the answer is one a real API server could give, and the server goes on.
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { VirtualClock } from '../base/clock.ts';
import { SeededRandom } from '../base/random.ts';
import { kinds } from '../kube/kinds.ts';
import type { ResourceType } from '../kube/object.ts';
import { collectionPath } from '../kube/paths.ts';
import { ApiServer } from './api-server.ts';
import { systemUser } from './rest/request.ts';

function server(): ApiServer {
  return new ApiServer({ clock: new VirtualClock(), random: new SeededRandom(1) });
}

const types = Object.values(kinds) as ResourceType[];
const table = 'application/json;as=Table;v=v1;g=meta.k8s.io';

test('every kind our client knows is served, printed and described', () => {
  const api = server();
  for (const type of types) {
    if (type.kind === 'Binding' || type.kind.endsWith('Review')) continue;
    const path = collectionPath(type, 'default');
    const body = { metadata: { name: `any-name-${type.group || 'core'}` } };
    const answer = api.handle({ method: 'POST', path, query: {}, body, ownsBody: false, user: systemUser });
    expect([201, 422], `${type.kind}: ${JSON.stringify(answer.body)}`).toContain(answer.status);
    const list = api.handle({ method: 'GET', path, query: {}, accept: table, ownsBody: false, user: systemUser });
    expect(list.body, type.kind).toMatchObject({ kind: 'Table' });
  }
});

test('fields of metadata named like what every JavaScript object has are unknown fields', () => {
  const api = server();
  const body = { metadata: { name: 'x', hasOwnProperty: '', toString: 1, constructor: {} } };
  const path = '/api/v1/namespaces/default/configmaps';
  const answer = api.handle({ method: 'POST', path, query: {}, body, ownsBody: false, user: systemUser });
  expect(answer.status).toBe(201);
  expect(Object.keys((answer.body as { metadata: object }).metadata)).not.toContain('hasOwnProperty');
});

test('a merge patch of a node does not touch the status that is stored', () => {
  const api = server();
  const request = (method: string, path: string, body: unknown, contentType?: string) =>
    api.handle({
      method,
      path,
      query: {},
      body,
      ownsBody: false,
      user: systemUser,
      ...(contentType ? { contentType } : {}),
    });
  const node = (): { spec: object; status: { allocatable?: object } } =>
    request('GET', '/api/v1/nodes/x', undefined).body as never;
  request('POST', '/api/v1/nodes', { metadata: { name: 'x' } });
  const status = '/api/v1/nodes/x/status';
  request('PATCH', status, { status: { capacity: { cpu: '1' } } }, 'application/merge-patch+json');
  request('PATCH', status, { status: { allocatable: null } }, 'application/merge-patch+json');
  const answer = request('PATCH', '/api/v1/nodes/x', { spec: { unschedulable: true } }, 'application/merge-patch+json');
  expect(answer.status).toBe(200);
  expect(node().status.allocatable).toEqual({ cpu: '1' });
  expect(node().spec).toMatchObject({ unschedulable: true });
});

test('objects with next to nothing in them can be printed', () => {
  const api = server();
  for (const resource of api.registry.all()) {
    const object = { kind: resource.kind, apiVersion: 'v1', metadata: { name: 'x' } };
    for (const version of resource.versions) {
      for (const column of version.columns)
        expect(() => column.cell(object, 0), `${resource.id} ${column.name}`).not.toThrow();
    }
  }
});

const junk = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, 0, -1, 1.5, '', 'x', '1Gi', 'default', '__proto__', {}, []),
    fc.array(tie('value'), { maxLength: 3 }),
    tie('object'),
  ),
  object: fc.dictionary(
    fc.constantFrom(
      'metadata',
      'spec',
      'status',
      'name',
      'namespace',
      'labels',
      'annotations',
      'finalizers',
      'ownerReferences',
      'containers',
      'template',
      'selector',
      'matchLabels',
      'matchExpressions',
      'replicas',
      'resources',
      'requests',
      'limits',
      'cpu',
      'kind',
      'apiVersion',
      'resourceVersion',
      'uid',
      'taints',
      'tolerations',
      'rules',
      'subjects',
      'roleRef',
      'versions',
      'names',
      'schema',
      'data',
      'preconditions',
      'propagationPolicy',
      'target',
      'op',
      'path',
      '__proto__',
      'managedFields',
      'volumes',
      'initContainers',
      'conditions',
      'minAvailable',
      'group',
      'plural',
      'scope',
      'aggregationRule',
    ),
    tie('value'),
    { maxKeys: 5 },
  ),
}));

const paths = [
  ...types.flatMap((type) => [collectionPath(type, 'default'), `${collectionPath(type, 'default')}/x`]),
  ...['binding', 'eviction', 'log', 'status', 'exec', 'nope'].map(
    (part) => `/api/v1/namespaces/default/pods/x/${part}`,
  ),
  '/apis/apps/v1/namespaces/default/deployments/x/scale',
  '/api/v1/namespaces/default/finalize',
  '/api/v1/watch/pods',
  '/',
  '/apis/',
  '//',
  '/openapi/v3/apis/apps/v1',
];

const hostile = fc.record({
  method: fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'),
  path: fc.constantFrom(...paths),
  query: fc.dictionary(
    fc.constantFrom(
      'labelSelector',
      'fieldSelector',
      'limit',
      'continue',
      'resourceVersion',
      'resourceVersionMatch',
      'dryRun',
      'fieldManager',
      'force',
      'watch',
      'sendInitialEvents',
      'includeObject',
      'gracePeriodSeconds',
      'fieldValidation',
      'timeoutSeconds',
    ),
    fc.constantFrom(
      '',
      '0',
      '1',
      '-1',
      'x',
      'true',
      'All',
      'a=b',
      'a in (b',
      '!',
      'metadata.name=x',
      'Strict',
      'NotOlderThan',
      '99999999999999999999',
      'eyJ2IjoibWV0YS5rOHMuaW8vdjEifQ',
    ),
    { maxKeys: 3 },
  ),
  body: fc.oneof(junk['object']!, junk['value']!, fc.array(junk['object']!, { maxLength: 3 })),
  contentType: fc.constantFrom(
    'application/json',
    'application/json-patch+json',
    'application/merge-patch+json',
    'application/strategic-merge-patch+json',
    'application/apply-patch+yaml',
  ),
  accept: fc.constantFrom(
    '',
    'application/json',
    table,
    'text/html',
    'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1',
  ),
});

test('hostile requests are answered, never with a failure of the server', () => {
  const api = server();
  api.handle({
    method: 'POST',
    path: '/api/v1/namespaces/default/pods',
    query: {},
    body: { metadata: { name: 'x' }, spec: { containers: [{ name: 'c', image: 'i' }] } },
    ownsBody: false,
    user: systemUser,
  });
  fc.assert(
    fc.property(hostile, (request) => {
      const answer = api.handle({ ...request, ownsBody: false, user: systemUser });
      answer.stream?.close();
      const body = answer.body as { message?: string } | undefined;
      expect(body?.message ?? '', JSON.stringify(answer.body)).not.toContain('caused the API server to panic');
    }),
    { numRuns: 3000, seed: 7 },
  );
  expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  expect(api.handle({ method: 'GET', path: '/readyz', query: {}, ownsBody: false, user: systemUser }).status).toBe(200);
});
