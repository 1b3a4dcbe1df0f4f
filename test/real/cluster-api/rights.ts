// SPDX-License-Identifier: Apache-2.0
// The controller's rights in either cluster, as the chart writes them: in the workload cluster what it installs there, in
// the management cluster the rules that it says the credentials need.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { KubeObject } from '../../../src/kube/object.ts';
import { AuditLog } from '../audit.ts';
import type { ControlPlane } from '../control-plane.ts';
import { objectsIn, template } from '../helm.ts';
import { apply, kubectl } from '../kubectl.ts';

const namespace = 'kube-system';
const account = 'karpenter';
const user = `system:serviceaccount:${namespace}:${account}`;

interface Role extends KubeObject {
  readonly rules: readonly { apiGroups: readonly string[]; resources: readonly string[]; verbs: readonly string[] }[];
}

/** What the controller asks for, in a folder of its own. */
export function auditLog(folder: string, cluster: string): AuditLog {
  const own = join(folder, cluster);
  mkdirSync(own);
  return new AuditLog(own, user);
}

async function rendered(...values: string[]): Promise<KubeObject[]> {
  const settings = ['settings.providers={cluster-api}', ...values].flatMap((value) => ['--set', value]);
  const { code, stdout, stderr } = await template('karpenter', ...settings);
  if (code !== 0) throw new Error(`helm template ended with ${code}: ${stderr}`);
  return objectsIn(stdout);
}

/** The chart's own roles. Gives the kubeconfig of their ServiceAccount. */
export async function workloadRights(plane: ControlPlane, folder: string): Promise<string> {
  const objects = await rendered('settings.clusterApi.kubeconfig=hub.kubeconfig');
  const kinds = ['ServiceAccount', 'Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding'];
  await apply(
    plane.kubeconfig,
    objects.filter(({ kind }) => kinds.includes(kind ?? '')),
  );
  return kubeconfigOf(plane, join(folder, 'workload.kubeconfig'));
}

/** The rules for a management cluster: those that the chart writes only where this is the same cluster. */
export async function hubRules(): Promise<Role['rules']> {
  const rulesOf = (objects: readonly KubeObject[]): Role['rules'] =>
    (objects.find(({ kind, metadata }) => kind === 'ClusterRole' && metadata.name === `${account}-cluster-api`) as Role)
      .rules;
  const apart = rulesOf(await rendered('settings.clusterApi.kubeconfig=hub.kubeconfig')).map((rule) =>
    JSON.stringify(rule),
  );
  return rulesOf(await rendered()).filter((rule) => !apart.includes(JSON.stringify(rule)));
}

/** Gives the kubeconfig of a ServiceAccount with those rules. */
export async function hubRights(plane: ControlPlane, folder: string): Promise<string> {
  const metadata = { name: account };
  const group = 'rbac.authorization.k8s.io';
  await apply(plane.kubeconfig, [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: account, namespace } },
    { apiVersion: `${group}/v1`, kind: 'ClusterRole', metadata, rules: await hubRules() },
    {
      apiVersion: `${group}/v1`,
      kind: 'ClusterRoleBinding',
      metadata,
      roleRef: { apiGroup: group, kind: 'ClusterRole', name: account },
      subjects: [{ kind: 'ServiceAccount', name: account, namespace }],
    },
  ]);
  return kubeconfigOf(plane, join(folder, 'hub.kubeconfig'));
}

async function kubeconfigOf({ kubeconfig }: ControlPlane, path: string): Promise<string> {
  const token = (await kubectl(kubeconfig, ['create', 'token', account, '-n', namespace])).trim();
  const text = await kubectl(kubeconfig, ['config', 'view', '--raw', '-o', 'json']);
  const config = JSON.parse(text) as { users: { user: object }[] };
  config.users[0]!.user = { token };
  writeFileSync(path, JSON.stringify(config));
  return path;
}
