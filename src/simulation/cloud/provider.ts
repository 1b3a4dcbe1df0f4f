// SPDX-License-Identifier: Apache-2.0
// The provider of the scripted cloud: what one controller process knows of it. It goes with its process; the cloud stays.
import { commonLabelSet, extendLabelSet, type LabelSet, labels } from '../../api/labels.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import type { NodePool } from '../../api/node-pool.ts';
import { planted } from '../../base/defects.ts';
import {
  CreateError,
  InsufficientCapacityError,
  NodeClaimNotFoundError,
  NodeClassNotReadyError,
} from '../../cloud/errors.ts';
import type { CloudProvider, Instance, InstanceType, RepairPolicy } from '../../cloud/provider.ts';
import { ignoreNotFound } from '../../kube/api-error.ts';
import type { KubeObject, ResourceType } from '../../kube/object.ts';
import { formatTime } from '../../kube/time.ts';
import type { Line } from '../contract.ts';
import { type Backend, providerScheme, RefusedError, SoldOutError } from './backend.ts';
import type { Machine } from './ledger.ts';
import { keyOf, type Place, reservationLabel } from './market.ts';
import { type ScriptedNodeClass, scriptedNodeClassKind } from './node-class.ts';
import { placesFor } from './orders.ts';

const minute = 60_000;
/** How long an offering that was sold out is taken to be. */
const soldOutMs = 3 * minute;
/** Shorter than elsewhere: nodes of these worlds are not ready for minutes. */
export const repairsAfterMs = 3 * minute;

export class ScriptedProvider implements CloudProvider {
  readonly name = 'scripted';
  readonly nodeClasses = [scriptedNodeClassKind as ResourceType<KubeObject>] as const;
  readonly labels: LabelSet = extendLabelSet(commonLabelSet, { wellKnown: [reservationLabel] });
  readonly reservationLabel = reservationLabel;
  readonly repairPolicies: readonly RepairPolicy[] = [
    { conditionType: 'Ready', conditionStatus: 'False', tolerationMs: repairsAfterMs },
    { conditionType: 'Ready', conditionStatus: 'Unknown', tolerationMs: repairsAfterMs },
  ];
  readonly #backend: Backend;
  readonly #line: Line;
  /** Until when offerings are taken to be sold out, by the process's own clock. */
  readonly #soldOut = new Map<string, number>();
  #orders = 0;
  #shown: { readonly of: readonly InstanceType[]; readonly without: string; readonly types: readonly InstanceType[] } =
    {
      of: [],
      without: '',
      types: [],
    };

  constructor(backend: Backend, line: Line) {
    this.#backend = backend;
    this.#line = line;
  }

  async create(claim: NodeClaim, signal: AbortSignal): Promise<Instance> {
    await this.#checkNodeClass(claim, signal);
    const { name = '', uid = '' } = claim.metadata;
    const types = await this.#call('types', () => this.#backend.types(signal));
    const places = placesFor(claim, this.#available(types));
    try {
      const token = planted('scripted-launches-again') ? `${uid}-${++this.#orders}` : uid;
      const order = { token, claim: { name, uid }, places };
      const { machine, soldOut } = await this.#call(`create ${name}`, () => this.#backend.launch(order, signal));
      this.#note(soldOut);
      return instanceOf(machine);
    } catch (error) {
      if (error instanceof RefusedError)
        throw new CreateError(error.message, { reason: 'OrderRefused', message: error.message }, { cause: error });
      if (!(error instanceof SoldOutError)) throw error;
      this.#note(error.places);
      throw new InsufficientCapacityError(error.message, { cause: error });
    }
  }

  async delete(claim: NodeClaim, signal: AbortSignal): Promise<void> {
    const providerID = own(claim.status?.providerID ?? '');
    const found = await this.#call(`delete ${providerID}`, () => this.#backend.terminate(providerID, signal));
    if (!found) throw gone(providerID);
  }

  async get(id: string, signal: AbortSignal): Promise<Instance> {
    const providerID = own(id);
    const machine = await this.#call(`get ${providerID}`, () => this.#backend.find(providerID, signal));
    if (!machine) throw gone(providerID);
    return instanceOf(machine);
  }

  async list(signal: AbortSignal): Promise<readonly Instance[]> {
    return (await this.#call('list', () => this.#backend.list(signal))).map(instanceOf);
  }

  async instanceTypes(_pool: NodePool, signal: AbortSignal): Promise<readonly InstanceType[]> {
    return this.#available(await this.#call('types', () => this.#backend.types(signal)));
  }

  async driftReason(claim: NodeClaim, signal: AbortSignal): Promise<string> {
    const id = claim.status?.providerID ?? '';
    return (await this.#call('drift', () => this.#backend.isOutdated(id, signal))) ? 'ImageOutdated' : '';
  }

  #call<R>(what: string, carryOut: () => Promise<R>): Promise<R> {
    return this.#line.call(what, carryOut);
  }

  async #checkNodeClass(claim: NodeClaim, signal: AbortSignal): Promise<void> {
    const { name } = claim.spec.nodeClassRef;
    const { client } = this.#line.clusters.karpenter;
    const nodeClass: ScriptedNodeClass | undefined = await ignoreNotFound(
      client.resource(scriptedNodeClassKind).get(name, { signal }),
    );
    if (!nodeClass) throw new InsufficientCapacityError(`ScriptedNodeClass ${name} does not exist`);
    const ready = nodeClass.status?.conditions?.find(({ type }) => type === 'Ready');
    if (ready?.status === 'False')
      throw new NodeClassNotReadyError(ready.message || `ScriptedNodeClass ${name} is not ready`);
  }

  #note(places: readonly Place[]): void {
    for (const place of places) this.#soldOut.set(keyOf(place), this.#line.clock.monotonic() + soldOutMs);
  }

  /** What is sold, without what was sold out a moment ago. The same object as long as nothing changes. */
  #available(types: readonly InstanceType[]): readonly InstanceType[] {
    const now = this.#line.clock.monotonic();
    for (const [key, until] of this.#soldOut) if (until <= now) this.#soldOut.delete(key);
    const without = [...this.#soldOut.keys()].join();
    if (without === '') return types;
    if (this.#shown.of !== types || this.#shown.without !== without)
      this.#shown = { of: types, without, types: types.map((type) => this.#withoutSoldOut(type)) };
    return this.#shown.types;
  }

  #withoutSoldOut(type: InstanceType): InstanceType {
    const offerings = type.offerings.map((offering) => {
      const at = (key: string): string => offering.requirements.find((r) => r.key === key)?.values?.[0] ?? '';
      const place = { type: type.name, zone: at(labels.zone), capacityType: at(labels.capacityType) };
      return this.#soldOut.has(keyOf(place)) ? { ...offering, available: false } : offering;
    });
    return { ...type, offerings };
  }
}

function own(providerID: string): string {
  if (!providerID.startsWith(providerScheme)) throw gone(providerID);
  return providerID;
}

function gone(providerID: string): NodeClaimNotFoundError {
  return new NodeClaimNotFoundError(`machine ${providerID} is gone`);
}

function instanceOf(machine: Machine): Instance {
  const { providerID, image, labels: own, capacity, allocatable, claim, launchedAt, deletingAt } = machine;
  return {
    providerID,
    imageID: `image-${image}`,
    labels: own,
    capacity,
    allocatable,
    createdAt: formatTime(launchedAt),
    ...(claim ? { nodeClaim: claim } : {}),
    ...(deletingAt === undefined ? {} : { deleting: true }),
  };
}
