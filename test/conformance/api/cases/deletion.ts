// SPDX-License-Identifier: Apache-2.0
// How objects go: finalizers, grace, eviction with budgets, namespaces.

import type { Context } from '../case.ts';
import { type ConformanceCase, has, missing, namesOf, ok, refused, same } from '../case.ts';
import { budget, configMap, deployment, pod } from '../objects.ts';

const finalizers = ['example.com/wait'];

/** A pod that a node runs, by the word of its kubelet. */
async function running(
  { a, path }: Context,
  name: string,
  labels: Readonly<Record<string, string>> = {},
): Promise<void> {
  await ok(a.post(path('pods'), pod(name, { nodeName: 'somewhere' }, { labels })));
  const conditions = [{ type: 'Ready', status: 'True' }];
  await ok(a.patch('strategic', path('pods', name, 'status'), { status: { phase: 'Running', conditions } }));
}

function eviction(name: string, deleteOptions?: object) {
  return { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name }, ...(deleteOptions ? { deleteOptions } : {}) };
}

async function budgetOf(
  { a, path }: Context,
  name: string,
  disruptionsAllowed: number,
  spec: object = { minAvailable: 1 },
): Promise<void> {
  const made = await ok(a.post(path('poddisruptionbudgets'), budget(name, spec as Record<string, unknown>)));
  const status = {
    disruptionsAllowed,
    currentHealthy: 1,
    desiredHealthy: 1,
    expectedPods: 1,
    observedGeneration: made.metadata.generation,
  };
  await ok(a.merge(path('poddisruptionbudgets', name, 'status'), { status }));
}

export const deletionCases: readonly ConformanceCase[] = [
  {
    id: 'deletion/finalizer',
    title: 'an object with a finalizer stays, marked, until it is removed',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x', {}, { finalizers })));
      const marked = await ok(b.delete(path('configmaps', 'x')), { kind: 'ConfigMap' });
      has(marked.metadata, { deletionTimestamp: /Z$/, deletionGracePeriodSeconds: 0, finalizers });
      await ok(a.get(path('configmaps', 'x')), { metadata: { deletionTimestamp: marked.metadata.deletionTimestamp } });
      await ok(b.patch('json', path('configmaps', 'x'), [{ op: 'remove', path: '/metadata/finalizers/0' }]));
      await missing(a.get(path('configmaps', 'x')));
    },
  },
  {
    id: 'deletion/two-finalizers',
    title: 'with two finalizers each client removes its own, the last one ends it',
    run: async ({ a, b, c, path }) => {
      await ok(a.post(path('configmaps'), configMap('x', {}, { finalizers: ['example.com/a', 'example.com/b'] })));
      await ok(c.delete(path('configmaps', 'x')));
      await ok(a.merge(path('configmaps', 'x'), { metadata: { finalizers: ['example.com/b'] } }));
      await ok(c.get(path('configmaps', 'x')), { metadata: { finalizers: ['example.com/b'] } });
      await ok(b.merge(path('configmaps', 'x'), { metadata: { finalizers: [] } }));
      await missing(c.get(path('configmaps', 'x')));
    },
  },
  {
    id: 'deletion/delete-again',
    title: 'deleting again what is being deleted changes nothing',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x', {}, { finalizers })));
      const first = await ok(a.delete(path('configmaps', 'x')));
      const second = await ok(b.delete(path('configmaps', 'x')));
      same(second.metadata.resourceVersion, first.metadata.resourceVersion);
      await ok(a.merge(path('configmaps', 'x'), { metadata: { finalizers: null } }));
    },
  },
  {
    id: 'deletion/no-new-finalizers',
    title: 'no finalizer can be added to what is being deleted',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x', {}, { finalizers })));
      await ok(a.delete(path('configmaps', 'x')));
      await refused(
        b.merge(path('configmaps', 'x'), { metadata: { finalizers: [...finalizers, 'example.com/new'] } }),
        422,
        'Invalid',
        'ConfigMap "x" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/new"}',
      );
      await ok(b.merge(path('configmaps', 'x'), { data: { still: 'writable' } }));
      await ok(a.merge(path('configmaps', 'x'), { metadata: { finalizers: null } }));
      await missing(b.get(path('configmaps', 'x')));
    },
  },
  {
    id: 'deletion/create-while-deleting',
    title: 'a name is taken as long as its object is being deleted',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x', {}, { finalizers })));
      await ok(a.delete(path('configmaps', 'x')));
      await refused(
        b.post(path('configmaps'), configMap('x')),
        409,
        'AlreadyExists',
        'object is being deleted: configmaps "x" already exists',
      );
      await ok(a.merge(path('configmaps', 'x'), { metadata: { finalizers: null } }));
      await ok(b.post(path('configmaps'), configMap('x')));
    },
  },
  {
    id: 'deletion/cannot-undelete',
    title: 'an update cannot take the deletion back',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x', {}, { finalizers })));
      const marked = await ok(a.delete(path('configmaps', 'x')));
      await ok(b.put(path('configmaps', 'x'), configMap('x', { b: '2' }, { finalizers })));
      await ok(a.get(path('configmaps', 'x')), {
        data: { b: '2' },
        metadata: { deletionTimestamp: marked.metadata.deletionTimestamp },
      });
      await ok(a.merge(path('configmaps', 'x'), { metadata: { finalizers: null } }));
    },
  },
  {
    id: 'deletion/bad-finalizer',
    title: 'finalizers must be qualified names',
    run: async ({ a, b, path }) => {
      await refused(
        a.post(path('configmaps'), configMap('x', {}, { finalizers: ['Bad Name'] })),
        422,
        'Invalid',
        /metadata.finalizers: Invalid value: "Bad Name": name part must consist of alphanumeric characters/,
      );
      await missing(b.get(path('configmaps', 'x')));
    },
  },
  {
    id: 'deletion/grace-bound',
    title: 'a pod on a node goes with grace: marked first, gone when its kubelet says so',
    run: async (context) => {
      const { a, b, path } = context;
      await running(context, 'x');
      const marked = await ok(a.delete(path('pods', 'x')), { kind: 'Pod' });
      has(marked.metadata, { deletionGracePeriodSeconds: 30, deletionTimestamp: /Z$/ });
      await ok(b.get(path('pods', 'x')), { metadata: { deletionGracePeriodSeconds: 30 } });
      await ok(b.delete(path('pods', 'x'), { gracePeriodSeconds: 0 }));
      await missing(a.get(path('pods', 'x')));
    },
  },
  {
    id: 'deletion/grace-unbound',
    title: 'a pod without a node has nothing to wait for',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('pods'), pod('x')));
      await ok(b.delete(path('pods', 'x')), { kind: 'Pod', metadata: { deletionGracePeriodSeconds: 0 } });
      await missing(a.get(path('pods', 'x')));
    },
  },
  {
    id: 'deletion/grace-shortened',
    title: 'grace can be shortened, not lengthened',
    run: async (context) => {
      const { a, b, path } = context;
      await running(context, 'x');
      const first = await ok(a.delete(path('pods', 'x'), { gracePeriodSeconds: 60 }), {
        metadata: { deletionGracePeriodSeconds: 60 },
      });
      await ok(b.delete(path('pods', 'x'), { gracePeriodSeconds: 90 }), {
        metadata: { deletionGracePeriodSeconds: 60, deletionTimestamp: first.metadata.deletionTimestamp },
      });
      const second = await ok(b.delete(path('pods', 'x'), { gracePeriodSeconds: 5 }), {
        metadata: { deletionGracePeriodSeconds: 5 },
      });
      same(second.metadata.deletionTimestamp < first.metadata.deletionTimestamp, true, 'an earlier end');
      await ok(a.delete(path('pods', 'x'), undefined, { gracePeriodSeconds: '0' }));
      await missing(b.get(path('pods', 'x')));
    },
  },
  {
    id: 'deletion/grace-own',
    title: 'a pod brings its own grace',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('pods'), pod('x', { nodeName: 'somewhere', terminationGracePeriodSeconds: 7 })));
      await ok(b.delete(path('pods', 'x')), { metadata: { deletionGracePeriodSeconds: 7 } });
      await ok(a.get(path('pods', 'x')), { metadata: { deletionGracePeriodSeconds: 7 } });
    },
  },
  {
    id: 'deletion/grace-finished',
    title: 'a pod that has ended needs no grace',
    run: async (context) => {
      const { a, b, path } = context;
      await running(context, 'x');
      await ok(a.merge(path('pods', 'x', 'status'), { status: { phase: 'Failed' } }));
      await ok(b.delete(path('pods', 'x')));
      await missing(a.get(path('pods', 'x')));
    },
  },
  {
    id: 'deletion/grace-with-finalizer',
    title: 'a pod with a finalizer outlives even a delete without grace',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('pods'), pod('x', { nodeName: 'somewhere' }, { finalizers })));
      await ok(b.delete(path('pods', 'x'), { gracePeriodSeconds: 0 }), { metadata: { deletionGracePeriodSeconds: 0 } });
      await ok(a.get(path('pods', 'x')));
      await ok(b.merge(path('pods', 'x'), { metadata: { finalizers: null } }));
      await missing(a.get(path('pods', 'x')));
    },
  },
  {
    id: 'deletion/propagation-unknown',
    title: 'an unknown propagation policy is refused',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x')));
      await refused(
        b.delete(path('configmaps', 'x'), { propagationPolicy: 'Sideways' }),
        422,
        'Invalid',
        'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Sideways": supported values: "Foreground", "Background", "Orphan", "nil"',
      );
      await refused(
        b.delete(path('configmaps', 'x'), { propagationPolicy: 'Orphan', orphanDependents: true }),
        422,
        'Invalid',
        /orphanDependents and deletionPropagation cannot be both set/,
      );
      await ok(a.get(path('configmaps', 'x')));
    },
  },
  {
    id: 'deletion/dry-run',
    title: 'a dry run of a delete answers and deletes nothing',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x')));
      await ok(b.delete(path('configmaps', 'x'), { dryRun: ['All'] }), { status: 'Success' });
      await ok(b.delete(path('configmaps', 'x'), undefined, { dryRun: 'All' }), { status: 'Success' });
      await ok(a.get(path('configmaps', 'x')));
    },
  },
  {
    id: 'deletion/collection-with-finalizers',
    title: 'deleting a collection marks what has finalizers and removes the rest',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x', {}, { finalizers })));
      await ok(a.post(path('configmaps'), configMap('y')));
      await ok(b.delete(path('configmaps')));
      const left = await ok(a.get(path('configmaps')));
      same(namesOf(left), ['x']);
      has(left.items[0]!.metadata, { deletionTimestamp: /Z$/ });
      await ok(a.merge(path('configmaps', 'x'), { metadata: { finalizers: null } }));
    },
  },
  {
    id: 'eviction/no-budget',
    title: 'an eviction that no budget forbids deletes the pod with its grace',
    run: async (context) => {
      const { a, b, path } = context;
      await running(context, 'x');
      await ok(b.post(path('pods', 'x', 'eviction'), eviction('x')), { kind: 'Status', status: 'Success', code: 201 });
      await ok(a.get(path('pods', 'x')), { metadata: { deletionGracePeriodSeconds: 30 } });
    },
  },
  {
    id: 'eviction/exhausted',
    title: 'a budget without room refuses an eviction and names itself',
    run: async (context) => {
      const { a, b, path } = context;
      await running(context, 'x', { app: 'guard' });
      await budgetOf(context, 'guard', 0);
      await refused(
        b.post(path('pods', 'x', 'eviction'), eviction('x')),
        429,
        'TooManyRequests',
        "Cannot evict pod as it would violate the pod's disruption budget.",
        {
          causes: [
            {
              reason: 'DisruptionBudget',
              message: 'The disruption budget guard needs 1 healthy pods and has 1 currently',
            },
          ],
        },
      );
      same((await ok(a.get(path('pods', 'x')))).metadata.deletionTimestamp, undefined);
    },
  },
  {
    id: 'eviction/uses-budget',
    title: 'an eviction takes from the budget, so the next one is refused',
    run: async (context) => {
      const { a, b, path } = context;
      await running(context, 'x', { app: 'guard' });
      await running(context, 'y', { app: 'guard' });
      await budgetOf(context, 'guard', 1);
      await ok(a.post(path('pods', 'x', 'eviction'), eviction('x')));
      const { status } = await ok(b.get(path('poddisruptionbudgets', 'guard')), { status: { disruptionsAllowed: 0 } });
      same(Object.keys(status['disruptedPods'] as object), ['x']);
      await refused(b.post(path('pods', 'y', 'eviction'), eviction('y')), 429, 'TooManyRequests');
    },
  },
  {
    id: 'eviction/stale-budget',
    title: 'a budget whose status is behind refuses, and says to wait',
    run: async (context) => {
      const { a, b, path } = context;
      await running(context, 'x', { app: 'guard' });
      await ok(a.post(path('poddisruptionbudgets'), budget('guard', { minAvailable: 1 })));
      await refused(b.post(path('pods', 'x', 'eviction'), eviction('x')), 429, 'TooManyRequests', undefined, {
        retryAfterSeconds: 10,
        causes: [
          {
            reason: 'DisruptionBudget',
            message: 'The disruption budget guard is still being processed by the server.',
          },
        ],
      });
      await ok(a.get(path('pods', 'x')));
    },
  },
  {
    id: 'eviction/two-budgets',
    title: 'a pod under two budgets cannot be evicted at all',
    run: async (context) => {
      const { a, b, path } = context;
      await running(context, 'x', { app: 'guard', too: 'yes' });
      await budgetOf(context, 'guard', 1);
      await budgetOf(context, 'second', 1, { minAvailable: 1, selector: { matchLabels: { too: 'yes' } } });
      const { status, body } = await b.post(path('pods', 'x', 'eviction'), eviction('x'));
      same(status, 500);
      has(body, {
        message: /This pod has more than one PodDisruptionBudget, which the eviction subresource does not support\./,
      });
      await ok(a.get(path('pods', 'x')));
    },
  },
  {
    id: 'eviction/pending-pod',
    title: 'a pod that does not run yet is evicted whatever the budget',
    run: async (context) => {
      const { a, b, path } = context;
      await ok(a.post(path('pods'), pod('x', {}, { labels: { app: 'guard' } })));
      await budgetOf(context, 'guard', 0);
      await ok(b.post(path('pods', 'x', 'eviction'), eviction('x')));
      await missing(a.get(path('pods', 'x')));
    },
  },
  {
    id: 'eviction/unhealthy-always-allow',
    title: 'with AlwaysAllow an unhealthy pod is evicted although the budget is empty',
    run: async (context) => {
      const { a, b, path } = context;
      await running(context, 'x', { app: 'guard' });
      await ok(
        a.patch('strategic', path('pods', 'x', 'status'), {
          status: { conditions: [{ type: 'Ready', status: 'False' }] },
        }),
      );
      await budgetOf(context, 'guard', 0, { minAvailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow' });
      await ok(b.post(path('pods', 'x', 'eviction'), eviction('x')));
      has((await ok(a.get(path('pods', 'x')))).metadata, { deletionTimestamp: /Z$/ });
    },
  },
  {
    id: 'eviction/options',
    title: 'an eviction carries delete options: grace, preconditions, dry run',
    run: async (context) => {
      const { a, b, path } = context;
      await running(context, 'x');
      await ok(b.post(path('pods', 'x', 'eviction'), eviction('x', { dryRun: ['All'] })));
      same((await ok(a.get(path('pods', 'x')))).metadata.deletionTimestamp, undefined);
      const uid = '11111111-1111-1111-1111-111111111111';
      await refused(b.post(path('pods', 'x', 'eviction'), eviction('x', { preconditions: { uid } })), 409, 'Conflict');
      await ok(b.post(path('pods', 'x', 'eviction'), eviction('x', { gracePeriodSeconds: 0 })));
      await missing(a.get(path('pods', 'x')));
    },
  },
  {
    id: 'eviction/missing-pod',
    title: 'an eviction of no pod is not found; one of another name is refused',
    run: async (context) => {
      const { a, b, path } = context;
      await refused(a.post(path('pods', 'x', 'eviction'), eviction('x')), 404, 'NotFound', 'pods "x" not found');
      await running(context, 'x');
      await refused(
        b.post(path('pods', 'x', 'eviction'), eviction('y')),
        400,
        'BadRequest',
        'name in URL does not match name in Eviction object',
      );
    },
  },
  {
    id: 'namespaces/defaults',
    title: 'a namespace has its name as a label, a finalizer and a phase',
    run: async ({ a, b, path, unique }) => {
      const name = unique('ns');
      await ok(a.post(path('namespaces'), { metadata: { name } }));
      await ok(b.get(path('namespaces', name)), {
        metadata: { labels: { 'kubernetes.io/metadata.name': name } },
        spec: { finalizers: ['kubernetes'] },
        status: { phase: 'Active' },
      });
      await ok(
        b.merge(path('namespaces', name), { metadata: { labels: { 'kubernetes.io/metadata.name': null, more: 'x' } } }),
      );
      await ok(a.get(path('namespaces', name)), {
        metadata: { labels: { 'kubernetes.io/metadata.name': name, more: 'x' } },
      });
    },
  },
  {
    id: 'namespaces/create-in-missing',
    title: 'nothing can be created in a namespace that does not exist',
    run: async ({ a, b }) => {
      await refused(
        a.post('/api/v1/namespaces/nowhere-at-all/configmaps', configMap('x')),
        404,
        'NotFound',
        'namespaces "nowhere-at-all" not found',
        { name: 'nowhere-at-all', kind: 'namespaces' },
      );
      await refused(
        b.post('/apis/apps/v1/namespaces/nowhere-at-all/deployments', deployment('x')),
        404,
        'NotFound',
        'namespaces "nowhere-at-all" not found',
      );
    },
  },
  {
    id: 'namespaces/terminating',
    title: 'nothing new can be created in a namespace that is going; what is there can change',
    run: async ({ a, b, path, unique }) => {
      const name = unique('ns');
      const inside = `/api/v1/namespaces/${name}/configmaps`;
      await ok(a.post(path('namespaces'), { metadata: { name } }));
      await ok(a.post(inside, configMap('x')));
      await ok(a.delete(path('namespaces', name)), { status: { phase: 'Terminating' } });
      await refused(
        b.post(inside, configMap('y')),
        403,
        'Forbidden',
        `configmaps "y" is forbidden: unable to create new content in namespace ${name} because it is being terminated`,
        {
          name: 'y',
          kind: 'configmaps',
          causes: [
            {
              reason: 'NamespaceTerminating',
              message: `namespace ${name} is being terminated`,
              field: 'metadata.namespace',
            },
          ],
        },
      );
      await ok(b.merge(`${inside}/x`, { data: { a: '2' } }));
      await ok(b.get(`${inside}/x`), { data: { a: '2' } });
    },
  },
  {
    id: 'namespaces/finalize',
    title: 'a namespace goes when its last finalizer is taken through finalize',
    run: async ({ a, b, path, unique }) => {
      const name = unique('ns');
      await ok(a.post(path('namespaces'), { metadata: { name } }));
      const going = await ok(a.delete(path('namespaces', name)), {
        metadata: { name },
        status: { phase: 'Terminating' },
      });
      await ok(b.merge(path('namespaces', name), { spec: { finalizers: [] } }), {
        spec: { finalizers: ['kubernetes'] },
      });
      await ok(b.put(path('namespaces', name, 'finalize'), { ...going, metadata: { name }, spec: { finalizers: [] } }));
      await missing(a.get(path('namespaces', name)));
    },
  },
  {
    id: 'namespaces/protected',
    title: 'the namespaces of the system cannot be deleted',
    run: async ({ a, b, path }) => {
      await refused(
        a.delete(path('namespaces', 'default')),
        403,
        'Forbidden',
        'namespaces "default" is forbidden: this namespace may not be deleted',
        { name: 'default', kind: 'namespaces' },
      );
      await refused(b.delete(path('namespaces', 'kube-system')), 403, 'Forbidden');
      await ok(a.get(path('namespaces', 'default')), { status: { phase: 'Active' } });
    },
  },
  {
    id: 'namespaces/no-collection-delete',
    title: 'namespaces cannot be deleted all at once',
    run: async ({ a, b, path, namespace }) => {
      await refused(
        a.delete(path('namespaces')),
        405,
        'MethodNotAllowed',
        'the server does not allow this method on the requested resource',
      );
      await ok(b.get(path('namespaces', namespace)), { status: { phase: 'Active' } });
    },
  },
];
