// SPDX-License-Identifier: Apache-2.0
// The kinds around workloads: storage, coordination, events, access, extension, network.
import type * as admission from 'kubernetes-types/admissionregistration/v1.d.ts';
import type * as apiextensions from 'kubernetes-types/apiextensions/v1.d.ts';
import type * as authentication from 'kubernetes-types/authentication/v1.d.ts';
import type * as authorization from 'kubernetes-types/authorization/v1.d.ts';
import type * as coordination from 'kubernetes-types/coordination/v1.d.ts';
import type * as discovery from 'kubernetes-types/discovery/v1.d.ts';
import type * as events from 'kubernetes-types/events/v1.d.ts';
import type * as networking from 'kubernetes-types/networking/v1.d.ts';
import type * as node from 'kubernetes-types/node/v1.d.ts';
import type * as rbac from 'kubernetes-types/rbac/v1.d.ts';
import type * as storage from 'kubernetes-types/storage/v1.d.ts';
import type { KubeObject } from '../object.ts';
import type { Kind, Part } from './own.ts';

export interface StorageClass extends Kind<storage.StorageClass> {}
export interface CSINode extends Kind<storage.CSINode> {}
export interface CSIDriver extends Kind<storage.CSIDriver> {}
export interface VolumeAttachment extends Kind<storage.VolumeAttachment> {}
export interface CSIStorageCapacity extends Kind<storage.CSIStorageCapacity> {}

export interface VolumeAttributesClass extends KubeObject {
  driverName: string;
  parameters?: Record<string, string>;
}

/** Times are MicroTime: RFC 3339 with six digits. */
export interface LeaseSpec extends Part<coordination.LeaseSpec> {
  strategy?: string;
  preferredHolder?: string;
}

export interface Lease extends Kind<coordination.Lease, 'spec'> {
  spec?: LeaseSpec;
}

/** events.k8s.io/v1 Event: the same stored objects as core/v1 Events under newer names. */
export interface EventsV1Event extends Kind<events.Event> {}

export type { PolicyRule, RoleRef, Subject } from 'kubernetes-types/rbac/v1.d.ts';
export interface Role extends Kind<rbac.Role> {}
export interface RoleBinding extends Kind<rbac.RoleBinding> {}
export interface ClusterRole extends Kind<rbac.ClusterRole> {}
export interface ClusterRoleBinding extends Kind<rbac.ClusterRoleBinding> {}

export interface CustomResourceDefinition extends Kind<apiextensions.CustomResourceDefinition> {}
export interface EndpointSlice extends Kind<discovery.EndpointSlice> {}
export interface RuntimeClass extends Kind<node.RuntimeClass> {}
export interface NetworkPolicy extends Kind<networking.NetworkPolicy> {}
export interface Ingress extends Kind<networking.Ingress> {}
export interface IngressClass extends Kind<networking.IngressClass> {}

export interface ValidatingWebhookConfiguration extends Kind<admission.ValidatingWebhookConfiguration> {}
export interface MutatingWebhookConfiguration extends Kind<admission.MutatingWebhookConfiguration> {}
export interface ValidatingAdmissionPolicy extends Kind<admission.ValidatingAdmissionPolicy> {}
export interface ValidatingAdmissionPolicyBinding extends Kind<admission.ValidatingAdmissionPolicyBinding> {}

export interface TokenReview extends Kind<authentication.TokenReview> {}
export interface TokenRequest extends Kind<authentication.TokenRequest> {}
export interface SelfSubjectReview extends Kind<authentication.SelfSubjectReview> {}
export interface SubjectAccessReview extends Kind<authorization.SubjectAccessReview> {}
export interface LocalSubjectAccessReview extends Kind<authorization.LocalSubjectAccessReview> {}
export interface SelfSubjectAccessReview extends Kind<authorization.SelfSubjectAccessReview> {}
export interface SelfSubjectRulesReview extends Kind<authorization.SelfSubjectRulesReview> {}
