// SPDX-License-Identifier: Apache-2.0
// Requests that no friend would send: bodies, patches, selectors, paths, definitions and rules.
import type { Chance } from './chance.ts';

export interface FuzzRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
}

export const namespace = 'fuzz';
const core = `/api/v1/namespaces/${namespace}`;
const container = {
  name: 'c',
  image: 'i',
  env: [{ name: 'A', value: '1' }],
  resources: { requests: { cpu: '1', memory: '1Gi' } },
};
const labels = { app: 'x' };
const template = { metadata: { labels }, spec: { containers: [container] } };

/** Collections, each with an object that it would take. */
const collections: readonly { path: string; object: object }[] = [
  {
    path: `${core}/configmaps`,
    object: { metadata: { name: 'x', labels, annotations: { a: 'b' } }, data: { a: '1' } },
  },
  { path: `${core}/secrets`, object: { metadata: { name: 'x' }, stringData: { a: '1' }, type: 'Opaque' } },
  {
    path: `${core}/pods`,
    object: {
      metadata: { name: 'x', labels },
      spec: {
        ...template.spec,
        tolerations: [{ key: 'a', operator: 'Exists' }],
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'In', values: ['b'] }] }],
            },
          },
        },
        topologySpreadConstraints: [
          { maxSkew: 1, topologyKey: 'z', whenUnsatisfiable: 'DoNotSchedule', labelSelector: { matchLabels: labels } },
        ],
      },
    },
  },
  { path: `${core}/services`, object: { metadata: { name: 'x' }, spec: { ports: [{ port: 80 }], selector: labels } } },
  {
    path: `${core}/events`,
    object: {
      metadata: { name: 'x' },
      involvedObject: { kind: 'Pod', name: 'x', namespace },
      reason: 'R',
      message: 'm',
    },
  },
  {
    path: `/apis/apps/v1/namespaces/${namespace}/deployments`,
    object: { metadata: { name: 'x' }, spec: { replicas: 1, selector: { matchLabels: labels }, template } },
  },
  {
    path: `/apis/batch/v1/namespaces/${namespace}/jobs`,
    object: { metadata: { name: 'x' }, spec: { template: { spec: { ...template.spec, restartPolicy: 'Never' } } } },
  },
  {
    path: `/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`,
    object: { metadata: { name: 'x' }, spec: { minAvailable: 1, selector: { matchLabels: labels } } },
  },
  {
    path: `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/roles`,
    object: { metadata: { name: 'x' }, rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }] },
  },
  {
    path: `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`,
    object: { metadata: { name: 'x' }, spec: { holderIdentity: 'me', renewTime: '2026-01-01T00:00:00.000000Z' } },
  },
  {
    path: '/api/v1/nodes',
    object: {
      metadata: { name: 'x' },
      spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] },
      status: { capacity: { cpu: '1' } },
    },
  },
  {
    path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    object: { spec: { resourceAttributes: { verb: 'get', resource: 'pods' } } },
  },
  {
    path: '/apis/fuzz.example.com/v1/namespaces/fuzz/things',
    object: {
      apiVersion: 'fuzz.example.com/v1',
      kind: 'Thing',
      metadata: { name: 'x' },
      spec: { a: 1, b: 'text', c: [{ name: 'n' }] },
    },
  },
];

const names = ['x', 'y', 'z', 'x%2Fy', '..', '%00', 'X', 'x'.repeat(300), 'é', '*', ' '];
const subresources = [
  '',
  '',
  '',
  '',
  '/status',
  '/scale',
  '/binding',
  '/eviction',
  '/finalize',
  '/log',
  '/token',
  '/nothing',
  '/status/more',
];
const patchTypes = ['json-patch+json', 'merge-patch+json', 'strategic-merge-patch+json', 'apply-patch+yaml'];
const selectorTokens = [
  'a',
  'app',
  '=',
  '==',
  '!=',
  ' in ',
  ' notin ',
  '(',
  ')',
  ',',
  '!',
  '>',
  '<',
  '1',
  '-',
  '/',
  'x.io/a',
  ' ',
  '\\',
  '"',
  'é',
  'metadata.name',
  'spec.nodeName',
];
const celTokens = [
  'self',
  'oldSelf',
  '.a',
  '.b',
  '.c',
  '[0]',
  '.all(x, ',
  '.exists(x, x == ',
  '.map(x, ',
  ')',
  '(',
  ' + ',
  ' == ',
  ' && ',
  ' || ',
  ' ? ',
  ' : ',
  '1',
  '0',
  '"s"',
  "'t'",
  '!',
  '-',
  'true',
  'null',
  '{',
  '}',
  '[',
  ']',
  ',',
  'size(',
  '.matches("(a+)+$")',
  '.split("")',
  '.replace("", "xx")',
  'has(self.a)',
  'timestamp("2026-01-01T00:00:00Z")',
  'duration("1h")',
  '9223372036854775807',
  '1.0e300',
  '/',
  '%',
  'quantity("1Gi")',
  'url("http://x")',
  '.sum()',
  '.format([1])',
  '.join("")',
  '.lowerAscii()',
];
const queryKeys = [
  'labelSelector',
  'fieldSelector',
  'limit',
  'continue',
  'resourceVersion',
  'resourceVersionMatch',
  'timeoutSeconds',
  'fieldManager',
  'fieldValidation',
  'dryRun',
  'force',
  'watch',
  'sendInitialEvents',
  'allowWatchBookmarks',
  'gracePeriodSeconds',
  'propagationPolicy',
  'includeObject',
  'pretty',
  '__proto__',
  '',
];
const queryValues = [
  '',
  '0',
  '1',
  '-1',
  'true',
  'false',
  'All',
  'Strict',
  'Exact',
  'NotOlderThan',
  'Orphan',
  'x',
  '99999999999999999999',
  'e30',
  '%',
  '\u0000',
  'é',
  'a=b',
];

const auth = { authorization: 'Bearer fuzz' };

/** The next request of a run. */
export function nextRequest(chance: Chance): FuzzRequest {
  const kinds = [
    bodyRequest,
    bodyRequest,
    patchRequest,
    patchRequest,
    listRequest,
    pathRequest,
    definitionRequest,
    deleteRequest,
    headerRequest,
  ];
  const request = chance.pick(kinds)(chance);
  // What HTTP does not allow in a path never leaves a client, and some clients do not survive the attempt.
  return { ...request, path: request.path.replaceAll(/[^\x21-\x7e]/g, encodeURIComponent) };
}

function bodyRequest(chance: Chance): FuzzRequest {
  const { path, object } = chance.pick(collections);
  const body = JSON.stringify(chance.mutant(object));
  const update = chance.often(40);
  return {
    method: update ? 'PUT' : 'POST',
    path: `${path}${update ? `/${chance.pick(names)}` : ''}${update ? chance.pick(subresources) : ''}${query(chance)}`,
    headers: { ...auth, 'content-type': chance.often(90) ? 'application/json' : 'application/yaml' },
    body: chance.often(25) ? chance.damaged(body) : body,
  };
}

function patchRequest(chance: Chance): FuzzRequest {
  const { path, object } = chance.pick(collections);
  const type = chance.pick(patchTypes);
  const patch = type === 'json-patch+json' ? operations(chance) : chance.mutant(object, 1 + chance.int(5));
  const body = JSON.stringify(patch);
  return {
    method: 'PATCH',
    path: `${path}/${chance.often(80) ? 'x' : chance.pick(names)}${chance.pick(subresources)}${query(chance, type === 'apply-patch+yaml' ? 'fieldManager=f&' : '')}`,
    headers: { ...auth, 'content-type': `application/${type}` },
    body: chance.often(10) ? chance.damaged(body) : body,
  };
}

function operations(chance: Chance): unknown {
  const parts = [
    'metadata',
    'labels',
    'spec',
    'data',
    'a',
    '0',
    '-',
    '~1',
    '~0',
    '',
    '99999999',
    '__proto__',
    'constructor',
    'containers',
  ];
  const path = (): unknown => (chance.often(90) ? `/${chance.words(parts, 4, '/')}` : chance.value());
  return Array.from({ length: chance.int(6) }, () => ({
    op: chance.pick(['add', 'remove', 'replace', 'move', 'copy', 'test', 'frob', '']),
    path: path(),
    ...(chance.often(60) ? { value: chance.value() } : {}),
    ...(chance.often(40) ? { from: path() } : {}),
  }));
}

function listRequest(chance: Chance): FuzzRequest {
  const { path } = chance.pick(collections);
  const label = encodeURIComponent(chance.words(selectorTokens, 8));
  const field = encodeURIComponent(chance.words(selectorTokens, 5));
  const watch = chance.often(30);
  const selectors = chance.pick([
    `labelSelector=${label}&`,
    `fieldSelector=${field}&`,
    `labelSelector=${label}&fieldSelector=${field}&`,
  ]);
  return {
    method: chance.often(90) ? 'GET' : 'DELETE',
    path: `${path}${query(chance, `${selectors}${watch ? 'watch=true&timeoutSeconds=1&' : ''}`)}`,
    headers: {
      ...auth,
      accept: chance.pick([
        'application/json',
        'application/json;as=Table;g=meta.k8s.io;v=v1',
        'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1',
        ';;;,',
        'application/json;as=X',
      ]),
    },
  };
}

function pathRequest(chance: Chance): FuzzRequest {
  const parts = [
    'api',
    'apis',
    'v1',
    'apps',
    'namespaces',
    'fuzz',
    'pods',
    'x',
    'watch',
    'openapi',
    'v3',
    'version',
    'healthz',
    '..',
    '.',
    '%2e%2e',
    '%',
    '%zz',
    '',
    'é',
    '\\',
    'status',
    'proxy',
    'a'.repeat(200),
  ];
  return {
    method: chance.pick(['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND', 'TRACE']),
    path: `/${chance.words(parts, 9, '/')}${query(chance)}`,
    headers: auth,
  };
}

function definitionRequest(chance: Chance): FuzzRequest {
  const rule = { rule: chance.words(celTokens, 12), message: 'm' };
  const spec = chance.mutant(
    {
      type: 'object',
      properties: {
        a: { type: 'integer', minimum: 0, default: 1 },
        b: { type: 'string', pattern: chance.pick(['^a+$', '(a+)+$', '(', '\\p{L}', '[']) },
        c: {
          type: 'array',
          items: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['name'],
        },
      },
      'x-kubernetes-validations': [rule],
    },
    chance.int(3),
  );
  const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } };
  const definition = {
    metadata: { name: 'things.fuzz.example.com' },
    spec: {
      group: 'fuzz.example.com',
      scope: 'Namespaced',
      names: { plural: 'things', kind: 'Thing' },
      versions: [{ name: 'v1', served: true, storage: true, schema, subresources: { status: {} } }],
    },
  };
  const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  const patch = chance.often(50);
  return {
    method: patch ? 'PATCH' : 'POST',
    path: patch ? `${path}/things.fuzz.example.com` : path,
    headers: { ...auth, 'content-type': patch ? 'application/merge-patch+json' : 'application/json' },
    body: JSON.stringify(chance.often(30) ? chance.mutant(definition) : definition),
  };
}

function deleteRequest(chance: Chance): FuzzRequest {
  const { path } = chance.pick(collections);
  const options = chance.mutant(
    { gracePeriodSeconds: 0, propagationPolicy: 'Background', preconditions: { uid: 'x' }, dryRun: ['All'] },
    chance.int(4),
  );
  return {
    method: 'DELETE',
    path: `${path}/${chance.pick(['x', 'y', ...names])}${query(chance)}`,
    headers: { ...auth, 'content-type': 'application/json' },
    ...(chance.often(70) ? { body: JSON.stringify(options) } : {}),
  };
}

function headerRequest(chance: Chance): FuzzRequest {
  const { path, object } = chance.pick(collections);
  const weird = ['', 'Bearer', 'Bearer wrong', 'Basic eDp5', `Bearer ${'x'.repeat(5000)}`, 'fuzz'];
  return {
    method: chance.pick(['GET', 'POST', 'PATCH']),
    path,
    headers: {
      authorization: chance.often(50) ? auth.authorization : chance.pick(weird),
      'content-type': chance.pick([
        '',
        'text/plain',
        'application/json; charset=utf-16',
        'application/vnd.kubernetes.protobuf',
        'application/x',
        'multipart/form-data',
        ';',
      ]),
      accept: chance.pick([
        '',
        '*/*',
        'text/html',
        'application/vnd.kubernetes.protobuf',
        'application/json;q=a',
        ',,,',
      ]),
      ...(chance.often(20) ? { 'impersonate-user': chance.pick(['', 'jane', 'system:admin']) } : {}),
      ...(chance.often(10) ? { 'content-encoding': 'gzip' } : {}),
    },
    body: chance.often(50) ? JSON.stringify(object) : `k8s\u0000${chance.damaged(JSON.stringify(object))}`,
  };
}

function query(chance: Chance, fixed = ''): string {
  const some = chance.often(40)
    ? Array.from(
        { length: 1 + chance.int(3) },
        () => `${encodeURIComponent(chance.pick(queryKeys))}=${encodeURIComponent(chance.pick(queryValues))}`,
      ).join('&')
    : '';
  return fixed === '' && some === '' ? '' : `?${fixed}${some}`;
}
