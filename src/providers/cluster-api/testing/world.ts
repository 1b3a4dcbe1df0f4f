// SPDX-License-Identifier: Apache-2.0
// A management cluster, a cluster with NodeClaims and Nodes, the model of Cluster API and the provider between them, in
// virtual time. Writes to the management cluster are counted, and can be made to fail.
import { type ClusterApiNodeClassSpec, clusterApiNodeClassKind } from '../../../api/cluster-api-node-class.ts';
import { allCrds } from '../../../api/crd.ts';
import { labels } from '../../../api/labels.ts';
import { type NodeClaim, nodeClaimKind } from '../../../api/node-claim.ts';
import type { NodePool } from '../../../api/node-pool.ts';
import { VirtualClock } from '../../../base/clock.ts';
import { SeededRandom } from '../../../base/random.ts';
import type { Instance } from '../../../cloud/provider.ts';
import { ApiServer } from '../../../embedded/api-server.ts';
import {
  type ClusterApiModel,
  installClusterApi,
  startClusterApi,
} from '../../../embedded/clouds/cluster-api/model.ts';
import type { Behavior, Machine as ModelMachine, Version } from '../../../embedded/clouds/cluster-api/objects.ts';
import { ignoreNotFound } from '../../../kube/api-error.ts';
import { KubeClient } from '../../../kube/client.ts';
import { kinds } from '../../../kube/kinds.ts';
import type { Transport, TransportRequest, TransportResponse } from '../../../kube/transport.ts';
import { Cluster } from '../../../runtime/clusters.ts';
import { RecordingLogger, silentLogger } from '../../../runtime/logging.ts';
import { Metrics } from '../../../runtime/metrics.ts';
import { Hub } from '../hub.ts';
import { type CapiKinds, capiKinds, type Machine, type Scalable } from '../kinds.ts';
import { capacityAnnotations, memberLabel } from '../names.ts';
import { nodeClassController } from '../node-class-controller.ts';
import { ClusterApiProvider } from '../provider.ts';

export interface WorldOptions {
  readonly version?: Version;
  readonly behavior?: (machine: ModelMachine) => Behavior;
  readonly nodeClass?: ClusterApiNodeClassSpec;
  readonly seed?: number;
  /** No managers: nothing happens but what the test does. */
  readonly withoutManagers?: boolean;
  /** What stands between the provider and the management cluster, made anew for each process. */
  readonly door?: (transport: Transport) => Transport;
  /** One API server plays all parts. */
  readonly joined?: boolean;
  /** The kinds of Cluster API are not installed. */
  readonly withoutKinds?: boolean;
  readonly withNodeClassController?: boolean;
  /** The only namespace of the management cluster that is looked at. */
  readonly hubNamespace?: string;
  /** Labels that the managers copy to Nodes besides the usual ones. */
  readonly isSynced?: (key: string) => boolean;
}

/** What is done with a write to the management cluster instead of carrying it out: undefined lets it through. */
type FaultOutcome = TransportResponse | 'lost' | undefined;
export type Fault = (request: TransportRequest) => FaultOutcome | Promise<FaultOutcome>;

export interface MemberOptions {
  readonly namespace?: string;
  readonly replicas?: number;
  readonly annotations?: Record<string, string>;
  readonly labels?: Record<string, string>;
  readonly nodeLabels?: Record<string, string>;
  readonly templateLabels?: Record<string, string>;
  readonly spec?: Record<string, unknown>;
  readonly template?: Record<string, unknown>;
  readonly kind?: 'MachineDeployment' | 'MachineSet';
}

export class CapiWorld {
  readonly clock = new VirtualClock();
  readonly log = new RecordingLogger();
  readonly metrics = new Metrics();
  readonly signal = new AbortController().signal;
  readonly version: Version;
  readonly kinds: CapiKinds;
  /** The management cluster as an administrator sees it: neither counted nor faulty. */
  readonly hub: KubeClient;
  readonly karpenter: KubeClient;
  provider!: ClusterApiProvider;
  /** `VERB path` of every write of the provider to the management cluster. */
  readonly writes: string[] = [];
  readonly reads: string[] = [];
  fault: Fault = () => undefined;
  readonly #options: WorldOptions;
  readonly #random: SeededRandom;
  readonly #servers: { hub: ApiServer; karpenter: ApiServer };
  #model: ClusterApiModel | undefined;
  #running = new AbortController();

  private constructor(options: WorldOptions) {
    this.#options = options;
    this.version = options.version ?? 'v1beta1';
    this.kinds = capiKinds(this.version);
    this.#random = new SeededRandom(options.seed ?? 1);
    const server = (): ApiServer => new ApiServer({ clock: this.clock, random: this.#random });
    const karpenter = server();
    this.#servers = { karpenter, hub: options.joined ? karpenter : server() };
    const { clock } = this;
    this.hub = new KubeClient({ transport: this.#servers.hub.transport(), clock, fieldManager: 'test' });
    this.karpenter = new KubeClient({ transport: this.#servers.karpenter.transport(), clock, fieldManager: 'test' });
  }

  static async start(options: WorldOptions = {}): Promise<CapiWorld> {
    const world = new CapiWorld(options);
    for (const crd of allCrds()) await world.karpenter.resource(kinds.CustomResourceDefinition).create(crd as never);
    if (!options.withoutKinds) await world.installKinds();
    await world.nodeClass('default', options.nodeClass);
    if (!options.withoutManagers) await world.startManagers();
    await world.restart();
    return world;
  }

  installKinds(): Promise<void> {
    return installClusterApi(this.hub, this.version);
  }

  async nodeClass(name: string, spec: ClusterApiNodeClassSpec = {}): Promise<void> {
    await this.karpenter.resource(clusterApiNodeClassKind).create({
      apiVersion: 'karpenter.cluster.x-k8s.io/v1alpha1',
      kind: 'ClusterAPINodeClass',
      metadata: { name },
      spec,
    });
    await this.pass(100);
  }

  async startManagers(): Promise<void> {
    const { clock, version } = this;
    const { behavior } = this.#options;
    this.#model = await startClusterApi({
      hub: this.hub,
      workload: this.karpenter,
      clock,
      random: this.#random,
      log: silentLogger,
      version,
      ...(behavior ? { behavior } : {}),
    });
  }

  /** The managers stand still; what they have written stays. */
  async stopManagers(): Promise<void> {
    const stopping = this.#model?.stop();
    await this.pass(20_000);
    await stopping;
    this.#model = undefined;
  }

  /** Starts the provider, or another one after a crash of the first. */
  async restart(): Promise<void> {
    this.begin();
    await this.pass(500);
  }

  /** As `restart`, but nothing has been read yet: that begins when time passes. */
  begin(): void {
    this.#running.abort(new Error('crashed'));
    this.#running = new AbortController();
    const { clock, log } = this;
    const { door = (transport) => transport, isSynced = () => false, hubNamespace: namespace } = this.#options;
    const common = { clock, random: this.#random, log: silentLogger };
    const own = new Cluster({ ...common, name: 'karpenter', transport: this.#servers.karpenter.transport() });
    const away = new Cluster({
      ...common,
      name: 'cluster-api',
      transport: this.#watched(door(this.#servers.hub.transport())),
    });
    const { metrics } = this;
    const only = namespace === undefined ? {} : { namespace };
    const hub = new Hub({ cluster: away, karpenter: own.client, clock, log, metrics, ...only });
    this.provider = new ClusterApiProvider({ hub, karpenter: own, workload: own, clock, log, metrics, isSynced });
    const { signal } = this.#running;
    clock.after(1, () => {
      own.start(signal);
      away.start(signal);
      void hub.start(signal);
      if (!this.#options.withNodeClassController) return;
      const { members } = this.provider;
      void nodeClassController({ hub, members, karpenter: own, clock, log, metrics }).start(signal);
    });
  }

  pass(ms = 1000): Promise<void> {
    return this.clock.step(ms);
  }

  /** Waits for a promise while time passes. */
  finish<T>(promise: Promise<T>, limitMs = 60_000): Promise<T> {
    return this.clock.finish(promise, limitMs);
  }

  /** A member with so many Machines of others, all of them up. */
  async running(name: string, replicas: number): Promise<void> {
    await this.member(name, { replicas });
    await this.pass(30_000);
  }

  /** A member with machines of 4 CPUs and 8 GiB. */
  async member(name: string, options: MemberOptions = {}): Promise<Scalable> {
    const { namespace = 'default', replicas = 0, kind = 'MachineDeployment' } = options;
    const nodeLabels = {
      'kubernetes.io/arch': 'amd64',
      'topology.kubernetes.io/zone': 'zone-a',
      ...options.nodeLabels,
    };
    const type = kind === 'MachineSet' ? this.kinds.machineSet : this.kinds.machineDeployment;
    const ref =
      this.version === 'v1beta1'
        ? { apiVersion: 'infrastructure.cluster.x-k8s.io/v1beta1' }
        : { apiGroup: 'infrastructure.cluster.x-k8s.io' };
    const identity = {
      [kind === 'MachineSet' ? 'cluster.x-k8s.io/set-name' : 'cluster.x-k8s.io/deployment-name']: name,
    };
    return this.hub.resource(type).create({
      apiVersion: `cluster.x-k8s.io/${this.version}`,
      kind,
      metadata: {
        name,
        namespace,
        labels: { [memberLabel]: '', ...options.labels },
        annotations: {
          [capacityAnnotations.cpu]: '4',
          [capacityAnnotations.memory]: '8Gi',
          [capacityAnnotations.labels]: Object.entries(nodeLabels)
            .map(([key, value]) => `${key}=${value}`)
            .join(','),
          ...options.annotations,
        },
      },
      spec: {
        clusterName: 'workload',
        replicas,
        selector: { matchLabels: identity },
        template: {
          metadata: { labels: { ...identity, ...options.templateLabels } },
          spec: {
            clusterName: 'workload',
            bootstrap: { dataSecretName: 'user-data' },
            infrastructureRef: { ...ref, kind: 'EmbeddedMachineTemplate', name: `${name}-template` },
            ...options.template,
          },
        },
        ...options.spec,
      },
    } as Scalable);
  }

  /** A NodeClaim as the provisioner writes it. */
  async claim(
    name: string,
    options: {
      requests?: Record<string, string>;
      requirements?: NodeClaim['spec']['requirements'];
      nodeClass?: string;
      taints?: NodeClaim['spec']['taints'];
    } = {},
  ): Promise<NodeClaim> {
    const { requests = { cpu: '1' }, requirements = [], nodeClass = 'default', taints } = options;
    return this.karpenter.resource(nodeClaimKind).create({
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodeClaim',
      metadata: { name, labels: { [labels.nodePool]: 'pool' }, finalizers: ['karpenter.sh/termination'] },
      spec: {
        nodeClassRef: { group: 'karpenter.cluster.x-k8s.io', kind: 'ClusterAPINodeClass', name: nodeClass },
        requirements: [{ key: labels.nodePool, operator: 'In', values: ['pool'] }, ...requirements],
        resources: { requests },
        ...(taints ? { taints } : {}),
      },
    });
  }

  pool(nodeClass = 'default', taints?: NodePool['spec']['template']['spec']['taints']): NodePool {
    return {
      metadata: { name: 'pool' },
      spec: {
        template: {
          spec: {
            nodeClassRef: { group: 'karpenter.cluster.x-k8s.io', kind: 'ClusterAPINodeClass', name: nodeClass },
            requirements: [],
            ...(taints ? { taints } : {}),
          },
        },
      },
    } as unknown as NodePool;
  }

  /** Launches a NodeClaim as its controller does: again and again until it works. */
  async launch(claim: NodeClaim, limitMs = 300_000): Promise<NodeClaim> {
    const until = this.clock.now() + limitMs;
    for (;;) {
      try {
        const instance = await this.finish(this.provider.create(claim, this.signal));
        return this.#launched(claim, instance);
      } catch (error) {
        if ((error as { code?: string }).code !== 'KRP_CREATE_FAILED' || this.clock.now() > until) throw error;
        await this.pass(1000);
      }
    }
  }

  async #launched(claim: NodeClaim, { providerID, labels: own }: Instance): Promise<NodeClaim> {
    const { name = '' } = claim.metadata;
    const claims = this.karpenter.resource(nodeClaimKind);
    await claims.patch(name, { metadata: { labels: { ...own, ...claim.metadata.labels } } });
    return claims.patchStatus(name, { status: { providerID } });
  }

  /** Removes a NodeClaim as its controller does: every five seconds until the machine is gone. Gives how often it asked. */
  async remove(claim: NodeClaim, limitMs = 300_000): Promise<number> {
    const until = this.clock.now() + limitMs;
    const { name = '' } = claim.metadata;
    await ignoreNotFound(this.karpenter.resource(nodeClaimKind).delete(name));
    for (let calls = 1; ; calls++) {
      try {
        await this.finish(this.provider.delete(claim, this.signal));
      } catch (error) {
        if ((error as { code?: string }).code !== 'KRP_NODECLAIM_NOT_FOUND') throw error;
        await ignoreNotFound(this.karpenter.resource(nodeClaimKind).patch(name, { metadata: { finalizers: [] } }));
        return calls;
      }
      if (this.clock.now() > until) throw new Error(`the machine of ${name} does not go`);
      await this.pass(5000);
    }
  }

  async replicas(name: string, namespace = 'default'): Promise<number | undefined> {
    return (await this.hub.resource(this.kinds.machineDeployment).get(name, { namespace })).spec?.replicas;
  }

  async scale(name: string, replicas: number, namespace = 'default'): Promise<void> {
    await this.hub.resource(this.kinds.machineDeployment).patch(name, { spec: { replicas } }, { namespace });
  }

  /** All Machines, or those of one MachineDeployment, by name. */
  async machines(deployment?: string): Promise<Machine[]> {
    const { items } = await this.hub.resource(this.kinds.machine).list();
    return items
      .filter(
        ({ metadata }) =>
          deployment === undefined || metadata.labels?.['cluster.x-k8s.io/deployment-name'] === deployment,
      )
      .sort((a, b) => (a.metadata.name! < b.metadata.name! ? -1 : 1));
  }

  async stop(): Promise<void> {
    this.#running.abort(new Error('the test is over'));
    if (this.#model) await this.stopManagers();
  }

  #watched(transport: Transport): Transport {
    return {
      watch: (request) => transport.watch(request),
      close: () => transport.close(),
      request: async (request) => {
        if (request.method === 'GET') {
          this.reads.push(request.path);
          return transport.request(request);
        }
        this.writes.push(`${request.method} ${request.path}`);
        const fault = await this.fault(request);
        if (fault === 'lost') {
          await transport.request(request);
          throw new Error('connection reset');
        }
        return fault ?? transport.request(request);
      },
    };
  }
}

/** What it failed with; undefined when it did not. */
export const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

export const conflictAnswer: TransportResponse = {
  status: 409,
  body: {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    reason: 'Conflict',
    message: 'the object has been modified',
    code: 409,
  },
};
