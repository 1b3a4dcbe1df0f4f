// SPDX-License-Identifier: Apache-2.0
// Access and identity reviews: `kubectl auth can-i`, `kubectl auth whoami`, token reviews of webhooks.
import { apiVersionOf, type KubeObject } from '../../kube/object.ts';
import type { Authenticator } from '../authentication.ts';
import type { AccessQuestion, Authorizer } from '../rbac.ts';
import type { Resource } from '../resource.ts';
import { badRequest, invalid, methodNotAllowed, notRepresentable, unknownResource } from '../status.ts';
import { isRecord } from './metadata.ts';
import { isAcceptable } from './present.ts';
import type { ApiRequest, ApiResponse, UserInfo } from './request.ts';

export function isReview(resource: Resource): boolean {
  return resource.group === 'authorization.k8s.io' || resource.group === 'authentication.k8s.io';
}

type Fields = Record<string, unknown>;

/** Answers a review; nothing is stored. */
export function answerReview(
  request: ApiRequest,
  named: boolean,
  resource: Resource,
  authorizer: Authorizer,
  authenticator: Authenticator,
): ApiResponse {
  if (named) throw unknownResource();
  if (request.method !== 'POST') throw methodNotAllowed();
  if (!isAcceptable(request.accept)) throw notRepresentable();
  if (request.bodyRefusal !== undefined) throw request.bodyRefusal;
  if (!isRecord(request.body))
    throw badRequest(`the object provided is unrecognized (must be of type ${resource.kind})`);
  resource.versions[0]?.admit?.(request.body as unknown as KubeObject, false);
  const spec = isRecord(request.body['spec']) ? request.body['spec'] : {};
  const user = subjectOf(resource, spec, request.user);
  return {
    status: 201,
    body: {
      kind: resource.kind,
      apiVersion: apiVersionOf({ group: resource.group, version: 'v1' }),
      metadata: isRecord(request.body['metadata']) ? request.body['metadata'] : {},
      ...(resource.kind === 'SelfSubjectReview' ? {} : { spec }),
      status: statusOf(resource, spec, user, authorizer, authenticator),
    },
  };
}

function subjectOf(resource: Resource, spec: Fields, asking: UserInfo): UserInfo {
  if (resource.kind !== 'SubjectAccessReview' && resource.kind !== 'LocalSubjectAccessReview') return asking;
  return {
    username: text(spec['user']),
    groups: Array.isArray(spec['groups']) ? spec['groups'].filter((group) => typeof group === 'string') : [],
  };
}

function statusOf(
  resource: Resource,
  spec: Fields,
  user: UserInfo,
  authorizer: Authorizer,
  authenticator: Authenticator,
): unknown {
  switch (resource.kind) {
    case 'SelfSubjectReview':
      return { userInfo: userInfo(user) };
    case 'TokenReview': {
      const found = authenticator.userOf(text(spec['token']));
      return found ? { authenticated: true, user: userInfo(found) } : { user: {}, error: 'invalid bearer token' };
    }
    case 'SelfSubjectRulesReview':
      return rulesStatus(authorizer, user, text(spec['namespace']));
    default:
      return verdictOf(authorizer, user, questionOf(resource, spec));
  }
}

function verdictOf(authorizer: Authorizer, user: UserInfo, question: AccessQuestion): unknown {
  const reason = authorizer.reasonFor(user, question);
  return { allowed: reason !== undefined, ...(reason ? { reason } : {}) };
}

function questionOf(resource: Resource, spec: Fields): AccessQuestion {
  const about = resource.kind === 'SubjectAccessReview' || resource.kind === 'LocalSubjectAccessReview';
  if (about && !text(spec['user']) && !(Array.isArray(spec['groups']) && spec['groups'].length > 0)) {
    const detail = 'at least one of user or group must be specified';
    throw invalid(resource.group, resource.kind, '', [{ field: 'spec.user', type: 'Invalid', value: '', detail }]);
  }
  const attributes = spec['resourceAttributes'];
  const path = spec['nonResourceAttributes'];
  if (isRecord(attributes) === isRecord(path)) {
    throw invalid(resource.group, resource.kind, '', [
      {
        field: 'spec.resourceAttributes',
        type: 'Invalid',
        value: null,
        detail: 'exactly one of nonResourceAttributes or resourceAttributes must be specified',
      },
    ]);
  }
  const from = (isRecord(attributes) ? attributes : path) as Fields;
  return {
    isResource: isRecord(attributes),
    verb: text(from['verb']),
    group: text(from['group']),
    resource: text(from['resource']),
    subresource: text(from['subresource']),
    namespace: text(from['namespace']),
    name: text(from['name']),
    path: text(from['path']),
  };
}

function rulesStatus(authorizer: Authorizer, user: UserInfo, namespace: string): unknown {
  const rules = user.groups.includes('system:masters')
    ? [
        { apiGroups: ['*'], resources: ['*'], verbs: ['*'] },
        { nonResourceURLs: ['*'], verbs: ['*'] },
      ]
    : authorizer.rulesFor(user, namespace);
  return {
    resourceRules: rules.filter((rule) => 'resources' in rule),
    nonResourceRules: rules.filter((rule) => 'nonResourceURLs' in rule),
    incomplete: false,
  };
}

function userInfo(user: UserInfo): unknown {
  return { username: user.username, ...(user.uid === undefined ? {} : { uid: user.uid }), groups: user.groups };
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
