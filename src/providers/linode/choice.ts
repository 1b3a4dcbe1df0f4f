// SPDX-License-Identifier: Apache-2.0
// Which plan a NodeClaim gets: those that fit its requirements and requests and are for sale, cheapest first.
import { labels } from '../../api/labels.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import { chain, compareStrings } from '../../base/order.ts';
import { allocatableOf } from '../../cloud/allocatable.ts';
import type { Instance, InstanceType } from '../../cloud/provider.ts';
import { Quantity } from '../../kube/quantity.ts';
import { conflict, requirementsOf } from '../../scheduling/requirements.ts';
import { linodeLabelSet } from './names.ts';

const priceOf = ({ offerings }: InstanceType): number => offerings[0]?.price ?? Number.POSITIVE_INFINITY;
const sizeOf = ({ capacity }: InstanceType, name: string): number => Quantity.parse(capacity[name] ?? '0').toNumber();

/** By price, then the larger machine, then by name: the same for the same question. */
const cheapestFirst = chain<InstanceType>(
  (a, b) => priceOf(a) - priceOf(b),
  (a, b) => sizeOf(b, 'cpu') - sizeOf(a, 'cpu'),
  (a, b) => sizeOf(b, 'memory') - sizeOf(a, 'memory'),
  (a, b) => compareStrings(a.name, b.name),
);

/** The types that serve a NodeClaim and can be had, best first. */
export function choicesFor(claim: NodeClaim, types: readonly InstanceType[]): InstanceType[] {
  const wanted = requirementsOf(claim.spec.requirements, linodeLabelSet);
  const requests = Object.entries(claim.spec.resources?.requests ?? {});
  return types
    .filter((type) => {
      const [offering] = type.offerings;
      if (offering?.available !== true) return false;
      const given = requirementsOf([...type.requirements, ...offering.requirements], linodeLabelSet);
      if (conflict(wanted, given) !== undefined) return false;
      const free = allocatableOf(type);
      return requests.every(([name, amount]) => {
        return Quantity.parse(free[name] ?? '0').cmp(Quantity.parse(String(amount))) >= 0;
      });
    })
    .sort(cheapestFirst);
}

/** What a machine of a type is known to have: labels, capacity, allocatable. */
export function shapeOf(
  typeName: string,
  region: string,
  type: InstanceType | undefined,
): Pick<Instance, 'labels' | 'capacity' | 'allocatable'> {
  const known: Record<string, string> = {
    [labels.instanceType]: typeName,
    [labels.region]: region,
    [labels.zone]: region,
    [labels.capacityType]: 'on-demand',
  };
  for (const { key, operator, values } of type?.requirements ?? []) {
    if (operator === 'In' && values?.length === 1) known[key] = values[0]!;
  }
  const texts = (amounts: Readonly<Record<string, string | number>>): Record<string, string> =>
    Object.fromEntries(Object.entries(amounts).map(([name, amount]) => [name, String(amount)]));
  return {
    labels: known,
    capacity: texts(type?.capacity ?? {}),
    allocatable: type ? allocatableOf(type) : {},
  };
}
