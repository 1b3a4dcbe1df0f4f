// SPDX-License-Identifier: Apache-2.0
// What the machines of each NodePool cost by the hour: how many there are of each offering, times its price. Counts follow
// the NodeClaims at once; prices come from the cloud later.
import { labels } from '../api/labels.ts';
import type { NodeClaim } from '../api/node-claim.ts';
import type { InstanceType } from '../cloud/provider.ts';
import type { InformerHandler } from '../kube/informer.ts';
import { keyOf } from '../kube/object.ts';

interface Offering {
  readonly pool: string;
  readonly instanceType: string;
  readonly zone: string;
  readonly capacityType: string;
}

interface Counted {
  readonly offering: Offering;
  count: number;
  /** Undefined until the cloud told; counts as 0. */
  price: number | undefined;
}

export interface ClusterCostOptions {
  readonly nodeClaims: { addHandler(handler: InformerHandler<NodeClaim>): unknown };
  /** Whether a NodeClaim is one of ours. */
  readonly manages: (claim: NodeClaim) => boolean;
}

/** Costs by NodePool. NodeClaims that do not say yet what they became, and those without a pool, cost nothing. */
export class ClusterCost {
  readonly #pools = new Map<string, Map<string, Counted>>();
  readonly #offeringOf = new Map<string, Offering>();
  readonly #unpricedListeners = new Set<(pool: string) => void>();

  constructor({ nodeClaims, manages }: ClusterCostOptions) {
    const put = (claim: NodeClaim): void => this.#put(keyOf(claim), manages(claim) ? offeringOf(claim) : undefined);
    nodeClaims.addHandler({ added: put, updated: put, deleted: (claim) => this.#put(keyOf(claim), undefined) });
  }

  /** What the machines of a pool cost by the hour, as far as their prices are known. */
  ofPool(pool: string): number {
    let cost = 0;
    for (const { count, price = 0 } of this.#pools.get(pool)?.values() ?? []) cost += count * price;
    return cost;
  }

  /** What all machines cost. */
  total(): number {
    let cost = 0;
    for (const pool of this.#pools.keys()) cost += this.ofPool(pool);
    return cost;
  }

  /** Offerings of a pool whose price nobody told yet, as `type zone capacity-type`. */
  unpriced(pool: string): string[] {
    return [...(this.#pools.get(pool)?.values() ?? [])]
      .filter(({ price }) => price === undefined)
      .map(({ offering: { instanceType, zone, capacityType } }) => `${instanceType} ${zone} ${capacityType}`);
  }

  /** Takes in what a cloud sells for a pool. A price that is no longer told stays what it was. */
  setPrices(pool: string, instanceTypes: readonly InstanceType[]): void {
    const counted = this.#pools.get(pool);
    if (!counted) return;
    const types = new Map(instanceTypes.map((type) => [type.name, type]));
    for (const entry of counted.values()) {
      entry.price = priceOf(types.get(entry.offering.instanceType), entry.offering) ?? entry.price;
    }
  }

  /** Calls back when a pool has a machine whose price is not known; at once for those there are. Returns the undo. */
  onUnpriced(listener: (pool: string) => void): () => void {
    this.#unpricedListeners.add(listener);
    for (const pool of this.#pools.keys()) if (this.unpriced(pool).length > 0) listener(pool);
    return () => void this.#unpricedListeners.delete(listener);
  }

  #put(claim: string, offering: Offering | undefined): void {
    const before = this.#offeringOf.get(claim);
    if (before && offering && keyOfOffering(before) === keyOfOffering(offering)) return;
    if (before) this.#remove(claim, before);
    if (offering) this.#add(claim, offering);
  }

  #add(claim: string, offering: Offering): void {
    this.#offeringOf.set(claim, offering);
    const pool = this.#pools.get(offering.pool) ?? new Map<string, Counted>();
    this.#pools.set(offering.pool, pool);
    const key = keyOfOffering(offering);
    const known = pool.get(key);
    if (known) {
      known.count++;
      return;
    }
    pool.set(key, { offering, count: 1, price: undefined });
    for (const listener of this.#unpricedListeners) listener(offering.pool);
  }

  #remove(claim: string, offering: Offering): void {
    this.#offeringOf.delete(claim);
    const pool = this.#pools.get(offering.pool);
    const known = pool?.get(keyOfOffering(offering));
    if (!pool || !known) return;
    known.count--;
    if (known.count === 0) pool.delete(keyOfOffering(offering));
    if (pool.size === 0) this.#pools.delete(offering.pool);
  }
}

function offeringOf({ metadata, status }: NodeClaim): Offering | undefined {
  const own = metadata.labels ?? {};
  const [pool, instanceType] = [own[labels.nodePool], own[labels.instanceType]];
  // Where there is a machine and no zone, its cloud has none: its offerings are in the zone ''.
  const zone = own[labels.zone] ?? (status?.providerID ? '' : undefined);
  const capacityType = own[labels.capacityType];
  if (!pool || !instanceType || zone === undefined || !capacityType) return undefined;
  return { pool, instanceType, zone, capacityType };
}

function keyOfOffering({ pool, instanceType, zone, capacityType }: Offering): string {
  return JSON.stringify([pool, instanceType, zone, capacityType]);
}

/** The cheapest price for the zone and capacity type, on sale or not; undefined where there is none. */
function priceOf(type: InstanceType | undefined, { zone, capacityType }: Offering): number | undefined {
  let price: number | undefined;
  for (const offering of type?.offerings ?? []) {
    const has = (key: string, value: string): boolean =>
      offering.requirements.some((one) => one.key === key && one.values?.includes(value) === true);
    if (!has(labels.zone, zone) || !has(labels.capacityType, capacityType)) continue;
    if (Number.isFinite(offering.price)) price = Math.min(price ?? offering.price, offering.price);
  }
  return price;
}
