// SPDX-License-Identifier: Apache-2.0
// What an hour of a machine costs. Cluster API does not say: the user does, on the resource or in a table; otherwise it
// is estimated, and the estimate is marked as one.
import { capacityTypes } from '../../api/labels.ts';
import { Quantity } from '../../kube/quantity.ts';
import type { Scalable } from './kinds.ts';
import { annotations, capacityAnnotations } from './names.ts';
import { MemberError, type Shape } from './shape.ts';

export type PriceSource = 'annotation' | 'table' | 'estimate';

export interface Price {
  readonly amount: number;
  readonly source: PriceSource;
}

/** Prices per hour by instance type, and by `<type>.spot`. */
export type PriceTable = Readonly<Record<string, string>>;

const pricePattern = /^\d+(\.\d+)?$/;
/** What is written on the resource, in the order it counts. The last one is in circulation although nothing reads it. */
const priceAnnotations = [annotations.price, capacityAnnotations.price, 'cluster.x-k8s.io/machine-current-price'];
// About what general-purpose machines cost on demand; only their proportions matter among estimates.
const perCpu = 0.03;
const perGib = 0.004;
const perDevice = 1;
const spotShare = 0.4;
const gib = 2 ** 30;
const ordinary = new Set(['cpu', 'memory', 'pods', 'ephemeral-storage']);

/** The price of a member's machines. Throws MemberError for one that is no number. */
export function priceOf(scalable: Scalable, typeName: string, shape: Shape, table: PriceTable = {}): Price {
  for (const key of priceAnnotations) {
    const told = scalable.metadata.annotations?.[key];
    if (told !== undefined) return { amount: parsePrice(told, key), source: 'annotation' };
  }
  const spot = shape.capacityType === capacityTypes.spot;
  const key = spot && table[`${typeName}.spot`] !== undefined ? `${typeName}.spot` : typeName;
  const listed = table[key];
  // The ordinary price says nothing about spot capacity but its upper end.
  if (listed !== undefined) return { amount: parsePrice(listed, `price table, ${key}`), source: 'table' };
  return { amount: estimate(shape) * (spot ? spotShare : 1), source: 'estimate' };
}

function parsePrice(text: string, where: string): number {
  if (!pricePattern.test(text.trim())) throw new MemberError(`${where}: ${JSON.stringify(text)} is not a price`);
  return Number(text);
}

/** From the resources alone, so that a larger machine is never taken for a cheaper one. */
function estimate({ capacity, devices = '0' }: Shape): number {
  let price = Quantity.parse(devices).toNumber() * perDevice;
  for (const [resource, amount] of Object.entries(capacity)) {
    const value = Quantity.parse(amount).toNumber();
    if (resource === 'cpu') price += value * perCpu;
    else if (resource === 'memory') price += (value / gib) * perGib;
    else if (!ordinary.has(resource) && !resource.startsWith('hugepages-')) price += value * perDevice;
  }
  return price;
}
