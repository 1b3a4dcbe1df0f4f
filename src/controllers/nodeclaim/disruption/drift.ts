// SPDX-License-Identifier: Apache-2.0
// Why a NodeClaim is no longer what its NodePool and its cloud would make today.
import { annotations, capacityTypes, type LabelSet, labels } from '../../../api/labels.ts';
import type { NodeClaim } from '../../../api/node-claim.ts';
import type { NodePool } from '../../../api/node-pool.ts';
import type { CloudProvider, InstanceType } from '../../../cloud/provider.ts';
import { parseTime } from '../../../kube/time.ts';
import { compatible, Requirement, requirementsOf, requirementsOfLabels } from '../../../scheduling/requirements.ts';

/** A young NodeClaim's instance type is not looked up. */
const youngMs = 60 * 60_000;
/** How long an instance type that was found is not looked up again. */
const foundForMs = 30 * 60_000;

/** Finds reasons for drift; remembers whose instance type was found lately. */
export class DriftFinder {
  readonly #foundUntil = new Map<string, number>();

  /** The first reason that holds, cheapest questions first; '' when there is none. Throws what the cloud throws. */
  async reason(
    claim: NodeClaim,
    pool: NodePool,
    cloud: CloudProvider,
    now: number,
    signal: AbortSignal,
  ): Promise<string> {
    if (isHashDifferent(pool, claim)) return 'NodePoolDrifted';
    if (!meetsRequirements(pool, claim, cloud.labels)) return 'RequirementsDrifted';
    if (await this.#hasLostInstanceType(claim, pool, cloud, now, signal)) return 'InstanceTypeNotFound';
    return cloud.driftReason(claim, signal);
  }

  forget(claim: NodeClaim): void {
    this.#foundUntil.delete(claim.metadata.uid ?? '');
  }

  async #hasLostInstanceType(
    claim: NodeClaim,
    pool: NodePool,
    cloud: CloudProvider,
    now: number,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { uid = '', creationTimestamp } = claim.metadata;
    if (!creationTimestamp || now - parseTime(creationTimestamp) <= youngMs) return false;
    if ((this.#foundUntil.get(uid) ?? 0) > now) return false;
    const types = await cloud.instanceTypes(pool, signal);
    // Only good news is remembered: a list that is wrong for a moment is asked for again soon.
    if (!isOffered(claim, types, cloud)) return true;
    this.#foundUntil.set(uid, now + foundForMs);
    return false;
  }
}

/** Whether the template changed since the NodeClaim was made; hashes of different versions say nothing. */
function isHashDifferent(pool: NodePool, claim: NodeClaim): boolean {
  const { nodePoolHash, nodePoolHashVersion } = annotations;
  const [now, then] = [pool.metadata.annotations ?? {}, claim.metadata.annotations ?? {}];
  const version = now[nodePoolHashVersion];
  if (version === undefined || version !== then[nodePoolHashVersion]) return false;
  const [wanted, has] = [now[nodePoolHash], then[nodePoolHash]];
  return wanted !== undefined && has !== undefined && wanted !== has;
}

function meetsRequirements(pool: NodePool, claim: NodeClaim, set: LabelSet): boolean {
  const has = requirementsOfLabels(claim.metadata.labels, set);
  return compatible(has, requirementsOf(pool.spec.template.spec.requirements, set));
}

/** Whether the cloud still knows the instance type, in that zone and way of paying, for sale or not. */
function isOffered(claim: NodeClaim, types: readonly InstanceType[], cloud: CloudProvider): boolean {
  const own = claim.metadata.labels ?? {};
  const type = types.find(({ name }) => name === own[labels.instanceType]);
  if (!type) return false;
  const has = requirementsOfLabels(own, cloud.labels);
  const mayBeUndefined = new Set(cloud.labels.wellKnown);
  if (own[labels.capacityType] === capacityTypes.reserved) {
    // A reservation may have ended and its label not be changed yet: then it runs on demand.
    const { reserved, onDemand } = capacityTypes;
    has.set(labels.capacityType, Requirement.in(labels.capacityType, [reserved, onDemand]));
    if (cloud.reservationLabel) has.delete(cloud.reservationLabel);
  }
  if (cloud.reservationLabel) mayBeUndefined.add(cloud.reservationLabel);
  return type.offerings.some(({ requirements }) =>
    compatible(has, requirementsOf(requirements, cloud.labels), mayBeUndefined),
  );
}
