// SPDX-License-Identifier: Apache-2.0
// The instance types of one NodePool as columns. A row is a variant: an instance type as one of its groups of offerings
// provides it, with what daemonsets leave free. A view is what a set of requirements leaves of them.
import { compareStrings } from '../base/order.ts';
import type { Axis } from './axis.ts';
import type { HostPort } from './host-ports.ts';
import { portsConflict } from './host-ports.ts';
import { absent, PairTable } from './pair-table.ts';
import type { RequirementSpace, SetId } from './requirement-space.ts';
import type { Requirement, Requirements } from './requirements.ts';
import { compatible, contentWithout } from './requirements.ts';

export interface CatalogOffering {
  readonly requirements: Requirements;
  readonly price: number;
  /** Set on reserved offerings. */
  readonly reservation?: string;
}

export interface CatalogVariant {
  readonly type: number;
  /** Allocatable minus daemon overhead; negative where daemons do not fit. */
  readonly free: ReadonlyMap<string, bigint>;
  readonly offerings: readonly CatalogOffering[];
}

export interface CatalogType {
  readonly name: string;
  readonly requirements: Requirements;
  readonly capacity: ReadonlyMap<string, bigint>;
  readonly daemonOverhead: ReadonlyMap<string, bigint>;
  readonly daemonPorts: readonly HostPort[];
}

/** A mask that was made for no row in particular. */
export const noRow = -1;

/** The mask that leaves out no type. */
export const allTypes = 0;

/** What narrows a catalog beside requirements. */
interface Mask {
  /** Undefined: all types. */
  readonly keep: Uint8Array | undefined;
  /** By row: what it may cost at most. */
  readonly prices: Float64Array | undefined;
  /** The row that a node is meant to become. */
  readonly row: number;
  /** The same types without regard to prices. */
  readonly plain: number;
}

/** What a set of requirements (and a mask) leaves of a catalog. */
export interface View {
  /** Rows, ascending. */
  readonly rows: Int32Array;
  /** By row: 1 when the view has it. */
  readonly has: Uint8Array;
  /** Rows that no other row of the view exceeds in every resource: enough to know whether anything fits. */
  readonly front: Int32Array;
  /** Equal for views with the same front. */
  readonly frontId: number;
  /** By resource: the most that any row has free. */
  readonly most: Float64Array;
  /** By offering set of the catalog: 1 when the requirements allow it. */
  readonly offeringAllowed: Uint8Array;
  /** `rows` with the cheapest launch first, and the price of each. Made when first asked for. */
  byPrice: PricedRows | undefined;
}

export interface PricedRows {
  readonly rows: Int32Array;
  readonly prices: Float64Array;
}

export class Catalog {
  readonly types: readonly CatalogType[];
  readonly typeOf: Int32Array;
  /** Free units: `free[row * axis.size + resource]`. */
  readonly free: Float64Array;
  readonly width: number;
  readonly hasReserved: boolean;
  readonly #space: RequirementSpace;
  readonly #given: ReadonlySet<string>;
  readonly #variants: readonly CatalogVariant[];
  readonly #keys: ReadonlySet<string>;
  readonly #offeringKeys: ReadonlySet<string>;
  readonly #offeringSets: Requirements[] = [];
  /** By row, the offering sets of its offerings, and their prices. */
  readonly #setsOfRow: Int32Array[];
  readonly #pricesOfRow: Float64Array[];
  readonly #matching = new Map<string, Uint8Array>();
  readonly #views = new Map<string, View>();
  readonly #viewOf = new PairTable();
  readonly #allViews: View[] = [];
  readonly #fronts = new Map<string, number>();
  readonly #masks: Mask[] = [{ keep: undefined, prices: undefined, row: noRow, plain: allTypes }];
  readonly #maskIds = new Map<string, number>();
  /** Rows with a negative free resource can never be used. */
  readonly #dead: Uint8Array;
  readonly #overheads: ReadonlySet<ReadonlyMap<string, bigint>>;

  /** `given` are the labels that the pool gives every node. */
  constructor(
    space: RequirementSpace,
    axis: Axis,
    types: readonly CatalogType[],
    variants: readonly CatalogVariant[],
    given: ReadonlySet<string>,
  ) {
    this.#space = space;
    this.#given = given;
    this.types = types;
    this.#variants = variants;
    this.width = axis.size;
    this.typeOf = Int32Array.from(variants, ({ type }) => type);
    this.free = new Float64Array(variants.length * axis.size);
    this.#dead = new Uint8Array(variants.length);
    for (const [row, { free }] of variants.entries()) {
      this.free.set(axis.available(free), row * axis.size);
      for (const nano of free.values()) if (nano < 0n) this.#dead[row] = 1;
    }
    const keys = new Set<string>();
    const offeringKeys = new Set<string>();
    const setIds = new Map<Requirements, number>();
    for (const { requirements } of types) for (const key of requirements.keys()) keys.add(key);
    this.#setsOfRow = variants.map(({ offerings }) =>
      Int32Array.from(offerings, ({ requirements }) => this.#offeringSet(requirements, setIds)),
    );
    for (const set of this.#offeringSets) for (const key of set.keys()) offeringKeys.add(key);
    for (const key of offeringKeys) keys.add(key);
    this.#pricesOfRow = variants.map(({ offerings }) => Float64Array.from(offerings, ({ price }) => price));
    this.#overheads = new Set(types.map(({ daemonOverhead }) => daemonOverhead));
    this.#keys = keys;
    this.#offeringKeys = offeringKeys;
    this.hasReserved = variants.some(({ offerings }) => offerings.some(({ reservation }) => reservation !== undefined));
  }

  // Offerings that are written alike share their requirements: most are known by identity.
  #offeringSet(requirements: Requirements, ids: Map<Requirements, number>): number {
    let id = ids.get(requirements);
    if (id === undefined) {
      id = this.#offeringSets.length;
      ids.set(requirements, id);
      this.#offeringSets.push(requirements);
    }
    return id;
  }

  /** Every value of a label that some type or offering names. */
  valuesOf(key: string): Set<string> {
    const values = new Set<string>();
    const seen = new Set<Requirement>();
    const add = (requirements: Requirements): void => {
      const own = requirements.get(key);
      if (!own || own.complement || seen.has(own)) return;
      seen.add(own);
      for (const value of own.values) values.add(value);
    };
    for (const { requirements } of this.types) add(requirements);
    for (const requirements of this.#offeringSets) add(requirements);
    return values;
  }

  /** The different daemon overheads of some types. */
  overheadsOf(types: readonly number[]): Iterable<ReadonlyMap<string, bigint>> {
    if (this.#overheads.size === 1) return this.#overheads;
    return new Set(types.map((type) => this.types[type]!.daemonOverhead));
  }

  /** The keys that tell types or offerings apart. */
  get keys(): ReadonlySet<string> {
    return this.#keys;
  }

  /** What a row has free, exactly. */
  freeOf(row: number): ReadonlyMap<string, bigint> {
    return this.#variants[row]!.free;
  }

  offeringsOf(row: number): readonly CatalogOffering[] {
    return this.#variants[row]!.offerings;
  }

  /** Whether a view allows the `n`th offering of a row. */
  allowsOffering(view: View, row: number, n: number): boolean {
    return view.offeringAllowed[this.#setsOfRow[row]![n]!] === 1;
  }

  /** The id of a set of types; `keep[type]` is 1 for those in it. */
  mask(keep: Uint8Array): number {
    if (keep.every((bit) => bit === 1)) return allTypes;
    return this.#maskOf(keep.join(''), () => ({ keep, prices: undefined, row: noRow, plain: this.#masks.length }));
  }

  /** A mask under which no row may cost more than `prices[row]`, made for `row`. Equal `text` means equal masks. */
  priceMask(text: string, row: number, prices: () => Float64Array): number {
    return this.#maskOf(`$${text}`, () => ({ keep: undefined, prices: prices(), row, plain: allTypes }));
  }

  #maskOf(text: string, make: () => Mask): number {
    let id = this.#maskIds.get(text);
    if (id === undefined) {
      const made = make();
      id = this.#masks.length;
      this.#masks.push(made);
      this.#maskIds.set(text, id);
    }
    return id;
  }

  /** What both masks leave. */
  bothMasks(a: number, b: number): number {
    if (a === b || b === allTypes) return a;
    if (a === allTypes) return b;
    const [left, right] = [this.#masks[a]!, this.#masks[b]!];
    if (left.keep && right.keep && !left.prices && !right.prices)
      return this.mask(left.keep.map((bit, i) => bit & right.keep![i]!));
    const plain: number = this.bothMasks(left.plain, right.plain);
    const priced = left.prices ? left : right;
    return this.#maskOf(`${a}&${b}`, () => ({
      keep: this.#masks[plain]!.keep,
      prices: priced.prices,
      row: priced.row,
      plain,
    }));
  }

  inMask(mask: number, type: number): boolean {
    return this.#masks[mask]!.keep?.[type] !== 0;
  }

  /** The row that nodes under a mask are meant to become; `noRow` when none. */
  rowOf(mask: number): number {
    return this.#masks[mask]!.row;
  }

  /** The mask without regard to prices. */
  plainMask(mask: number): number {
    return this.#masks[mask]!.plain;
  }

  /** Types whose daemons leave these ports free. */
  maskForPorts(ports: readonly HostPort[]): number {
    if (ports.length === 0) return allTypes;
    return this.mask(Uint8Array.from(this.types, ({ daemonPorts }) => (portsConflict(daemonPorts, ports) ? 0 : 1)));
  }

  /** What a requirement set leaves. */
  view(set: SetId, mask: number): View {
    let id = this.#viewOf.get(set, mask);
    if (id === absent) {
      id = this.#allViews.length;
      this.#allViews.push(this.#findView(this.#space.get(set), mask));
      this.#viewOf.add(set, mask, id);
    }
    return this.#allViews[id]!;
  }

  // Sets that differ only in keys which no type knows share a view.
  #findView(set: Requirements, mask: number): View {
    const parts: string[] = [];
    for (const requirement of set.values()) if (this.#matters(requirement)) parts.push(requirement.signature);
    parts.sort();
    const signature = `${mask}|${parts.join(';')}`;
    let view = this.#views.get(signature);
    if (!view) {
      view = this.#makeView(set, mask);
      this.#views.set(signature, view);
    }
    return view;
  }

  #makeView(set: Requirements, mask: number): View {
    const typeOk = new Uint8Array(this.types.length).fill(1);
    const { keep, prices: most } = this.#masks[mask]!;
    if (keep) typeOk.set(keep);
    for (const requirement of set.values()) {
      if (!this.#matters(requirement)) continue;
      const matching = this.#typesMatching(requirement);
      for (let i = 0; i < typeOk.length; i++) typeOk[i]! &= matching[i]!;
    }
    const offeringAllowed = Uint8Array.from(this.#offeringSets, (asked) =>
      compatible(set, asked, this.#offeringKeys) ? 1 : 0,
    );
    const has = new Uint8Array(this.typeOf.length);
    const rows: number[] = [];
    for (let row = 0; row < has.length; row++) {
      if (typeOk[this.typeOf[row]!] === 0 || this.#dead[row] === 1) continue;
      const sets = this.#setsOfRow[row]!;
      const prices = this.#pricesOfRow[row]!;
      for (let i = 0; i < sets.length; i++) {
        if (offeringAllowed[sets[i]!] === 0 || (most && prices[i]! > most[row]!)) continue;
        has[row] = 1;
        rows.push(row);
        break;
      }
    }
    const all = Int32Array.from(rows);
    const front = this.#frontOf(all);
    const frontText = front.join();
    let frontId = this.#fronts.get(frontText);
    if (frontId === undefined) {
      frontId = this.#fronts.size;
      this.#fronts.set(frontText, frontId);
    }
    return { rows: all, has, front, frontId, most: this.#mostOf(front), offeringAllowed, byPrice: undefined };
  }

  /** Whether a requirement tells types apart, or asks for a label that no node has. */
  #matters(requirement: Requirement): boolean {
    return this.#keys.has(requirement.key) || !this.#maybeAbsent(requirement);
  }

  /** Whether a type that does not name the label can do: nobody asks for it, or an offering or the pool gives it. */
  #maybeAbsent(requirement: Requirement): boolean {
    const { key } = requirement;
    return contentWithout(requirement) || this.#given.has(key) || this.#offeringKeys.has(key);
  }

  #typesMatching(requirement: Requirement): Uint8Array {
    const signature = requirement.signature;
    let matching = this.#matching.get(signature);
    if (!matching) {
      const known = new Map<string, number>();
      const absentOk = this.#maybeAbsent(requirement);
      matching = Uint8Array.from(this.types, ({ requirements }) => {
        const own = requirements.get(requirement.key);
        if (!own) return absentOk ? 1 : 0;
        const text = own.signature;
        let bit = known.get(text);
        if (bit === undefined) {
          const both = own.intersects(requirement) || (contentWithout(own) && contentWithout(requirement));
          bit = both ? 1 : 0;
          known.set(text, bit);
        }
        return bit;
      });
      this.#matching.set(signature, matching);
    }
    return matching;
  }

  #frontOf(rows: Int32Array): Int32Array {
    const { width, free } = this;
    const most = this.#mostOf(rows);
    const score = new Map<number, number>();
    for (const row of rows) {
      let sum = 0;
      for (let r = 0; r < width; r++) sum += most[r]! > 0 ? free[row * width + r]! / most[r]! : 0;
      score.set(row, sum);
    }
    // A row that another exceeds everywhere has the smaller score: larger first, each is compared with the front alone.
    const order = rows.toSorted((a, b) => score.get(b)! - score.get(a)! || a - b);
    const front: number[] = [];
    for (const row of order) {
      if (!front.some((other) => this.#covers(other, row))) front.push(row);
    }
    return Int32Array.from(front);
  }

  #covers(a: number, b: number): boolean {
    const { width, free } = this;
    for (let r = 0; r < width; r++) if (free[a * width + r]! < free[b * width + r]!) return false;
    return true;
  }

  #mostOf(rows: Int32Array): Float64Array {
    const { width, free } = this;
    const most = new Float64Array(width).fill(-1);
    for (const row of rows) for (let r = 0; r < width; r++) most[r] = Math.max(most[r]!, free[row * width + r]!);
    return most;
  }

  /** Whether a row has room for `total`. */
  fitsRow(row: number, total: Float64Array): boolean {
    const base = row * this.width;
    for (let r = 0; r < this.width; r++) if (this.free[base + r]! < total[r]!) return false;
    return true;
  }

  /** A row of the view with room for `total + more`, `hint` first; -1 when none has. */
  fit(view: View, total: Float64Array, more: Float64Array, hint: number): number {
    if (hint >= 0 && view.has[hint] === 1 && this.#fitsSum(hint, total, more)) return hint;
    const { most, front } = view;
    for (let r = 0; r < this.width; r++) if (most[r]! < total[r]! + more[r]!) return -1;
    for (let i = 0; i < front.length; i++) if (this.#fitsSum(front[i]!, total, more)) return front[i]!;
    return -1;
  }

  #fitsSum(row: number, total: Float64Array, more: Float64Array): boolean {
    const { free, width } = this;
    const base = row * width;
    for (let r = 0; r < width; r++) if (free[base + r]! < total[r]! + more[r]!) return false;
    return true;
  }

  /** The rows of a view, cheapest launch first; ties by name. Reserved offerings do not count: a node must hold those. */
  byPrice(view: View): PricedRows {
    view.byPrice ??= this.priceRows(view, (offering) => offering.reservation === undefined);
    return view.byPrice;
  }

  /** The price of the cheapest launch with room for `total`, among the offerings that `counts`. */
  leastPrice(view: View, total: Float64Array, counts: (offering: CatalogOffering) => boolean): number {
    let least = Number.POSITIVE_INFINITY;
    for (const row of view.rows) {
      const prices = this.#pricesOfRow[row]!;
      const sets = this.#setsOfRow[row]!;
      for (let i = 0; i < sets.length; i++) {
        if (prices[i]! >= least || view.offeringAllowed[sets[i]!] === 0) continue;
        if (counts(this.#variants[row]!.offerings[i]!) && this.fitsRow(row, total)) least = prices[i]!;
      }
    }
    return least;
  }

  /** Like `byPrice`, counting only the offerings that `counts`; rows without any are left out. */
  priceRows(view: View, counts: (offering: CatalogOffering) => boolean): PricedRows {
    const cheapest = new Map<number, number>();
    for (const row of view.rows) {
      const sets = this.#setsOfRow[row]!;
      const prices = this.#pricesOfRow[row]!;
      const offerings = this.#variants[row]!.offerings;
      let best = Number.POSITIVE_INFINITY;
      for (let i = 0; i < sets.length; i++)
        if (view.offeringAllowed[sets[i]!] === 1 && prices[i]! < best && counts(offerings[i]!)) best = prices[i]!;
      if (best < Number.POSITIVE_INFINITY) cheapest.set(row, best);
    }
    const name = (row: number): string => this.types[this.typeOf[row]!]!.name;
    const rows = Int32Array.from(cheapest.keys()).sort(
      (a, b) => cheapest.get(a)! - cheapest.get(b)! || compareStrings(name(a), name(b)) || a - b,
    );
    return { rows, prices: Float64Array.from(rows, (row) => cheapest.get(row)!) };
  }

  /** Rows of the view with room for `total`, ascending. */
  fitting(view: View, total: Float64Array): number[] {
    const found: number[] = [];
    for (const row of view.rows) if (this.fitsRow(row, total)) found.push(row);
    return found;
  }
}
