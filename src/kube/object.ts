// SPDX-License-Identifier: Apache-2.0
// Kubernetes objects as we hold them: plain JSON, typed where we look, unknown fields kept.

import type { ObjectMeta } from '../api/kind.ts';

export type { ObjectMeta } from '../api/kind.ts';

export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** Any object of any kind. */
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
}

/** An object whose fields beyond the common ones are looked at dynamically. */
export interface UnstructuredObject extends KubeObject {
  [field: string]: unknown;
}

/** A kind as the API server serves it. `T` ties it to the shape of its objects. */
export interface ResourceType<T extends KubeObject = KubeObject> {
  /** '' for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly namespaced: boolean;
  /** Never present: carries the type of the objects through inference. */
  readonly object?: T;
}

/** `v1` or `apps/v1`. */
export function apiVersionOf(type: { readonly group: string; readonly version: string }): string {
  return type.group === '' ? type.version : `${type.group}/${type.version}`;
}

/** `ns/name`, or `name` for cluster-scoped objects: the key of work queues and caches. */
export function keyOf(object: { readonly metadata: { readonly namespace?: string; readonly name?: string } }): string {
  const { namespace, name = '' } = object.metadata;
  return namespace ? `${namespace}/${name}` : name;
}

/** One page or the whole of a list. */
export interface KubeList<T extends KubeObject> {
  apiVersion?: string;
  kind?: string;
  metadata: { resourceVersion?: string; continue?: string; remainingItemCount?: number };
  items: T[];
}

/** The answer that says why not. */
export interface Status {
  kind: 'Status';
  apiVersion: 'v1';
  metadata: Record<string, unknown>;
  status: 'Success' | 'Failure';
  message?: string;
  reason?: string;
  details?: {
    name?: string;
    group?: string;
    kind?: string;
    uid?: string;
    causes?: { reason?: string; message?: string; field?: string }[];
    retryAfterSeconds?: number;
  };
  code?: number;
}

export type WatchEventType = 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';

/** One line of a watch. ERROR carries a Status. */
export interface WatchEvent<T extends KubeObject = KubeObject> {
  type: WatchEventType;
  object: T;
}
