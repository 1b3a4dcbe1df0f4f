// SPDX-License-Identifier: Apache-2.0
// The API server of the embedded cluster: one store, every kind, over HTTPS or in process. Requests are handled
// synchronously, one after the other, so each of them is atomic.
import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import type { Transport } from '../kube/transport.ts';
import { type Logger, silentLogger } from '../runtime/logging.ts';
import { Authenticator } from './authentication.ts';
import { bootstrapObjects } from './bootstrap.ts';
import { Definitions } from './custom/definitions.ts';
import { handleDiscovery } from './discovery.ts';
import { GarbageCollector } from './garbage-collector.ts';
import { type HttpListener, type ListenOptions, listenHttps } from './http.ts';
import type { LogSources } from './logs/pod-log.ts';
import { Authorizer, refusalFor } from './rbac.ts';
import { builtInResources } from './registry/index.ts';
import { Registry } from './registry.ts';
import { Bookmarks } from './rest/bookmarks.ts';
import type { ServerParts } from './rest/context.ts';
import { dispatch } from './rest/dispatch.ts';
import {
  type ApiRequest,
  type ApiResponse,
  parseRequest,
  type RequestInfo,
  systemUser,
  type UserInfo,
} from './rest/request.ts';
import { answerReview, isReview } from './rest/reviews.ts';
import { ListSnapshots } from './rest/snapshots.ts';
import { StatusError, unknownResource } from './status.ts';
import { Store, type StoreOptions } from './store.ts';
import { InProcessTransport } from './transport.ts';

export type { UserInfo } from './rest/request.ts';

export interface ApiServerOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly log?: Logger;
  readonly store?: StoreOptions;
  /** Users by bearer token. */
  readonly tokens?: Readonly<Record<string, UserInfo>>;
  /** The logs of containers that somebody really runs. */
  readonly logs?: LogSources;
  /** Whether `managedFields` are kept from the creation of an object on, as usual, or only once somebody applies it. */
  readonly tracksOwners?: boolean;
}

/** A Kubernetes API server in memory. Starts with the namespaces, roles and priority classes every cluster has. */
export class ApiServer {
  readonly clock: Clock;
  readonly random: Random;
  readonly store: Store;
  readonly registry = new Registry();
  readonly authenticator: Authenticator;
  readonly #log: Logger;
  readonly #parts: ServerParts;
  readonly #definitions: Definitions;
  readonly #authorizer: Authorizer;
  readonly #collector: GarbageCollector;
  readonly #bookmarks: Bookmarks;
  readonly #listeners = new Set<HttpListener>();

  constructor(options: ApiServerOptions) {
    this.clock = options.clock;
    this.random = options.random;
    this.#log = options.log ?? silentLogger;
    this.store = new Store(options.store);
    for (const resource of builtInResources) {
      const indexes = Object.fromEntries(resource.indexed.map((field) => [field, resource.fields[field]!]));
      this.store.collection(resource.id, { indexes });
      this.registry.add(resource);
    }
    this.authenticator = new Authenticator(options.random, options.tokens);
    this.#bookmarks = new Bookmarks(options.clock);
    this.#parts = {
      clock: options.clock,
      random: options.random,
      store: this.store,
      registry: this.registry,
      snapshots: new ListSnapshots(options.clock),
      bookmarks: this.#bookmarks,
      tracksOwners: options.tracksOwners ?? true,
      issueToken: (user) => this.authenticator.issue(user),
      notHeld: (user, namespace, rules) => this.#authorizer.notHeld(user, namespace, rules),
      ...(options.logs ? { logs: options.logs } : {}),
    };
    this.#definitions = new Definitions(this.store, this.registry, options.clock);
    this.#authorizer = new Authorizer(this.store);
    this.#collector = new GarbageCollector(this.store, this.registry, options.clock, (request) => this.handle(request));
    for (const { path, body } of bootstrapObjects()) {
      this.handle({ method: 'POST', path, query: {}, body, ownsBody: false, user: systemUser });
    }
    // Nobody has seen how the cluster began, so nobody can go on from there.
    for (const collection of this.store.collections()) collection.compact();
  }

  /**
   * Answers one request, right now; never throws. What a request causes (watch events, garbage collection) reaches
   * others after the caller's turn.
   */
  handle(request: ApiRequest): ApiResponse {
    try {
      const response = this.#answer(request);
      this.#definitions.reconcile();
      return response;
    } catch (error) {
      return this.#refusal(request, error);
    }
  }

  #answer(request: ApiRequest): ApiResponse {
    const info = parseRequest(request.method, request.path, request.query);
    if (request.user !== systemUser && !this.#authorizer.allows(request.user, info)) {
      throw refusalFor(request.user, info);
    }
    if (!info.isResource) return handleDiscovery(this.registry, request, info);
    return this.#resourceAnswer(request, info);
  }

  #resourceAnswer(request: ApiRequest, info: RequestInfo): ApiResponse {
    const found = this.registry.find(info.group, info.version, info.resource);
    if (!found) {
      if (info.group !== '' && !this.registry.hasGroup(info.group))
        return { status: 404, text: '404 page not found\n' };
      throw unknownResource();
    }
    const { resource, version } = found;
    if (!resource.namespaced && info.namespace !== '' && resource.id !== 'namespaces') throw unknownResource();
    if (isReview(resource))
      return answerReview(request, info.name !== '', resource, this.#authorizer, this.authenticator);
    const context = {
      ...this.#parts,
      request,
      info,
      resource,
      version,
      collection: this.store.collection(resource.id),
      warnings: version.deprecated === undefined ? [] : [version.deprecated],
    };
    const response = dispatch(context);
    return context.warnings.length === 0 ? response : { ...response, warnings: context.warnings };
  }

  #refusal(request: ApiRequest, error: unknown): ApiResponse {
    if (error instanceof StatusError) {
      const { status } = error;
      const retryAfter = status.details?.retryAfterSeconds;
      return {
        status: status.code!,
        body: status,
        ...(retryAfter === undefined ? {} : { headers: { 'retry-after': String(retryAfter) } }),
      };
    }
    this.#log.error('request failed', { method: request.method, path: request.path, error });
    const message = `this request caused the API server to panic; look for "request failed" in its log`;
    return { status: 500, body: new StatusError(500, 'InternalError', message).status };
  }

  /** The user that another asks to be, when it may. Throws StatusError to refuse. */
  impersonate(user: UserInfo, asked: UserInfo): UserInfo {
    const wishes = [['users', asked.username], ...asked.groups.map((group) => ['groups', group])] as [string, string][];
    for (const [resource, name] of wishes) {
      const question = {
        isResource: true,
        verb: 'impersonate',
        group: '',
        namespace: '',
        subresource: '',
        path: '',
        resource,
        name,
      };
      if (!this.#authorizer.allows(user, question)) throw refusalFor(user, question);
    }
    const groups = asked.groups.includes('system:authenticated')
      ? asked.groups
      : [...asked.groups, 'system:authenticated'];
    return { ...asked, groups };
  }

  /** The door for clients in this process: no serialisation, frozen objects. Without a user it may do anything. */
  transport(user: UserInfo = systemUser): Transport {
    return new InProcessTransport(this, user);
  }

  /** Opens an HTTPS port (loopback, any free port by default). */
  async listen(options: ListenOptions = {}): Promise<HttpListener> {
    const listener = await listenHttps(this, options, this.#log);
    this.#listeners.add(listener);
    return listener;
  }

  /** Ends every watch and connection. Requests in process go on working, on what is stored. */
  async close(): Promise<void> {
    this.#collector.stop();
    this.#bookmarks.stop();
    this.store.close();
    await Promise.all([...this.#listeners].map((listener) => listener.close()));
    this.#listeners.clear();
  }
}
