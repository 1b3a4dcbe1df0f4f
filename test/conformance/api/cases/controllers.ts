// SPDX-License-Identifier: Apache-2.0
// What controllers beside the API server do: collect by owner, empty namespaces, compute budgets, run Deployments.

import type { Thing } from '../caller.ts';
import type { Context } from '../case.ts';
import { type ConformanceCase, eventually, has, missing, namesOf, ok, pause, refused, same } from '../case.ts';
import { budget, configMap, deployment, pod } from '../objects.ts';

function ownedBy(owner: Thing, more: object = {}): object {
  const { kind, apiVersion, metadata } = owner;
  return { ownerReferences: [{ apiVersion, kind, name: metadata.name, uid: metadata.uid, ...more }] };
}

async function family({ a, path }: Context, more: object = {}): Promise<Thing> {
  const owner = await ok(a.post(path('configmaps'), configMap('owner')));
  await ok(a.post(path('configmaps'), configMap('child', {}, ownedBy(owner, more) as Record<string, unknown>)));
  return owner;
}

const slow = 30_000;

export const controllerCases: readonly ConformanceCase[] = [
  {
    id: 'collection/background',
    title: 'with its owner a dependent goes, soon',
    controllers: true,
    run: async (context) => {
      const { a, b, path } = context;
      await family(context);
      await ok(a.delete(path('configmaps', 'owner'), { propagationPolicy: 'Background' }));
      await missing(a.get(path('configmaps', 'owner')));
      await eventually(() => missing(b.get(path('configmaps', 'child'))), slow);
    },
  },
  {
    id: 'collection/foreground',
    title: 'in the foreground the owner waits for dependents that block it',
    controllers: true,
    run: async (context) => {
      const { a, b, path } = context;
      await family(context, { blockOwnerDeletion: true });
      await ok(b.merge(path('configmaps', 'child'), { metadata: { finalizers: ['example.com/wait'] } }));
      const marked = await ok(a.delete(path('configmaps', 'owner'), { propagationPolicy: 'Foreground' }), {
        kind: 'ConfigMap',
      });
      same(marked.metadata.finalizers, ['foregroundDeletion']);
      await eventually(
        async () => has((await ok(b.get(path('configmaps', 'child')))).metadata, { deletionTimestamp: /Z$/ }),
        slow,
      );
      await ok(b.get(path('configmaps', 'owner')));
      await ok(b.merge(path('configmaps', 'child'), { metadata: { finalizers: null } }));
      await eventually(() => missing(a.get(path('configmaps', 'owner'))), slow);
    },
  },
  {
    id: 'collection/orphan',
    title: 'orphaned dependents stay and forget their owner',
    controllers: true,
    run: async (context) => {
      const { a, b, path } = context;
      await family(context);
      await pause(500);
      await ok(a.delete(path('configmaps', 'owner'), { propagationPolicy: 'Orphan' }));
      await eventually(() => missing(a.get(path('configmaps', 'owner'))), slow);
      const child = await ok(b.get(path('configmaps', 'child')));
      has(child.metadata, { ownerReferences: undefined, deletionTimestamp: undefined });
    },
  },
  {
    id: 'collection/absent-owner',
    title: 'a dependent of an owner that never was is collected',
    controllers: true,
    run: async ({ a, b, path }) => {
      const owner = {
        kind: 'ConfigMap',
        apiVersion: 'v1',
        metadata: { name: 'ghost', uid: '11111111-1111-1111-1111-111111111111' },
      } as Thing;
      await ok(a.post(path('configmaps'), configMap('child', {}, ownedBy(owner) as Record<string, unknown>)));
      await eventually(() => missing(b.get(path('configmaps', 'child'))), slow);
    },
  },
  {
    id: 'collection/two-owners',
    title: 'a dependent with two owners stays until both are gone',
    controllers: true,
    run: async ({ a, b, path }) => {
      const [one, two] = [
        await ok(a.post(path('configmaps'), configMap('one'))),
        await ok(a.post(path('configmaps'), configMap('two'))),
      ];
      const ownerReferences = [one, two].map(({ metadata }) => ({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        name: metadata.name,
        uid: metadata.uid,
      }));
      await ok(a.post(path('configmaps'), configMap('child', {}, { ownerReferences })));
      await ok(b.delete(path('configmaps', 'one')));
      await eventually(async () => {
        const child = (await ok(b.get(path('configmaps', 'child')))) as unknown as {
          metadata: { ownerReferences: { name: string }[] };
        };
        same(
          child.metadata.ownerReferences.map(({ name }) => name),
          ['two'],
        );
      }, slow);
      await ok(b.delete(path('configmaps', 'two')));
      await eventually(() => missing(a.get(path('configmaps', 'child'))), slow);
    },
  },
  {
    id: 'collection/grandchildren',
    title: 'collection goes down a chain',
    controllers: true,
    run: async (context) => {
      const { a, b, path } = context;
      await family(context);
      const child = await ok(a.get(path('configmaps', 'child')));
      await ok(a.post(path('configmaps'), configMap('grandchild', {}, ownedBy(child) as Record<string, unknown>)));
      await ok(b.delete(path('configmaps', 'owner')));
      await eventually(() => missing(a.get(path('configmaps', 'grandchild'))), slow);
    },
  },
  {
    id: 'collection/wrong-uid',
    title: 'an owner of the same name but another uid is no owner',
    controllers: true,
    run: async ({ a, b, path }) => {
      const owner = await ok(a.post(path('configmaps'), configMap('owner')));
      const former = { ...owner, metadata: { ...owner.metadata, uid: '11111111-1111-1111-1111-111111111111' } };
      await ok(a.post(path('configmaps'), configMap('child', {}, ownedBy(former) as Record<string, unknown>)));
      await eventually(() => missing(b.get(path('configmaps', 'child'))), slow);
      await ok(b.get(path('configmaps', 'owner')));
    },
  },
  {
    id: 'namespaces/emptied',
    title: 'a deleted namespace is emptied and goes; one with a finalizer inside waits',
    controllers: true,
    run: async ({ a, b, path, unique }) => {
      const name = unique('ns');
      const inside = `/api/v1/namespaces/${name}/configmaps`;
      await ok(a.post(path('namespaces'), { metadata: { name } }));
      await ok(a.post(inside, configMap('x')));
      await ok(a.post(inside, configMap('y', {}, { finalizers: ['example.com/wait'] })));
      await ok(b.delete(path('namespaces', name)), { status: { phase: 'Terminating' } });
      await eventually(
        async () => same(namesOf(await ok(a.get(inside, { fieldSelector: 'metadata.name!=kube-root-ca.crt' }))), ['y']),
        slow,
      );
      await ok(a.get(path('namespaces', name)), { status: { phase: 'Terminating' } });
      await ok(b.merge(`${inside}/y`, { metadata: { finalizers: null } }));
      await eventually(() => missing(a.get(path('namespaces', name))), slow);
    },
  },
  {
    id: 'namespaces/root-ca',
    title: 'every namespace gets the certificate of the cluster',
    controllers: true,
    run: async ({ a, b, path }) => {
      await eventually(() => ok(a.get(path('configmaps', 'kube-root-ca.crt'))), slow);
      await eventually(() => ok(b.get(path('serviceaccounts', 'default'))), slow);
    },
  },
  {
    id: 'budgets/status',
    title: 'a budget counts its pods, and an eviction it forbids is refused',
    controllers: true,
    run: async ({ a, b, path }) => {
      const labels = { app: 'guard' };
      await ok(a.post(path('pods'), pod('x', { nodeName: 'nowhere' }, { labels })));
      await ok(
        a.patch('strategic', path('pods', 'x', 'status'), {
          status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
        }),
      );
      await ok(a.post(path('poddisruptionbudgets'), budget('guard', { minAvailable: 1 })));
      await eventually(
        () =>
          ok(b.get(path('poddisruptionbudgets', 'guard')), {
            status: { currentHealthy: 1, desiredHealthy: 1, expectedPods: 1, disruptionsAllowed: 0 },
          }),
        slow,
      );
      await refused(
        b.post(path('pods', 'x', 'eviction'), { metadata: { name: 'x' } }),
        429,
        'TooManyRequests',
        "Cannot evict pod as it would violate the pod's disruption budget.",
      );
      await ok(a.merge(path('poddisruptionbudgets', 'guard'), { spec: { minAvailable: 0 } }));
      await eventually(
        () => ok(b.get(path('poddisruptionbudgets', 'guard')), { status: { disruptionsAllowed: 1 } }),
        slow,
      );
      await ok(b.post(path('pods', 'x', 'eviction'), { metadata: { name: 'x' } }));
    },
  },
  {
    id: 'workloads/deployment',
    title: 'a Deployment makes a ReplicaSet, which makes pods, all owned; deleting it takes them along',
    controllers: true,
    run: async ({ a, b, path }) => {
      const made = await ok(a.post(path('deployments'), deployment('x', { replicas: 2 })));
      const sets = await eventually(async () => {
        const list = await ok(b.get(path('replicasets'), { labelSelector: 'app=x' }));
        same(list.items.length, 1);
        return list;
      }, slow);
      has(sets.items[0]!.metadata, {
        ownerReferences: [
          { kind: 'Deployment', name: 'x', uid: made.metadata.uid, controller: true, blockOwnerDeletion: true },
        ],
        labels: { 'pod-template-hash': /.+/ },
      });
      await eventually(
        async () => same((await ok(b.get(path('pods'), { labelSelector: 'app=x' }))).items.length, 2),
        slow,
      );
      await ok(a.merge(path('deployments', 'x', 'scale'), { spec: { replicas: 1 } }));
      await eventually(
        async () => same((await ok(b.get(path('pods'), { labelSelector: 'app=x' }))).items.length, 1),
        slow,
      );
      await ok(a.delete(path('deployments', 'x'), { propagationPolicy: 'Foreground' }));
      await eventually(
        async () => same((await ok(b.get(path('pods'), { labelSelector: 'app=x' }))).items.length, 0),
        slow,
      );
      await eventually(() => missing(b.get(path('deployments', 'x'))), slow);
    },
  },
  {
    id: 'workloads/unschedulable',
    title: 'a pod that fits nowhere says so in a condition',
    controllers: true,
    run: async ({ a, b, path }) => {
      await ok(a.post(path('pods'), pod('x', { nodeSelector: { 'example.com/nowhere': 'yes' } })));
      await eventually(
        () =>
          ok(b.get(path('pods', 'x')), {
            status: {
              phase: 'Pending',
              conditions: [
                {
                  type: 'PodScheduled',
                  status: 'False',
                  reason: 'Unschedulable',
                  message: /no nodes available to schedule pods|\d+\/\d+ nodes are available/,
                },
              ],
            },
          }),
        slow,
      );
    },
  },
];
