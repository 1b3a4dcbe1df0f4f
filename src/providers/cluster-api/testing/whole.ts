// SPDX-License-Identifier: Apache-2.0
// The whole autoscaler with Cluster API on embedded clusters, one or two, in virtual time.
import { clusterApiNodeClassKind } from '../../../api/cluster-api-node-class.ts';
import { allCrds, type CustomResourceDefinition } from '../../../api/crd.ts';
import { type NodeClaim, nodeClaimKind } from '../../../api/node-claim.ts';
import { nodePoolKind } from '../../../api/node-pool.ts';
import { SeededRandom } from '../../../base/random.ts';
import { CloudRegistry } from '../../../cloud/registry.ts';
import { registerControllers } from '../../../controllers/index.ts';
import {
  type ClusterApiModel,
  installClusterApi,
  startClusterApi,
} from '../../../embedded/clouds/cluster-api/model.ts';
import type { Behavior, Machine as ModelMachine } from '../../../embedded/clouds/cluster-api/objects.ts';
import { EmbeddedCluster } from '../../../embedded/cluster.ts';
import { World } from '../../../embedded/testing/world.ts';
import { KubeClient } from '../../../kube/client.ts';
import { kinds } from '../../../kube/kinds.ts';
import type { Transport } from '../../../kube/transport.ts';
import { Cluster, Clusters } from '../../../runtime/clusters.ts';
import { InlineExecutor } from '../../../runtime/executor.ts';
import { silentLogger } from '../../../runtime/logging.ts';
import { Manager } from '../../../runtime/manager.ts';
import { Metrics } from '../../../runtime/metrics.ts';
import { coreSettings, defaultSettings, type Settings } from '../../../runtime/settings.ts';
import { slimTransforms } from '../../../state/slim.ts';
import { Hub } from '../hub.ts';
import { capiKinds } from '../kinds.ts';
import { capacityAnnotations, memberLabel } from '../names.ts';
import { nodeClassController } from '../node-class-controller.ts';
import { ClusterApiProvider } from '../provider.ts';
import { Door } from './door.ts';

const types = capiKinds('v1beta1');
const namespace = 'default';

export interface WholeOptions {
  /** Everything in one cluster; Machines apart; or Machines and NodePools together, apart from Nodes and Pods. */
  readonly topology?: 'joined' | 'hub-apart' | 'pools-with-machines';
  readonly behavior?: (machine: ModelMachine) => Behavior;
  /** The definitions of Karpenter's kinds; ours unless told. */
  readonly crds?: CustomResourceDefinition[];
  readonly featureGates?: Partial<Settings['featureGates']>;
}

/** A workload cluster, a management cluster (the same one unless apart) and everything that runs in them. */
export class Whole {
  /** With Nodes and Pods. */
  readonly world: World;
  readonly hub: EmbeddedCluster;
  /** With NodePools, NodeClaims and NodeClasses. */
  readonly karpenter: EmbeddedCluster;
  /** What the controller and the managers reach the management cluster through. */
  readonly door: Door;
  /** `VERB path` of what the controller wrote to the cluster with NodePools. */
  readonly writes: string[] = [];
  readonly #behavior: (machine: ModelMachine) => Behavior;
  readonly #random = new SeededRandom(2);
  #model: ClusterApiModel | undefined;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>;

  private constructor(world: World, hub: EmbeddedCluster, options: WholeOptions) {
    const { topology, behavior = () => ({}), featureGates = {} } = options;
    this.world = world;
    this.hub = hub;
    this.karpenter = topology === 'pools-with-machines' ? hub : world.cluster;
    this.door = new Door(hub.transport());
    this.#behavior = behavior;
    this.#running = this.#manager(featureGates).run(this.#stop.signal);
  }

  static async start(options: WholeOptions = {}): Promise<Whole> {
    const { topology = 'joined', crds: own = allCrds() } = options;
    const world = await World.start({ crds: own });
    const { clock, cluster } = world;
    const random = new SeededRandom(2);
    const crds = topology === 'pools-with-machines' ? own : [];
    const hub =
      topology === 'joined'
        ? cluster
        : await EmbeddedCluster.start({ clock, random, baseNodes: [], crds, heartbeatMs: 0 });
    await installClusterApi(hub.client());
    const whole = new Whole(world, hub, options);
    await whole.startManagers();
    await whole.#furnish();
    return whole;
  }

  async startManagers(): Promise<void> {
    const { clock, cluster } = this.world;
    this.#model = await startClusterApi({
      hub: new KubeClient({ transport: this.door, clock }),
      workload: cluster.client(),
      clock,
      random: this.#random,
      log: silentLogger,
      behavior: this.#behavior,
    });
  }

  /** They stand still; what they have written stays. */
  async stopManagers(): Promise<void> {
    const stopping = this.#model?.stop();
    this.#model = undefined;
    let stopped = false;
    void stopping?.then(() => (stopped = true));
    while (stopping && !stopped) await this.world.pass(100);
  }

  #manager(featureGates: Partial<Settings['featureGates']>): Manager {
    const { clock, log, cluster } = this.world;
    const random = new SeededRandom(3);
    const metrics = new Metrics();
    const clusterOf = (name: string, transport: Transport): Cluster =>
      new Cluster({ name, transport, clock, random, log, metrics, transforms: slimTransforms() });
    const own = clusterOf('karpenter', this.#noted(this.karpenter === cluster ? cluster.transport() : this.door));
    const workload = this.karpenter === cluster ? own : clusterOf('workload', cluster.transport());
    const clusters = new Clusters(own, workload);
    const away = this.hub === this.karpenter ? own : clusterOf('cluster-api', this.door);
    if (away !== own) clusters.add('cluster-api', away);
    const hub = new Hub({ cluster: away, karpenter: own.client, clock, log });
    const provider = new ClusterApiProvider({ hub, karpenter: own, workload, clock, log });
    const manager = new Manager({ clock, log, metrics, clusters });
    const usual = defaultSettings(coreSettings);
    const settings = { ...usual, featureGates: { ...usual.featureGates, ...featureGates } };
    const registry = new CloudRegistry([provider]);
    registerControllers(manager, {
      clusters,
      registry,
      clock,
      random,
      log,
      metrics,
      settings,
      executor: new InlineExecutor(),
    });
    manager.add(hub);
    manager.add(nodeClassController({ hub, members: provider.members, karpenter: own, clock, log, metrics }));
    return manager;
  }

  #noted(transport: Transport): Transport {
    return {
      watch: (request) => transport.watch(request),
      close: () => transport.close(),
      request: (request) => {
        if (request.method !== 'GET') this.writes.push(`${request.method} ${request.path}`);
        return transport.request(request);
      },
    };
  }

  async #furnish(): Promise<void> {
    const client = this.karpenter.client();
    await client.resource(clusterApiNodeClassKind).create({
      apiVersion: 'karpenter.cluster.x-k8s.io/v1alpha1',
      kind: 'ClusterAPINodeClass',
      metadata: { name: 'default' },
      spec: {},
    });
    await client.resource(nodePoolKind).create({
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodePool',
      metadata: { name: 'default' },
      spec: {
        template: {
          spec: {
            requirements: [{ key: 'kubernetes.io/arch', operator: 'In', values: ['amd64'] }],
            nodeClassRef: { group: 'karpenter.cluster.x-k8s.io', kind: 'ClusterAPINodeClass', name: 'default' },
          },
        },
        disruption: {
          consolidationPolicy: 'WhenEmptyOrUnderutilized',
          consolidateAfter: '10s',
          budgets: [{ nodes: '100%' }],
        },
      },
    } as never);
  }

  /** As the guide writes it: 2 CPUs a machine. */
  async member(name: string, annotations: Record<string, string> = {}): Promise<void> {
    await this.hub
      .client()
      .resource(types.machineDeployment)
      .create({
        apiVersion: 'cluster.x-k8s.io/v1beta1',
        kind: 'MachineDeployment',
        metadata: {
          name,
          namespace,
          labels: { [memberLabel]: '' },
          annotations: {
            [capacityAnnotations.maxPods]: '100',
            [capacityAnnotations.memory]: '8G',
            [capacityAnnotations.cpu]: '2',
            [capacityAnnotations.labels]: 'kubernetes.io/arch=amd64',
            ...annotations,
          },
        },
        spec: {
          clusterName: 'workload',
          replicas: 0,
          template: { spec: { bootstrap: { dataSecretName: 'x' }, infrastructureRef: { kind: 'X', name } } },
        },
      } as never);
    await this.world.pass(5000);
  }

  /** Pods of which one machine holds one. */
  async deploy(replicas: number): Promise<void> {
    await this.world.deploy('web', replicas, {
      template: {
        metadata: { labels: { app: 'web' } },
        spec: { containers: [{ name: 'c', image: 'i', resources: { requests: { cpu: '1200m' } } }] },
      },
    });
  }

  async replicas(name: string): Promise<number | undefined> {
    return (await this.hub.client().resource(types.machineDeployment).get(name, { namespace })).spec?.replicas;
  }

  async machines(): Promise<number> {
    return (await this.hub.client().resource(types.machine).list()).items.length;
  }

  async claims(): Promise<NodeClaim[]> {
    return (await this.karpenter.client().resource(nodeClaimKind).list()).items;
  }

  async nodes(): Promise<number> {
    return (await this.world.client.resource(kinds.Node).list()).items.length;
  }

  async stop(): Promise<void> {
    this.#stop.abort(new Error('the test is over'));
    const ends = Promise.all([this.#running, this.#model?.stop()]);
    await this.world.pass(40_000);
    await ends;
    if (this.hub !== this.world.cluster) {
      const closing = this.hub.close();
      await this.world.pass(20_000);
      await closing;
    }
    await this.world.stop();
  }
}
