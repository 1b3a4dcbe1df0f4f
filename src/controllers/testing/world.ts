// SPDX-License-Identifier: Apache-2.0
// A world for tests of controllers: API server, cloud, state and clock in one process, and verbs to live in it. Time
// moves only when a test says so.

import { nodeClaimConditions } from '../../api/conditions.ts';
import { allCrds } from '../../api/crd.ts';
import { kwokNodeClassKind } from '../../api/kwok-node-class.ts';
import { type NodeClaim, nodeClaimKind } from '../../api/node-claim.ts';
import { type NodePool, nodePoolKind } from '../../api/node-pool.ts';
import { nodePool } from '../../api/testing/objects.ts';
import { settle, VirtualClock } from '../../base/clock.ts';
import { SeededRandom } from '../../base/random.ts';
import type { CloudProvider } from '../../cloud/provider.ts';
import { CloudRegistry } from '../../cloud/registry.ts';
import { ApiServer } from '../../embedded/api-server.ts';
import { EmbeddedCluster } from '../../embedded/cluster.ts';
import { ignoreNotFound } from '../../kube/api-error.ts';
import { KubeClient } from '../../kube/client.ts';
import { type Event, kinds, type Node, type Pod } from '../../kube/kinds.ts';
import { apiVersionOf, type KubeObject, keyOf, type ResourceType } from '../../kube/object.ts';
import { FaultyTransport } from '../../kube/testing/faulty-transport.ts';
import { formatTime } from '../../kube/time.ts';
import { Cluster, Clusters } from '../../runtime/clusters.ts';
import { InlineExecutor } from '../../runtime/executor.ts';
import { RecordingLogger } from '../../runtime/logging.ts';
import type { Runnable } from '../../runtime/manager.ts';
import { Metrics } from '../../runtime/metrics.ts';
import { coreSettings, defaultSettings, type Settings } from '../../runtime/settings.ts';
import { ClusterState } from '../../state/cluster-state.ts';
import { slimTransforms } from '../../state/slim.ts';
import { FakeCloud } from './fake-cloud.ts';

export interface TestWorldOptions {
  readonly settings?: Partial<Settings>;
  readonly seed?: number;
  /** Also run kube-scheduler, kubelets and the workload controllers; without them a test plays their part. */
  readonly live?: boolean;
  /** NodePools and NodeClaims in one API server, Nodes and Pods in another. */
  readonly apart?: boolean;
  /** Clouds besides the fake one. */
  readonly providers?: (world: { karpenter: KubeClient; workload: KubeClient; clock: VirtualClock }) => CloudProvider[];
}

const ourKinds: readonly ResourceType<KubeObject>[] = [
  nodePoolKind as ResourceType<KubeObject>,
  nodeClaimKind as ResourceType<KubeObject>,
  kwokNodeClassKind as ResourceType<KubeObject>,
];

/** What stays when the autoscaler dies. */
interface Foundations {
  readonly clock: VirtualClock;
  readonly random: SeededRandom;
  /** The one with Nodes and Pods; and the one with NodePools, when it is another. */
  readonly servers: readonly ApiServer[];
  readonly embedded: EmbeddedCluster | undefined;
  readonly cloud?: FakeCloud;
}

/** Starts a world: CRDs are there, a NodeClass `default` exists, the state is synced; no controller of ours runs yet. */
export async function testWorld(options: TestWorldOptions = {}): Promise<TestWorld> {
  const world = await TestWorld.start(options);
  await world.apply({ ...apiOf(kwokNodeClassKind), metadata: { name: 'default' } });
  await world.settle();
  return world;
}

/** What controllers are given, and what tests do. */
export class TestWorld {
  readonly clock: VirtualClock;
  readonly random: SeededRandom;
  readonly log = new RecordingLogger();
  readonly metrics = new Metrics();
  readonly executor = new InlineExecutor();
  readonly settings: Settings;
  readonly clusters: Clusters;
  /** The doors through which controllers reach the API servers: tests may break them. The test's own verbs go past them. */
  readonly doors: { readonly karpenter: FaultyTransport; readonly workload: FaultyTransport };
  /** A client of the cluster with NodePools and NodeClaims, for the test itself. */
  readonly karpenter: KubeClient;
  /** A client of the cluster with Nodes and Pods, for the test itself. */
  readonly workload: KubeClient;
  readonly cloud: FakeCloud;
  readonly registry: CloudRegistry;
  readonly state: ClusterState;
  readonly #options: TestWorldOptions;
  readonly #foundations: Foundations;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>[] = [];

  private constructor(options: TestWorldOptions, parts: Foundations) {
    this.#options = options;
    this.#foundations = parts;
    const { clock, random, servers } = parts;
    this.clock = clock;
    this.random = random;
    this.settings = defaultSettings(coreSettings, options.settings);
    const { log, metrics } = this;
    const [one, other = one] = servers as [ApiServer, ApiServer?];
    const workloadDoor = new FaultyTransport(one.transport());
    this.doors = {
      workload: workloadDoor,
      karpenter: other === one ? workloadDoor : new FaultyTransport(other.transport()),
    };
    const clusterOf = (name: string, transport: FaultyTransport): Cluster =>
      new Cluster({ name, transport, clock, random, log, metrics, transforms: slimTransforms() });
    const workload = clusterOf('workload', workloadDoor);
    this.clusters = new Clusters(other === one ? workload : clusterOf('karpenter', this.doors.karpenter), workload);
    this.workload = directClient(one, clock);
    this.karpenter = directClient(other, clock);
    const clients = { karpenter: this.karpenter, workload: this.workload, clock };
    this.cloud = parts.cloud ?? new FakeCloud(clients);
    this.registry = new CloudRegistry([this.cloud, ...(options.providers?.(clients) ?? [])]);
    this.state = new ClusterState({
      clusters: this.clusters,
      registry: this.registry,
      clock,
      log,
      batchMaxDurationMs: this.settings.batchMaxDuration,
    });
    for (const cluster of this.clusters.all) cluster.start(this.#stop.signal);
  }

  static async start(options: TestWorldOptions): Promise<TestWorld> {
    const clock = new VirtualClock();
    const random = new SeededRandom(options.seed ?? 1);
    const embedded = options.live
      ? await EmbeddedCluster.start({ clock, random, heartbeatMs: 0, baseNodes: [], crds: [] })
      : undefined;
    const servers = [embedded?.server ?? new ApiServer({ clock, random })];
    if (options.apart) servers.push(new ApiServer({ clock, random }));
    const ours = directClient(servers.at(-1)!, clock).resource(kinds.CustomResourceDefinition);
    for (const crd of allCrds()) await ours.create(crd as never);
    const world = new TestWorld(options, { clock, random, servers, embedded });
    await clock.until(() => world.state.hasRead);
    return world;
  }

  /** Aborts when the world ends. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** A manager for `register` functions: what is added runs at once. */
  get manager(): { add(runnable: Runnable): void } {
    return { add: (runnable) => this.run(runnable) };
  }

  /** Runs controllers until the world ends. */
  run(...runnables: readonly Runnable[]): void {
    for (const runnable of runnables) this.#running.push(runnable.start(this.#stop.signal));
  }

  // Verbs

  /** Creates objects, or replaces what is there; a status is written as well. Gives them as they are stored. */
  async apply<T extends readonly KubeObject[]>(...objects: T): Promise<T> {
    const stored: KubeObject[] = [];
    for (const object of objects) stored.push(await this.#apply(object));
    return stored as unknown as T;
  }

  async #apply<T extends KubeObject>(object: T): Promise<T> {
    const resource = this.#clientOf(object).resource(typeOf(object) as ResourceType<T>);
    const { namespace } = object.metadata;
    const where = namespace ? { namespace } : {};
    const known = await ignoreNotFound(resource.get(object.metadata.name ?? '', where));
    const { resourceVersion, uid } = known?.metadata ?? {};
    const metadata = { ...object.metadata };
    delete metadata.resourceVersion;
    delete metadata.uid;
    const written = known
      ? await resource.update({
          ...object,
          metadata: { ...metadata, ...(uid ? { uid } : {}), ...(resourceVersion ? { resourceVersion } : {}) },
        })
      : await resource.create({ ...object, metadata });
    const { status } = object as { status?: unknown };
    if (status === undefined) return written;
    return resource.patchStatus(written.metadata.name ?? '', { status }, where);
  }

  async delete(object: KubeObject): Promise<void> {
    const { name = '', namespace } = object.metadata;
    const resource = this.#clientOf(object).resource(typeOf(object));
    await ignoreNotFound(resource.delete(name, namespace ? { namespace } : {}).then(() => undefined));
  }

  /** The stored object; undefined when there is none. */
  async find<T extends KubeObject>(type: ResourceType<T>, name: string, namespace?: string): Promise<T | undefined> {
    return ignoreNotFound(
      this.#clientFor(type)
        .resource(type)
        .get(name, namespace ? { namespace } : {}),
    );
  }

  async list<T extends KubeObject>(type: ResourceType<T>): Promise<T[]> {
    return (await this.#clientFor(type).resource(type).list()).items;
  }

  /** A ready NodePool of the fake cloud. */
  async pool(options: Parameters<typeof nodePool>[0] = {}): Promise<NodePool> {
    const time = formatTime(this.clock.now());
    const condition = (type: string) =>
      ({ type, status: 'True', reason: type, message: '', lastTransitionTime: time }) as const;
    const conditions = ['ValidationSucceeded', 'NodeClassReady', 'Ready'].map(condition);
    const [stored] = await this.apply({ ...nodePool(options), status: { conditions } });
    await this.settle();
    return stored;
  }

  claims(): Promise<NodeClaim[]> {
    return this.list(nodeClaimKind as ResourceType<NodeClaim>);
  }

  nodes(): Promise<Node[]> {
    return this.list(kinds.Node);
  }

  pods(): Promise<Pod[]> {
    return this.list(kinds.Pod);
  }

  /** Events as `Reason kind/name: message`, in the order they were written. */
  async events(reason?: string): Promise<string[]> {
    const all: Event[] = [];
    for (const { client, events } of this.clusters.all) {
      await events.flush();
      all.push(...(await client.resource(kinds.Event).list()).items);
    }
    return all
      .filter((event) => reason === undefined || event.reason === reason)
      .map((event) => `${event.reason} ${event.involvedObject.kind}/${event.involvedObject.name}: ${event.message}`);
  }

  /** Plays the launch of every NodeClaim that has no machine: for tests without the lifecycle controller. */
  async launch(): Promise<NodeClaim[]> {
    const launched: NodeClaim[] = [];
    for (const claim of await this.claims()) {
      if (claim.status?.providerID) continue;
      const instance = await this.cloud.create(claim, this.signal);
      const { providerID, capacity, allocatable } = instance;
      const resource = this.karpenter.resource(nodeClaimKind as ResourceType<NodeClaim>);
      const name = claim.metadata.name ?? '';
      await resource.patch(name, { metadata: { labels: { ...instance.labels, ...claim.metadata.labels } } });
      const time = formatTime(this.clock.now());
      const { launched: type } = nodeClaimConditions;
      const conditions = [{ type, status: 'True', reason: type, message: '', lastTransitionTime: time }];
      launched.push(await resource.patchStatus(name, { status: { providerID, capacity, allocatable, conditions } }));
    }
    await this.settle();
    return launched;
  }

  /** Plays kube-scheduler and kubelet: the pod runs on the node. */
  async bind(pod: Pod, nodeName: string): Promise<void> {
    const { name = '', namespace = 'default' } = pod.metadata;
    await this.workload.resource(kinds.Pod).bind(name, nodeName, { namespace });
    const startTime = formatTime(this.clock.now());
    const conditions = [{ type: 'PodScheduled', status: 'True' }];
    await this.workload
      .resource(kinds.Pod)
      .patchStatus(name, { status: { phase: 'Running', startTime, conditions } }, { namespace });
    await this.settle();
  }

  /** Lets everything that can happen now happen; time stands still. */
  async settle(): Promise<void> {
    for (let quiet = 0; quiet < 3; ) {
      const before = this.#revision;
      await settle();
      quiet = this.#revision === before ? quiet + 1 : 0;
    }
  }

  get #revision(): number {
    return this.#foundations.servers.reduce((sum, server) => sum + server.store.revision, 0);
  }

  /** Lets time pass, and everything in it happen. */
  async advance(ms: number): Promise<void> {
    await this.settle();
    await this.clock.step(ms);
    await this.settle();
  }

  /** Lets time pass until something holds; throws when it does not within an hour of the world's time. */
  async until(holds: () => boolean, limitMs?: number): Promise<void> {
    await this.settle();
    await this.clock.until(holds, limitMs);
    await this.settle();
  }

  /**
   * The autoscaler dies without a word, whatever it was doing, and a new one starts in its place: clusters and clouds are
   * as they were, its memory is empty and no controller runs. This world is over; go on with the one it gives.
   */
  async restart(): Promise<TestWorld> {
    for (const door of Object.values(this.doors)) door.cut();
    this.#stop.abort(new Error('the process was killed'));
    this.state.close();
    const world = new TestWorld(this.#options, { ...this.#foundations, cloud: this.cloud });
    await this.clock.until(() => world.state.hasRead);
    return world;
  }

  /** Ends everything. */
  async close(): Promise<void> {
    this.#stop.abort(new Error('the world ended'));
    this.state.close();
    const running = Promise.all(this.#running);
    await this.clock.until(() => true);
    let ended = false;
    void running.then(() => (ended = true));
    // What winds down may wait for a timer.
    while (!ended && this.clock.nextDue() !== undefined) await this.clock.step(1000);
    await running;
    for (const cluster of this.clusters.all) await cluster.close();
    await this.executor.close();
    const { embedded, servers } = this.#foundations;
    if (embedded) await embedded.close();
    for (const server of servers) await server.close();
  }

  #clientOf(object: KubeObject): KubeClient {
    return this.#clientFor(typeOf(object));
  }

  #clientFor(type: ResourceType<KubeObject>): KubeClient {
    const ours = ourKinds.some(({ group, kind }) => group === type.group && kind === type.kind);
    return ours ? this.karpenter : this.workload;
  }
}

function directClient(server: ApiServer, clock: VirtualClock): KubeClient {
  return new KubeClient({ transport: server.transport(), clock, fieldManager: 'test' });
}

const builtIn = new Map(Object.values(kinds).map((type) => [`${apiVersionOf(type)}/${type.kind}`, type]));

function apiOf(type: ResourceType<KubeObject>): { apiVersion: string; kind: string } {
  return { apiVersion: apiVersionOf(type), kind: type.kind };
}

function typeOf(object: KubeObject): ResourceType<KubeObject> {
  const found =
    builtIn.get(`${object.apiVersion}/${object.kind}`) ??
    ourKinds.find((type) => apiVersionOf(type) === object.apiVersion && type.kind === object.kind);
  if (!found) throw new Error(`${object.kind} ${keyOf(object)}: no kind known under ${object.apiVersion}`);
  return found as ResourceType<KubeObject>;
}
