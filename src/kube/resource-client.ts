// SPDX-License-Identifier: Apache-2.0
// A typed handle for one kind: the verbs of the Kubernetes API as methods.
import { KarpenterError } from '../base/errors.ts';
import { apiErrorOf, isGone, isStatus } from './api-error.ts';
import type { KubeClient, RequestSubject, Watch } from './client.ts';
import type { Scale } from './kinds.ts';
import { apiVersionOf, type KubeList, type KubeObject, type ResourceType } from './object.ts';
import { collectionPath, objectPath } from './paths.ts';
import type { PatchType, TransportRequest } from './transport.ts';
import { TransportError } from './transport-error.ts';

interface Call {
  readonly signal?: AbortSignal | undefined;
}

interface Addressed extends Call {
  readonly namespace?: string | undefined;
}

export interface GetOptions extends Addressed {
  /** Any version at least this new will do; `'0'` takes whatever the server has in its cache. */
  readonly resourceVersion?: string | undefined;
}

export interface SelectOptions extends Addressed {
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

export interface ListOptions extends SelectOptions {
  readonly limit?: number | undefined;
  readonly continue?: string | undefined;
  readonly resourceVersion?: string | undefined;
  readonly resourceVersionMatch?: 'Exact' | 'NotOlderThan' | undefined;
}

export interface ListAllOptions<T> extends Omit<ListOptions, 'continue'> {
  /** What is kept of each object: applied page by page, so that the whole never has to fit into memory in full. */
  readonly keep?: ((object: T) => T) | undefined;
}

export interface WatchOptions extends SelectOptions {
  readonly resourceVersion?: string | undefined;
  readonly resourceVersionMatch?: 'NotOlderThan' | undefined;
  readonly sendInitialEvents?: boolean | undefined;
  readonly allowWatchBookmarks?: boolean | undefined;
  /** The server ends the watch after this long. */
  readonly timeoutSeconds?: number | undefined;
}

export interface WriteOptions extends Addressed {
  readonly dryRun?: boolean | undefined;
  readonly fieldManager?: string | undefined;
  /** What to do with unknown and duplicate fields. The server's default is `Warn`. */
  readonly fieldValidation?: 'Ignore' | 'Warn' | 'Strict' | undefined;
}

type PatchKind = 'json' | 'merge' | 'strategic';

export interface PatchOptions extends WriteOptions {
  /** A short name or the content type itself. Default: `merge`, which every kind understands. */
  readonly type?: PatchKind | PatchType | undefined;
  readonly subresource?: string | undefined;
  /** Only for `application/apply-patch+yaml`: take fields from other managers. */
  readonly force?: boolean | undefined;
}

export interface ApplyOptions extends WriteOptions {
  readonly subresource?: string | undefined;
  readonly force?: boolean | undefined;
}

export interface DeleteOptions extends Addressed {
  readonly gracePeriodSeconds?: number | undefined;
  readonly propagationPolicy?: 'Orphan' | 'Background' | 'Foreground' | undefined;
  /** The deletion is refused with a conflict unless they hold. */
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string } | undefined;
  readonly dryRun?: boolean | undefined;
}

export interface LogOptions extends Addressed {
  readonly container?: string | undefined;
  readonly previous?: boolean | undefined;
  readonly tailLines?: number | undefined;
  readonly sinceSeconds?: number | undefined;
  readonly timestamps?: boolean | undefined;
  readonly limitBytes?: number | undefined;
}

const contentTypes: Readonly<Record<PatchKind, PatchType>> = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
};

/** Objects per page when a whole collection is read. */
const pageSize = 500;

/**
 * The verbs of one kind. Every method throws `ApiError` on a refusal and `TransportError` when the server cannot be
 * reached. Objects it returns name their `apiVersion` and `kind`; those from the in-process transport are frozen.
 */
export class ResourceClient<T extends KubeObject> {
  readonly type: ResourceType<T>;
  readonly #client: KubeClient;

  constructor(client: KubeClient, type: ResourceType<T>) {
    this.#client = client;
    this.type = type;
  }

  async get(name: string, options: GetOptions = {}): Promise<T> {
    const found = await this.#send<T>('get', 'GET', this.#path(name, options), {
      ...options,
      query: { resourceVersion: options.resourceVersion },
    });
    if (!isRecord(found)) throw malformed(`the answer for ${this.type.kind} ${name} is no object`);
    return found;
  }

  /** One page: everything, unless `limit` is given. */
  async list(options: ListOptions = {}): Promise<KubeList<T>> {
    const list = await this.#send<KubeList<T>>('list', 'GET', collectionPath(this.type, options.namespace), {
      ...options,
      query: {
        ...selection(options),
        limit: options.limit,
        continue: options.continue,
        resourceVersion: options.resourceVersion,
        resourceVersionMatch: options.resourceVersionMatch,
      },
    });
    // The server leaves the type out of the items of built-in kinds, and sends null for none.
    const { items, metadata = {} } = aList(list, this.type.plural);
    return { ...list, metadata, items: items ? items.map((item) => this.#typed(item)) : [] };
  }

  /**
   * The whole collection, read in pages. A continue token that expires under way starts it over without pages, so
   * that what is returned is one consistent state of the collection, at its `resourceVersion`.
   */
  async listAll(options: ListAllOptions<T> = {}): Promise<KubeList<T>> {
    const { keep = (item: T): T => item, limit = pageSize, ...rest } = options;
    const kept = (list: KubeList<T>): KubeList<T> => ({ ...list, items: list.items.map(keep) });
    const first = kept(await this.list({ ...rest, limit }));
    if (!first.metadata.continue) return first;
    const items = [...first.items];
    let next: string | undefined = first.metadata.continue;
    while (next) {
      try {
        const page: KubeList<T> = await this.list(continued(rest, limit, next));
        for (const item of page.items) items.push(keep(item));
        next = page.metadata.continue;
      } catch (error) {
        if (!isGone(error)) throw error;
        return kept(await this.list({ ...rest, limit: undefined }));
      }
    }
    const { resourceVersion } = first.metadata;
    return { ...first, metadata: resourceVersion === undefined ? {} : { resourceVersion }, items };
  }

  /**
   * The objects of the collection one by one, read in pages as they are asked for. A continue token that expires under
   * way goes on from the same place in the newest state, as the server offers: every object that is there throughout
   * is seen once.
   */
  async *iterate(options: Omit<ListOptions, 'continue'> = {}): AsyncGenerator<T, void, undefined> {
    const limit = options.limit ?? pageSize;
    let page = await this.list({ ...options, limit });
    for (;;) {
      yield* page.items;
      const next = page.metadata.continue;
      if (!next) return;
      try {
        page = await this.list(continued(options, limit, next));
      } catch (error) {
        const offered = isGone(error) ? apiErrorOf(error)?.body.metadata?.['continue'] : undefined;
        if (typeof offered !== 'string' || offered === '') throw error;
        page = await this.list(continued(options, limit, offered));
      }
    }
  }

  /** Opens a watch; BOOKMARK events come when `allowWatchBookmarks` is set. */
  async watch(options: WatchOptions = {}): Promise<Watch<T>> {
    const request = this.#request('GET', collectionPath(this.type, options.namespace), {
      ...options,
      query: {
        ...selection(options),
        resourceVersion: options.resourceVersion,
        resourceVersionMatch: options.resourceVersionMatch,
        sendInitialEvents: options.sendInitialEvents,
        allowWatchBookmarks: options.allowWatchBookmarks,
        timeoutSeconds: options.timeoutSeconds,
      },
    });
    return this.#client.watch<T>(request, this.#subject('watch'));
  }

  async create(object: T, options: WriteOptions = {}): Promise<T> {
    const namespace = this.#namespaceOf(object, options);
    if (this.type.namespaced && !namespace) objectPath(this.type, object.metadata.name || 'new');
    return this.#send<T>('create', 'POST', collectionPath(this.type, namespace), {
      ...options,
      query: this.#writing(options),
      body: this.#typed(object),
    });
  }

  /** Replaces the object. Its `resourceVersion`, if it has one, must be the current one. */
  async update(object: T, options: WriteOptions & { readonly subresource?: string | undefined } = {}): Promise<T> {
    const path = objectPath(
      this.type,
      object.metadata.name ?? '',
      this.#namespaceOf(object, options),
      options.subresource,
    );
    return this.#send<T>('update', 'PUT', path, {
      ...options,
      query: this.#writing(options),
      body: this.#typed(object),
    });
  }

  /** Replaces the object's status only. */
  async updateStatus(object: T, options: WriteOptions = {}): Promise<T> {
    return this.update(object, { ...options, subresource: 'status' });
  }

  /** Changes the object by a patch; a JSON patch is a list of operations, the others are partial objects. */
  async patch(name: string, patch: unknown, options: PatchOptions = {}): Promise<T> {
    const { type = 'merge' } = options;
    return this.#send<T>('patch', 'PATCH', this.#path(name, options, options.subresource), {
      ...options,
      query: { ...this.#writing(options), force: options.force },
      body: patch,
      contentType: type in contentTypes ? contentTypes[type as PatchKind] : (type as PatchType),
    });
  }

  /** Changes the object's status by a patch. */
  async patchStatus(name: string, patch: unknown, options: Omit<PatchOptions, 'subresource'> = {}): Promise<T> {
    return this.patch(name, patch, { ...options, subresource: 'status' });
  }

  /** Server-side apply: what `object` says becomes so, and this field manager owns it. */
  async apply(object: T, options: ApplyOptions = {}): Promise<T> {
    const fieldManager = options.fieldManager ?? this.#client.fieldManager;
    if (!fieldManager) throw new KarpenterError('KRP_NO_FIELD_MANAGER', 'apply needs a field manager');
    // The server refuses an object that says who owns what, such as one that was read from it.
    const { managedFields: _, ...metadata } = object.metadata;
    return this.patch(
      object.metadata.name ?? '',
      { ...this.#typed(object), metadata },
      {
        ...options,
        fieldManager,
        namespace: this.#namespaceOf(object, options),
        type: 'application/apply-patch+yaml',
      },
    );
  }

  /** Deletes the object. Gives it as it stands when it lingers (grace, finalizers), else undefined. */
  async delete(name: string, options: DeleteOptions = {}): Promise<T | undefined> {
    const answer = await this.#send<unknown>('delete', 'DELETE', this.#path(name, options), {
      ...options,
      body: deletion(options),
    });
    return isStatus(answer) ? undefined : (answer as T | undefined);
  }

  /** Deletes everything selected in one namespace, or in the cluster for cluster-scoped kinds. */
  async deleteCollection(options: DeleteOptions & SelectOptions = {}): Promise<void> {
    if (this.type.namespaced && !options.namespace) objectPath(this.type, 'all');
    await this.#send<unknown>('deletecollection', 'DELETE', collectionPath(this.type, options.namespace), {
      ...options,
      query: selection(options),
      body: deletion(options),
    });
  }

  async getScale(name: string, options: GetOptions = {}): Promise<Scale> {
    return this.#send<Scale>('get', 'GET', this.#path(name, options, 'scale'), { ...options, subresource: 'scale' });
  }

  /** Sets the number of replicas, whatever it was. */
  async updateScale(name: string, replicas: number, options: WriteOptions = {}): Promise<Scale> {
    return this.#send<Scale>('patch', 'PATCH', this.#path(name, options, 'scale'), {
      ...options,
      subresource: 'scale',
      query: this.#writing(options),
      body: { spec: { replicas } },
      contentType: contentTypes.merge,
    });
  }

  /**
   * Asks for a pod to go, within its disruption budgets. Throws `isTooManyRequests` when a budget does not allow it now,
   * at once, whatever the server asks to wait: the caller has a queue.
   */
  async evict(name: string, options: DeleteOptions = {}): Promise<void> {
    const { namespace } = options;
    await this.#send<unknown>('create', 'POST', this.#path(name, options, 'eviction'), {
      ...options,
      subresource: 'eviction',
      maxRetries: 0,
      query: { dryRun: options.dryRun ? 'All' : undefined },
      body: {
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: { name, namespace },
        deleteOptions: deletion({ ...options, dryRun: undefined }),
      },
    });
  }

  /** Binds a pod to a node. With `uid`, only the pod that was meant and not one of the same name. */
  async bind(
    name: string,
    node: string,
    options: WriteOptions & { readonly uid?: string | undefined } = {},
  ): Promise<void> {
    const { namespace, uid } = options;
    await this.#send<unknown>('create', 'POST', this.#path(name, options, 'binding'), {
      ...options,
      subresource: 'binding',
      query: this.#writing(options),
      body: {
        apiVersion: 'v1',
        kind: 'Binding',
        metadata: { name, namespace, ...(uid ? { uid } : {}) },
        target: { apiVersion: 'v1', kind: 'Node', name: node },
      },
    });
  }

  /** What a container wrote. */
  async log(name: string, options: LogOptions = {}): Promise<string> {
    const { container, previous, tailLines, sinceSeconds, timestamps, limitBytes } = options;
    const text = await this.#send<unknown>('get', 'GET', this.#path(name, options, 'log'), {
      ...options,
      subresource: 'log',
      accept: '*/*',
      query: { container, previous, tailLines, sinceSeconds, timestamps, limitBytes },
    });
    return typeof text === 'string' ? text : text === undefined || text === null ? '' : JSON.stringify(text);
  }

  async #send<R>(verb: string, method: TransportRequest['method'], path: string, parts: Parts): Promise<R> {
    const request = this.#request(method, path, parts);
    const options = parts.maxRetries === undefined ? {} : { maxRetries: parts.maxRetries };
    return (await this.#client.request(request, this.#subject(verb, parts.subresource), options)) as R;
  }

  #request(method: TransportRequest['method'], path: string, parts: Parts): TransportRequest {
    const request: { -readonly [field in keyof TransportRequest]: TransportRequest[field] } = { method, path };
    const query = written(parts.query);
    // One after the other: spreading what may be absent makes an object for each field of each request.
    if (query) request.query = query;
    if (parts.body !== undefined) request.body = parts.body;
    if (parts.contentType) request.contentType = parts.contentType;
    if (parts.accept) request.accept = parts.accept;
    if (parts.signal) request.signal = parts.signal;
    return request;
  }

  #subject(verb: string, subresource = ''): RequestSubject {
    const { group, version, kind } = this.type;
    return { verb, group, version, kind, subresource };
  }

  #path(name: string, { namespace }: Addressed, subresource?: string): string {
    return objectPath(this.type, name, namespace, subresource);
  }

  #namespaceOf(object: T, options: Addressed): string | undefined {
    return this.type.namespaced ? (object.metadata.namespace ?? options.namespace) : undefined;
  }

  #writing(options: WriteOptions): Parts['query'] {
    return {
      dryRun: options.dryRun ? 'All' : undefined,
      fieldManager: options.fieldManager ?? this.#client.fieldManager,
      fieldValidation: options.fieldValidation,
    };
  }

  #typed(object: T): T {
    if (object.apiVersion && object.kind) return object;
    return { ...object, apiVersion: apiVersionOf(this.type), kind: this.type.kind };
  }
}

interface Parts {
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>> | undefined;
  readonly body?: unknown;
  readonly contentType?: PatchType;
  readonly accept?: string;
  readonly subresource?: string | undefined;
  readonly maxRetries?: number;
  readonly signal?: AbortSignal | undefined;
}

function written(query: Parts['query']): Record<string, string> | undefined {
  let result: Record<string, string> | undefined;
  for (const key in query) {
    const value = query[key];
    if (value === undefined || value === '') continue;
    result ??= {};
    result[key] = String(value);
  }
  return result;
}

function selection({ labelSelector, fieldSelector }: SelectOptions): {
  labelSelector?: string;
  fieldSelector?: string;
} {
  return { ...(labelSelector ? { labelSelector } : {}), ...(fieldSelector ? { fieldSelector } : {}) };
}

/** The next page: the token carries the version, and the server refuses both together. */
function continued(options: ListOptions, limit: number, token: string): ListOptions {
  return { ...options, limit, continue: token, resourceVersion: undefined, resourceVersionMatch: undefined };
}

function deletion({ gracePeriodSeconds, propagationPolicy, preconditions, dryRun }: DeleteOptions): unknown {
  return {
    apiVersion: 'v1',
    kind: 'DeleteOptions',
    ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
    ...(propagationPolicy === undefined ? {} : { propagationPolicy }),
    ...(preconditions === undefined ? {} : { preconditions }),
    ...(dryRun ? { dryRun: ['All'] } : {}),
  };
}

function isRecord(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function malformed(message: string): TransportError {
  return new TransportError('malformed', message);
}

/** A list as it came, when it is one: a gateway in between may answer anything with 200. */
function aList<L extends KubeList<KubeObject>>(list: L, plural: string): Omit<L, 'metadata'> & Partial<L> {
  const { items, metadata } = (isRecord(list) ? list : {}) as { items?: unknown; metadata?: unknown };
  const isOne =
    items === null ||
    (Array.isArray(items) &&
      items.every((item) => isRecord(item) && isRecord((item as { metadata?: unknown }).metadata)));
  if (!isOne || (metadata !== undefined && !isRecord(metadata)))
    throw malformed(`the answer to a list of ${plural} is no list`);
  return list;
}
