// SPDX-License-Identifier: Apache-2.0
// What cases are written with: the provider under test, NodeClaims to launch, and the questions they all ask.
import assert from 'node:assert/strict';
import { capacityTypes, labels, nodeClassLabel } from '../../api/labels.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import type { NodePool } from '../../api/node-pool.ts';
import { KarpenterError } from '../../base/errors.ts';
import { deepFreeze } from '../../base/freeze.ts';
import { isInsufficientCapacity, isNodeClaimNotFound, isNodeClassNotReady } from '../errors.ts';
import type { CloudProvider, Instance, InstanceType } from '../provider.ts';
import type { CloudFault, ExistingMachine, NodeClassRef, ProviderHarness } from './harness.ts';

/** The case has nothing to say about this provider. */
export class NotApplicable extends KarpenterError {
  constructor(why: string) {
    super('KRP_CONFORMANCE_NOT_APPLICABLE', why);
  }
}

export interface ClaimOptions {
  readonly name?: string;
  readonly uid?: string;
  readonly nodeClass?: NodeClassRef;
  /** Without the label and the owner that a NodePool gives: a person wrote it. */
  readonly standalone?: boolean;
  /** Put over what an offering on sale asks for. */
  readonly zone?: string;
  readonly providerID?: string;
}

/** Deletions are asked for this often before a case gives up. */
const patience = 50;
const poolUid = '00000000-0000-4000-8000-00000000000a';

/** One provider on one cloud, for the length of a case. */
export class Subject {
  readonly harness: ProviderHarness;
  readonly #stop = new AbortController();
  #provider: CloudProvider;
  #names = 0;

  constructor(harness: ProviderHarness) {
    this.harness = harness;
    this.#provider = harness.provider;
  }

  get provider(): CloudProvider {
    return this.#provider;
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  end(): void {
    this.#stop.abort(new Error('the case is over'));
  }

  /** The process died here. */
  async crash(): Promise<void> {
    this.#provider = await this.harness.restart();
  }

  /** Does something while the cloud fails so; time passes for whoever tries again. */
  async during<R>(fault: CloudFault, work: () => Promise<R>): Promise<R> {
    if (!(await this.harness.inject(fault))) throw new NotApplicable(`the cloud cannot be "${fault}"`);
    try {
      let isOver = false;
      const result = work().finally(() => (isOver = true));
      result.catch(() => undefined);
      for (let i = 0; i < patience && !isOver; i++) await this.harness.settle();
      return await result;
    } finally {
      await this.harness.lift();
    }
  }

  async pool(nodeClass?: NodeClassRef): Promise<NodePool> {
    const ref = nodeClass ?? (await this.harness.nodeClass('ready'));
    return deepFreeze({
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodePool',
      metadata: { name: 'conformance', uid: poolUid, generation: 1 },
      spec: { template: { spec: { nodeClassRef: { ...ref }, requirements: [] } } },
    });
  }

  async types(): Promise<readonly InstanceType[]> {
    return this.provider.instanceTypes(await this.pool(), this.signal);
  }

  /** A NodeClaim for the cheapest machine on sale, as the scheduler would write it. Frozen: a provider changes no input. */
  async claim(options: ClaimOptions = {}): Promise<NodeClaim> {
    const nodeClass = options.nodeClass ?? (await this.harness.nodeClass('ready'));
    const { type, offering } = await this.#cheapest();
    const number = ++this.#names;
    const name = options.name ?? `conformance-${number}`;
    const uid = options.uid ?? uidOf(number);
    const own = { [nodeClassLabel(nodeClass)]: nodeClass.name };
    const pooled = { ...own, [labels.nodePool]: 'conformance' };
    const owner = { apiVersion: 'karpenter.sh/v1', kind: 'NodePool', name: 'conformance', uid: poolUid };
    const only = (key: string, value: string) => ({ key, operator: 'In' as const, values: [value] });
    return deepFreeze({
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodeClaim',
      metadata: {
        name,
        uid,
        generation: 1,
        creationTimestamp: '2026-01-01T00:00:00Z',
        labels: options.standalone ? own : pooled,
        ...(options.standalone ? {} : { ownerReferences: [{ ...owner, blockOwnerDeletion: true }] }),
      },
      spec: {
        nodeClassRef: { ...nodeClass },
        requirements: [
          only(labels.instanceType, type.name),
          only(labels.zone, options.zone ?? valueOf(offering.requirements, labels.zone)),
          only(labels.capacityType, valueOf(offering.requirements, labels.capacityType)),
          ...(options.standalone ? [] : [only(labels.nodePool, 'conformance')]),
        ],
        resources: { requests: { cpu: '10m', pods: '1' } },
        expireAfter: 'Never',
      },
      ...(options.providerID === undefined ? {} : { status: { providerID: options.providerID } }),
    } as NodeClaim);
  }

  create(claim: NodeClaim): Promise<Instance> {
    return this.provider.create(claim, this.signal);
  }

  /** A machine that runs, with its NodeClaim as it was written and as it is after the launch. */
  async launched(options: ClaimOptions = {}): Promise<{ written: NodeClaim; claim: NodeClaim; instance: Instance }> {
    const written = await this.claim(options);
    const instance = await this.create(written);
    await this.harness.settle();
    return { written, claim: withStatus(written, instance), instance };
  }

  delete(claim: NodeClaim): Promise<void> {
    return this.provider.delete(claim, this.signal);
  }

  /** As the controllers do it: asks until the cloud says that the machine is gone. */
  async deleteUntilGone(claim: NodeClaim): Promise<void> {
    for (let i = 0; i < patience; i++) {
      const failure = await this.failureOf(() => this.delete(claim));
      if (isNodeClaimNotFound(failure)) return;
      await this.harness.settle();
    }
    assert.fail(`delete never answered NodeClaimNotFoundError in ${patience} tries: the NodeClaim would stay for ever`);
  }

  /** What a call throws; undefined when it succeeds. */
  async failureOf(call: () => Promise<unknown>): Promise<unknown> {
    try {
      await call();
      return undefined;
    } catch (error) {
      return error ?? new Error('nothing was thrown, but thrown it was');
    }
  }

  /** The machines of a NodeClaim in the cloud. */
  async machinesOf(instance: Instance): Promise<readonly ExistingMachine[]> {
    await this.harness.settle();
    return (await this.harness.machines()).filter(({ providerID }) => providerID === instance.providerID);
  }

  /** There are exactly these machines in the cloud, and nothing else. */
  async expectMachines(...instances: readonly Instance[]): Promise<void> {
    await this.harness.settle();
    const found = (await this.harness.machines()).map(({ providerID }) => providerID).sort();
    const wanted = instances.map(({ providerID }) => providerID).sort();
    assert.deepEqual(found, wanted, 'the machines that exist in the cloud');
  }

  async #cheapest(): Promise<{ type: InstanceType; offering: InstanceType['offerings'][number] }> {
    let best: { type: InstanceType; offering: InstanceType['offerings'][number] } | undefined;
    for (const type of await this.types()) {
      for (const offering of type.offerings) {
        if (offering.available === false || capacityTypeOf(offering) === capacityTypes.reserved) continue;
        if (!best || offering.price < best.offering.price) best = { type, offering };
      }
    }
    assert.ok(best, 'the cloud must sell something, or there is nothing to check');
    return best;
  }
}

/** UIDs are random: two of them differ in every part. */
function uidOf(number: number): string {
  const part = (salt: number): string => (Math.imul(number + salt, 2_654_435_761) >>> 0).toString(16).padStart(8, '0');
  const text = [1, 2, 3, 4].map((salt) => part(salt * 1000)).join('');
  return `${text.slice(0, 8)}-${text.slice(8, 12)}-4${text.slice(13, 16)}-8${text.slice(17, 20)}-${text.slice(20)}`;
}

/** The NodeClaim as the lifecycle controller writes it after a launch. */
function withStatus(claim: NodeClaim, instance: Instance): NodeClaim {
  const { providerID, imageID, capacity, allocatable } = instance;
  return deepFreeze({
    ...claim,
    metadata: { ...claim.metadata, labels: { ...instance.labels, ...claim.metadata.labels } },
    status: {
      providerID,
      ...(imageID ? { imageID } : {}),
      capacity: { ...capacity },
      allocatable: { ...allocatable },
    },
  });
}

/** The only value of a requirement; fails where there is none, or more than one. */
export function valueOf(requirements: InstanceType['requirements'], key: string): string {
  const found = requirements.filter((requirement) => requirement.key === key);
  const [one, another] = found;
  assert.ok(one && !another && one.operator === 'In' && one.values?.length === 1, `one value for ${key}`);
  return one.values[0]!;
}

export function capacityTypeOf(offering: InstanceType['offerings'][number]): string {
  return valueOf(offering.requirements, labels.capacityType);
}

/** An error that controllers take for final must not stand for a cloud that cannot be asked. */
export function expectTemporary(failure: unknown, during: string): void {
  assert.ok(failure !== undefined, `${during}: the call must fail`);
  assert.ok(
    !isNodeClaimNotFound(failure),
    `${during}: NodeClaimNotFoundError would end the wait for a machine that exists`,
  );
  assert.ok(!isInsufficientCapacity(failure), `${during}: InsufficientCapacityError would give the NodeClaim up`);
  assert.ok(!isNodeClassNotReady(failure), `${during}: NodeClassNotReadyError would give the NodeClaim up`);
}
