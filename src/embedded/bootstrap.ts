// SPDX-License-Identifier: Apache-2.0
// What every cluster has from the start: namespaces, the usual roles, the priority classes of the system.
import type { PolicyRule } from './rbac.ts';

export interface BootstrapObject {
  readonly path: string;
  readonly body: unknown;
}

const rbac = '/apis/rbac.authorization.k8s.io/v1';
const labels = { 'kubernetes.io/bootstrapping': 'rbac-defaults' };
const group = 'rbac.authorization.k8s.io';

const readVerbs = ['get', 'list', 'watch'];
const writeVerbs = ['create', 'delete', 'deletecollection', 'patch', 'update'];

const userKinds: readonly PolicyRule[] = [
  {
    apiGroups: [''],
    resources: [
      'configmaps',
      'endpoints',
      'persistentvolumeclaims',
      'persistentvolumeclaims/status',
      'pods',
      'pods/status',
      'pods/log',
      'replicationcontrollers',
      'replicationcontrollers/scale',
      'replicationcontrollers/status',
      'serviceaccounts',
      'services',
      'services/status',
    ],
    verbs: [],
  },
  {
    apiGroups: ['apps'],
    resources: [
      'controllerrevisions',
      'daemonsets',
      'daemonsets/status',
      'deployments',
      'deployments/scale',
      'deployments/status',
      'replicasets',
      'replicasets/scale',
      'replicasets/status',
      'statefulsets',
      'statefulsets/scale',
      'statefulsets/status',
    ],
    verbs: [],
  },
  { apiGroups: ['autoscaling'], resources: ['horizontalpodautoscalers', 'horizontalpodautoscalers/status'], verbs: [] },
  { apiGroups: ['batch'], resources: ['cronjobs', 'cronjobs/status', 'jobs', 'jobs/status'], verbs: [] },
  { apiGroups: ['policy'], resources: ['poddisruptionbudgets', 'poddisruptionbudgets/status'], verbs: [] },
  { apiGroups: ['networking.k8s.io'], resources: ['ingresses', 'ingresses/status', 'networkpolicies'], verbs: [] },
  { apiGroups: ['discovery.k8s.io'], resources: ['endpointslices'], verbs: [] },
  { apiGroups: ['resource.k8s.io'], resources: ['resourceclaims', 'resourceclaimtemplates'], verbs: [] },
];

function withVerbs(verbs: string[]): PolicyRule[] {
  return userKinds.map((rule) => ({ ...rule, verbs }));
}

function clusterRole(
  name: string,
  rules: readonly PolicyRule[],
  extra: Readonly<Record<string, string>> = {},
): BootstrapObject {
  return { path: `${rbac}/clusterroles`, body: { metadata: { name, labels: { ...labels, ...extra } }, rules } };
}

function aggregated(name: string, extra: Readonly<Record<string, string>> = {}): BootstrapObject {
  const key = `rbac.authorization.k8s.io/aggregate-to-${name}`;
  return {
    path: `${rbac}/clusterroles`,
    body: {
      metadata: { name, labels: { ...labels, ...extra } },
      aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [key]: 'true' } }] },
      rules: [],
    },
  };
}

function binding(name: string, role: string, ...groups: string[]): BootstrapObject {
  return {
    path: `${rbac}/clusterrolebindings`,
    body: {
      metadata: { name, labels },
      roleRef: { apiGroup: group, kind: 'ClusterRole', name: role },
      subjects: groups.map((subject) => ({ apiGroup: group, kind: 'Group', name: subject })),
    },
  };
}

const aggregateTo = (name: string): Record<string, string> => ({
  [`rbac.authorization.k8s.io/aggregate-to-${name}`]: 'true',
});

const health = ['/healthz', '/livez', '/readyz', '/version', '/version/'];
const discovery = ['/api', '/api/*', '/apis', '/apis/*', '/openapi', '/openapi/*', ...health];

const roles: readonly BootstrapObject[] = [
  clusterRole('cluster-admin', [
    { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
    { nonResourceURLs: ['*'], verbs: ['*'] },
  ]),
  aggregated('admin'),
  aggregated('edit', aggregateTo('admin')),
  aggregated('view', aggregateTo('edit')),
  clusterRole(
    'system:aggregate-to-view',
    [
      ...withVerbs(readVerbs),
      {
        apiGroups: [''],
        resources: [
          'bindings',
          'events',
          'limitranges',
          'namespaces',
          'namespaces/status',
          'resourcequotas',
          'resourcequotas/status',
        ],
        verbs: readVerbs,
      },
    ],
    aggregateTo('view'),
  ),
  clusterRole(
    'system:aggregate-to-edit',
    [
      ...withVerbs(writeVerbs),
      {
        apiGroups: [''],
        resources: ['pods/attach', 'pods/exec', 'pods/portforward', 'pods/proxy', 'secrets', 'services/proxy'],
        verbs: [...readVerbs, ...writeVerbs],
      },
      { apiGroups: [''], resources: ['pods/eviction', 'serviceaccounts/token', 'events'], verbs: ['create'] },
      { apiGroups: [''], resources: ['serviceaccounts'], verbs: ['impersonate'] },
      { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: [...readVerbs, ...writeVerbs] },
    ],
    aggregateTo('edit'),
  ),
  clusterRole(
    'system:aggregate-to-admin',
    [
      { apiGroups: ['authorization.k8s.io'], resources: ['localsubjectaccessreviews'], verbs: ['create'] },
      { apiGroups: [group], resources: ['rolebindings', 'roles'], verbs: [...readVerbs, ...writeVerbs] },
    ],
    aggregateTo('admin'),
  ),
  clusterRole('system:basic-user', [
    {
      apiGroups: ['authorization.k8s.io'],
      resources: ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'],
      verbs: ['create'],
    },
    { apiGroups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'], verbs: ['create'] },
  ]),
  clusterRole('system:discovery', [{ nonResourceURLs: discovery, verbs: ['get'] }]),
  clusterRole('system:public-info-viewer', [{ nonResourceURLs: health, verbs: ['get'] }]),
  clusterRole('system:node', [
    {
      apiGroups: [''],
      resources: ['nodes', 'nodes/status'],
      verbs: ['create', 'get', 'list', 'patch', 'update', 'watch'],
    },
    { apiGroups: [''], resources: ['pods'], verbs: ['create', 'delete', 'get', 'list', 'watch'] },
    { apiGroups: [''], resources: ['pods/status'], verbs: ['patch', 'update'] },
    { apiGroups: [''], resources: ['pods/eviction'], verbs: ['create'] },
    {
      apiGroups: [''],
      resources: ['configmaps', 'secrets', 'services', 'persistentvolumeclaims', 'persistentvolumes'],
      verbs: readVerbs,
    },
    { apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: ['create', 'patch', 'update'] },
    {
      apiGroups: ['coordination.k8s.io'],
      resources: ['leases'],
      verbs: ['create', 'delete', 'get', 'patch', 'update'],
    },
    {
      apiGroups: ['storage.k8s.io'],
      resources: ['csinodes', 'csidrivers', 'volumeattachments'],
      verbs: [...readVerbs, ...writeVerbs],
    },
    { apiGroups: ['node.k8s.io'], resources: ['runtimeclasses'], verbs: readVerbs },
  ]),
  clusterRole('system:kube-scheduler', [
    { apiGroups: ['', 'events.k8s.io'], resources: ['events'], verbs: ['create', 'patch', 'update'] },
    { apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['create', 'get', 'update', 'list', 'watch'] },
    {
      apiGroups: [''],
      resources: [
        'nodes',
        'namespaces',
        'persistentvolumeclaims',
        'persistentvolumes',
        'services',
        'replicationcontrollers',
      ],
      verbs: readVerbs,
    },
    { apiGroups: [''], resources: ['pods'], verbs: ['delete', 'get', 'list', 'watch'] },
    { apiGroups: [''], resources: ['bindings', 'pods/binding'], verbs: ['create'] },
    { apiGroups: [''], resources: ['pods/status'], verbs: ['patch', 'update'] },
    { apiGroups: ['apps', 'policy', 'storage.k8s.io', 'resource.k8s.io'], resources: ['*'], verbs: readVerbs },
  ]),
  binding('cluster-admin', 'cluster-admin', 'system:masters'),
  binding('system:basic-user', 'system:basic-user', 'system:authenticated'),
  binding('system:discovery', 'system:discovery', 'system:authenticated'),
  binding('system:public-info-viewer', 'system:public-info-viewer', 'system:authenticated', 'system:unauthenticated'),
];

const priorities = [
  {
    name: 'system-cluster-critical',
    value: 2_000_000_000,
    description: 'For what the cluster cannot work without; may move to another node.',
  },
  {
    name: 'system-node-critical',
    value: 2_000_001_000,
    description: 'For what a node cannot work without; must stay where it is.',
  },
];

/** The objects to create, in order. */
export function bootstrapObjects(): readonly BootstrapObject[] {
  return [
    ...['default', 'kube-system', 'kube-public', 'kube-node-lease'].map((name) => ({
      path: '/api/v1/namespaces',
      body: { metadata: { name } },
    })),
    ...priorities.map(({ name, value, description }) => ({
      path: '/apis/scheduling.k8s.io/v1/priorityclasses',
      body: { metadata: { name }, value, description },
    })),
    ...roles,
    {
      path: '/api/v1/namespaces/default/services',
      body: {
        metadata: { name: 'kubernetes', labels: { component: 'apiserver', provider: 'kubernetes' } },
        spec: { type: 'ClusterIP', clusterIP: '10.96.0.1', ports: [{ name: 'https', port: 443, targetPort: 6443 }] },
      },
    },
  ];
}
