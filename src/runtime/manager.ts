// SPDX-License-Identifier: Apache-2.0
// Runs a program of controllers: servers first, then caches, then the lease, then the controllers; and all of it
// backwards when it is asked to stop.
import type { Clock } from '../base/clock.ts';
import { KarpenterError, wrap } from '../base/errors.ts';
import { type LeaderElectionOptions, LeaderElector } from '../kube/lease.ts';
import type { ResourceType } from '../kube/object.ts';
import type { Cluster, Clusters } from './clusters.ts';
import { aborted } from './controller.ts';
import { leaderStatus } from './controller-metrics.ts';
import { type HealthCheck, HealthChecks, healthRoute, metricsRoute, type Route, SmallServer } from './health.ts';
import { LeadershipLostError } from './leader.ts';
import type { Logger } from './logging.ts';
import type { Metrics } from './metrics.ts';

/** Something that runs until its signal aborts. A `Controller` is one. Rejecting stops the whole program. */
export interface Runnable {
  readonly name: string;
  start(signal: AbortSignal): Promise<void>;
}

export interface ManagerOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly clusters: Clusters;
  /** Without it, everything runs at once: for a single replica. */
  readonly election?: Omit<LeaderElectionOptions, 'onStartedLeading' | 'onStoppedLeading' | 'clock' | 'log'>;
  /** Fill the caches before the lease is held, for a quicker change of leaders. */
  readonly warmup?: boolean;
  /** Ports to serve on; 0 takes a free one; without one there is no such server. */
  readonly metricsPort?: number;
  readonly healthPort?: number;
  readonly host?: string;
  /** Served on the metrics port beside `/metrics`. */
  readonly routes?: readonly Route[];
  /** How long the running work may take to end after the program was asked to stop; 25 s, less than a pod gets. */
  readonly shutdownTimeoutMs?: number;
  /** The lease is lost: end the process now. `run` rejects as well, but waits for nobody. */
  readonly onLost?: (error: LeadershipLostError) => void;
}

/** A program that was asked to stop did not within its time. */
export class ShutdownTimeoutError extends KarpenterError {
  constructor(ms: number, running: readonly string[]) {
    super('KRP_SHUTDOWN_TIMEOUT', `still running ${ms / 1000} s after the shutdown began: ${running.join(', ')}`);
  }
}

interface Running {
  readonly name: string;
  readonly done: Promise<void>;
}

/**
 * Starts and stops what was added to it. Each runnable waits for what it needs by itself, so a cluster that does not
 * answer holds back only those who need it.
 */
export class Manager {
  /** Behind /healthz: is the process alive. */
  readonly liveness = new HealthChecks();
  /** Behind /readyz: can it do its work. */
  readonly readiness = new HealthChecks();
  readonly #options: ManagerOptions;
  readonly #log: Logger;
  readonly #leaderOnly: Runnable[] = [];
  readonly #everyReplica: Runnable[] = [];
  readonly #running = new Set<Running>();
  readonly #stop = new AbortController();
  readonly #ports: { metrics?: number; health?: number } = {};
  #isLeader = false;
  #failure: unknown;

  constructor(options: ManagerOptions) {
    this.#options = options;
    this.#log = options.log;
    this.readiness.add('shutdown', () => {
      if (this.#stop.signal.aborted) throw new Error('shutting down');
    });
  }

  /** Adds what runs on the leader only, or with `everyReplica` on all. Before `run`. */
  add(runnable: Runnable, options: { readonly everyReplica?: boolean } = {}): this {
    (options.everyReplica ? this.#everyReplica : this.#leaderOnly).push(runnable);
    return this;
  }

  /** The ports that are served on. */
  get ports(): { readonly metrics?: number; readonly health?: number } {
    return this.#ports;
  }

  /** Whether this process may act: it holds the lease, or needs none. */
  get isLeader(): boolean {
    return this.#isLeader;
  }

  /**
   * Runs until `signal` aborts and everything has stopped. Rejects with `LeadershipLostError`, with what a runnable
   * failed with, with `PortError`, or with `ShutdownTimeoutError`.
   */
  async run(signal: AbortSignal): Promise<void> {
    const servers = await this.#serve();
    const caches = new AbortController();
    const standing = new AbortController();
    const onAbort = (): void => this.#stop.abort(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    try {
      if (this.#options.warmup || !this.#options.election) this.#startCaches(caches.signal);
      for (const runnable of this.#everyReplica) this.#start(runnable);
      const election = this.#lead(caches.signal, standing.signal).catch((error: unknown) => this.#fail(error));
      await aborted(this.#stop.signal);
      if (this.#failure instanceof LeadershipLostError) throw this.#failure;
      this.#log.info('stopping', { running: this.#running.size });
      await this.#stopRunning();
      await this.#flushEvents();
      // The last thing to go: nobody else may begin while something of ours still runs.
      standing.abort(signal.reason);
      await election;
      if (this.#failure !== undefined) throw this.#failure;
      this.#log.info('stopped');
    } finally {
      signal.removeEventListener('abort', onAbort);
      standing.abort(this.#stop.signal.reason);
      caches.abort(this.#stop.signal.reason);
      for (const cluster of this.#options.clusters.all) await cluster.close();
      for (const server of servers) await server.close();
    }
  }

  async #serve(): Promise<SmallServer[]> {
    const { log, metrics, metricsPort, healthPort, host, routes = [] } = this.#options;
    const servers: SmallServer[] = [];
    const serve = async (
      name: 'metrics' | 'health',
      port: number | undefined,
      all: readonly Route[],
    ): Promise<void> => {
      if (port === undefined) return;
      const server = new SmallServer({ name, routes: all, log });
      this.#ports[name] = await server.listen(port, host);
      servers.push(server);
    };
    try {
      await serve('metrics', metricsPort, [metricsRoute(metrics), ...routes]);
      await serve('health', healthPort, [
        healthRoute('/healthz', this.liveness),
        healthRoute('/readyz', this.readiness),
      ]);
    } catch (error) {
      for (const server of servers) await server.close();
      throw error;
    }
    return servers;
  }

  #startCaches(signal: AbortSignal): void {
    for (const cluster of this.#options.clusters.all) cluster.start(signal);
  }

  /** Becomes the leader, now or when the lease is won, and starts what only the leader runs. */
  async #lead(caches: AbortSignal, standing: AbortSignal): Promise<void> {
    const { election, clock, log, metrics, onLost } = this.#options;
    const begin = (): void => {
      this.#isLeader = true;
      if (this.#stop.signal.aborted) return;
      this.#startCaches(caches);
      for (const runnable of this.#leaderOnly) this.#start(runnable);
    };
    if (!election) return begin();
    const status = metrics.gauge(leaderStatus);
    status.set({ name: election.name }, 0);
    // Nothing runs under a lease that was not won yet, so there is nothing to wait for.
    const waiting = new AbortController();
    const stopWaiting = (): void => {
      if (!this.#isLeader) waiting.abort(this.#stop.signal.reason);
    };
    this.#stop.signal.addEventListener('abort', stopWaiting, { once: true });
    standing.addEventListener('abort', () => waiting.abort(standing.reason), { once: true });
    const elector = new LeaderElector({
      ...election,
      clock,
      log,
      onStartedLeading: () => {
        status.set({ name: election.name }, 1);
        begin();
      },
      onStoppedLeading: () => {
        status.set({ name: election.name }, 0);
        this.#isLeader = false;
        if (waiting.signal.aborted) return;
        const lost = new LeadershipLostError();
        this.#fail(lost);
        onLost?.(lost);
      },
    });
    await elector.run(waiting.signal);
  }

  #start(runnable: Runnable): void {
    const { name } = runnable;
    const running: Running = {
      name,
      // Within a function of its own, so that what it throws at once counts as its failure too.
      done: (async () => runnable.start(this.#stop.signal))()
        .catch((error: unknown) => this.#fail(wrap(`running ${name}`, error)))
        .finally(() => this.#running.delete(running)),
    };
    this.#running.add(running);
  }

  /** The first failure counts; it stops everything. */
  #fail(error: unknown): void {
    if (this.#failure !== undefined) return;
    this.#failure = error;
    this.#log.error('stopping after a failure', { error });
    this.#stop.abort(error);
  }

  async #stopRunning(): Promise<void> {
    const { clock, shutdownTimeoutMs = 25_000 } = this.#options;
    const all = Promise.all([...this.#running].map(({ done }) => done)).then(() => true);
    const late = new AbortController();
    const timeout = clock.sleep(shutdownTimeoutMs, late.signal).then(
      () => false,
      () => true,
    );
    const inTime = await Promise.race([all, timeout]);
    late.abort(new Error('everything has stopped'));
    if (!inTime)
      throw new ShutdownTimeoutError(shutdownTimeoutMs, [...this.#running].map(({ name }) => name).toSorted());
  }

  /** Events tell users why something happened: they get a moment to go out. */
  async #flushEvents(): Promise<void> {
    const { clock, clusters } = this.#options;
    const done = new AbortController();
    const flushed = Promise.all(clusters.all.map((cluster) => cluster.events.flush()));
    await Promise.race([flushed, clock.sleep(2000, done.signal).catch(() => undefined)]);
    done.abort(new Error('flushed'));
  }
}

/** A readiness check: the caches of a cluster have their first lists. */
export function cachesSynced(cluster: Cluster): HealthCheck {
  return () => {
    if (!cluster.informers.started) return;
    const kinds = cluster.informers.unsynced;
    if (kinds.length > 0) throw new Error(`cluster ${cluster.name}: not synced yet: ${kinds.join(', ')}`);
  };
}

/** A readiness check: the API server serves these kinds, so their CRDs are installed. */
export function kindsServed(cluster: Cluster, types: readonly ResourceType[]): HealthCheck {
  return async (signal) => {
    const served = await Promise.all(types.map((type) => cluster.client.serves(type, signal)));
    const missing = types.filter((_, i) => !served[i]).map((type) => `${type.plural}.${type.group}`);
    if (missing.length > 0) throw new Error(`cluster ${cluster.name} does not serve ${missing.join(', ')}`);
  };
}
