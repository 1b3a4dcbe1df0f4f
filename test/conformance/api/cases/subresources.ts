// SPDX-License-Identifier: Apache-2.0
// Status, scale, binding, and what dry runs leave behind.
import { type ConformanceCase, has, missing, ok, refused, same } from '../case.ts';
import { configMap, container, deployment, pod } from '../objects.ts';

const binding = (name: string, node: string, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Binding',
  metadata: { name, ...more },
  target: { apiVersion: 'v1', kind: 'Node', name: node },
});

const scaleOf = (name: string, replicas: unknown, metadata: object = {}) => ({
  apiVersion: 'autoscaling/v1',
  kind: 'Scale',
  metadata: { name, ...metadata },
  spec: { replicas },
});

export const subresourceCases: readonly ConformanceCase[] = [
  {
    id: 'status/isolated',
    title: 'a Deployment’s status is ignored in updates, its spec in status updates',
    run: async ({ a, b, path }) => {
      const made = await ok(a.post(path('deployments'), { ...deployment('x'), status: { replicas: 9 } }));
      same(made.status, {});
      await ok(b.put(path('deployments', 'x'), { ...made, status: { replicas: 9 } }), {
        status: { replicas: undefined },
      });
      const after = await ok(
        b.put(path('deployments', 'x', 'status'), {
          ...made,
          spec: { ...made.spec, replicas: 9 },
          status: { replicas: 2 },
        }),
      );
      has(after, { spec: { replicas: 1 }, status: { replicas: 2 }, metadata: { generation: 1 } });
      await ok(a.get(path('deployments', 'x', 'status')), { kind: 'Deployment', status: { replicas: 2 } });
    },
  },
  {
    id: 'status/validated',
    title: 'a status is checked: no more pods are updated than there are',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('deployments'), deployment('x')));
      await refused(
        b.merge(path('deployments', 'x', 'status'), { status: { updatedReplicas: 2, replicas: 1 } }),
        422,
        'Invalid',
        'Deployment.apps "x" is invalid: status.updatedReplicas: Invalid value: 2: cannot be greater than status.replicas',
      );
      await ok(a.get(path('deployments', 'x')), { status: { replicas: undefined } });
    },
  },
  {
    id: 'status/pod',
    title: 'a pod’s phase is set through status only',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('pods'), { ...pod('x'), status: { phase: 'Running' } }), { status: { phase: 'Pending' } });
      await ok(b.merge(path('pods', 'x'), { status: { phase: 'Running' } }), { status: { phase: 'Pending' } });
      await ok(
        b.merge(path('pods', 'x', 'status'), { status: { phase: 'Running' }, metadata: { labels: { l: 'v' } } }),
        { status: { phase: 'Running' } },
      );
      await ok(a.get(path('pods', 'x')), { status: { phase: 'Running' } });
    },
  },
  {
    id: 'status/node',
    title: 'a node may come with a status, and is updated through it',
    run: async ({ a, b, path, unique }) => {
      const name = unique('node');
      await ok(a.post(path('nodes'), { metadata: { name }, status: { capacity: { cpu: '4' } } }), {
        status: { capacity: { cpu: '4' } },
      });
      await ok(
        b.patch('strategic', path('nodes', name, 'status'), {
          status: { allocatable: { cpu: '3500m' }, conditions: [{ type: 'Ready', status: 'True' }] },
        }),
      );
      await ok(a.get(path('nodes', name)), {
        status: {
          capacity: { cpu: '4' },
          allocatable: { cpu: '3500m' },
          conditions: [{ type: 'Ready', status: 'True' }],
        },
      });
      await ok(b.merge(path('nodes', name), { status: { capacity: { cpu: '64' } } }), {
        status: { capacity: { cpu: '4' } },
      });
    },
  },
  {
    id: 'status/not-for-config-maps',
    title: 'a kind without a status has no such subresource',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x')));
      await refused(
        b.get(path('configmaps', 'x', 'status')),
        404,
        'NotFound',
        'the server could not find the requested resource',
      );
      await refused(b.put(path('configmaps', 'x', 'scale'), scaleOf('x', 1)), 404, 'NotFound');
    },
  },
  {
    id: 'scale/read',
    title: 'scale shows what a Deployment wants, has and selects',
    run: async ({ a, b, path, namespace }) => {
      const made = await ok(a.post(path('deployments'), deployment('x', { replicas: 4 })));
      await ok(a.merge(path('deployments', 'x', 'status'), { status: { replicas: 3 } }));
      const scale = await ok(b.get(path('deployments', 'x', 'scale')), {
        kind: 'Scale',
        apiVersion: 'autoscaling/v1',
        metadata: { name: 'x', namespace, uid: made.metadata.uid },
        spec: { replicas: 4 },
        status: { replicas: 3, selector: 'app=x' },
      });
      same(scale.metadata.managedFields, undefined);
    },
  },
  {
    id: 'scale/update',
    title: 'an update of scale changes the Deployment and nothing else of it',
    run: async ({ a, b, path }) => {
      const made = await ok(a.post(path('deployments'), deployment('x')));
      await ok(b.put(path('deployments', 'x', 'scale'), scaleOf('x', 5)), { spec: { replicas: 5 } });
      const after = await ok(a.get(path('deployments', 'x')), { spec: { replicas: 5 }, metadata: { generation: 2 } });
      same(after.spec['template'], made.spec['template']);
      await ok(b.put(path('deployments', 'x', 'scale'), scaleOf('x', 0)));
      await ok(a.get(path('deployments', 'x')), { spec: { replicas: 0 } });
    },
  },
  {
    id: 'scale/conflict',
    title: 'scale honours versions',
    run: async ({ a, b, path }) => {
      const made = await ok(a.post(path('deployments'), deployment('x')));
      const { resourceVersion } = made.metadata;
      await ok(a.put(path('deployments', 'x', 'scale'), scaleOf('x', 2, { resourceVersion })));
      await refused(
        b.put(path('deployments', 'x', 'scale'), scaleOf('x', 3, { resourceVersion })),
        409,
        'Conflict',
        'Operation cannot be fulfilled on deployments.apps "x": the object has been modified; please apply your changes to the latest version and try again',
      );
      await ok(b.get(path('deployments', 'x', 'scale')), { spec: { replicas: 2 } });
    },
  },
  {
    id: 'scale/negative',
    title: 'nobody scales below zero',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('deployments'), deployment('x')));
      await refused(
        b.put(path('deployments', 'x', 'scale'), scaleOf('x', -1)),
        422,
        'Invalid',
        /spec.replicas: Invalid value: -1: must be greater than or equal to 0/,
      );
      await refused(b.merge(path('deployments', 'x', 'scale'), { spec: { replicas: -3 } }), 422, 'Invalid');
      await ok(a.get(path('deployments', 'x')), { spec: { replicas: 1 } });
    },
  },
  {
    id: 'scale/patch',
    title: 'scale can be patched in two ways',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('deployments'), deployment('x')));
      await ok(b.merge(path('deployments', 'x', 'scale'), { spec: { replicas: 7 } }), {
        kind: 'Scale',
        spec: { replicas: 7 },
      });
      await ok(
        a.patch('json', path('deployments', 'x', 'scale'), [
          { op: 'test', path: '/spec/replicas', value: 7 },
          { op: 'replace', path: '/spec/replicas', value: 8 },
        ]),
      );
      await ok(b.get(path('deployments', 'x')), { spec: { replicas: 8 } });
    },
  },
  {
    id: 'scale/stateful-set',
    title: 'ReplicaSets and StatefulSets scale alike',
    run: async ({ a, b, path }) => {
      const spec = {
        selector: { matchLabels: { app: 'x' } },
        template: { metadata: { labels: { app: 'x' } }, spec: { containers: [container] } },
      };
      await ok(a.post(path('replicasets'), { metadata: { name: 'x' }, spec }), { spec: { replicas: 1 } });
      await ok(a.post(path('statefulsets'), { metadata: { name: 'x' }, spec: { ...spec, serviceName: 'x' } }));
      for (const plural of ['replicasets', 'statefulsets']) {
        await ok(b.put(path(plural, 'x', 'scale'), scaleOf('x', 3)));
        await ok(a.get(path(plural, 'x')), { spec: { replicas: 3 } });
      }
      await refused(b.get(path('deployments', 'x', 'scale')), 404, 'NotFound', 'deployments.apps "x" not found');
    },
  },
  {
    id: 'binding/binds',
    title: 'a binding puts a pod on a node and says so in a condition',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('pods'), pod('x')));
      await ok(b.post(path('pods', 'x', 'binding'), binding('x', 'node-1')), {
        kind: 'Status',
        status: 'Success',
        code: 201,
      });
      await ok(a.get(path('pods', 'x')), {
        spec: { nodeName: 'node-1' },
        status: { conditions: [{ type: 'PodScheduled', status: 'True' }] },
      });
    },
  },
  {
    id: 'binding/once',
    title: 'of two schedulers that bind a pod the second is refused',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('pods'), pod('x')));
      await ok(a.post(path('pods', 'x', 'binding'), binding('x', 'node-1')));
      await refused(
        b.post(path('pods', 'x', 'binding'), binding('x', 'node-2')),
        409,
        'Conflict',
        'Operation cannot be fulfilled on pods/binding "x": pod x is already assigned to node "node-1"',
        { name: 'x', kind: 'pods/binding' },
      );
      await ok(b.get(path('pods', 'x')), { spec: { nodeName: 'node-1' } });
    },
  },
  {
    id: 'binding/uid',
    title: 'a binding may insist on the uid of the pod',
    run: async ({ a, b, path }) => {
      const made = await ok(a.post(path('pods'), pod('x')));
      const uid = '11111111-1111-1111-1111-111111111111';
      await refused(
        b.post(path('pods', 'x', 'binding'), binding('x', 'node-1', { uid })),
        409,
        'Conflict',
        /Precondition failed: UID in precondition: 11111111-1111-1111-1111-111111111111, UID in object meta: /,
      );
      await ok(b.post(path('pods', 'x', 'binding'), binding('x', 'node-1', { uid: made.metadata.uid })));
    },
  },
  {
    id: 'binding/legacy',
    title: 'bindings are also a collection of their own',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('pods'), pod('x')));
      await ok(b.post(path('bindings'), binding('x', 'node-1')), { status: 'Success' });
      await ok(a.get(path('pods', 'x')), { spec: { nodeName: 'node-1' } });
    },
  },
  {
    id: 'binding/deleted',
    title: 'a pod that is going cannot be bound',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('pods'), pod('x', {}, { finalizers: ['example.com/wait'] })));
      await ok(a.delete(path('pods', 'x')));
      await refused(
        b.post(path('pods', 'x', 'binding'), binding('x', 'node-1')),
        409,
        'Conflict',
        /pod x is being deleted, cannot be assigned to a host/,
      );
      await ok(a.merge(path('pods', 'x'), { metadata: { finalizers: null } }));
    },
  },
  {
    id: 'binding/no-target',
    title: 'a binding needs a pod and a node',
    run: async ({ a, b, path }) => {
      await refused(
        a.post(path('pods', 'x', 'binding'), binding('x', 'node-1')),
        404,
        'NotFound',
        'pods "x" not found',
      );
      await ok(a.post(path('pods'), pod('x')));
      const { status, body } = await b.post(path('pods', 'x', 'binding'), { metadata: { name: 'x' }, target: {} });
      same([status, body.message], [500, 'target.name: Required value']);
      const other = await b.post(path('pods', 'x', 'binding'), {
        metadata: { name: 'x' },
        target: { kind: 'Pod', name: 'y' },
      });
      same(
        [other.status, other.body.message],
        [500, 'target.kind: Unsupported value: "Pod": supported values: "Node", "<empty>"'],
      );
    },
  },
  {
    id: 'binding/gated',
    title: 'a pod with scheduling gates cannot be bound until they are gone',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('pods'), pod('x', { schedulingGates: [{ name: 'example.com/wait' }] })), {
        status: { conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }] },
      });
      await refused(
        b.post(path('pods', 'x', 'binding'), binding('x', 'node-1')),
        409,
        'Conflict',
        /pod x has non-empty \.spec\.schedulingGates/,
      );
      await ok(a.merge(path('pods', 'x'), { spec: { schedulingGates: [] } }));
      await ok(b.post(path('pods', 'x', 'binding'), binding('x', 'node-1')));
    },
  },
  {
    id: 'dry-run/create',
    title: 'a dry run of a create answers as if, and leaves nothing',
    run: async ({ a, b, c, path }) => {
      const watching = await c.watch(path('configmaps'));
      const made = await ok(a.post(path('configmaps'), configMap('x'), { dryRun: 'All' }), {
        metadata: { name: 'x', uid: /-/ },
      });
      same(made.metadata.resourceVersion, undefined);
      await missing(b.get(path('configmaps', 'x')));
      await ok(a.post(path('configmaps'), configMap('y')));
      has(await watching.take(1), [{ type: 'ADDED', object: { metadata: { name: 'y' } } }]);
      watching.close();
    },
  },
  {
    id: 'dry-run/create-exists',
    title: 'a dry run is refused for the same reasons',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x')));
      await refused(b.post(path('configmaps'), configMap('x'), { dryRun: 'All' }), 409, 'AlreadyExists');
      await refused(
        b.post(path('pods'), { metadata: { name: 'x' }, spec: { containers: [] } }, { dryRun: 'All' }),
        422,
        'Invalid',
        /spec.containers: Required value/,
      );
      await refused(b.put(path('configmaps', 'nope'), configMap('nope'), { dryRun: 'All' }), 404, 'NotFound');
    },
  },
  {
    id: 'dry-run/update',
    title: 'dry runs of update, patch and apply change nothing',
    run: async ({ a, b, path }) => {
      const made = await ok(a.post(path('configmaps'), configMap('x')));
      const all = { dryRun: 'All' };
      same((await ok(b.put(path('configmaps', 'x'), configMap('x', { a: '2' }), all))).data, { a: '2' });
      same((await ok(b.merge(path('configmaps', 'x'), { data: { b: '3' } }, all))).data, { a: '1', b: '3' });
      same((await ok(b.apply(path('configmaps', 'x'), configMap('x', { c: '4' }), 'me', all))).data, {
        a: '1',
        c: '4',
      });
      same(await ok(a.get(path('configmaps', 'x'))), made);
    },
  },
  {
    id: 'dry-run/unknown',
    title: 'only All is a dry run',
    run: async ({ a, b, path }) => {
      await refused(
        a.post(path('configmaps'), configMap('x'), { dryRun: 'Some' }),
        422,
        'Invalid',
        'CreateOptions.meta.k8s.io "" is invalid: dryRun: Invalid value: ["Some"]: dryRun: Unsupported value: "Some": supported values: "All"',
      ).catch(async () => {
        await refused(
          a.post(path('configmaps'), configMap('x'), { dryRun: 'Some' }),
          422,
          'Invalid',
          /dryRun: Unsupported value: .*"Some".*: supported values: "All"/,
        );
      });
      await missing(b.get(path('configmaps', 'x')));
    },
  },
  {
    id: 'dry-run/binding',
    title: 'a dry run of a binding binds nothing',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('pods'), pod('x')));
      await ok(b.post(path('pods', 'x', 'binding'), binding('x', 'node-1'), { dryRun: 'All' }));
      same((await ok(a.get(path('pods', 'x')))).spec['nodeName'], undefined);
    },
  },
  {
    id: 'dry-run/collection',
    title: 'a dry run of deleting a collection deletes nothing',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x')));
      await ok(b.delete(path('configmaps'), undefined, { dryRun: 'All' }));
      await ok(a.get(path('configmaps', 'x')));
    },
  },
];
