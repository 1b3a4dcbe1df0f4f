// SPDX-License-Identifier: Apache-2.0
// From a NodeClaim to an order: the places where its machine may be launched, cheapest first. Written without the product's
// algebra of requirements, which is part of what is judged.
import { labels } from '../../api/labels.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import { compareStrings } from '../../base/order.ts';
import type { InstanceType } from '../../cloud/provider.ts';
import { keyOf, type Place, reservationLabel } from './market.ts';

/** What a provider asks a scripted cloud for. */
export interface Order {
  /** Orders with the same token are one order. */
  readonly token: string;
  readonly claim: { readonly name: string; readonly uid: string };
  /** In the order in which they are tried. */
  readonly places: readonly Place[];
}

/** Where the machine of a NodeClaim may be launched, cheapest first. */
export function placesFor(claim: NodeClaim, types: readonly InstanceType[]): Place[] {
  const found: { readonly place: Place; readonly price: number }[] = [];
  for (const type of types) {
    const own = { [labels.instanceType]: type.name, [labels.arch]: 'amd64', [labels.os]: 'linux' };
    for (const { requirements, price, available } of type.offerings) {
      if (available === false) continue;
      const at = (key: string): string | undefined => requirements.find((r) => r.key === key)?.values?.[0];
      const zone = at(labels.zone) ?? '';
      const capacityType = at(labels.capacityType) ?? '';
      const reservation = at(reservationLabel);
      const machine: Record<string, string | undefined> = {
        ...own,
        [labels.zone]: zone,
        [labels.capacityType]: capacityType,
        [reservationLabel]: reservation,
      };
      if (!claim.spec.requirements.every((wanted) => !(wanted.key in machine) || allows(wanted, machine[wanted.key])))
        continue;
      found.push({ place: { type: type.name, zone, capacityType, ...(reservation ? { reservation } : {}) }, price });
    }
  }
  return found
    .sort((a, b) => a.price - b.price || compareStrings(keyOf(a.place), keyOf(b.place)))
    .map(({ place }) => place);
}

type Wanted = NodeClaim['spec']['requirements'][number];

function allows({ operator, values = [] }: Wanted, value: string | undefined): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value);
    case 'NotIn':
      return value === undefined || !values.includes(value);
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    case 'Gt':
      return Number(value) > Number(values[0]);
    case 'Lt':
      return Number(value) < Number(values[0]);
    case 'Gte':
      return Number(value) >= Number(values[0]);
    case 'Lte':
      return Number(value) <= Number(values[0]);
    default:
      return false;
  }
}
