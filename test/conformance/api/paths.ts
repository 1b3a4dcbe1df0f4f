// SPDX-License-Identifier: Apache-2.0
// Where the kinds of the cases are served.

const namespaced: Readonly<Record<string, string>> = {
  configmaps: '/api/v1',
  secrets: '/api/v1',
  pods: '/api/v1',
  services: '/api/v1',
  serviceaccounts: '/api/v1',
  events: '/api/v1',
  bindings: '/api/v1',
  persistentvolumeclaims: '/api/v1',
  deployments: '/apis/apps/v1',
  replicasets: '/apis/apps/v1',
  statefulsets: '/apis/apps/v1',
  daemonsets: '/apis/apps/v1',
  jobs: '/apis/batch/v1',
  cronjobs: '/apis/batch/v1',
  poddisruptionbudgets: '/apis/policy/v1',
  leases: '/apis/coordination.k8s.io/v1',
  roles: '/apis/rbac.authorization.k8s.io/v1',
  rolebindings: '/apis/rbac.authorization.k8s.io/v1',
  localsubjectaccessreviews: '/apis/authorization.k8s.io/v1',
  widgets: '/apis/conformance.example.com/v1',
};

const clustered: Readonly<Record<string, string>> = {
  namespaces: '/api/v1',
  nodes: '/api/v1',
  persistentvolumes: '/api/v1',
  clusterroles: '/apis/rbac.authorization.k8s.io/v1',
  clusterrolebindings: '/apis/rbac.authorization.k8s.io/v1',
  priorityclasses: '/apis/scheduling.k8s.io/v1',
  storageclasses: '/apis/storage.k8s.io/v1',
  customresourcedefinitions: '/apis/apiextensions.k8s.io/v1',
  selfsubjectaccessreviews: '/apis/authorization.k8s.io/v1',
  selfsubjectrulesreviews: '/apis/authorization.k8s.io/v1',
  subjectaccessreviews: '/apis/authorization.k8s.io/v1',
  selfsubjectreviews: '/apis/authentication.k8s.io/v1',
  tokenreviews: '/apis/authentication.k8s.io/v1',
};

/** `/apis/apps/v1/namespaces/NAMESPACE/deployments/web/scale`, or without the namespace where there is none. */
export function pathOf(namespace: string, plural: string, ...rest: string[]): string {
  const base = namespaced[plural];
  const tail = rest.map((part) => `/${part}`).join('');
  if (base !== undefined) return `${base}/namespaces/${namespace}/${plural}${tail}`;
  const outside = clustered[plural];
  if (outside === undefined) throw new Error(`no path for ${plural}`);
  return `${outside}/${plural}${tail}`;
}

/** The path of a namespaced kind's collection over all namespaces. */
export function everywhere(plural: string): string {
  return `${namespaced[plural]}/${plural}`;
}
