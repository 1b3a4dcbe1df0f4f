// SPDX-License-Identifier: Apache-2.0
// Role-based access control: who may do what, from the roles and bindings that are stored.
import { compareStrings } from '../base/order.ts';
import type { ClusterRole, ClusterRoleBinding, Role, RoleBinding } from '../kube/kinds.ts';
import { compileLabelSelector } from '../kube/labels.ts';
import type { RequestInfo, UserInfo } from './rest/request.ts';
import { StatusError } from './status.ts';
import type { Store } from './store.ts';

export type PolicyRule = NonNullable<Role['rules']>[number];

const group = 'rbac.authorization.k8s.io';
const ids = {
  roles: `roles.${group}`,
  roleBindings: `rolebindings.${group}`,
  clusterRoles: `clusterroles.${group}`,
  clusterRoleBindings: `clusterrolebindings.${group}`,
};

/** What authorisation looks at: a request that came, or one that somebody asks about. */
export type AccessQuestion = Pick<
  RequestInfo,
  'isResource' | 'verb' | 'group' | 'resource' | 'subresource' | 'namespace' | 'name' | 'path'
>;

/** Answers from the stored roles; what a user may do in a namespace is remembered until a role or binding changes. */
export class Authorizer {
  readonly #store: Store;
  readonly #rules = new Map<string, readonly Grant[]>();

  constructor(store: Store) {
    this.#store = store;
    const watched = new Set(Object.values(ids).map((id) => store.collection(id)));
    store.listen((collection) => {
      if (watched.has(collection)) this.#rules.clear();
    });
  }

  allows(user: UserInfo, question: AccessQuestion): boolean {
    if (user.groups.includes('system:masters')) return true;
    return this.#grantsFor(user, question.namespace).some(({ rule }) => allowsBy(rule, question));
  }

  /** Why a user may, in the API server's words ('' when there is nothing to say); undefined when it may not. */
  reasonFor(user: UserInfo, question: AccessQuestion): string | undefined {
    if (user.groups.includes('system:masters')) return '';
    const grant = this.#grantsFor(user, question.namespace).find(({ rule }) => allowsBy(rule, question));
    return grant && `RBAC: allowed by ${grant.by}`;
  }

  /** The rules, one verb and one resource each, that a user does not hold itself and so may not give to others. */
  notHeld(user: UserInfo, namespace: string, rules: readonly PolicyRule[]): PolicyRule[] {
    const missing: PolicyRule[] = [];
    for (const rule of rules.flatMap(singleRules)) {
      const [verb = ''] = rule.verbs;
      const [resource = '', subresource = ''] = rule.resources?.[0]?.split('/') ?? [];
      const question = {
        isResource: rule.nonResourceURLs === undefined,
        verb,
        resource,
        subresource,
        namespace,
        group: rule.apiGroups?.[0] ?? '',
        name: rule.resourceNames?.[0] ?? '',
        path: rule.nonResourceURLs?.[0] ?? '',
      };
      if (!this.allows(user, question)) missing.push(rule);
    }
    return missing;
  }

  /** Every rule that holds for a user: cluster-wide, and within the namespace if one is given. */
  rulesFor(user: UserInfo, namespace: string): readonly PolicyRule[] {
    return this.#grantsFor(user, namespace).map(({ rule }) => rule);
  }

  #grantsFor(user: UserInfo, namespace: string): readonly Grant[] {
    const key = JSON.stringify([user.username, user.groups, namespace]);
    let rules = this.#rules.get(key);
    if (!rules) {
      rules = this.#collect(user, namespace);
      // Names are the users' own: they must not fill the memory.
      if (this.#rules.size > 10_000) this.#rules.clear();
      this.#rules.set(key, rules);
    }
    return rules;
  }

  #collect(user: UserInfo, namespace: string): Grant[] {
    const grants: Grant[] = [];
    const add = (rules: readonly PolicyRule[], by: string): void => {
      for (const rule of rules) grants.push({ rule, by });
    };
    for (const binding of this.#store.collection(ids.clusterRoleBindings).list()
      .items as readonly ClusterRoleBinding[]) {
      const subject = subjectFor(user, binding.subjects, '');
      if (subject)
        add(this.#clusterRules(binding.roleRef?.name), describeGrant('ClusterRoleBinding', binding, subject));
    }
    if (namespace === '') return grants;
    for (const binding of this.#store.collection(ids.roleBindings).list(namespace).items as readonly RoleBinding[]) {
      const subject = subjectFor(user, binding.subjects, namespace);
      if (!subject) continue;
      const by = describeGrant('RoleBinding', binding, subject);
      if (binding.roleRef?.kind === 'ClusterRole') add(this.#clusterRules(binding.roleRef.name), by);
      else {
        const role = this.#store.collection(ids.roles).get(namespace, binding.roleRef?.name ?? '') as Role | undefined;
        add(role?.rules ?? [], by);
      }
    }
    return grants;
  }

  #clusterRules(name: string | undefined): readonly PolicyRule[] {
    const roles = this.#store.collection(ids.clusterRoles);
    const role = roles.get('', name ?? '') as ClusterRole | undefined;
    const selectors = role?.aggregationRule?.clusterRoleSelectors?.map((selector) => compileLabelSelector(selector));
    if (!selectors) return role?.rules ?? [];
    return (roles.list().items as readonly ClusterRole[])
      .filter((other) => other !== role && selectors.some((selector) => selector.matches(other.metadata.labels)))
      .flatMap((other) => (other.aggregationRule ? this.#clusterRules(other.metadata.name) : (other.rules ?? [])));
  }
}

/** A rule taken apart: what it allows, one by one. */
function singleRules(rule: PolicyRule): PolicyRule[] {
  const names = rule.resourceNames?.length ? rule.resourceNames.map((name) => [name]) : [undefined];
  return rule.verbs.flatMap((verb): PolicyRule[] => [
    ...(rule.nonResourceURLs ?? []).map((url) => ({ verbs: [verb], nonResourceURLs: [url] })),
    ...(rule.apiGroups ?? []).flatMap((apiGroup) =>
      (rule.resources ?? []).flatMap((resource) =>
        names.map((resourceNames) => ({
          verbs: [verb],
          apiGroups: [apiGroup],
          resources: [resource],
          ...(resourceNames ? { resourceNames } : {}),
        })),
      ),
    ),
  ]);
}

/** Rules in the words of a refusal. */
export function describeRules(rules: readonly PolicyRule[]): string {
  const part = (name: string, values: readonly string[] | undefined): string[] =>
    values ? [`${name}:[${values.map((value) => JSON.stringify(value)).join(' ')}]`] : [];
  const lines = rules.map(
    (rule) =>
      `{${[...part('APIGroups', rule.apiGroups), ...part('Resources', rule.resources), ...part('ResourceNames', rule.resourceNames), ...part('NonResourceURLs', rule.nonResourceURLs), ...part('Verbs', rule.verbs)].join(', ')}}`,
  );
  return lines.sort(compareStrings).join('\n');
}

type Subjects = ClusterRoleBinding['subjects'];
type Subject = NonNullable<Subjects>[number];

/** A rule that holds for somebody, and the words for how it came to them. */
interface Grant {
  readonly rule: PolicyRule;
  readonly by: string;
}

function describeGrant(kind: string, { metadata, roleRef }: RoleBinding, subject: Subject): string {
  const within = (name: string | undefined, namespace: string | undefined): string =>
    JSON.stringify(namespace ? `${name}/${namespace}` : name);
  const role = `${roleRef?.kind} ${JSON.stringify(roleRef?.name)}`;
  return `${kind} ${within(metadata.name, metadata.namespace)} of ${role} to ${subject.kind} ${within(subject.name, subject.namespace)}`;
}

function subjectFor(user: UserInfo, subjects: Subjects, namespace: string): Subject | undefined {
  return (subjects ?? []).find((subject) => {
    if (subject.kind === 'User') return subject.name === user.username;
    if (subject.kind === 'Group') return user.groups.includes(subject.name);
    return user.username === `system:serviceaccount:${subject.namespace ?? namespace}:${subject.name}`;
  });
}

function allowsBy(rule: PolicyRule, question: AccessQuestion): boolean {
  if (!has(rule.verbs, question.verb)) return false;
  if (!question.isResource) {
    return (rule.nonResourceURLs ?? []).some(
      (url) =>
        url === question.path || url === '*' || (url.endsWith('*') && question.path.startsWith(url.slice(0, -1))),
    );
  }
  if (!has(rule.apiGroups, question.group) || !resourceMatches(rule.resources, question)) return false;
  return !rule.resourceNames?.length || rule.resourceNames.includes(question.name);
}

function has(list: readonly string[] | undefined, wanted: string): boolean {
  return list !== undefined && (list.includes('*') || list.includes(wanted));
}

function resourceMatches(resources: readonly string[] | undefined, { resource, subresource }: AccessQuestion): boolean {
  if (!resources) return false;
  const wanted = subresource === '' ? resource : `${resource}/${subresource}`;
  return (
    resources.includes('*') ||
    resources.includes(wanted) ||
    (subresource !== '' && resources.includes(`*/${subresource}`))
  );
}

/** The refusal a user gets who may not. */
export function refusalFor(user: UserInfo, info: AccessQuestion): StatusError {
  const who = JSON.stringify(user.username);
  if (!info.isResource) {
    return new StatusError(
      403,
      'Forbidden',
      `forbidden: User ${who} cannot ${info.verb} path ${JSON.stringify(info.path)}`,
      {},
    );
  }
  const resource = info.subresource === '' ? info.resource : `${info.resource}/${info.subresource}`;
  const qualified = info.group === '' ? info.resource : `${info.resource}.${info.group}`;
  const named = info.name === '' ? qualified : `${qualified} ${JSON.stringify(info.name)}`;
  const scope =
    info.namespace === '' || info.resource === 'namespaces'
      ? 'at the cluster scope'
      : `in the namespace ${JSON.stringify(info.namespace)}`;
  const message = `${named} is forbidden: User ${who} cannot ${info.verb} resource ${JSON.stringify(resource)} in API group ${JSON.stringify(info.group)} ${scope}`;
  return new StatusError(403, 'Forbidden', message, {
    ...(info.name === '' ? {} : { name: info.name }),
    ...(info.group === '' ? {} : { group: info.group }),
    kind: info.resource,
  });
}
