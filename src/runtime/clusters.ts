// SPDX-License-Identifier: Apache-2.0
// The API servers a program works with, by the part they play: `karpenter` (NodePools, NodeClaims, NodeClasses),
// `workload` (Nodes, Pods and all that is scheduled) and what a provider adds. By default one plays both parts.
import type { Clock } from '../base/clock.ts';
import { KarpenterError } from '../base/errors.ts';
import type { Random } from '../base/random.ts';
import { KubeClient } from '../kube/client.ts';
import { EventRecorder } from '../kube/event-recorder.ts';
import { Informer } from '../kube/informer.ts';
import type { KubeObject, OwnerReference, ResourceType } from '../kube/object.ts';
import { TokenBucket } from '../kube/rate-limiter.ts';
import type { Transport } from '../kube/transport.ts';
import { requestObserver } from './client-metrics.ts';
import type { Logger } from './logging.ts';
import { Metrics } from './metrics.ts';

export interface ClusterOptions {
  /** For logs and errors. */
  readonly name: string;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics?: Metrics;
  /** Requests a second, and how many at once; no throttling unless told. */
  readonly qps?: number;
  readonly burst?: number;
  readonly fieldManager?: string;
  /** What informers keep of the objects of a kind, where that is not everything. It must not change its argument. */
  readonly transforms?: Transforms;
}

/** By kind, what is kept of an object; undefined for everything. */
export type Transforms = <T extends KubeObject>(type: ResourceType<T>) => ((object: T) => T) | undefined;

/** Which part of a collection an informer follows. */
export interface Selection {
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /**
   * A kind that is not served counts as an empty collection. Not for kinds whose absence would be taken for a reason to
   * delete something.
   */
  readonly tolerateMissing?: boolean;
}

/** A share in an informer. */
export interface InformerShare<T extends KubeObject> {
  readonly informer: Informer<T>;
  /** Gives the share back; the informer stops with the last one. Safe to call twice. */
  release(): void;
}

/** One API server: the client, the shared informers and the event recorder for it. */
export class Cluster {
  readonly name: string;
  readonly client: KubeClient;
  readonly informers: InformerCache;
  readonly events: EventRecorder;

  constructor(options: ClusterOptions) {
    const { name, transport, clock, qps, burst = qps } = options;
    const log = options.log.with({ cluster: name });
    const onRequest = requestObserver(options.metrics ?? new Metrics());
    const newClient = (): KubeClient =>
      new KubeClient({
        transport,
        clock,
        limiter: qps === undefined ? undefined : new TokenBucket({ qps, burst: burst ?? qps, clock }),
        fieldManager: options.fieldManager ?? 'karpenter',
        onRequest,
      });
    this.name = name;
    this.client = newClient();
    const { random, transforms } = options;
    this.informers = new InformerCache({
      client: this.client,
      clock,
      random,
      log,
      ...(transforms ? { transforms } : {}),
    });
    // A limit of their own: what is told must not slow down what is done.
    this.events = new EventRecorder({ client: newClient(), clock, log });
  }

  /** Starts the informers there are; those that come later start when they are asked for. */
  start(signal: AbortSignal): void {
    this.informers.start(signal);
  }

  /** Ends what goes on in the background. Events that wait are dropped: flush before, if they matter. */
  async close(): Promise<void> {
    this.events.stop();
    await this.informers.close();
  }
}

interface SharedInformer {
  readonly informer: Informer<KubeObject>;
  readonly stop: AbortController;
  shares: number;
}

interface InformerCacheOptions extends Pick<ClusterOptions, 'clock' | 'random' | 'log' | 'transforms'> {
  readonly client: KubeClient;
}

/** One informer per kind and selection, however many ask for it. */
export class InformerCache {
  readonly #options: InformerCacheOptions;
  readonly #shared = new Map<string, SharedInformer>();
  #signal: AbortSignal | undefined;

  constructor(options: InformerCacheOptions) {
    this.#options = options;
  }

  /** The informer for the life of the program. */
  get<T extends KubeObject>(type: ResourceType<T>, selection: Selection = {}): Informer<T> {
    return this.acquire(type, selection).informer;
  }

  /** A share in the informer; give it back when it is no longer needed. */
  acquire<T extends KubeObject>(type: ResourceType<T>, selection: Selection = {}): InformerShare<T> {
    const key = keyOfSelection(type, selection);
    const shared = this.#shared.get(key) ?? this.#open(key, type, selection);
    shared.shares++;
    let released = false;
    return {
      informer: shared.informer as unknown as Informer<T>,
      release: () => {
        if (released) return;
        released = true;
        shared.shares--;
        if (shared.shares > 0) return;
        this.#shared.delete(key);
        shared.stop.abort(new Error('nobody needs the informer any more'));
      },
    };
  }

  start(signal: AbortSignal): void {
    if (this.#signal) return;
    this.#signal = signal;
    signal.addEventListener('abort', () => this.#stopAll(signal.reason), { once: true });
    for (const { informer, stop } of this.#shared.values()) informer.start(stop.signal);
  }

  get started(): boolean {
    return this.#signal !== undefined;
  }

  /** The kinds whose first list is not in yet. */
  get unsynced(): string[] {
    return [...this.#shared.values()].filter(({ informer }) => !informer.hasSynced).map((s) => s.informer.type.kind);
  }

  /** Resolves when every informer there is now has its first list. */
  async waitForSync(signal: AbortSignal): Promise<void> {
    await Promise.all([...this.#shared.values()].map(({ informer }) => informer.waitForSync(signal)));
  }

  /** Stops all informers and waits for them. */
  async close(): Promise<void> {
    const all = [...this.#shared.values()];
    this.#stopAll(new Error('the cluster was closed'));
    await Promise.all(all.map(({ informer }) => informer.stopped()));
  }

  #open<T extends KubeObject>(key: string, type: ResourceType<T>, selection: Selection): SharedInformer {
    const { transforms, ...options } = this.#options;
    const informer = new Informer<T>({ ...options, ...selection, type, transform: transforms?.(type) });
    const shared = { informer: informer as unknown as Informer<KubeObject>, stop: new AbortController(), shares: 0 };
    this.#shared.set(key, shared);
    if (this.#signal) informer.start(shared.stop.signal);
    return shared;
  }

  #stopAll(reason: unknown): void {
    for (const { stop } of this.#shared.values()) stop.abort(reason);
  }
}

function keyOfSelection(type: ResourceType, selection: Selection): string {
  const { namespace = '', labelSelector = '', fieldSelector = '', tolerateMissing = false } = selection;
  return JSON.stringify([
    type.group,
    type.version,
    type.plural,
    namespace,
    labelSelector,
    fieldSelector,
    tolerateMissing,
  ]);
}

/** There is no cluster of that name. */
export class UnknownClusterError extends KarpenterError {
  constructor(name: string, known: readonly string[]) {
    super('KRP_UNKNOWN_CLUSTER', `there is no cluster named ${name}; there are ${known.join(', ')}`);
  }
}

/** The clusters of a program by name. Two names may stand for one cluster. */
export class Clusters {
  readonly karpenter: Cluster;
  readonly workload: Cluster;
  readonly #byName: Map<string, Cluster>;

  constructor(karpenter: Cluster, workload: Cluster = karpenter) {
    this.karpenter = karpenter;
    this.workload = workload;
    this.#byName = new Map([
      ['karpenter', karpenter],
      ['workload', workload],
    ]);
  }

  /** Adds the cluster of a provider. Throws when the name is taken. */
  add(name: string, cluster: Cluster): void {
    if (this.#byName.has(name))
      throw new KarpenterError('KRP_CLUSTER_EXISTS', `there is a cluster named ${name} already`);
    this.#byName.set(name, cluster);
  }

  get(name: string): Cluster {
    const cluster = this.#byName.get(name);
    if (!cluster) throw new UnknownClusterError(name, [...this.#byName.keys()]);
    return cluster;
  }

  /** Each cluster once, however many names it has. */
  get all(): readonly Cluster[] {
    return [...new Set(this.#byName.values())];
  }
}

/** An owner in one cluster, its dependent in another: the garbage collector there would delete the dependent. */
export class CrossClusterOwnerError extends KarpenterError {
  constructor(owner: KubeObject, from: Cluster, to: Cluster) {
    super(
      'KRP_CROSS_CLUSTER_OWNER',
      `${owner.kind} ${owner.metadata.name} of cluster ${from.name} cannot own an object of cluster ${to.name}`,
    );
  }
}

/**
 * The reference by which `owner` owns an object of `dependentCluster`. Throws `CrossClusterOwnerError` when the owner
 * lives in another cluster, and when the owner is not one that was read from an API server.
 */
export function ownerReference(
  owner: { readonly cluster: Cluster; readonly object: KubeObject },
  dependentCluster: Cluster,
  options: { readonly controller?: boolean; readonly blockOwnerDeletion?: boolean } = {},
): OwnerReference {
  const { cluster, object } = owner;
  if (cluster !== dependentCluster) throw new CrossClusterOwnerError(object, cluster, dependentCluster);
  const { apiVersion, kind } = object;
  const { name, uid } = object.metadata;
  if (!apiVersion || !kind || !name || !uid) {
    throw new KarpenterError('KRP_OWNER_INCOMPLETE', 'an owner needs its apiVersion, kind, name and uid');
  }
  return { apiVersion, kind, name, uid, ...options };
}
