// SPDX-License-Identifier: Apache-2.0
// Tables, metadata only, discovery, and other ways to look at what is there.
import { type ConformanceCase, has, missing, ok, refused, same } from '../case.ts';
import { budget, configMap, container, deployment, pod } from '../objects.ts';
import { everywhere } from '../paths.ts';

interface Columns {
  readonly plural: string;
  readonly body: object;
  readonly columns: readonly string[];
  readonly cells: readonly unknown[];
}

const age = /^(\d+s|<unknown>|<invalid>)$/;
const spec = {
  selector: { matchLabels: { app: 'x' } },
  template: { metadata: { labels: { app: 'x' } }, spec: { containers: [container] } },
};

const tables: readonly Columns[] = [
  {
    plural: 'configmaps',
    body: configMap('x', { a: '1', b: '2' }),
    columns: ['Name', 'Data', 'Age'],
    cells: ['x', 2, age],
  },
  {
    plural: 'secrets',
    body: { metadata: { name: 'x' }, data: { a: 'eA==' } },
    columns: ['Name', 'Type', 'Data', 'Age'],
    cells: ['x', 'Opaque', 1, age],
  },
  {
    plural: 'pods',
    body: pod('x'),
    columns: ['Name', 'Ready', 'Status', 'Restarts', 'Age', 'IP*', 'Node*', 'Nominated Node*', 'Readiness Gates*'],
    cells: ['x', '0/1', 'Pending', '0', age, '<none>', '<none>', '<none>', '<none>'],
  },
  {
    plural: 'deployments',
    body: deployment('x', { replicas: 3 }),
    columns: ['Name', 'Ready', 'Up-to-date', 'Available', 'Age', 'Containers*', 'Images*', 'Selector*'],
    cells: ['x', '0/3', 0, 0, age, 'main', 'example.com/app:1', 'app=x'],
  },
  {
    plural: 'replicasets',
    body: { metadata: { name: 'x' }, spec: { ...spec, replicas: 2 } },
    columns: ['Name', 'Desired', 'Current', 'Ready', 'Age', 'Containers*', 'Images*', 'Selector*'],
    cells: ['x', 2, 0, 0, age, 'main', 'example.com/app:1', 'app=x'],
  },
  {
    plural: 'statefulsets',
    body: { metadata: { name: 'x' }, spec: { ...spec, serviceName: 'x' } },
    columns: ['Name', 'Ready', 'Age', 'Containers*', 'Images*'],
    cells: ['x', '0/1', age, 'main', 'example.com/app:1'],
  },
  {
    plural: 'daemonsets',
    body: { metadata: { name: 'x' }, spec },
    columns: [
      'Name',
      'Desired',
      'Current',
      'Ready',
      'Up-to-date',
      'Available',
      'Node Selector',
      'Age',
      'Containers*',
      'Images*',
      'Selector*',
    ],
    cells: ['x', 0, 0, 0, 0, 0, '<none>', age, 'main', 'example.com/app:1', 'app=x'],
  },
  {
    plural: 'services',
    body: { metadata: { name: 'x' }, spec: { clusterIP: 'None', selector: { app: 'x' }, ports: [{ port: 80 }] } },
    columns: ['Name', 'Type', 'Cluster-IP', 'External-IP', 'Port(s)', 'Age', 'Selector*'],
    cells: ['x', 'ClusterIP', 'None', '<none>', '80/TCP', age, 'app=x'],
  },
  {
    plural: 'poddisruptionbudgets',
    body: budget('x', { minAvailable: '50%' }),
    columns: ['Name', 'Min Available', 'Max Unavailable', 'Allowed Disruptions', 'Age'],
    cells: ['x', '50%', 'N/A', 0, age],
  },
  {
    plural: 'leases',
    body: { metadata: { name: 'x' }, spec: { holderIdentity: 'me' } },
    columns: ['Name', 'Holder', 'Age'],
    cells: ['x', 'me', age],
  },
  { plural: 'serviceaccounts', body: { metadata: { name: 'x' } }, columns: ['Name', 'Age'], cells: ['x', age] },
  {
    plural: 'persistentvolumeclaims',
    body: {
      metadata: { name: 'x' },
      spec: { storageClassName: 'slow', accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    },
    columns: [
      'Name',
      'Status',
      'Volume',
      'Capacity',
      'Access Modes',
      'StorageClass',
      'VolumeAttributesClass',
      'Age',
      'VolumeMode*',
    ],
    cells: ['x', 'Pending', '', '', '', 'slow', '<unset>', age, 'Filesystem'],
  },
];

const tableCases: readonly ConformanceCase[] = tables.map(({ plural, body, columns, cells }) => ({
  id: `tables/${plural}`,
  title: `${plural} print with the columns users know`,
  run: async ({ a, b, c, path }) => {
    await ok(a.post(path(plural), body));
    const table = await ok(b.as('Table', path(plural)), { kind: 'Table', apiVersion: 'meta.k8s.io/v1' });
    same(
      table.columnDefinitions.map(({ name, priority }) => (priority > 0 ? `${name}*` : name)),
      columns,
    );
    has(table.rows, [{ cells, object: { kind: 'PartialObjectMetadata', metadata: { name: 'x' } } }]);
    const one = await ok(c.as('Table', path(plural, 'x')));
    has(one.rows, [{ cells }]);
  },
}));

interface Served {
  readonly path: string;
  readonly name: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
  readonly shortNames?: readonly string[];
}

const all = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];
const served: readonly Served[] = [
  { path: '/api/v1', name: 'pods', kind: 'Pod', namespaced: true, verbs: all, shortNames: ['po'] },
  { path: '/api/v1', name: 'pods/eviction', kind: 'Eviction', namespaced: true, verbs: ['create'] },
  { path: '/api/v1', name: 'pods/binding', kind: 'Binding', namespaced: true, verbs: ['create'] },
  { path: '/api/v1', name: 'nodes', kind: 'Node', namespaced: false, verbs: all, shortNames: ['no'] },
  {
    path: '/api/v1',
    name: 'namespaces',
    kind: 'Namespace',
    namespaced: false,
    verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
    shortNames: ['ns'],
  },
  {
    path: '/apis/apps/v1',
    name: 'deployments',
    kind: 'Deployment',
    namespaced: true,
    verbs: all,
    shortNames: ['deploy'],
  },
  {
    path: '/apis/apps/v1',
    name: 'deployments/scale',
    kind: 'Scale',
    namespaced: true,
    verbs: ['get', 'patch', 'update'],
  },
  {
    path: '/apis/apps/v1',
    name: 'deployments/status',
    kind: 'Deployment',
    namespaced: true,
    verbs: ['get', 'patch', 'update'],
  },
  {
    path: '/apis/policy/v1',
    name: 'poddisruptionbudgets',
    kind: 'PodDisruptionBudget',
    namespaced: true,
    verbs: all,
    shortNames: ['pdb'],
  },
  {
    path: '/apis/authorization.k8s.io/v1',
    name: 'selfsubjectaccessreviews',
    kind: 'SelfSubjectAccessReview',
    namespaced: false,
    verbs: ['create'],
  },
  {
    path: '/apis/apiextensions.k8s.io/v1',
    name: 'customresourcedefinitions',
    kind: 'CustomResourceDefinition',
    namespaced: false,
    verbs: all,
    shortNames: ['crd', 'crds'],
  },
  { path: '/apis/coordination.k8s.io/v1', name: 'leases', kind: 'Lease', namespaced: true, verbs: all },
];

const discoveryCases: readonly ConformanceCase[] = served.map(
  ({ path, name, kind, namespaced, verbs, shortNames }) => ({
    id: `discovery/${name.replace('/', '-')}`,
    title: `discovery lists ${name} with its verbs`,
    run: async ({ a }) => {
      const list = await ok(a.get(path), { kind: 'APIResourceList' });
      const found = list.resources.find((resource) => resource['name'] === name);
      has(found, { kind, namespaced, shortNames });
      same([...(found!['verbs'] as string[])].sort(), verbs);
    },
  }),
);

export const presentationCases: readonly ConformanceCase[] = [
  ...tableCases,
  ...discoveryCases,
  {
    id: 'tables/include-object',
    title: 'rows carry metadata, the whole object or nothing, as asked',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x')));
      const whole = await ok(b.as('Table', path('configmaps'), { includeObject: 'Object' }));
      has(whole.rows[0]!.object, { kind: 'ConfigMap', apiVersion: 'v1', data: { a: '1' } });
      const none = await ok(b.as('Table', path('configmaps'), { includeObject: 'None' }));
      same(none.rows[0]!.object, null);
      await refused(
        b.as('Table', path('configmaps'), { includeObject: 'Half' }),
        400,
        'BadRequest',
        'unrecognized includeObject value: "Half"',
      ).catch(() => refused(b.as('Table', path('configmaps'), { includeObject: 'Half' }), 400, 'BadRequest'));
    },
  },
  {
    id: 'tables/paged',
    title: 'Tables come in pages like lists',
    run: async ({ a, b, path }) => {
      for (const name of ['x', 'y', 'z']) await ok(a.post(path('configmaps'), configMap(name)));
      const first = await ok(b.as('Table', path('configmaps'), { limit: '2' }));
      same([first.rows.map(({ cells }) => cells[0]), first.metadata.remainingItemCount], [['x', 'y'], 1]);
      const rest = await ok(b.as('Table', path('configmaps'), { limit: '2', continue: first.metadata.continue }));
      same(
        rest.rows.map(({ cells }) => cells[0]),
        ['z'],
      );
    },
  },
  {
    id: 'tables/empty',
    title: 'an empty Table has columns and no rows',
    run: async ({ a, path }) => {
      const table = await ok(a.as('Table', path('configmaps')), { kind: 'Table', rows: [] });
      same(table.columnDefinitions.length, 3);
    },
  },
  {
    id: 'tables/refusals-are-statuses',
    title: 'a refusal is a Status whatever form was asked for',
    run: async ({ a, b, path }) => {
      await refused(a.as('Table', path('configmaps', 'x')), 404, 'NotFound', 'configmaps "x" not found');
      await refused(b.as('PartialObjectMetadata', path('configmaps', 'x')), 404, 'NotFound');
    },
  },
  {
    id: 'tables/pod-status',
    title: 'the status column of a pod says what is wrong',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('pods'), pod('x', { nodeName: 'n1' })));
      const waiting = {
        name: 'main',
        image: 'i',
        imageID: '',
        ready: false,
        restartCount: 3,
        state: { waiting: { reason: 'CrashLoopBackOff' } },
      };
      await ok(
        a.merge(path('pods', 'x', 'status'), {
          status: { phase: 'Running', podIP: '10.1.2.3', podIPs: [{ ip: '10.1.2.3' }], containerStatuses: [waiting] },
        }),
      );
      has((await ok(b.as('Table', path('pods')))).rows, [
        { cells: ['x', '0/1', 'CrashLoopBackOff', '3', age, '10.1.2.3', 'n1', '<none>', '<none>'] },
      ]);
      await ok(a.delete(path('pods', 'x')));
      has((await ok(b.as('Table', path('pods')))).rows, [
        { cells: ['x', '0/1', 'Terminating', '3', age, '10.1.2.3', 'n1', '<none>', '<none>'] },
      ]);
    },
  },
  {
    id: 'tables/node-status',
    title: 'the status column of a node tells readiness and cordons, the roles come from labels',
    run: async ({ a, b, path, unique }) => {
      const name = unique('node');
      await ok(
        a.post(path('nodes'), {
          metadata: { name, labels: { 'node-role.kubernetes.io/worker': '' } },
          spec: { unschedulable: true },
        }),
      );
      await ok(
        a.patch('strategic', path('nodes', name, 'status'), {
          status: { conditions: [{ type: 'Ready', status: 'True' }], nodeInfo: { kubeletVersion: 'v1.36.1' } },
        }),
      );
      const table = await ok(b.as('Table', path('nodes', name)));
      same(
        table.columnDefinitions.slice(0, 5).map((column) => column.name),
        ['Name', 'Status', 'Roles', 'Age', 'Version'],
      );
      has(table.rows[0]!.cells.slice(0, 5), [name, 'Ready,SchedulingDisabled', 'worker', age, 'v1.36.1']);
    },
  },
  {
    id: 'metadata-only/get',
    title: 'an object can be read as metadata only',
    run: async ({ a, b, path }) => {
      const made = await ok(a.post(path('configmaps'), configMap('x', {}, { labels: { l: 'v' } })));
      const partial = await ok(b.as('PartialObjectMetadata', path('configmaps', 'x')), {
        kind: 'PartialObjectMetadata',
        apiVersion: 'meta.k8s.io/v1',
        data: undefined,
      });
      same(partial.metadata, made.metadata);
    },
  },
  {
    id: 'metadata-only/list',
    title: 'a list can be read as metadata only, with selectors and pages',
    run: async ({ a, b, path, namespace }) => {
      for (const name of ['x', 'y'])
        await ok(a.post(path('configmaps'), configMap(name, {}, { labels: { ns: namespace } })));
      const list = await ok(
        b.as('PartialObjectMetadataList', everywhere('configmaps'), { labelSelector: `ns=${namespace}`, limit: '1' }),
        {
          kind: 'PartialObjectMetadataList',
          apiVersion: 'meta.k8s.io/v1',
          items: [
            { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: { name: 'x' }, data: undefined },
          ],
        },
      );
      same(typeof list.metadata.continue, 'string');
    },
  },
  {
    id: 'metadata-only/unknown-form',
    title: 'an unknown form is not acceptable, unless another one is',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x')));
      const accept = 'application/json;as=Sculpture;g=meta.k8s.io;v=v1';
      await refused(
        a.call({ method: 'GET', path: path('configmaps', 'x'), accept }),
        406,
        'NotAcceptable',
        /^only the following media types are accepted: /,
      );
      await ok(b.call({ method: 'GET', path: path('configmaps', 'x'), accept: `${accept},application/json` }), {
        kind: 'ConfigMap',
      });
    },
  },
  {
    id: 'discovery/groups',
    title: 'the groups are listed with their preferred versions',
    run: async ({ a, b }) => {
      const list = (await ok(a.get('/apis'), { kind: 'APIGroupList', apiVersion: 'v1' })) as unknown as {
        groups: { name: string; preferredVersion: { groupVersion: string } }[];
      };
      const groups = new Map(list.groups.map(({ name, preferredVersion }) => [name, preferredVersion.groupVersion]));
      for (const group of [
        'apps',
        'batch',
        'policy',
        'storage.k8s.io',
        'rbac.authorization.k8s.io',
        'coordination.k8s.io',
        'apiextensions.k8s.io',
        'scheduling.k8s.io',
        'autoscaling',
      ]) {
        if (!groups.has(group)) throw new Error(`no group ${group}`);
      }
      same(groups.get('apps'), 'apps/v1');
      await ok(b.get('/apis/apps'), {
        kind: 'APIGroup',
        apiVersion: 'v1',
        name: 'apps',
        preferredVersion: { groupVersion: 'apps/v1', version: 'v1' },
      });
    },
  },
  {
    id: 'discovery/core',
    title: 'the core group is at /api',
    run: async ({ a }) => {
      await ok(a.get('/api'), { kind: 'APIVersions', versions: ['v1'] });
    },
  },
  {
    id: 'discovery/aggregated',
    title: 'discovery can be had all at once',
    run: async ({ a }) => {
      const accept = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
      const found = await ok(a.call({ method: 'GET', path: '/apis', accept }), {
        kind: 'APIGroupDiscoveryList',
        apiVersion: 'apidiscovery.k8s.io/v2',
      });
      const apps = found.items.find(({ metadata }) => metadata.name === 'apps') as unknown as {
        versions: {
          version: string;
          resources: {
            resource: string;
            scope: string;
            responseKind: object;
            subresources: { subresource: string }[];
          }[];
        }[];
      };
      const deployments = apps.versions[0]!.resources.find(({ resource }) => resource === 'deployments');
      has(deployments, { scope: 'Namespaced', responseKind: { kind: 'Deployment' }, singularResource: 'deployment' });
      same(deployments!.subresources.map(({ subresource }) => subresource).sort(), ['scale', 'status']);
    },
  },
  {
    id: 'discovery/version',
    title: 'the version is that of 1.36',
    run: async ({ a }) => {
      has(await ok(a.get('/version')), { major: '1', minor: '36', gitVersion: /^v1\.36\./ });
    },
  },
  {
    id: 'discovery/health',
    title: 'health and readiness are plain words',
    wire: true,
    run: async ({ a, b }) => {
      for (const path of ['/healthz', '/livez', '/readyz']) {
        const { status, body } = await a.get(path);
        same([status, body], [200, 'ok']);
      }
      same((await b.get('/readyz', { verbose: '' })).status, 200);
    },
  },
  {
    id: 'discovery/unknown-group',
    title: 'a group or version that is not served is not found',
    run: async ({ a, b, path }) => {
      same((await a.get('/apis/nowhere.example.com/v1/things')).status, 404);
      same((await a.get('/apis/apps/v9/deployments')).status, 404);
      await refused(b.get('/api/v1/nothings'), 404, 'NotFound', 'the server could not find the requested resource');
      await missing(b.get(path('configmaps', 'x')));
    },
  },
  {
    id: 'discovery/openapi',
    title: 'OpenAPI v3 lists its documents, and each of them describes its kinds',
    run: async ({ a, b }) => {
      const index = (await ok(a.get('/openapi/v3'))) as unknown as {
        paths: Record<string, { serverRelativeURL: string }>;
      };
      for (const path of ['api/v1', 'apis/apps/v1'])
        has(index.paths[path], { serverRelativeURL: new RegExp(`^/openapi/v3/${path}\\?hash=`) });
      const document = (await ok(b.get('/openapi/v3/apis/apps/v1'))) as unknown as {
        openapi: string;
        components: { schemas: Record<string, object> };
        paths: Record<string, object>;
      };
      same(document.openapi, '3.0.0');
      has(document.components.schemas['io.k8s.api.apps.v1.Deployment'], {
        'x-kubernetes-group-version-kind': [{ group: 'apps', kind: 'Deployment', version: 'v1' }],
      });
      if (!('/apis/apps/v1/namespaces/{namespace}/deployments' in document.paths))
        throw new Error('no path of deployments');
    },
  },
];
