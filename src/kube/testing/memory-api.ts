// SPDX-License-Identifier: Apache-2.0
// The smallest API server that is still honest about versions, conflicts, pages and watches: for tests of the client.
// Any path is a collection. Faults are injected by wrapping `answer` and `answerWatch`.
import { deepClone } from '../../base/freeze.ts';
import { applyMergePatch } from '../merge-patch.ts';
import type { KubeObject, WatchEvent } from '../object.ts';
import type { TransportRequest, TransportResponse } from '../transport.ts';
import { FakeTransport, FakeWatch, failure } from './fake-transport.ts';

interface Change {
  readonly version: number;
  readonly path: string;
  readonly event: WatchEvent;
}

/** Objects by path, every change numbered, old changes forgotten on `compact`. */
export class MemoryApi extends FakeTransport {
  readonly #objects = new Map<string, KubeObject>();
  #history: Change[] = [];
  #version = 100;
  #compacted = 0;
  #uids = 0;

  constructor() {
    super();
    this.answer = (request) => this.serve(request);
    this.answerWatch = (request) => this.refusalOf(request);
  }

  /** The object at a path, as stored. */
  at(path: string): KubeObject | undefined {
    return this.#objects.get(path);
  }

  get version(): string {
    return String(this.#version);
  }

  /** Forgets history: versions before now are gone. */
  compact(): void {
    this.#compacted = this.#version;
    this.#history = [];
  }

  /** Ends every watch as a broken connection does. */
  breakWatches(error: Error): void {
    for (const watch of this.watches.splice(0)) watch.fail(error);
  }

  /** Sends a bookmark on every watch. */
  bookmark(): void {
    for (const watch of this.watches) watch.send('BOOKMARK', { metadata: { resourceVersion: this.version } });
  }

  serve(request: TransportRequest): TransportResponse {
    const { method, path, body } = request;
    const isObject = this.#objects.has(path);
    switch (method) {
      case 'GET':
        return isObject ? ok(this.#objects.get(path)) : this.#isCollection(path) ? this.#list(request) : notFound(path);
      case 'POST':
        return this.#create(path, body as KubeObject);
      case 'PUT':
        return this.#update(path, body as KubeObject);
      case 'PATCH':
        return isObject ? this.#store(path, applyMergePatch(this.at(path), body) as KubeObject) : notFound(path);
      case 'DELETE':
        return this.#delete(path);
    }
  }

  refusalOf(request: TransportRequest): TransportResponse | undefined {
    const version = Number(request.query?.['resourceVersion'] ?? this.#version);
    if (version < this.#compacted) return failure(410, 'Expired', `too old resource version: ${version}`);
    return undefined;
  }

  override async watch(request: TransportRequest): ReturnType<FakeTransport['watch']> {
    const answer = await super.watch(request);
    if (!(answer instanceof FakeWatch)) return answer;
    const version = Number(request.query?.['resourceVersion'] ?? this.#version);
    for (const change of this.#history) {
      if (change.version > version && inCollection(change.path, request.path))
        answer.send(change.event.type, change.event.object);
    }
    return answer;
  }

  #isCollection(path: string): boolean {
    // /api/v1/pods, /api/v1/namespaces/x/pods, /apis/g/v/things: an object has one segment more than its collection.
    const parts = path.split('/').slice(path.startsWith('/apis/') ? 4 : 3);
    return parts.length === 1 || (parts[0] === 'namespaces' && parts.length === 3);
  }

  #list({ path, query }: TransportRequest): TransportResponse {
    const limit = Number(query?.['limit'] ?? 0);
    const [atText, after = ''] = (query?.['continue'] ?? '').split('|');
    if (atText && Number(atText) < this.#compacted) return failure(410, 'Expired', 'the continue token is too old');
    const version = atText || this.version;
    const keys = [...this.#objects.keys()].filter((key) => inCollection(key, path) && key > after).sort();
    const page = limit > 0 ? keys.slice(0, limit) : keys;
    const more = page.length < keys.length ? { continue: `${version}|${page.at(-1)}` } : {};
    return ok({
      kind: 'List',
      apiVersion: 'v1',
      metadata: { resourceVersion: version, ...more },
      items: page.map((key) => deepClone(this.at(key))),
    });
  }

  #create(collection: string, object: KubeObject): TransportResponse {
    const path = `${collection}/${object.metadata.name}`;
    if (this.#objects.has(path)) return failure(409, 'AlreadyExists', `"${object.metadata.name}" already exists`);
    const created = { ...object, metadata: { ...object.metadata, uid: `uid-${++this.#uids}` } };
    return this.#store(path, created, 'ADDED', 201);
  }

  #update(path: string, object: KubeObject): TransportResponse {
    const current = this.at(path);
    if (!current) return notFound(path);
    const { resourceVersion } = object.metadata;
    if (resourceVersion !== undefined && resourceVersion !== current.metadata.resourceVersion) {
      return failure(409, 'Conflict', 'the object has been modified');
    }
    return this.#store(path, { ...object, metadata: { ...object.metadata, uid: current.metadata.uid! } });
  }

  #delete(path: string): TransportResponse {
    const current = this.at(path);
    if (!current) return notFound(path);
    this.#objects.delete(path);
    this.#record(path, 'DELETED', this.#versioned(current));
    return ok({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success' });
  }

  #store(path: string, object: KubeObject, type: WatchEvent['type'] = 'MODIFIED', status = 200): TransportResponse {
    const stored = this.#versioned(object);
    this.#objects.set(path, stored);
    this.#record(path, type, stored);
    return { status, body: deepClone(stored) };
  }

  #versioned(object: KubeObject): KubeObject {
    const copy = deepClone(object);
    copy.metadata.resourceVersion = String(++this.#version);
    return copy;
  }

  #record(path: string, type: WatchEvent['type'], object: KubeObject): void {
    this.#history.push({ version: this.#version, path, event: { type, object: deepClone(object) } });
    for (const watch of this.watches) {
      if (!watch.closed && inCollection(path, watch.request.path)) watch.send(type, deepClone(object));
    }
  }
}

/** Objects at `/…/pods/x`, and for a collection over all namespaces also those at `/…/namespaces/y/pods/x`. */
function inCollection(path: string, collection: string): boolean {
  const parent = path.slice(0, path.lastIndexOf('/'));
  return parent === collection || parent.replace(/\/namespaces\/[^/]+(?=\/)/, '') === collection;
}

function ok(body: unknown): TransportResponse {
  return { status: 200, body: deepClone(body) };
}

function notFound(path: string): TransportResponse {
  return failure(404, 'NotFound', `"${path.slice(path.lastIndexOf('/') + 1)}" not found`);
}
