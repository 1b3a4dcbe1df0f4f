// SPDX-License-Identifier: Apache-2.0
// What a bought machine costs, what else would have done, and why it was this one.
import { capacityTypes, labels } from '../../api/labels.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import { compareStrings } from '../../base/order.ts';
import type { InstanceType } from '../../cloud/provider.ts';
import { Quantity } from '../../kube/quantity.ts';
import { type Bought, dollars } from './events.ts';

type Explained = Omit<Bought, 'type' | 'at'>;

interface Offer {
  readonly instanceType: string;
  readonly capacityType: string;
  readonly zone: string;
  readonly price: number;
}

/** What the clouds sell, by NodePool. */
export class PriceList {
  readonly #offers: Readonly<Record<string, readonly Offer[]>>;

  constructor(instanceTypes: Readonly<Record<string, readonly InstanceType[]>>) {
    this.#offers = Object.fromEntries(
      Object.entries(instanceTypes).map(([pool, types]) => [pool, types.flatMap(offersOf).sort(byPrice)]),
    );
  }

  /** What a launched NodeClaim became, and why; undefined while it has not become anything. */
  explain(claim: NodeClaim): Explained | undefined {
    const own = claim.metadata.labels ?? {};
    const [nodePool = '', instanceType, capacityType, zone] = [
      own[labels.nodePool],
      own[labels.instanceType],
      own[labels.capacityType],
      own[labels.zone],
    ];
    if (!instanceType || !capacityType || !zone || !claim.status?.providerID) return undefined;
    const offers = this.#offers[nodePool] ?? [];
    const priceIn = (type: string): number | undefined =>
      offers.find((o) => o.instanceType === instanceType && o.zone === zone && o.capacityType === type)?.price;
    const price = priceIn(capacityType) ?? 0;
    const possible = offers.filter((offer) => allows(claim, offer));
    const candidates = new Set(possible.map((offer) => offer.instanceType)).size;
    const next = possible.find((offer) => offer.instanceType !== instanceType && offer.price >= price);
    const onDemand = capacityType === capacityTypes.onDemand ? undefined : priceIn(capacityTypes.onDemand);
    const requests = Object.fromEntries(
      Object.entries(claim.spec.resources?.requests ?? {}).map(([name, amount]) => [name, String(amount)]),
    );
    const isCheapest = possible.every((offer) => offer.price >= price);
    return {
      nodeClaim: claim.metadata.name ?? '',
      nodePool,
      instanceType,
      capacityType,
      zone,
      pricePerHour: dollars(price),
      requests,
      candidates,
      ...(next ? { next: { instanceType: next.instanceType, pricePerHour: dollars(next.price) } } : {}),
      ...(onDemand === undefined ? {} : { onDemandPricePerHour: dollars(onDemand) }),
      why: `${isCheapest ? 'the cheapest of' : 'one of'} ${candidates} types that hold ${contents(requests)}`,
    };
  }
}

function offersOf(type: InstanceType): Offer[] {
  return type.offerings
    .filter(({ available }) => available !== false)
    .map((offering) => {
      const valueOf = (key: string): string =>
        offering.requirements.find((requirement) => requirement.key === key)?.values?.[0] ?? '';
      return {
        instanceType: type.name,
        capacityType: valueOf(labels.capacityType),
        zone: valueOf(labels.zone),
        price: offering.price,
      };
    });
}

function byPrice(a: Offer, b: Offer): number {
  return a.price - b.price || compareStrings(a.instanceType, b.instanceType) || compareStrings(a.zone, b.zone);
}

/** Whether the NodeClaim left this choice open. */
function allows({ spec }: NodeClaim, offer: Offer): boolean {
  const choices: [string, string][] = [
    [labels.instanceType, offer.instanceType],
    [labels.capacityType, offer.capacityType],
    [labels.zone, offer.zone],
  ];
  return choices.every(([key, value]) =>
    spec.requirements.every(
      (requirement) =>
        requirement.key !== key || requirement.operator !== 'In' || requirement.values?.includes(value) === true,
    ),
  );
}

/** `5 pods and 5 CPUs`, `200 pods`. */
function contents(requests: Readonly<Record<string, string>>): string {
  const parts: string[] = [];
  const add = (name: string, text: (amount: Quantity) => string): void => {
    const amount = Quantity.tryParse(requests[name]);
    if (amount && !amount.isZero()) parts.push(text(amount));
  };
  add('pods', (n) => `${n.toNumber()} pod${n.toNumber() === 1 ? '' : 's'}`);
  add('cpu', (n) => `${n.toNumber()} CPU${n.toNumber() === 1 ? '' : 's'}`);
  add('memory', (n) => `${n.toString()} memory`);
  return parts.length < 2 ? (parts[0] ?? 'nothing') : `${parts.slice(0, -1).join(', ')} and ${parts.at(-1)}`;
}
