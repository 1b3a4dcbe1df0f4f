// SPDX-License-Identifier: Apache-2.0
// The books of Cluster API in a world: every Machine that ever was, whose it is, and how many Machines of each
// MachineDeployment people asked for. Kept by watching what is stored, so that nothing the product believes is in them.
import type { VirtualClock } from '../../base/clock.ts';
import type { MachineDeployment, Machine as MachineObject } from '../../embedded/clouds/cluster-api/objects.ts';
import type { StoreEvent } from '../../embedded/store.ts';
import type { Ledger, LedgerInstance, StoredCloudParts } from '../contract.ts';

export const capiCollections = {
  deployments: 'machinedeployments.cluster.x-k8s.io',
  sets: 'machinesets.cluster.x-k8s.io',
  machines: 'machines.cluster.x-k8s.io',
} as const;

/** As the documents name them: whose a Machine is, and that it is to go first. */
const claimUid = 'karpenter.cluster.x-k8s.io/nodeclaim-uid';
const claimName = 'karpenter.cluster.x-k8s.io/nodeclaim';
export const deleteMark = 'cluster.x-k8s.io/delete-machine';
const deploymentLabel = 'cluster.x-k8s.io/deployment-name';
const setLabel = 'cluster.x-k8s.io/set-name';

/** What the machines of a MachineDeployment are. */
export interface Offer {
  readonly name: string;
  readonly cpus: number;
  readonly memoryGib: number;
  readonly zone: string;
  readonly capacityType: string;
  /** Who else has Machines of it: nobody, somebody who leaves them as they are, or people who scale and roll it. */
  readonly others: 'nobody' | 'steady' | 'people';
  /** How many Machines others have at first. */
  readonly theirs: number;
  /** How a changed template gets to its Machines. */
  readonly strategy: 'RollingUpdate' | 'OnDelete';
  /** It has no more Machines than this. */
  readonly max?: number;
  price: number;
}

/** A Machine with what is known of it. */
export interface BookedMachine extends LedgerInstance {
  readonly name: string;
  readonly uid: string;
  readonly deployment: string;
  providerID: string;
  /** The MachineSet it is of. */
  readonly set: string;
  /** Somebody else's, who leaves it as it is: it was there before the autoscaler asked its MachineDeployment for any. */
  readonly isStranger: boolean;
  claim?: { readonly name: string; readonly uid: string };
  marked: boolean;
  deletingAt?: number;
  goneAt?: number;
  goneBecause?: string;
  isBroken?: boolean;
}

/** A MachineDeployment as people and the autoscaler share it. */
interface Account {
  /** How many Machines people want, the autoscaler's not counted. */
  wantedByPeople: number;
  replicas: number;
  /** Whether the autoscaler has ever asked it for a Machine. */
  isUsed: boolean;
}

export function isByAutoscaler(author: string): boolean {
  return author.startsWith('karpenter-');
}

export function claimOf({ metadata }: MachineObject): { name: string; uid: string } | undefined {
  const uid = metadata.annotations?.[claimUid];
  return uid === undefined ? undefined : { name: metadata.annotations?.[claimName] ?? '', uid };
}

export class ClusterApiBooks implements Ledger {
  readonly #clock: VirtualClock;
  readonly #author: () => string;
  readonly #offers: ReadonlyMap<string, Offer>;
  readonly #all: BookedMachine[] = [];
  readonly #alive = new Map<string, BookedMachine>();
  readonly #accounts = new Map<string, Account>();
  readonly close: () => void;

  constructor({ store, clock, author }: StoredCloudParts, offers: readonly Offer[]) {
    this.#clock = clock;
    this.#author = author;
    this.#offers = new Map(offers.map((offer) => [offer.name, offer]));
    this.close = store.listen(({ name }, event) => {
      if (name === capiCollections.machines) this.#machineChanged(event);
      else if (name === capiCollections.deployments) this.#deploymentChanged(event.object as MachineDeployment);
    });
  }

  /** Those that somebody has: one that waits to be given out is nobody's yet, and may be taken back. */
  alive(): readonly BookedMachine[] {
    return [...this.#alive.values()].filter(isSomebodys);
  }

  all(): readonly BookedMachine[] {
    return this.#all.filter(isSomebodys);
  }

  /** All there are, nobody's included. */
  machines(): readonly BookedMachine[] {
    return [...this.#alive.values()];
  }

  machine(uid: string): BookedMachine | undefined {
    return this.#alive.get(uid);
  }

  accounts(): ReadonlyMap<string, Readonly<Account>> {
    return this.#accounts;
  }

  #deploymentChanged({ metadata, spec }: MachineDeployment): void {
    const { name = '' } = metadata;
    const replicas = spec?.replicas ?? 0;
    const account = this.#accounts.get(name);
    if (!account) {
      this.#accounts.set(name, { wantedByPeople: replicas, replicas, isUsed: false });
      return;
    }
    if (isByAutoscaler(this.#author())) account.isUsed ||= replicas > account.replicas;
    else account.wantedByPeople += replicas - account.replicas;
    account.replicas = replicas;
  }

  #machineChanged({ type, object }: StoreEvent): void {
    const machine = object as MachineObject;
    const { uid = '', deletionTimestamp } = machine.metadata;
    const booked = this.#alive.get(uid) ?? this.#enter(machine, uid);
    booked.providerID = machine.spec?.providerID ?? booked.providerID;
    booked.marked = machine.metadata.annotations?.[deleteMark] !== undefined;
    const claim = claimOf(machine);
    if (claim && !booked.isStranger) booked.claim = claim;
    if ((deletionTimestamp !== undefined || type === 'DELETED') && booked.deletingAt === undefined) {
      booked.deletingAt = this.#clock.now();
      // Whoever marked it wanted it gone; without a mark Cluster API or a person took it.
      if (!booked.marked && !isByAutoscaler(this.#author())) booked.goneBecause = 'taken';
    }
    if (type !== 'DELETED') return;
    booked.goneAt = this.#clock.now();
    this.#alive.delete(uid);
  }

  #enter({ metadata }: MachineObject, uid: string): BookedMachine {
    const { name = '', labels = {} } = metadata;
    const deployment = labels[deploymentLabel] ?? '';
    const offer = this.#offers.get(deployment);
    const booked: BookedMachine = {
      name,
      uid,
      deployment,
      set: labels[setLabel] ?? '',
      providerID: `machine ${name}`,
      instanceType: deployment,
      zone: offer?.zone ?? '',
      capacityType: offer?.capacityType ?? '',
      price: offer?.price ?? 0,
      launchedAt: this.#clock.now(),
      isStranger: offer?.others === 'steady' && this.#accounts.get(deployment)?.isUsed === false,
      marked: false,
    };
    this.#all.push(booked);
    this.#alive.set(uid, booked);
    return booked;
  }
}

function isSomebodys({ claim, isStranger }: BookedMachine): boolean {
  return claim !== undefined || isStranger;
}
