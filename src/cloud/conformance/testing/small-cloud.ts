// SPDX-License-Identifier: Apache-2.0
// A cloud in memory with a provider that keeps the contract: what the suite itself is tested with. The cloud finds machines
// by a token that the client chooses, as EC2 does.
import { capacityTypes, commonLabelSet, extendLabelSet, labels } from '../../../api/labels.ts';
import type { NodeClaim } from '../../../api/node-claim.ts';
import type { NodePool } from '../../../api/node-pool.ts';
import type { KubeObject, ResourceType } from '../../../kube/object.ts';
import {
  CreateError,
  InsufficientCapacityError,
  NodeClaimNotFoundError,
  NodeClassNotReadyError,
} from '../../errors.ts';
import type { CloudProvider, Instance, InstanceType } from '../../provider.ts';
import type { CloudFault, ExistingMachine, NodeClassRef, NodeClassState, ProviderHarness } from '../harness.ts';
import { valueOf } from '../subject.ts';

export const nodeClassKind: ResourceType<KubeObject> = {
  group: 'small.example.com',
  version: 'v1',
  kind: 'SmallNodeClass',
  plural: 'smallnodeclasses',
  namespaced: false,
};
const ownLabel = 'small.example.com/generation';
const turns = 3;

interface Machine {
  readonly token: string;
  readonly claimUid: string;
  readonly claimName: string;
  readonly labels: Readonly<Record<string, string>>;
  drifted: boolean;
}

class Refusal extends Error {}

/** The far side: machines by id, and what is wrong with it right now. */
export class SmallCloud {
  readonly machines = new Map<string, Machine>();
  fault: CloudFault | undefined;
  #ids = 0;

  /** Launches, or gives the id of the machine with this token. */
  async launch(machine: Omit<Machine, 'drifted'>): Promise<string> {
    await this.#enter();
    if (this.fault === 'sold out') throw new Refusal('none left');
    if (this.fault === 'launch refused') throw new Refusal('bad request');
    const known = [...this.machines].find(([, { token }]) => token === machine.token);
    const id = known?.[0] ?? `i-${++this.#ids}`;
    if (!known) this.machines.set(id, { ...machine, drifted: false });
    this.#leave();
    return id;
  }

  async terminate(id: string): Promise<boolean> {
    await this.#enter();
    const existed = this.machines.delete(id);
    this.#leave();
    return existed;
  }

  async describe(): Promise<ReadonlyMap<string, Machine>> {
    await this.#enter();
    return new Map(this.machines);
  }

  async #enter(): Promise<void> {
    for (let i = 0; i < turns; i++) await Promise.resolve();
    if (this.fault === 'unreachable' || this.fault === 'throttled' || this.fault === 'failing')
      throw new Refusal(this.fault);
  }

  #leave(): void {
    if (this.fault === 'answer lost') throw new Refusal('connection reset');
  }
}

function typeOf(cpus: number): InstanceType {
  const name = `small-${cpus}`;
  const only = (key: string, ...values: string[]) => ({ key, operator: 'In', values });
  return {
    name,
    requirements: [
      only(labels.instanceType, name),
      only(labels.arch, 'amd64'),
      only(labels.os, 'linux'),
      only(labels.zone, 'zone-1', 'zone-2'),
      only(labels.capacityType, capacityTypes.onDemand),
      only(ownLabel, '1'),
    ],
    offerings: ['zone-1', 'zone-2'].map((zone) => ({
      requirements: [only(labels.zone, zone), only(labels.capacityType, capacityTypes.onDemand)],
      price: cpus / 10,
    })),
    capacity: { cpu: String(cpus), memory: `${cpus * 2}Gi`, pods: '110' },
    overhead: { kubeReserved: { cpu: '100m' } },
  };
}

/** Keeps the contract. Broken ones are made from it by replacing a part. */
export class SmallProvider implements CloudProvider {
  readonly name: string = 'small';
  readonly nodeClasses: CloudProvider['nodeClasses'] = [nodeClassKind];
  readonly labels = extendLabelSet(commonLabelSet, { wellKnown: [ownLabel] });
  repairPolicies: CloudProvider['repairPolicies'] = [
    { conditionType: 'Ready', conditionStatus: 'False', tolerationMs: 60_000 },
  ];
  disruptionReasons: readonly string[] = ['Rebooting'];
  types: readonly InstanceType[] = [1, 2].map(typeOf);
  readonly cloud: SmallCloud;
  readonly nodeClassState: (name: string) => NodeClassState;

  constructor(cloud: SmallCloud, nodeClassState: (name: string) => NodeClassState) {
    this.cloud = cloud;
    this.nodeClassState = nodeClassState;
  }

  async create(claim: NodeClaim, signal: AbortSignal): Promise<Instance> {
    signal.throwIfAborted();
    const state = this.nodeClassState(claim.spec.nodeClassRef.name);
    if (state !== 'ready') throw new NodeClassNotReadyError(`the NodeClass is ${state}`);
    const { requirements } = claim.spec;
    const wanted = (key: string): string => valueOf(requirements, key);
    const type = this.types.find(({ name }) => name === wanted(labels.instanceType));
    const offering = type?.offerings.find((one) => valueOf(one.requirements, labels.zone) === wanted(labels.zone));
    if (!type || !offering) throw new InsufficientCapacityError('nothing fits');
    const machine = {
      token: this.tokenOf(claim),
      claimUid: claim.metadata.uid ?? '',
      claimName: claim.metadata.name ?? '',
      labels: Object.fromEntries(
        [labels.instanceType, labels.zone, labels.capacityType].map((key) => [key, wanted(key)]),
      ),
    };
    try {
      const id = await this.cloud.launch(machine);
      return this.instance(id, { ...machine, drifted: false });
    } catch (error) {
      throw this.launchError(error);
    }
  }

  tokenOf(claim: NodeClaim): string {
    return claim.metadata.uid ?? '';
  }

  launchError(error: unknown): unknown {
    if (error instanceof Error && error.message === 'none left') return new InsufficientCapacityError('sold out');
    if (error instanceof Error && error.message === 'bad request')
      return new CreateError('refused', { reason: 'LaunchRefused', message: 'the cloud refused the request' });
    return error;
  }

  async delete(claim: NodeClaim, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const id = idOf(claim.status?.providerID ?? '');
    if (!(await this.cloud.terminate(id))) throw new NodeClaimNotFoundError('gone');
  }

  async get(providerID: string, _signal: AbortSignal): Promise<Instance> {
    const id = idOf(providerID);
    const machine = (await this.cloud.describe()).get(id);
    if (!machine) throw new NodeClaimNotFoundError('gone');
    return this.instance(id, machine);
  }

  async list(_signal: AbortSignal): Promise<readonly Instance[]> {
    return [...(await this.cloud.describe())].map(([id, machine]) => this.instance(id, machine));
  }

  instanceTypes(_pool: NodePool, _signal: AbortSignal): Promise<readonly InstanceType[]> {
    return Promise.resolve(this.types);
  }

  async driftReason(claim: NodeClaim, _signal: AbortSignal): Promise<string> {
    const machine = (await this.cloud.describe()).get(idOf(claim.status?.providerID ?? ''));
    return machine?.drifted ? 'ImageDrifted' : '';
  }

  instance(id: string, { labels: own, claimName, claimUid }: Machine): Instance {
    const type = this.types.find(({ name }) => name === own[labels.instanceType])!;
    const capacity = Object.fromEntries(Object.entries(type.capacity).map(([k, v]) => [k, String(v)]));
    return {
      providerID: `small://${id}`,
      labels: own,
      capacity,
      allocatable: { ...capacity, cpu: `${Number(capacity['cpu']) * 1000 - 100}m` },
      nodeClaim: { name: claimName, uid: claimUid },
    };
  }
}

function idOf(providerID: string): string {
  return providerID.startsWith('small://') ? providerID.slice('small://'.length) : '';
}

/** A harness for the small cloud, with the provider that `make` gives. */
export class SmallHarness implements ProviderHarness {
  readonly #make: (cloud: SmallCloud, state: (name: string) => NodeClassState) => CloudProvider;
  readonly #cloud = new SmallCloud();
  readonly provider: CloudProvider;

  constructor(
    make: (cloud: SmallCloud, state: (name: string) => NodeClassState) => CloudProvider = (cloud, state) =>
      new SmallProvider(cloud, state),
  ) {
    this.#make = make;
    this.provider = this.#start();
  }

  #start(): CloudProvider {
    return this.#make(this.#cloud, (name) => name.replaceAll('-', ' ') as NodeClassState);
  }

  restart(): Promise<CloudProvider> {
    return Promise.resolve(this.#start());
  }

  nodeClass(state: NodeClassState): Promise<NodeClassRef> {
    const { group, kind } = nodeClassKind;
    return Promise.resolve({ group, kind, name: state.replaceAll(' ', '-') });
  }

  inject(fault: CloudFault): Promise<boolean> {
    this.#cloud.fault = fault;
    return Promise.resolve(true);
  }

  lift(): Promise<void> {
    this.#cloud.fault = undefined;
    return Promise.resolve();
  }

  machines(): Promise<readonly ExistingMachine[]> {
    return Promise.resolve([...this.#cloud.machines.keys()].map((id) => ({ providerID: `small://${id}` })));
  }

  async settle(): Promise<void> {
    for (let i = 0; i < 10 * turns; i++) await Promise.resolve();
  }

  readonly drift = (providerID: string): Promise<void> => {
    this.#cloud.machines.get(idOf(providerID))!.drifted = true;
    return Promise.resolve();
  };

  close(): Promise<void> {
    return Promise.resolve();
  }
}
