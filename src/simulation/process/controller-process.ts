// SPDX-License-Identifier: Apache-2.0
// One process of the autoscaler: the whole program as it runs in production, on a clock and on lines that the world
// holds in its hands. It can be killed at any await, hang and come back.
import { nodePoolKind } from '../../api/node-pool.ts';
import type { VirtualClock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import { runAutoscaler } from '../../cli/autoscaler.ts';
import { programSettings } from '../../cli/program-settings.ts';
import { CloudRegistry } from '../../cloud/registry.ts';
import { KubeClient } from '../../kube/client.ts';
import type { Transport, TransportRequest, TransportResponse } from '../../kube/transport.ts';
import { TransportError } from '../../kube/transport-error.ts';
import { Cluster, Clusters } from '../../runtime/clusters.ts';
import type { Logger } from '../../runtime/logging.ts';
import { Metrics } from '../../runtime/metrics.ts';
import { defaultSettings, type FeatureGates } from '../../runtime/settings.ts';
import { slimTransforms } from '../../state/slim.ts';
import type { Line, SimulatedCloud } from '../contract.ts';
import { isWrite, type Weather } from '../faults/weather.ts';
import type { Authors } from './authors.ts';
import { ProcessClock } from './process-clock.ts';
import { type Passage, ProcessTransport } from './process-transport.ts';

export interface ProcessParts {
  /** Unique over the life of the world: `karpenter-3`. */
  readonly name: string;
  readonly world: VirtualClock;
  readonly random: Random;
  readonly weather: Weather;
  readonly authors: Authors;
  readonly log: Logger;
  /** Doors to the API servers: the one with NodePools, and the one with Nodes when it is another. */
  readonly karpenter: Transport;
  readonly workload?: Transport;
  readonly clouds: readonly SimulatedCloud[];
  readonly featureGates: FeatureGates;
  /** Whether there are others to compete with. */
  readonly elects: boolean;
  /** It ended by itself: it lost its lease, or failed. */
  readonly onEnd: (why: string) => void;
}

/** Slower than in production by a factor of four: a lease that nobody contests is renewed often enough. */
const election = { leaseDurationMs: 60_000, renewDeadlineMs: 40_000, retryPeriodMs: 8000 };

export type KillMoment = 'before' | 'after';

export class ControllerProcess implements Passage {
  readonly name: string;
  readonly clock: ProcessClock;
  readonly metrics = new Metrics();
  /** When it came back last. */
  resumedAt = Number.NEGATIVE_INFINITY;
  readonly #parts: ProcessParts;
  readonly #transports: ProcessTransport[];
  #dead = false;
  #awake: PromiseWithResolvers<void> | undefined;
  #doom: { left: number; readonly moment: KillMoment; readonly after: () => void } | undefined;

  constructor(parts: ProcessParts) {
    this.name = parts.name;
    this.#parts = parts;
    this.clock = new ProcessClock(parts.world);
    this.#transports = [parts.karpenter, ...(parts.workload ? [parts.workload] : [])].map(
      (transport) => new ProcessTransport(transport, this),
    );
  }

  /** Starts the program. */
  start(): void {
    const { random, log, clouds, featureGates, elects, name, onEnd } = this.#parts;
    const { clock, metrics } = this;
    const clusterOf = (of: string, transport: Transport): Cluster =>
      new Cluster({ name: of, transport, clock, random, log, metrics, transforms: slimTransforms() });
    const [karpenter, workload] = this.#transports as [ProcessTransport, ProcessTransport?];
    const one = clusterOf('karpenter', karpenter);
    const clusters = new Clusters(one, workload ? clusterOf('workload', workload) : one);
    const reach = (transport: Transport): Transport => {
      const reached = new ProcessTransport(transport, this);
      this.#transports.push(reached);
      return reached;
    };
    const call: Line['call'] = (_what, carryOut) => this.#call(carryOut);
    const line: Line = { clock, clusters, random, log, metrics, reach, call };
    const connected = clouds.map((cloud) => cloud.connect(line));
    const settings = { ...defaultSettings(programSettings), featureGates };
    const candidate = {
      client: new KubeClient({ transport: karpenter, clock, fieldManager: 'karpenter' }),
      name: settings.leaderElectionName,
      namespace: 'kube-system',
      identity: name,
      random,
      ...election,
    };
    const ended = (why: string): void => {
      if (!this.#dead) onEnd(why);
    };
    runAutoscaler(
      {
        clusters,
        settings,
        clock,
        random,
        log,
        metrics,
        required: [nodePoolKind],
        withoutServers: true,
        election: elects ? candidate : undefined,
        onLost: () => ended('it lost its lease'),
        loaded: {
          registry: new CloudRegistry(connected.map(({ provider }) => provider)),
          runnables: connected.flatMap(({ runnables }) => runnables),
        },
      },
      new AbortController().signal,
    ).then(
      () => ended('it ended'),
      (error: unknown) => ended(error instanceof Error ? error.message : 'it failed'),
    );
  }

  get isDead(): boolean {
    return this.#dead;
  }

  get isHung(): boolean {
    return this.#awake !== undefined;
  }

  /** Ends it here and now, without a word: whoever awaits something in it awaits it for ever. */
  kill(): void {
    if (this.#dead) return;
    this.#dead = true;
    this.clock.die();
    for (const transport of this.#transports) void transport.cut();
  }

  /** It will die at its n-th write from now, to an API server or a cloud, right before it or before the answer. */
  killAtWrite(n: number, moment: KillMoment, after: () => void): void {
    this.#doom = { left: n, moment, after };
  }

  /** Spares it. Gives whether it was still to die. */
  spare(): boolean {
    const doomed = this.#doom !== undefined;
    this.#doom = undefined;
    return doomed;
  }

  /** Nothing of it runs until `resume`. */
  hang(): void {
    this.#awake ??= Promise.withResolvers<void>();
    this.clock.hang();
  }

  resume(): void {
    this.resumedAt = this.#parts.world.now();
    const awake = this.#awake;
    this.#awake = undefined;
    awake?.resolve();
    this.clock.resume();
  }

  breakWatches(): number {
    return this.#transports.reduce((sum, transport) => sum + transport.breakWatches(), 0);
  }

  async pass(request: TransportRequest, send: () => Promise<TransportResponse>): Promise<TransportResponse> {
    if (this.#dead || this.#awake) await this.#alive();
    const write = isWrite(request);
    const fate = this.#parts.weather.fate(request);
    if (fate.thereMs > 0) await this.#travel(fate.thereMs, request.signal);
    if (fate.unreachable) throw new TransportError('refused', 'connection refused');
    if (fate.refusal) return fate.refusal;
    const carryOut = (): Promise<TransportResponse> => this.#parts.authors.send(this.name, request, send);
    const response = await (write && this.#doom ? this.#fatal(carryOut) : carryOut());
    if (fate.backMs > 0) await this.#travel(fate.backMs, request.signal);
    if (this.#dead || this.#awake) await this.#alive();
    if (fate.lost) throw new TransportError('broken', 'connection reset');
    return response;
  }

  async open(request: TransportRequest): Promise<TransportResponse | undefined> {
    if (this.#dead || this.#awake) await this.#alive();
    const { refusal, unreachable } = this.#parts.weather.fate(request);
    if (unreachable) throw new TransportError('refused', 'connection refused');
    return refusal;
  }

  deliver(): Promise<void> | undefined {
    const { watchLagMs } = this.#parts.weather;
    if (watchLagMs === 0 && !this.#dead && !this.#awake) return undefined;
    return this.#late(watchLagMs);
  }

  async #late(lagMs: number): Promise<void> {
    if (lagMs > 0 && !this.#dead) await this.#parts.world.sleep(lagMs);
    await this.#alive();
  }

  async #call<R>(carryOut: () => Promise<R>): Promise<R> {
    if (this.#dead || this.#awake) await this.#alive();
    try {
      return await (this.#doom ? this.#fatal(carryOut) : carryOut());
    } finally {
      // Neither answers nor errors reach a process that is gone.
      if (this.#dead || this.#awake) await this.#alive();
    }
  }

  async #fatal<R>(carryOut: () => Promise<R>): Promise<R> {
    const doom = this.#doom!;
    if (--doom.left > 0) return carryOut();
    this.#doom = undefined;
    // However it ended, nobody hears of it.
    if (doom.moment === 'after') await carryOut().catch(() => undefined);
    this.kill();
    doom.after();
    return new Promise<R>(() => undefined);
  }

  /** On the world's clock: a request under way does not stop with its sender. */
  async #travel(ms: number, signal: AbortSignal | undefined): Promise<void> {
    await this.#parts.world.sleep(ms, signal);
    if (this.#dead || this.#awake) await this.#alive();
  }

  /** Resolves when it runs; never for a dead one. */
  async #alive(): Promise<void> {
    while (this.#awake && !this.#dead) await this.#awake.promise;
    if (this.#dead) await new Promise<void>(() => undefined);
  }
}
