// SPDX-License-Identifier: Apache-2.0
// What the server says of itself: groups, versions, kinds, health. Both forms of discovery are made from the registry.
import { openApiV2, openApiV3Document, openApiV3Index } from './openapi.ts';
import type { Registry } from './registry.ts';
import { type Resource, type ServedVersion, type Subresource, versionOf } from './resource.ts';
import type { ApiRequest, ApiResponse, RequestInfo } from './rest/request.ts';
import { methodNotAllowed, notAcceptable, unknownResource } from './status.ts';

const version = {
  major: '1',
  minor: '36',
  emulationMajor: '1',
  emulationMinor: '36',
  minCompatibilityMajor: '1',
  minCompatibilityMinor: '35',
  gitVersion: 'v1.36.1',
  gitCommit: 'karpenter-ts-embedded',
  gitTreeState: 'clean',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: 'none',
  compiler: 'none',
  platform: 'node/any',
};

/** Answers what is no request for a resource. */
export function handleDiscovery(registry: Registry, request: ApiRequest, info: RequestInfo): ApiResponse {
  const path = info.path.length > 1 && info.path.endsWith('/') ? info.path.slice(0, -1) : info.path;
  // Health is told to whoever asks, however they ask.
  if (/^\/(?:healthz|livez|readyz)(?:\/(?:ping|log|etcd))?$/.test(path)) return health(path, request);
  if (path === '/') return { status: 200, body: { paths: pathsOf(registry) } };
  if (request.method !== 'GET' && request.method !== 'HEAD') {
    if (isServed(registry, path)) throw methodNotAllowed();
    return notFound;
  }
  if (path === '/version') return { status: 200, body: version };
  if (path === '/api') return root(registry, request, true);
  if (path === '/apis') return root(registry, request, false);
  if (path === '/openapi/v2') return openApi(request, () => openApiV2(registry));
  if (path === '/openapi/v3') return { status: 200, body: openApiV3Index(registry) };
  if (path.startsWith('/openapi/v3/')) {
    const document = openApiV3Document(registry, path.slice('/openapi/v3/'.length));
    if (!document) return notFound;
    return openApi(request, () => document);
  }
  return groupOrVersion(registry, path);
}

/** Whether a path is one of those that only tell. */
function isServed(registry: Registry, path: string): boolean {
  return /^\/(?:(?:version|api|apis)$|openapi\/v[23]$)/.test(path) || groupOrVersion(registry, path).status === 200;
}

const notFound: ApiResponse = Object.freeze({ status: 404, text: '404 page not found\n' });

function health(path: string, request: ApiRequest): ApiResponse {
  const check = path.split('/')[1]!;
  if (request.query['verbose'] === undefined) return { status: 200, text: 'ok' };
  return { status: 200, text: `[+]ping ok\n[+]store ok\n${check} check passed\n` };
}

function openApi(request: ApiRequest, make: () => unknown): ApiResponse {
  const accepts = request.accept ?? '*/*';
  if (!/json|\*\/\*|application\/\*/.test(accepts)) throw notAcceptable(['application/json']);
  return { status: 200, body: make() };
}

function root(registry: Registry, request: ApiRequest, core: boolean): ApiResponse {
  const groups = registry.groups().filter((group) => (group === '') === core);
  for (const form of (request.accept ?? '').split(',')) {
    const match =
      /g=apidiscovery\.k8s\.io/.test(form) && /as=APIGroupDiscoveryList/.test(form) && /v=(v2\w*)/.exec(form);
    if (!match) continue;
    const name = match[1]!;
    if (name !== 'v2' && name !== 'v2beta1') continue;
    return {
      status: 200,
      headers: { 'content-type': `application/json;g=apidiscovery.k8s.io;v=${name};as=APIGroupDiscoveryList` },
      body: {
        kind: 'APIGroupDiscoveryList',
        apiVersion: `apidiscovery.k8s.io/${name}`,
        metadata: {},
        items: groups.map((group) => aggregatedGroup(registry, group)),
      },
    };
  }
  if (core) {
    return {
      status: 200,
      body: {
        kind: 'APIVersions',
        versions: ['v1'],
        serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: '127.0.0.1' }],
      },
    };
  }
  const list = groups.map((group) => {
    const { kind, apiVersion, ...rest } = apiGroup(registry, group);
    void [kind, apiVersion];
    return rest;
  });
  return { status: 200, body: { kind: 'APIGroupList', apiVersion: 'v1', groups: list } };
}

function aggregatedGroup(registry: Registry, group: string): unknown {
  return {
    metadata: { ...(group === '' ? {} : { name: group }), creationTimestamp: null },
    versions: registry.versions(group).map((name) => ({
      version: name,
      freshness: 'Current',
      resources: servedIn(registry, group, name).map(({ resource, served }) => ({
        resource: resource.plural,
        responseKind: { group, version: name, kind: resource.kind },
        scope: resource.namespaced ? 'Namespaced' : 'Cluster',
        singularResource: resource.singular,
        verbs: resource.verbs,
        ...(resource.shortNames.length > 0 ? { shortNames: resource.shortNames } : {}),
        ...(resource.categories.length > 0 ? { categories: resource.categories } : {}),
        ...subresourceList(resource, served, name),
      })),
    })),
  };
}

function subresourceList(resource: Resource, served: ServedVersion, version: string): object {
  const all = subresourcesOf(resource, served);
  if (all.length === 0) return {};
  return {
    subresources: all.map((sub) => ({
      subresource: sub.name,
      responseKind: { group: sub.group ?? resource.group, version: sub.version ?? version, kind: sub.kind },
      verbs: sub.verbs,
    })),
  };
}

const partVerbs = ['get', 'patch', 'update'] as const;

function subresourcesOf(resource: Resource, served: ServedVersion): Subresource[] {
  return [
    ...resource.subresources,
    ...(served.scale ? [{ name: 'scale', kind: 'Scale', group: 'autoscaling', version: 'v1', verbs: partVerbs }] : []),
    ...(served.status ? [{ name: 'status', kind: resource.kind, verbs: partVerbs }] : []),
  ].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function servedIn(registry: Registry, group: string, name: string): { resource: Resource; served: ServedVersion }[] {
  return registry.inGroup(group).flatMap((resource) => {
    const served = versionOf(resource, name);
    return served ? [{ resource, served }] : [];
  });
}

function apiGroup(registry: Registry, group: string): Record<string, unknown> {
  const versions = registry.versions(group).map((name) => ({ groupVersion: `${group}/${name}`, version: name }));
  return { kind: 'APIGroup', apiVersion: 'v1', name: group, versions, preferredVersion: versions[0] };
}

/** `/api/v1`, `/apis/apps`, `/apis/apps/v1`. */
function groupOrVersion(registry: Registry, path: string): ApiResponse {
  const parts = path.split('/').slice(1);
  const core = parts[0] === 'api' && parts.length === 2;
  if (!core && !(parts[0] === 'apis' && parts.length <= 3)) return notFound;
  const group = core ? '' : parts[1]!;
  if (!registry.hasGroup(group)) return notFound;
  if (!core && parts.length === 2) return { status: 200, body: apiGroup(registry, group) };
  const name = parts.at(-1)!;
  if (!registry.versions(group).includes(name)) throw unknownResource();
  return { status: 200, body: resourceList(registry, group, name) };
}

function resourceList(registry: Registry, group: string, name: string): unknown {
  const resources = servedIn(registry, group, name).flatMap(({ resource, served }) => [
    {
      name: resource.plural,
      singularName: resource.singular,
      namespaced: resource.namespaced,
      kind: resource.kind,
      verbs: resource.verbs,
      ...(resource.shortNames.length > 0 ? { shortNames: resource.shortNames } : {}),
      ...(resource.categories.length > 0 ? { categories: resource.categories } : {}),
    },
    ...subresourcesOf(resource, served).map((sub) => ({
      name: `${resource.plural}/${sub.name}`,
      singularName: '',
      namespaced: resource.namespaced,
      ...(sub.group === undefined ? {} : { group: sub.group, version: sub.version }),
      kind: sub.kind,
      verbs: sub.verbs,
    })),
  ]);
  return {
    kind: 'APIResourceList',
    ...(group === '' ? {} : { apiVersion: 'v1' }),
    groupVersion: group === '' ? name : `${group}/${name}`,
    resources,
  };
}

function pathsOf(registry: Registry): string[] {
  const groups = registry.groups().filter((group) => group !== '');
  return [
    '/api',
    '/api/v1',
    '/apis',
    ...groups.flatMap((group) => [
      `/apis/${group}`,
      ...registry.versions(group).map((name) => `/apis/${group}/${name}`),
    ]),
    '/healthz',
    '/livez',
    '/openapi/v2',
    '/openapi/v3',
    '/readyz',
    '/version',
  ].sort();
}
