// SPDX-License-Identifier: Apache-2.0
// What a scripted cloud sells, at what price, and what of it can be had just now. Prices move and machines sell out; what
// providers are shown is a picture of it that does not change in their hands.
import { capacityTypes, labels } from '../../api/labels.ts';
import type { Random } from '../../base/random.ts';
import type { InstanceType } from '../../cloud/provider.ts';
import type { Sells } from '../contract.ts';
import { chance, pick } from '../draw.ts';

/** The label by which a scripted cloud names a reservation. */
export const reservationLabel = 'cloud.simulation/reservation';

export interface MarketOptions {
  readonly zones?: Sells['zones'];
  readonly cpus?: readonly number[];
  /** Per CPU and hour, on demand. */
  readonly cpuPrice?: number;
  /** Machines that are paid for already: `count` of the type with so many CPUs, in the first zone. */
  readonly reserved?: { readonly cpus: number; readonly count: number };
}

interface Lot extends Place {
  readonly listPrice: number;
  price: number;
  /** How many shortages it is part of. */
  shortages: number;
  /** Machines left of a reservation. */
  left: number;
}

interface TypeShape {
  readonly name: string;
  readonly cpus: number;
  readonly memoryGib: number;
}

const families = [
  { name: 'compute', gibPerCpu: 2 },
  { name: 'standard', gibPerCpu: 4 },
  { name: 'memory', gibPerCpu: 8 },
] as const;
const defaultCpus = [2, 4, 8, 16] as const;
const spotShare = 0.4;

/** One offering as an order names it. */
export interface Place {
  readonly type: string;
  readonly zone: string;
  readonly capacityType: string;
  readonly reservation?: string;
}

export class Market {
  readonly #shapes: readonly TypeShape[];
  readonly #zones: readonly string[];
  readonly #lots = new Map<string, Lot>();
  /** How many machines each reservation has in all. */
  readonly reservations = new Map<string, number>();
  readonly sells: Sells;
  #shown: readonly InstanceType[] | undefined;

  constructor(options: MarketOptions = {}) {
    const { zones = ['test-zone-a', 'test-zone-b', 'test-zone-c'], cpus = defaultCpus, cpuPrice = 0.04 } = options;
    this.#zones = zones;
    this.sells = { zones, capacityTypes: [capacityTypes.onDemand, capacityTypes.spot] };
    this.#shapes = cpus.flatMap((count) =>
      families.map(({ name, gibPerCpu }) => ({ name: `${name}-${count}`, cpus: count, memoryGib: count * gibPerCpu })),
    );
    for (const shape of this.#shapes) {
      const listPrice = shape.cpus * cpuPrice + shape.memoryGib * cpuPrice * 0.1;
      for (const zone of zones) {
        this.#add({ type: shape.name, zone, capacityType: capacityTypes.onDemand }, listPrice);
        this.#add({ type: shape.name, zone, capacityType: capacityTypes.spot }, listPrice * spotShare);
      }
    }
    const { reserved } = options;
    const shape = reserved && this.#shapes.find((candidate) => candidate.cpus === reserved.cpus);
    if (shape) {
      const reservation = `reservation-${shape.name}`;
      const place = { type: shape.name, zone: zones[0]!, capacityType: capacityTypes.reserved, reservation };
      // Paid for already, but not for nothing: a price of 0 would be none.
      this.reservations.set(reservation, reserved.count);
      this.#add(place, shape.cpus * cpuPrice * 0.01, reserved.count);
    }
  }

  #add(place: Place, listPrice: number, left = Number.POSITIVE_INFINITY): void {
    this.#lots.set(keyOf(place), { ...place, listPrice, price: listPrice, shortages: 0, left });
  }

  get zones(): readonly string[] {
    return this.#zones;
  }

  /**
   * Everything that is sold, as the cloud's price list has it. Whether it is sold out is found out by ordering. The same
   * object until a price changes or a reservation is used.
   */
  types(): readonly InstanceType[] {
    this.#shown ??= this.#shapes.map((shape) => this.#typeOf(shape));
    return this.#shown;
  }

  /** Every place, in a fixed order. */
  places(): readonly Place[] {
    return [...this.#lots.values()];
  }

  /** What the place costs per hour now. */
  priceOf(place: Place): number {
    return this.#lots.get(keyOf(place))?.price ?? 0;
  }

  isAvailable(place: Place): boolean {
    const lot = this.#lots.get(keyOf(place));
    return lot !== undefined && lot.shortages === 0 && lot.left > 0;
  }

  /** A machine of a reservation is in use (-1) or free again (+1). */
  use(place: Place, change: 1 | -1): void {
    const lot = this.#lots.get(keyOf(place));
    if (!lot || !Number.isFinite(lot.left)) return;
    lot.left += change;
    this.#shown = undefined;
  }

  /** No more machines of these kinds, whatever is left out meaning all; until what it returns is called. */
  sellOut(of: Partial<Place>): () => void {
    const lots = [...this.#lots.values()].filter(
      (lot) =>
        (of.type ?? lot.type) === lot.type &&
        (of.zone ?? lot.zone) === lot.zone &&
        (of.capacityType ?? lot.capacityType) === lot.capacityType,
    );
    for (const lot of lots) lot.shortages++;
    return () => {
      for (const lot of lots) lot.shortages--;
    };
  }

  /** The spot price of a type in a zone moves, within half and twice what it is on average; now and then those of a whole zone do. */
  movePrices(random: Random): void {
    const spot = [...this.#lots.values()].filter(({ capacityType }) => capacityType === capacityTypes.spot);
    const { zone, type } = pick(random, spot)!;
    const isWide = chance(random, 0.1);
    const factor = 0.8 + random.next() * 0.45;
    for (const lot of spot) {
      if (lot.zone !== zone || !(isWide || lot.type === type)) continue;
      lot.price = Math.min(lot.listPrice * 2, Math.max(lot.listPrice / 2, lot.price * factor));
    }
    this.#shown = undefined;
  }

  #typeOf({ name, cpus, memoryGib }: TypeShape): InstanceType {
    const lots = [...this.#lots.values()].filter((lot) => lot.type === name);
    const all = (of: (lot: Lot) => string): string[] => [...new Set(lots.map(of))];
    const is = (key: string, ...values: string[]) => ({ key, operator: 'In', values }) as const;
    const reservations = lots.flatMap(({ reservation }) => (reservation ? [reservation] : []));
    return {
      name,
      requirements: [
        is(labels.instanceType, name),
        is(labels.arch, 'amd64'),
        is(labels.os, 'linux'),
        is(labels.zone, ...all(({ zone }) => zone)),
        is(labels.capacityType, ...all(({ capacityType }) => capacityType)),
        ...(reservations.length > 0 ? [is(reservationLabel, ...reservations)] : []),
      ],
      offerings: lots.map((lot) => ({
        price: lot.price,
        available: lot.left > 0,
        requirements: [
          is(labels.zone, lot.zone),
          is(labels.capacityType, lot.capacityType),
          ...(lot.reservation ? [is(reservationLabel, lot.reservation)] : []),
        ],
        ...(lot.reservation ? { reservationCapacity: lot.left } : {}),
      })),
      capacity: { cpu: String(cpus), memory: `${memoryGib}Gi`, pods: '110', 'ephemeral-storage': '50Gi' },
      overhead: { kubeReserved: { cpu: '100m', memory: '200Mi' } },
    };
  }
}

/** One word for a place. */
export function keyOf({ type, zone, capacityType }: Place): string {
  return `${type}/${zone}/${capacityType}`;
}
