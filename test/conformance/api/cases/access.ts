// SPDX-License-Identifier: Apache-2.0
// Who may do what: roles, bindings, reviews, and the words of a refusal.

import type { Context } from '../case.ts';
import { type ConformanceCase, eventually, has, ok, refused, same } from '../case.ts';
import { configMap, deployment } from '../objects.ts';
import { everywhere } from '../paths.ts';

const rbac = 'rbac.authorization.k8s.io';

async function allow({ a, path, namespace }: Context, account: string, rules: readonly object[]): Promise<void> {
  await ok(a.post(path('roles'), { metadata: { name: account }, rules }));
  await ok(
    a.post(path('rolebindings'), {
      metadata: { name: account },
      roleRef: { apiGroup: rbac, kind: 'Role', name: account },
      subjects: [{ kind: 'ServiceAccount', name: account, namespace }],
    }),
  );
}

function sentence(
  context: Context,
  verb: string,
  resource: string,
  group: string,
  where = ` in the namespace "${context.namespace}"`,
): string {
  return `User "system:serviceaccount:${context.namespace}:robot" cannot ${verb} resource "${resource}" in API group "${group}"${where}`;
}

const read = { apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] };

export const accessCases: readonly ConformanceCase[] = [
  {
    id: 'access/nothing',
    title: 'who has no role is told what it cannot do',
    run: async (context) => {
      const { a, path } = context;
      const robot = await context.serviceAccount('robot');
      await ok(a.post(path('configmaps'), configMap('x')));
      await refused(
        robot.get(path('configmaps', 'x')),
        403,
        'Forbidden',
        `configmaps "x" is forbidden: ${sentence(context, 'get', 'configmaps', '')}`,
        { name: 'x', kind: 'configmaps' },
      );
      await refused(
        robot.get(path('configmaps')),
        403,
        'Forbidden',
        `configmaps is forbidden: ${sentence(context, 'list', 'configmaps', '')}`,
        { kind: 'configmaps' },
      );
      await refused(
        robot.post(path('deployments'), deployment('x')),
        403,
        'Forbidden',
        `deployments.apps is forbidden: ${sentence(context, 'create', 'deployments', 'apps')}`,
        { group: 'apps', kind: 'deployments' },
      );
    },
  },
  {
    id: 'access/cluster-scope',
    title: 'a refusal at the cluster scope says so',
    run: async (context) => {
      const { a, path, namespace } = context;
      const robot = await context.serviceAccount('robot');
      await refused(
        robot.get(everywhere('pods')),
        403,
        'Forbidden',
        `pods is forbidden: ${sentence(context, 'list', 'pods', '', ' at the cluster scope')}`,
      );
      await refused(
        robot.get(path('nodes', 'n')),
        403,
        'Forbidden',
        `nodes "n" is forbidden: ${sentence(context, 'get', 'nodes', '', ' at the cluster scope')}`,
      );
      await refused(
        robot.delete(path('namespaces', namespace)),
        403,
        'Forbidden',
        /cannot delete resource "namespaces" in API group ""/,
      );
      await ok(a.get(path('namespaces', namespace)), { status: { phase: 'Active' } });
    },
  },
  {
    id: 'access/role',
    title: 'a role opens what it names and nothing else',
    run: async (context) => {
      const { a, path } = context;
      const robot = await context.serviceAccount('robot');
      await allow(context, 'robot', [read]);
      await ok(a.post(path('configmaps'), configMap('x')));
      await eventually(() => ok(robot.get(path('configmaps', 'x'))));
      await ok(robot.get(path('configmaps')));
      await refused(
        robot.delete(path('configmaps', 'x')),
        403,
        'Forbidden',
        `configmaps "x" is forbidden: ${sentence(context, 'delete', 'configmaps', '')}`,
      );
      await refused(robot.merge(path('configmaps', 'x'), {}), 403, 'Forbidden', /cannot patch resource "configmaps"/);
      await refused(robot.get(path('secrets')), 403, 'Forbidden', /cannot list resource "secrets"/);
      await refused(robot.get('/api/v1/namespaces/default/configmaps'), 403, 'Forbidden', /in the namespace "default"/);
    },
  },
  {
    id: 'access/watch',
    title: 'a role with watch lets a client follow what another does',
    run: async (context) => {
      const { a, path } = context;
      const robot = await context.serviceAccount('robot');
      await refused(
        robot.get(path('configmaps'), { watch: 'true' }),
        403,
        'Forbidden',
        /cannot watch resource "configmaps"/,
      );
      await allow(context, 'robot', [read]);
      const watching = await eventually(() => robot.watch(path('configmaps')));
      await ok(a.post(path('configmaps'), configMap('x')));
      has(await watching.take(1), [{ type: 'ADDED', object: { metadata: { name: 'x' } } }]);
      watching.close();
    },
  },
  {
    id: 'access/names',
    title: 'a role may be limited to names',
    run: async (context) => {
      const { a, path } = context;
      const robot = await context.serviceAccount('robot');
      await allow(context, 'robot', [
        { apiGroups: [''], resources: ['configmaps'], resourceNames: ['mine'], verbs: ['get', 'update', 'patch'] },
      ]);
      await ok(a.post(path('configmaps'), configMap('mine')));
      await ok(a.post(path('configmaps'), configMap('yours')));
      await eventually(() => ok(robot.get(path('configmaps', 'mine'))));
      await ok(robot.merge(path('configmaps', 'mine'), { data: { by: 'robot' } }));
      await refused(robot.get(path('configmaps', 'yours')), 403, 'Forbidden');
      await ok(a.get(path('configmaps', 'mine')), { data: { by: 'robot' } });
    },
  },
  {
    id: 'access/subresource',
    title: 'subresources are allowed apart from their objects',
    run: async (context) => {
      const { a, path } = context;
      const robot = await context.serviceAccount('robot');
      await allow(context, 'robot', [
        { apiGroups: ['apps'], resources: ['deployments/scale'], verbs: ['get', 'patch'] },
      ]);
      await ok(a.post(path('deployments'), deployment('x')));
      await eventually(() => ok(robot.merge(path('deployments', 'x', 'scale'), { spec: { replicas: 4 } })));
      await refused(
        robot.get(path('deployments', 'x')),
        403,
        'Forbidden',
        /cannot get resource "deployments" in API group "apps"/,
      );
      await refused(
        robot.merge(path('deployments', 'x', 'status'), {}),
        403,
        'Forbidden',
        /cannot patch resource "deployments\/status" in API group "apps"/,
      );
      await ok(a.get(path('deployments', 'x')), { spec: { replicas: 4 } });
    },
  },
  {
    id: 'access/withdrawn',
    title: 'without its binding a client loses what it had',
    run: async (context) => {
      const { a, path } = context;
      const robot = await context.serviceAccount('robot');
      await allow(context, 'robot', [read]);
      await eventually(() => ok(robot.get(path('configmaps'))));
      await ok(a.delete(path('rolebindings', 'robot')));
      await eventually(() => refused(robot.get(path('configmaps')), 403, 'Forbidden'));
    },
  },
  {
    id: 'access/cluster-role',
    title: 'a cluster role bound in a namespace holds there only; bound for the cluster, everywhere',
    run: async (context) => {
      const { a, path, namespace, unique } = context;
      const robot = await context.serviceAccount('robot');
      const name = unique('reader');
      const subjects = [{ kind: 'ServiceAccount', name: 'robot', namespace }];
      const roleRef = { apiGroup: rbac, kind: 'ClusterRole', name };
      await ok(a.post(path('clusterroles'), { metadata: { name }, rules: [read] }));
      await ok(a.post(path('rolebindings'), { metadata: { name: 'local' }, roleRef, subjects }));
      await eventually(() => ok(robot.get(path('configmaps'))));
      await refused(robot.get(everywhere('configmaps')), 403, 'Forbidden');
      await ok(a.post(path('clusterrolebindings'), { metadata: { name }, roleRef, subjects }));
      await eventually(() => ok(robot.get(everywhere('configmaps'))));
    },
  },
  {
    id: 'access/group',
    title: 'a binding to the group of a namespace’s accounts counts for each of them',
    run: async (context) => {
      const { a, path, namespace } = context;
      const robot = await context.serviceAccount('robot');
      await ok(a.post(path('roles'), { metadata: { name: 'r' }, rules: [{ ...read, resources: ['*'] }] }));
      const subjects = [{ kind: 'Group', apiGroup: rbac, name: `system:serviceaccounts:${namespace}` }];
      await ok(
        a.post(path('rolebindings'), {
          metadata: { name: 'r' },
          roleRef: { apiGroup: rbac, kind: 'Role', name: 'r' },
          subjects,
        }),
      );
      await eventually(() => ok(robot.get(path('secrets'))));
      await refused(robot.get(path('deployments')), 403, 'Forbidden');
    },
  },
  {
    id: 'access/view-role',
    title: 'the view role reads workloads, not secrets, and writes nothing',
    // Roles are aggregated by a controller.
    controllers: true,
    run: async (context) => {
      const { a, path, namespace } = context;
      const robot = await context.serviceAccount('robot');
      const roleRef = { apiGroup: rbac, kind: 'ClusterRole', name: 'view' };
      await ok(
        a.post(path('rolebindings'), {
          metadata: { name: 'v' },
          roleRef,
          subjects: [{ kind: 'ServiceAccount', name: 'robot', namespace }],
        }),
      );
      await eventually(() => ok(robot.get(path('deployments'))));
      await ok(robot.get(path('pods')));
      await refused(robot.get(path('secrets')), 403, 'Forbidden');
      await refused(robot.post(path('configmaps'), configMap('x')), 403, 'Forbidden');
    },
  },
  {
    id: 'access/self-review',
    title: 'a client may ask what it may do',
    run: async (context) => {
      const { namespace, path } = context;
      const robot = await context.serviceAccount('robot');
      await allow(context, 'robot', [read]);
      const ask = (verb: string, resource: string, group = '') =>
        robot.post(path('selfsubjectaccessreviews'), {
          spec: { resourceAttributes: { namespace, verb, resource, group } },
        });
      await eventually(() =>
        ok(ask('get', 'configmaps'), {
          kind: 'SelfSubjectAccessReview',
          status: {
            allowed: true,
            reason: new RegExp(
              `^RBAC: allowed by RoleBinding "robot/${namespace}" of Role "robot" to ServiceAccount "robot/${namespace}"$`,
            ),
          },
        }),
      );
      await ok(ask('delete', 'configmaps'), { status: { allowed: false } });
      await ok(ask('get', 'deployments', 'apps'), { status: { allowed: false } });
      await ok(
        robot.post(path('selfsubjectaccessreviews'), {
          spec: { nonResourceAttributes: { verb: 'get', path: '/version' } },
        }),
        { status: { allowed: true } },
      );
    },
  },
  {
    id: 'access/subject-review',
    title: 'an administrator may ask for others',
    run: async (context) => {
      const { a, b, namespace, path } = context;
      await context.serviceAccount('robot');
      await allow(context, 'robot', [read]);
      const spec = { user: `system:serviceaccount:${namespace}:robot`, groups: ['system:authenticated'] };
      const ask = (client: typeof a, verb: string) =>
        client.post(path('subjectaccessreviews'), {
          spec: { ...spec, resourceAttributes: { namespace, verb, resource: 'configmaps' } },
        });
      await eventually(() => ok(ask(a, 'list'), { status: { allowed: true } }));
      await ok(ask(b, 'create'), { status: { allowed: false } });
      await ok(
        b.post(path('subjectaccessreviews'), {
          spec: {
            user: 'root',
            groups: ['system:masters'],
            resourceAttributes: { verb: '*', resource: '*', group: '*' },
          },
        }),
        { status: { allowed: true } },
      );
      await refused(
        b.post(path('subjectaccessreviews'), { spec: { resourceAttributes: { verb: 'get' } } }),
        422,
        'Invalid',
        /spec\.user: Invalid value: "": at least one of user or group must be specified/,
      );
    },
  },
  {
    id: 'access/who-am-i',
    title: 'a client may ask who it is',
    run: async (context) => {
      const { a, namespace, path } = context;
      const robot = await context.serviceAccount('robot');
      await ok(a.post(path('selfsubjectreviews'), {}), {
        kind: 'SelfSubjectReview',
        status: { userInfo: { username: 'admin' } },
      });
      const me = await ok(robot.post(path('selfsubjectreviews'), {}), {
        status: { userInfo: { username: `system:serviceaccount:${namespace}:robot` } },
      });
      const { groups } = me.status['userInfo'] as { groups: string[] };
      same([...groups].sort(), [
        'system:authenticated',
        'system:serviceaccounts',
        `system:serviceaccounts:${namespace}`,
      ]);
    },
  },
  {
    id: 'access/escalation',
    title: 'nobody grants what it does not have',
    run: async (context) => {
      const { path } = context;
      const robot = await context.serviceAccount('robot');
      await allow(context, 'robot', [
        read,
        { apiGroups: [rbac], resources: ['roles', 'rolebindings'], verbs: ['create', 'get'] },
      ]);
      await eventually(() => ok(robot.post(path('roles'), { metadata: { name: 'fine' }, rules: [read] })));
      await refused(
        robot.post(path('roles'), {
          metadata: { name: 'more' },
          rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }],
        }),
        403,
        'Forbidden',
        /^roles\.rbac\.authorization\.k8s\.io "more" is forbidden: user "system:serviceaccount:.*:robot" \(groups=\[.*\]\) is attempting to grant RBAC permissions not currently held:\n\{APIGroups:\[""\], Resources:\["secrets"\], Verbs:\["get"\]\}$/,
      );
    },
  },
  {
    id: 'access/role-ref-fixed',
    title: 'the role of a binding is fixed',
    run: async (context) => {
      const { a, b, path } = context;
      await context.serviceAccount('robot');
      await allow(context, 'robot', [read]);
      await refused(
        b.merge(path('rolebindings', 'robot'), { roleRef: { name: 'other' } }),
        422,
        'Invalid',
        /roleRef: Invalid value: .*: cannot change roleRef/,
      );
      await ok(a.get(path('rolebindings', 'robot')), { roleRef: { name: 'robot' } });
    },
  },
  {
    id: 'access/non-resource',
    title: 'paths that are no resources are guarded, too',
    run: async (context) => {
      const { a } = context;
      const robot = await context.serviceAccount('robot');
      await ok(robot.get('/version'));
      await ok(robot.get('/apis'));
      await refused(
        robot.get('/metrics-of-nobody'),
        403,
        'Forbidden',
        `forbidden: User "system:serviceaccount:${context.namespace}:robot" cannot get path "/metrics-of-nobody"`,
      );
      same((await a.get('/metrics-of-nobody')).status, 404);
    },
  },
  {
    id: 'access/bad-token',
    title: 'a token nobody knows is unauthorized',
    wire: true,
    run: async ({ a, anonymous, path }) => {
      const stranger = anonymous();
      await refused(
        stranger.call({ method: 'GET', path: path('configmaps'), headers: { authorization: 'Bearer wrong' } }),
        401,
        'Unauthorized',
        'Unauthorized',
      );
      await refused(
        stranger.call({
          method: 'POST',
          path: path('configmaps'),
          body: configMap('x'),
          headers: { authorization: 'Bearer wrong' },
        }),
        401,
        'Unauthorized',
      );
      same((await ok(a.get(path('configmaps')))).items, []);
    },
  },
  {
    id: 'access/impersonation',
    title: 'an administrator may act as another user, who has only its own rights',
    wire: true,
    run: async (context) => {
      const { a, b, path } = context;
      await ok(a.post(path('configmaps'), configMap('x')));
      const headers = { 'impersonate-user': 'jane', 'impersonate-group': 'developers' };
      await refused(
        b.call({ method: 'GET', path: path('configmaps', 'x'), headers }),
        403,
        'Forbidden',
        `configmaps "x" is forbidden: User "jane" cannot get resource "configmaps" in API group "" in the namespace "${context.namespace}"`,
      );
      await ok(b.call({ method: 'POST', path: path('selfsubjectreviews'), body: {}, headers }), {
        status: { userInfo: { username: 'jane' } },
      });
      const robot = await context.serviceAccount('robot');
      await refused(
        robot.call({ method: 'GET', path: path('configmaps'), headers: { 'impersonate-user': 'jane' } }),
        403,
        'Forbidden',
        /is forbidden: User "system:serviceaccount:.*:robot" cannot impersonate/,
      );
    },
  },
];
