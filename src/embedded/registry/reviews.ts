// SPDX-License-Identifier: Apache-2.0
// Questions in the form of objects: who am I, may I. They are answered, never stored.
import type { Resource, Verb } from '../resource.ts';
import { define } from './define.ts';

const verbs: readonly Verb[] = ['create'];
const authorization = 'authorization.k8s.io';
const authentication = 'authentication.k8s.io';

export const reviewResources: readonly Resource[] = [
  define({ group: authorization, kind: 'SelfSubjectAccessReview', namespaced: false, verbs }),
  define({ group: authorization, kind: 'SelfSubjectRulesReview', namespaced: false, verbs }),
  define({ group: authorization, kind: 'SubjectAccessReview', namespaced: false, verbs }),
  define({ group: authorization, kind: 'LocalSubjectAccessReview', namespaced: true, verbs }),
  define({ group: authentication, kind: 'SelfSubjectReview', namespaced: false, verbs }),
  define({ group: authentication, kind: 'TokenReview', namespaced: false, verbs }),
];
