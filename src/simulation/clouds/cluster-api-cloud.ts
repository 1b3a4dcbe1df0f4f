// SPDX-License-Identifier: Apache-2.0
// Cluster API as a cloud of the world: the embedded model of its managers makes and removes Machines, people scale and roll
// MachineDeployments beside the autoscaler, and the real provider reaches all of it through a door that can be shut.
import { clusterApiNodeClassKind } from '../../api/cluster-api-node-class.ts';
import { allCrds } from '../../api/crd.ts';
import { capacityTypes } from '../../api/labels.ts';
import type { Random } from '../../base/random.ts';
import { type ClusterApiModel, installClusterApi, startClusterApi } from '../../embedded/clouds/cluster-api/model.ts';
import {
  type Behavior,
  type Machine,
  type MachineDeployment,
  typesOf,
} from '../../embedded/clouds/cluster-api/objects.ts';
import { ignoreNotFound } from '../../kube/api-error.ts';
import { apiVersionOf, type KubeObject, type ResourceType } from '../../kube/object.ts';
import { Hub } from '../../providers/cluster-api/hub.ts';
import { nodeClassController } from '../../providers/cluster-api/node-class-controller.ts';
import { ClusterApiProvider } from '../../providers/cluster-api/provider.ts';
import { Cluster } from '../../runtime/clusters.ts';
import { silentLogger } from '../../runtime/logging.ts';
import { Mishaps } from '../cloud/mishaps.ts';
import type { Fault, Happening, Line, SimulatedCloud, StoredCloudParts } from '../contract.ts';
import { between, chance, pick } from '../draw.ts';
import { ClusterApiBooks, capiCollections, type Offer } from './cluster-api-books.ts';
import { clusterApiInvariants } from './cluster-api-invariants.ts';
import { HubDoor } from './hub-door.ts';

const namespace = 'default';
const zones = ['test-zone-a', 'test-zone-b', 'test-zone-c'] as const;
const second = 1000;
const types = typesOf('v1beta1');

/** What may go wrong with a new machine, each with how likely it is while it is on. */
const mishaps = {
  'capi-slow': 0.5,
  'capi-fails': 0.4,
  'capi-never-provisions': 0.3,
  'capi-never-joins': 0.3,
} as const;

function offers(): Offer[] {
  const sold = zones.flatMap((zone) => [
    { size: 'standard', cpus: 4, zone, spot: false },
    { size: 'standard', cpus: 8, zone, spot: false },
    { size: 'spot', cpus: 8, zone, spot: true },
  ]);
  const ofOthers: Readonly<Record<string, Pick<Offer, 'others' | 'theirs'>>> = {
    'standard-8-test-zone-a': { others: 'steady', theirs: 2 },
    'standard-4-test-zone-b': { others: 'people', theirs: 1 },
    'spot-8-test-zone-b': { others: 'people', theirs: 0 },
  };
  return sold.map(({ size, cpus, zone, spot }) => {
    const name = `${size}-${cpus}-${zone}`;
    return {
      name,
      cpus,
      memoryGib: cpus * 4,
      zone,
      capacityType: spot ? capacityTypes.spot : capacityTypes.onDemand,
      price: cpus * 0.05 * (spot ? 0.4 : 1),
      strategy: zone === 'test-zone-c' ? ('OnDelete' as const) : ('RollingUpdate' as const),
      ...(ofOthers[name] ?? { others: 'nobody', theirs: 0 }),
      // Larger ones of its zone and kind are not limited: every pod must have a place in the end.
      ...(name === 'standard-4-test-zone-c' ? { max: 2 } : {}),
    };
  });
}

export function clusterApiCloud(parts: StoredCloudParts): SimulatedCloud {
  const sold = offers();
  const books = new ClusterApiBooks(parts, sold);
  const managers = new Managers(parts, books);
  const doors = new Set<HubDoor>();
  let away = 0;
  const { karpenter } = parts;
  const deployments = (): readonly MachineDeployment[] =>
    parts.store.collection(capiCollections.deployments).list().items as readonly MachineDeployment[];
  return {
    name: 'cluster-api',
    nodeClass: clusterApiNodeClassKind as ResourceType<KubeObject>,
    crd: allCrds().find(({ spec }) => spec.names.kind === clusterApiNodeClassKind.kind)!,
    ledger: books,
    faults: [
      ...managers.mishaps.faults(),
      {
        name: 'cloud/capi-hub-away',
        weight: 2,
        inject() {
          away++;
          let broken = 0;
          for (const door of doors) broken += door.breakWatches();
          if (broken > 0) parts.coverage.count('fault', 'cloud/capi-hub-away');
          return () => void away--;
        },
      },
      managers.standStill(),
      pausedMember(parts, deployments),
    ],
    happenings: peopleAtWork(parts, books, sold, deployments),
    repairsAfterMs: 30 * 60_000,
    sells: { zones, capacityTypes: [capacityTypes.onDemand, capacityTypes.spot] },
    invariants: clusterApiInvariants(books),
    async furnish() {
      await installClusterApi(karpenter);
      await managers.start();
      for (const offer of sold) await karpenter.resource(types.machineDeployment).create(deploymentOf(offer));
      await karpenter.resource(clusterApiNodeClassKind).create({
        apiVersion: apiVersionOf(clusterApiNodeClassKind),
        kind: clusterApiNodeClassKind.kind,
        metadata: { name: 'default' },
        spec: {},
      });
    },
    connect(line: Line) {
      const door = new HubDoor(parts.transport(), () => away > 0);
      doors.add(door);
      return providerOf(line, door);
    },
    cheapest({ cpu, memory }) {
      const prices = sold
        .filter(({ cpus, memoryGib }) => cpus >= cpu && memoryGib * 2 ** 30 >= memory)
        .map(({ price }) => price);
      return prices.length === 0 ? undefined : Math.min(...prices);
    },
    close() {
      books.close();
      managers.close();
    },
  };
}

/** As the program wires it when its management cluster is elsewhere. */
function providerOf(line: Line, door: HubDoor): ReturnType<SimulatedCloud['connect']> {
  const { clock, clusters, random, log, metrics } = line;
  const cluster = new Cluster({ name: 'cluster-api', transport: line.reach(door), clock, random, log, metrics });
  clusters.add('cluster-api', cluster);
  const { karpenter, workload } = clusters;
  const hub = new Hub({ cluster, karpenter: karpenter.client, clock, log, metrics });
  const provider = new ClusterApiProvider({ hub, karpenter, workload, clock, log, metrics });
  const { members } = provider;
  return { provider, runnables: [hub, nodeClassController({ hub, members, karpenter, clock, log, metrics })] };
}

/** The managers of Cluster API, and how the machines that they make behave. */
class Managers {
  readonly mishaps: Mishaps<keyof typeof mishaps>;
  readonly #parts: StoredCloudParts;
  readonly #books: ClusterApiBooks;
  readonly #behaviors = new Map<string, Behavior>();
  #model: ClusterApiModel | undefined;
  #stopped: Promise<void> = Promise.resolve();
  #standing = 0;
  #closed = false;

  constructor(parts: StoredCloudParts, books: ClusterApiBooks) {
    this.#parts = parts;
    this.#books = books;
    this.mishaps = new Mishaps(parts.coverage, 'cloud/', mishaps);
  }

  async start(): Promise<void> {
    const { karpenter, workload, clock, random } = this.#parts;
    const behavior = (machine: Machine): Behavior => this.#behaviorOf(machine);
    this.#model = await startClusterApi({ hub: karpenter, workload, clock, random, log: silentLogger, behavior });
  }

  /** They hang for a while; what they have written stays. */
  standStill(): Fault {
    return {
      name: 'cloud/capi-managers-hang',
      weight: 1,
      inject: () => {
        this.#standing++;
        const { coverage } = this.#parts;
        if (this.#model) {
          coverage.count('fault', 'cloud/capi-managers-hang');
          this.#stopped = this.#model.stop();
          this.#model = undefined;
        }
        return () => {
          this.#standing--;
          void this.#stopped.then(() => this.#resume());
        };
      },
    };
  }

  close(): void {
    this.#closed = true;
    void this.#model?.stop();
  }

  async #resume(): Promise<void> {
    if (this.#standing === 0 && !this.#model && !this.#closed) await this.start();
  }

  /** Drawn when it is first looked at: what is wrong with a machine stays wrong with it. */
  #behaviorOf({ metadata }: Machine): Behavior {
    const { uid = '' } = metadata;
    let behavior = this.#behaviors.get(uid);
    if (!behavior) {
      const booked = this.#books.machine(uid);
      behavior = this.#draw(booked?.isStranger ?? false);
      this.#behaviors.set(uid, behavior);
      if (booked && (behavior.fails || behavior.neverProvisions || behavior.neverJoins)) booked.isBroken = true;
    }
    return behavior;
  }

  #draw(isStranger: boolean): Behavior {
    const { random } = this.#parts;
    const usual = {
      provisionMs: between(random, 2, 12) * second,
      bootMs: between(random, 10, 60) * second,
      settleMs: 1500,
      deleteMs: between(random, 2, 20) * second,
    };
    if (isStranger) return usual;
    const slow = this.mishaps.happens('capi-slow');
    return {
      ...usual,
      ...(slow ? { provisionMs: 90 * second, bootMs: 240 * second } : {}),
      ...(this.mishaps.happens('capi-fails') ? { fails: 'NoHosts' } : {}),
      ...(this.mishaps.happens('capi-never-provisions') ? { neverProvisions: true } : {}),
      ...(this.mishaps.happens('capi-never-joins') ? { neverJoins: true } : {}),
    };
  }
}

/** A MachineDeployment that Cluster API leaves alone for a while. */
function pausedMember({ karpenter, coverage }: StoredCloudParts, all: () => readonly MachineDeployment[]): Fault {
  return {
    name: 'cloud/capi-paused',
    weight: 1,
    async inject(random) {
      const name = pick(random, all())?.metadata.name ?? '';
      const pause = (paused: boolean | null): Promise<unknown> =>
        ignoreNotFound(karpenter.resource(types.machineDeployment).patch(name, { spec: { paused } }, { namespace }));
      await pause(true);
      coverage.count('fault', 'cloud/capi-paused');
      return () => void pause(null);
    },
  };
}

/** What people do to MachineDeployments and Machines beside the autoscaler. */
function peopleAtWork(
  { karpenter }: StoredCloudParts,
  books: ClusterApiBooks,
  sold: readonly Offer[],
  all: () => readonly MachineDeployment[],
): Happening[] {
  const members = karpenter.resource(types.machineDeployment);
  const change = async (name: string, patch: object): Promise<boolean> => {
    await members.patch(name, patch, { namespace });
    return true;
  };
  /** They read what there is and write one more or one less, unless somebody else wrote meanwhile. */
  const scale = async (random: Random): Promise<boolean> => {
    const { name = '' } =
      pick(
        random,
        sold.filter(({ others }) => others === 'people'),
      ) ?? {};
    const current = all().find(({ metadata }) => metadata.name === name);
    const theirs = books.accounts().get(name)?.wantedByPeople ?? 0;
    const step = theirs > 0 && (theirs >= 3 || chance(random, 0.5)) ? -1 : 1;
    if (!current) return false;
    const { resourceVersion } = current.metadata;
    return change(name, { metadata: { resourceVersion }, spec: { replicas: (current.spec?.replicas ?? 0) + step } });
  };
  let versions = 0;
  return [
    { name: 'cluster-api/scaled-by-hand', weight: 1.5, happen: scale },
    {
      name: 'cluster-api/rollout',
      weight: 0.4,
      reach: 'pool',
      // What is rolled are the autoscaler's Machines too.
      happen: (random) => {
        const { name } = pick(
          random,
          sold.filter(({ others }) => others !== 'steady'),
        )!;
        return change(name, { spec: { template: { spec: { version: `v1.36.${++versions}` } } } });
      },
    },
    {
      name: 'cluster-api/machine-deleted',
      weight: 0.5,
      reach: 'machine',
      async happen(random) {
        const machine = pick(
          random,
          books.machines().filter(({ isStranger, deletingAt }) => !isStranger && deletingAt === undefined),
        );
        if (!machine) return false;
        await ignoreNotFound(karpenter.resource(types.machine).delete(machine.name, { namespace }));
        return true;
      },
    },
    {
      name: 'cluster-api/price-moves',
      weight: 0.5,
      happen: (random) => {
        const offer = pick(random, sold)!;
        offer.price = Math.round(offer.price * (0.7 + random.next() * 0.6) * 1000) / 1000;
        return change(offer.name, { metadata: { annotations: { [priceAnnotation]: String(offer.price) } } });
      },
    },
  ];
}

const capacity = 'capacity.cluster-autoscaler.kubernetes.io';
const priceAnnotation = 'karpenter.cluster.x-k8s.io/price';

function deploymentOf({
  name,
  cpus,
  memoryGib,
  zone,
  capacityType,
  price,
  strategy,
  theirs,
  max,
}: Offer): MachineDeployment {
  const labels = {
    'kubernetes.io/arch': 'amd64',
    'kubernetes.io/os': 'linux',
    'node.kubernetes.io/instance-type': name,
    'topology.kubernetes.io/zone': zone,
  };
  return {
    apiVersion: 'cluster.x-k8s.io/v1beta1',
    kind: 'MachineDeployment',
    metadata: {
      name,
      namespace,
      labels: { 'node.cluster.x-k8s.io/karpenter-member': '' },
      annotations: {
        [`${capacity}/cpu`]: String(cpus),
        [`${capacity}/memory`]: `${memoryGib}Gi`,
        [`${capacity}/maxPods`]: '110',
        [`${capacity}/labels`]: Object.entries(labels)
          .map((pair) => pair.join('='))
          .join(','),
        [priceAnnotation]: String(price),
        'karpenter.cluster.x-k8s.io/capacity-type': capacityType,
        ...(max === undefined ? {} : { 'cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size': String(max) }),
      },
    },
    spec: {
      clusterName: 'world',
      replicas: theirs,
      strategy: { type: strategy },
      template: {
        spec: {
          clusterName: 'world',
          bootstrap: { dataSecretName: 'user-data' },
          infrastructureRef: {
            apiVersion: 'infrastructure.cluster.x-k8s.io/v1beta1',
            kind: 'EmbeddedMachineTemplate',
            name,
          },
        },
      },
    },
  };
}
