// SPDX-License-Identifier: Apache-2.0
// What every handler gets: the server's parts, the resource in question and the request.
import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import type { KubeObject } from '../../kube/object.ts';
import type { LogSources } from '../logs/pod-log.ts';
import type { PolicyRule } from '../rbac.ts';
import type { Registry } from '../registry.ts';
import type { Resource, ServedVersion } from '../resource.ts';
import type { Collection, Store } from '../store.ts';
import type { ApiRequest, RequestInfo, UserInfo } from './request.ts';
import type { ListSnapshots } from './snapshots.ts';

/** The parts of the server that handlers work with. */
export interface ServerParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly store: Store;
  readonly registry: Registry;
  readonly snapshots: ListSnapshots;
  readonly bookmarks: BookmarkClock;
  /** Whether it is recorded who owns which field of objects that nobody applies. */
  readonly tracksOwners: boolean;
  /** Makes a token under which its bearer is that user. */
  issueToken(user: UserInfo): string;
  /** The rules of a role that its writer does not hold itself. */
  notHeld(user: UserInfo, namespace: string, rules: readonly PolicyRule[]): PolicyRule[];
  /** The logs of containers that somebody really runs. */
  readonly logs?: LogSources;
}

/** Tells open watches when it is time for a bookmark. */
export interface BookmarkClock {
  /** Calls back about once a minute until the returned function is called. */
  subscribe(callback: () => void): () => void;
}

/** One request for a resource. */
export interface RequestContext extends ServerParts {
  readonly request: ApiRequest;
  readonly info: RequestInfo;
  readonly resource: Resource;
  readonly version: ServedVersion;
  readonly collection: Collection;
  /** Sentences for the client's Warning headers. */
  readonly warnings: string[];
}

/** The stored object in the version that was asked for. */
export function encode(context: { readonly version: ServedVersion }, object: KubeObject): KubeObject {
  return context.version.encode ? context.version.encode(object) : object;
}

/** Whether a write may share with the stored object what it leaves alone: nobody changes it on the way. */
export function sharesParts({ resource, info }: RequestContext): boolean {
  return resource.sharesParts || info.subresource === 'status';
}

/** The namespace under which objects of this request are stored: '' for cluster-scoped kinds. */
export function storageNamespace(context: RequestContext): string {
  return context.resource.namespaced ? context.info.namespace : '';
}
