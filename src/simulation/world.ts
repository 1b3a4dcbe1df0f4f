// SPDX-License-Identifier: Apache-2.0
// One world: an embedded cluster, clouds, the replicas of the autoscaler, users and faults, all on one virtual clock and
// all from one seed. It runs its plan and judges what it sees.
import { allCrds } from '../api/crd.ts';
import { nodePoolKind } from '../api/node-pool.ts';
import { VirtualClock } from '../base/clock.ts';
import { SeededRandom } from '../base/random.ts';
import { EmbeddedCluster, systemNode } from '../embedded/cluster.ts';
import type { StoreEvent } from '../embedded/store.ts';
import { KubeClient } from '../kube/client.ts';
import { kinds } from '../kube/kinds.ts';
import { type Logger, silentLogger } from '../runtime/logging.ts';
import type { FeatureGates } from '../runtime/settings.ts';
import { cloudNamed, usualClouds } from './clouds/index.ts';
import { collections } from './collections.ts';
import type { Fault, Happening, PodTerms, SimulatedCloud } from './contract.ts';
import { CoverageCounts } from './coverage.ts';
import { chance, weighted } from './draw.ts';
import { StoreFacts } from './facts.ts';
import { apiFaults } from './faults/api-faults.ts';
import { clusterFaults } from './faults/cluster-faults.ts';
import { nodeFaults } from './faults/node-faults.ts';
import { processFaults } from './faults/process-faults.ts';
import { Weather } from './faults/weather.ts';
import { gatesOf } from './gates.ts';
import type { Hands } from './happenings/hands.ts';
import { poolsOf } from './happenings/pools.ts';
import { userHappenings } from './happenings/users.ts';
import { daemonSetOf, deploymentOf, priorities, usualCpus } from './happenings/workload-objects.ts';
import { workloadHappenings } from './happenings/workloads.ts';
import { Judge } from './judge.ts';
import type { Moment, Plan } from './plan.ts';
import { Authors } from './process/authors.ts';
import { Fleet } from './process/fleet.ts';
import { PathCounter } from './process/path-counter.ts';
import type { ScenarioShape } from './scenarios.ts';
import { stream } from './streams.ts';
import { Tally } from './tally.ts';
import { RunTrace } from './trace.ts';

const minute = 60_000;

export class World {
  readonly clock = new VirtualClock();
  readonly coverage = new CoverageCounts();
  readonly trace = new RunTrace();
  readonly facts: StoreFacts;
  readonly judge: Judge;
  readonly tally: Tally;
  readonly startedAt: number;
  readonly #shape: ScenarioShape;
  readonly #seed: number;
  /** With Nodes and Pods. */
  readonly #cluster: EmbeddedCluster;
  /** With NodePools and NodeClaims: the same unless they are apart. */
  readonly #hub: EmbeddedCluster;
  readonly #clouds: readonly SimulatedCloud[];
  readonly #gates: FeatureGates;
  readonly #fleet: Fleet;
  readonly #paths: PathCounter;
  readonly #happenings: readonly Happening[];
  readonly #faults: readonly Fault[];
  #onMinute: ((minutes: number) => void) | undefined;
  readonly #endFault = new Set<() => void>();

  private constructor(shape: ScenarioShape, seed: number, parts: Foundations) {
    const { clock, cluster, hub, clouds, authors } = parts;
    this.clock = clock;
    this.coverage = parts.coverage;
    this.#shape = shape;
    this.#seed = seed;
    this.startedAt = clock.now();
    this.#cluster = cluster;
    this.#hub = hub;
    this.#clouds = clouds;
    const gates = gatesOf(stream(seed, 'gates'));
    this.#gates = gates;
    const stores = [...new Set([cluster, hub])].map(({ server }) => server.store);
    this.facts = new StoreFacts(clock, stores, clouds);
    const weather = new Weather(stream(seed, 'weather'));
    this.#paths = new PathCounter(this.coverage);
    this.#fleet = new Fleet(
      {
        world: clock,
        random: stream(seed, 'program'),
        weather,
        authors,
        log: this.#paths.logger,
        karpenter: hub.transport(),
        ...(hub === cluster ? {} : { workload: cluster.transport() }),
        clouds,
        featureGates: gates,
        replicas: chance(stream(seed, 'replicas'), shape.twoReplicas) ? 2 : 1,
        onStart: (name) => this.trace.add(clock.now(), `${name} starts`),
        onEnd: (name, why) => this.trace.add(clock.now(), `${name} ends: ${why}`),
      },
      (process) => this.#paths.collect(process.metrics),
    );
    const more = clouds.flatMap(({ invariants = [] }) => invariants);
    this.judge = new Judge({ facts: this.facts, coverage: this.coverage, fleet: this.#fleet, gates, more });
    this.tally = new Tally(this.facts);
    const hands = this.#handsOf(authors);
    this.#happenings = pickNamed(
      [...workloadHappenings(hands), ...userHappenings(hands), ...clouds.flatMap(({ happenings }) => happenings)],
      shape.happenings,
    ).map((of) => (of.reach ? { ...of, weight: of.weight * (shape.reaching?.[of.reach] ?? 1) } : of));
    const parted = { clock, coverage: this.coverage, facts: this.facts };
    this.#faults = pickNamed(
      [
        ...apiFaults({ ...parted, weather, fleet: this.#fleet, stores, apart: shape.apart }),
        ...processFaults({ ...parted, fleet: this.#fleet }),
        ...nodeFaults({ ...parted, workload: hands.workload, gates }),
        ...clusterFaults({ ...parted, cluster }),
        ...clouds.flatMap(({ faults }) => faults),
      ],
      shape.faults,
    );
    // What could be exercised and is not shows as zero.
    for (const { name } of this.#happenings) this.coverage.count('happening', name, 0);
    for (const { name } of this.#faults) this.coverage.count('fault', name, 0);
    for (const store of stores) store.listen((collection, event) => this.#changed(collection.name, event, authors));
  }

  /** Builds it: the cluster is furnished, pools and first workloads exist, the autoscaler starts. */
  static async build(shape: ScenarioShape, seed: number): Promise<World> {
    const clock = new VirtualClock();
    const coverage = new CoverageCounts();
    const authors = new Authors();
    const crds = allCrds();
    let clouds: SimulatedCloud[] = [];
    const clusterOf = (name: string): Promise<EmbeddedCluster> =>
      EmbeddedCluster.start({
        clock,
        random: stream(seed, name),
        // Nobody falls silent by accident here: what a kubelet would say again and again costs nothing.
        heartbeatMs: 0,
        podStartMs: 2000,
        lean: true,
        log: panics(coverage),
        crds: [],
        baseNodes: [],
      });
    const cluster = await clusterOf('cluster');
    const hub = shape.apart ? await clusterOf('hub') : cluster;
    const clientOf = (by: string, of: EmbeddedCluster): KubeClient =>
      new KubeClient({ transport: authors.transport(by, of.transport()), clock, fieldManager: by });
    const parts = (name: string) => ({
      clock,
      random: stream(seed, `cloud/${name}`),
      karpenter: clientOf(`cloud-${name}`, hub),
      workload: clientOf(`cloud-${name}`, cluster),
      coverage,
    });
    const server = {
      store: cluster.server.store,
      transport: () => cluster.transport(),
      author: () => authors.current.by,
    };
    clouds = (shape.clouds ?? usualClouds).map((name) => cloudNamed(name, { ...parts(name), ...server }));
    const [zone, other = zone] = clouds[0]!.sells.zones;
    const nodes = cluster.client().resource(kinds.Node);
    for (const node of [systemNode('system-1', zone), systemNode('system-2', other)]) await nodes.create(node);
    const ours = new Set(crds.map(({ metadata }) => metadata.name));
    const all = [...crds, ...clouds.map(({ crd }) => crd).filter(({ metadata }) => !ours.has(metadata.name))];
    for (const of of new Set([cluster, hub]))
      for (const crd of all)
        await clientOf('user', of)
          .resource(kinds.CustomResourceDefinition)
          .create(crd as never);
    for (const cloud of clouds) await cloud.furnish();
    const world = new World(shape, seed, { clock, coverage, cluster, hub, clouds, authors });
    await world.#furnish();
    world.#fleet.start();
    return world;
  }

  /** Runs a plan to its end, or to its first violation. */
  async run(plan: Plan, onMinute?: (minutes: number) => void): Promise<void> {
    this.#onMinute = onMinute;
    for (const moment of plan.moments) {
      await this.#until(moment.atMs);
      if (this.judge.violations.length > 0) break;
      await this.#happens(moment);
    }
    if (this.judge.violations.length === 0) await this.#until(plan.endMs);
  }

  async close(): Promise<void> {
    for (const end of this.#endFault) end();
    this.#fleet.close();
    await this.#paths.finish();
    for (const cloud of this.#clouds) cloud.close();
    for (const cluster of new Set([this.#cluster, this.#hub])) await cluster.close();
  }

  /** Lets time pass, minute by minute. */
  async #until(atMs: number): Promise<void> {
    const target = this.startedAt + atMs;
    while (this.clock.now() < target && this.judge.violations.length === 0) {
      const sinceStart = this.clock.now() - this.startedAt;
      const nextMinute = this.startedAt + (Math.floor(sinceStart / minute) + 1) * minute;
      const to = Math.min(nextMinute, target);
      await this.clock.step(to - this.clock.now());
      if (to === nextMinute) {
        this.judge.minute();
        this.tally.minute();
        this.#onMinute?.((to - this.startedAt) / minute);
      }
    }
  }

  async #happens({ what, seed, lastsMs }: Moment): Promise<void> {
    const random = new SeededRandom(seed);
    if (what === 'quiet') {
      await this.judge.quiet();
      this.tally.quiet();
    } else if (what === 'happening') await this.#happening(random);
    else await this.#fault(random, lastsMs);
  }

  async #happening(random: SeededRandom): Promise<void> {
    const happening = weighted(random, this.#happenings);
    const { name } = happening;
    this.trace.add(this.clock.now(), `happening ${name}`);
    if (!(await happening.happen(random))) return;
    this.coverage.count('happening', name);
    this.tally.changes++;
  }

  async #fault(random: SeededRandom, lastsMs: number): Promise<void> {
    const fault = weighted(random, this.#faults);
    this.trace.add(this.clock.now(), `fault ${fault.name} for ${Math.round(lastsMs / 1000)} s`);
    this.facts.faultBegan();
    const stop = await fault.inject(random);
    const end = (): void => {
      if (!this.#endFault.delete(end)) return;
      stop();
      this.facts.faultEnded();
      this.trace.add(this.clock.now(), `fault ${fault.name} ends`);
    };
    this.#endFault.add(end);
    this.clock.after(lastsMs, end);
  }

  #changed(collection: string, event: StoreEvent, { current }: Authors): void {
    const { metadata } = event.object;
    const at = this.clock.now();
    const { by, request } = current;
    if (collection !== collections.events && collection !== collections.leases) {
      const name = metadata.namespace ? `${metadata.namespace}/${metadata.name}` : metadata.name;
      const goes = metadata.deletionTimestamp && !event.previous?.metadata.deletionTimestamp ? ' (begins to go)' : '';
      // What workload controllers and kubelets do all day is no part of the story.
      const routine = by === 'cluster' && collection !== collections.claims && collection !== collections.nodes;
      this.trace.add(at, `${by} ${event.type} ${collection} ${name} ${event.revision}${goes}`, routine);
    }
    const asked = request === undefined ? '' : `${request.method} ${request.path}`;
    this.tally.changed(collection, event);
    this.judge.changed({ at, collection, event, by, request: asked });
  }

  #handsOf(authors: Authors): Hands {
    const { clock, facts } = this;
    const clientOf = (of: EmbeddedCluster): KubeClient =>
      new KubeClient({ transport: authors.transport('user', of.transport()), clock, fieldManager: 'kubectl' });
    const workload = clientOf(this.#cluster);
    const karpenter = this.#hub === this.#cluster ? workload : clientOf(this.#hub);
    let count = 0;
    const shape = this.#shape;
    const terms = this.#terms;
    const gates = this.#gates;
    return { karpenter, workload, facts, clock, shape, gates, terms, next: () => ++count };
  }

  /** What pods may ask for. */
  get #terms(): PodTerms {
    return { ...this.#clouds[0]!.sells, cpus: this.#shape.podCpus ?? usualCpus };
  }

  async #furnish(): Promise<void> {
    const random = stream(this.#seed, 'furniture');
    const client = this.#cluster.client();
    for (const [i, name] of priorities.entries()) {
      const priorityClass = { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name } };
      await client.resource(kinds.PriorityClass).create({ ...priorityClass, value: (i + 1) * 1000 });
    }
    for (const pool of poolsOf(random, this.#clouds, this.#shape, this.#gates))
      await this.#hub.client().resource(nodePoolKind).create(pool);
    await client.resource(kinds.DaemonSet).create(daemonSetOf(random, 'agent'));
    for (let i = 0, pods = 0; pods < this.#shape.pods; i++) {
      const deployment = deploymentOf(random, `first-${i}`, this.#terms);
      pods += deployment.spec?.replicas ?? 0;
      await client.resource(kinds.Deployment).create(deployment);
    }
  }
}

interface Foundations {
  readonly clock: VirtualClock;
  readonly coverage: CoverageCounts;
  readonly cluster: EmbeddedCluster;
  readonly hub: EmbeddedCluster;
  readonly clouds: readonly SimulatedCloud[];
  readonly authors: Authors;
}

/** Hears of requests that the API server could not handle: those are defects of the stage, not of the play. */
function panics(coverage: CoverageCounts): Logger {
  const heard: Logger = {
    ...silentLogger,
    error: (message) => coverage.count('path', `stage/${message}`),
    with: () => heard,
  };
  return heard;
}

function pickNamed<T extends { readonly name: string }>(
  all: readonly T[],
  prefixes: readonly string[] | undefined,
): T[] {
  return all.filter(({ name }) => prefixes?.some((prefix) => name.startsWith(prefix)) ?? true);
}
