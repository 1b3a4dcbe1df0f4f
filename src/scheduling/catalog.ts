// SPDX-License-Identifier: Apache-2.0
// The instance types of one NodePool as columns. A row is a variant: an instance type as one of its groups of offerings
// provides it, with what daemonsets leave free. A view is what a set of requirements leaves of them.
import type { Axis } from './axis.ts';
import { FittingRows } from './fitting.ts';
import type { HostPort } from './host-ports.ts';
import { portsConflict } from './host-ports.ts';
import { absent, PairTable } from './pair-table.ts';
import type { RequirementSpace, SetId } from './requirement-space.ts';
import type { Requirement, Requirements } from './requirements.ts';
import { compatible, contentWithout } from './requirements.ts';

export interface CatalogOffering {
  readonly requirements: Requirements;
  readonly price: number;
  /** The reservation it belongs to; undefined when it is not reserved. */
  readonly reservation: string | undefined;
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
  /** The labels that the requirements name. */
  readonly keys: readonly string[];
  readonly capacity: ReadonlyMap<string, bigint>;
  readonly daemonOverhead: ReadonlyMap<string, bigint>;
  readonly daemonPorts: readonly HostPort[];
}

/** With how many orders of rows a new one is compared. */
const maxFittings = 8;

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

/** Rows that none of some others exceeds in every resource. */
interface Front {
  readonly rows: Int32Array;
  /** Equal for equal rows. */
  readonly id: number;
  /** By resource: the most that any has free. */
  readonly most: Float64Array;
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
  /** Which of them have room for what. Made when first asked for. */
  fitting: FittingRows | undefined;
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
  /** Whether a type has several rows, since its offerings differ in what they hold. */
  readonly hasVariants: boolean;
  readonly #space: RequirementSpace;
  readonly #given: ReadonlySet<string>;
  readonly #variants: readonly CatalogVariant[];
  readonly #keys: ReadonlySet<string>;
  /** By key: what each type asks of it; undefined where it names no such label. Made when first asked for. */
  readonly #columns = new Map<string, (Requirement | undefined)[]>();
  readonly #offeringKeys = new Set<string>();
  readonly #offeringSets: Requirements[] = [];
  /** By row: where its offerings begin among all. */
  readonly #firstOffering: Int32Array;
  /** By offering: its requirements' place in `#offeringSets`, and its price. */
  readonly #setOf: Int32Array;
  readonly #priceOf: Float64Array;
  readonly #sizes = new Map<string, Float64Array>();
  /** By resource: the rows, largest type first. */
  readonly #bySize = new Map<string, Int32Array>();
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
    const count = variants.length;
    this.typeOf = new Int32Array(count);
    this.free = new Float64Array(count * axis.size);
    this.#dead = new Uint8Array(count);
    this.#firstOffering = new Int32Array(count + 1);
    for (let row = 0; row < count; row++)
      this.#firstOffering[row + 1] = this.#firstOffering[row]! + variants[row]!.offerings.length;
    const all = this.#firstOffering[count]!;
    this.#setOf = new Int32Array(all);
    this.#priceOf = new Float64Array(all);
    const [first, setOf, priceOf, sets] = [this.#firstOffering, this.#setOf, this.#priceOf, this.#offeringSets];
    const setIds = new Map<Requirements, number>();
    let hasReserved = false;
    let hasVariants = false;
    for (let row = 0, at = 0; row < count; row++) {
      const { type, free, offerings } = variants[row]!;
      this.typeOf[row] = type;
      // The rows of a type follow each other.
      if (row > 0 && this.typeOf[row - 1] === type) hasVariants = true;
      if (this.#fillRow(axis, row, free)) this.#dead[row] = 1;
      const before = row > 0 ? at - first[row - 1]! : 0;
      for (let i = 0; i < offerings.length; i++, at++) {
        const { requirements, price, reservation } = offerings[i]!;
        // Offerings that are written alike share their requirements: most are known by identity, and follow as in the row before.
        const likely = setOf[at - before]!;
        let set = sets[likely] === requirements ? likely : setIds.get(requirements);
        if (set === undefined) {
          set = setIds.size;
          setIds.set(requirements, set);
          sets.push(requirements);
        }
        setOf[at] = set;
        priceOf[at] = price;
        if (reservation !== undefined) hasReserved = true;
      }
    }
    this.hasReserved = hasReserved;
    this.hasVariants = hasVariants;
    for (const set of this.#offeringSets) for (const key of set.keys()) this.#offeringKeys.add(key);
    const overheads = new Set<ReadonlyMap<string, bigint>>();
    const keys = new Set<string>();
    let before: readonly string[] | undefined;
    for (let type = 0; type < types.length; type++) {
      const { keys: own, daemonOverhead } = types[type]!;
      overheads.add(daemonOverhead);
      // Types that name the same labels share the list of them.
      if (own === before) continue;
      for (const key of own) keys.add(key);
      before = own;
    }
    for (const key of this.#offeringKeys) keys.add(key);
    this.#overheads = overheads;
    this.#keys = keys;
  }

  #column(key: string): readonly (Requirement | undefined)[] {
    let column = this.#columns.get(key);
    if (!column) {
      const { types } = this;
      column = [];
      for (let type = 0; type < types.length; type++) column.push(types[type]!.requirements.get(key));
      this.#columns.set(key, column);
    }
    return column;
  }

  /** Writes what a row has free; says whether that is less than nothing of anything. */
  #fillRow(axis: Axis, row: number, amounts: ReadonlyMap<string, bigint>): boolean {
    const start = row * axis.size;
    const known = axis.fillAvailable(amounts, this.free, start);
    for (let at = start; at < start + axis.size; at++) if (this.free[at]! < 0) return true;
    // What nobody requests can be overdrawn as well.
    if (known < amounts.size) for (const nano of amounts.values()) if (nano < 0n) return true;
    return false;
  }

  /** Every value of a label that some type or offering names. */
  valuesOf(key: string): Set<string> {
    const values = new Set<string>();
    const seen = new Set<Requirement>();
    const add = (own: Requirement | undefined): void => {
      if (!own || own.complement || seen.has(own)) return;
      seen.add(own);
      for (const value of own.values) values.add(value);
    };
    for (const own of this.#column(key)) add(own);
    for (const requirements of this.#offeringSets) add(requirements.get(key));
    return values;
  }

  /** The different daemon overheads of some types. */
  overheadsOf(types: Int32Array): Iterable<ReadonlyMap<string, bigint>> {
    if (this.#overheads.size === 1) return this.#overheads;
    return new Set(Array.from(types, (type) => this.types[type]!.daemonOverhead));
  }

  /** The keys that tell types or offerings apart. */
  get keys(): ReadonlySet<string> {
    return this.#keys;
  }

  /** By type: how much of a resource it has, to the nearest double: only to compare. */
  sizesOf(resource: string): Float64Array {
    let sizes = this.#sizes.get(resource);
    if (!sizes) {
      sizes = new Float64Array(this.types.length);
      for (let type = 0; type < sizes.length; type++)
        sizes[type] = Number(this.types[type]!.capacity.get(resource) ?? 0n);
      this.#sizes.set(resource, sizes);
    }
    return sizes;
  }

  /** The row of a view whose type has most of a resource, among those with room for `total`; -1 when none has. */
  largestFitting({ has }: View, resource: string, total: Float64Array): number {
    let order = this.#bySize.get(resource);
    if (!order) {
      const sizes = this.sizesOf(resource);
      const { typeOf } = this;
      const last = typeOf.length - 1;
      order = new Int32Array(typeOf.length);
      // Types are mostly listed from small to large.
      let sorted = true;
      for (let i = 0; i <= last; i++) {
        order[i] = last - i;
        if (i > 0 && sizes[typeOf[i - 1]!]! > sizes[typeOf[i]!]!) sorted = false;
      }
      if (!sorted) order.sort((a, b) => sizes[typeOf[b]!]! - sizes[typeOf[a]!]! || b - a);
      this.#bySize.set(resource, order);
    }
    for (let i = 0; i < order.length; i++) if (has[order[i]!] === 1 && this.fitsRow(order[i]!, total)) return order[i]!;
    return -1;
  }

  /** The most of a resource that any type has, in nano units. */
  largestOf(resource: string): bigint {
    const sizes = this.sizesOf(resource);
    let most = 0;
    for (let type = 1; type < sizes.length; type++) if (sizes[type]! > sizes[most]!) most = type;
    let largest = 0n;
    for (let type = 0; type < sizes.length; type++) {
      // Doubles that are equal may stand for amounts that are not.
      if (sizes[type]! < sizes[most]!) continue;
      const nano = this.types[type]!.capacity.get(resource) ?? 0n;
      if (nano > largest) largest = nano;
    }
    return largest;
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
    return view.offeringAllowed[this.#setOf[this.#firstOffering[row]! + n]!] === 1;
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
    const { typeOf } = this;
    const [first, setOf, priceOf] = [this.#firstOffering, this.#setOf, this.#priceOf];
    const has = new Uint8Array(typeOf.length);
    const rows = new Int32Array(typeOf.length);
    let count = 0;
    for (let row = 0; row < has.length; row++) {
      if (typeOk[typeOf[row]!] === 0 || this.#dead[row] === 1) continue;
      const end = first[row + 1]!;
      for (let i = first[row]!; i < end; i++) {
        if (offeringAllowed[setOf[i]!] === 0 || (most && priceOf[i]! > most[row]!)) continue;
        has[row] = 1;
        rows[count++] = row;
        break;
      }
    }
    const isWhole = count === rows.length;
    const all = isWhole ? rows : rows.slice(0, count);
    // Most sets leave every row, and only some of their offerings.
    const { rows: front, id, most: largest } = isWhole ? (this.#wholeFront ??= this.#front(all)) : this.#front(all);
    return {
      rows: all,
      has,
      front,
      frontId: id,
      most: largest,
      offeringAllowed,
      byPrice: undefined,
      fitting: undefined,
    };
  }

  #wholeFront: Front | undefined;

  #front(all: Int32Array): Front {
    const rows = this.#frontOf(all);
    const text = rows.join();
    let id = this.#fronts.get(text);
    if (id === undefined) {
      id = this.#fronts.size;
      this.#fronts.set(text, id);
    }
    return { rows, id, most: this.#mostOf(rows) };
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
      const column = this.#column(requirement.key);
      const absentOk = this.#maybeAbsent(requirement) ? 1 : 0;
      const content = contentWithout(requirement);
      const known = new Map<Requirement, number>();
      matching = new Uint8Array(this.types.length);
      for (let type = 0; type < matching.length; type++) {
        const own = column[type];
        if (!own) {
          matching[type] = absentOk;
          continue;
        }
        let bit = known.get(own);
        if (bit === undefined) {
          bit = own.intersects(requirement) || (content && contentWithout(own)) ? 1 : 0;
          known.set(own, bit);
        }
        matching[type] = bit;
      }
      this.#matching.set(signature, matching);
    }
    return matching;
  }

  /** The largest first, without what it covers; then the largest of the rest, and so on. */
  #frontOf(rows: Int32Array): Int32Array {
    const { width, free } = this;
    const most = this.#mostOf(rows);
    const left = rows.slice();
    const score = new Float64Array(rows.length);
    for (let i = 0; i < rows.length; i++) {
      const base = rows[i]! * width;
      let sum = 0;
      for (let r = 0; r < width; r++) if (most[r]! > 0) sum += free[base + r]! / most[r]!;
      score[i] = sum;
    }
    const front: number[] = [];
    for (let count = left.length; count > 0; ) {
      let best = 0;
      for (let i = 1; i < count; i++) if (score[i]! > score[best]!) best = i;
      const largest = left[best]!;
      front.push(largest);
      let kept = 0;
      for (let i = 0; i < count; i++) {
        if (this.#covers(largest, left[i]!)) continue;
        left[kept] = left[i]!;
        score[kept++] = score[i]!;
      }
      count = kept;
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
    for (let i = 0; i < rows.length; i++)
      for (let r = 0, at = rows[i]! * width; r < width; r++, at++) if (free[at]! > most[r]!) most[r] = free[at]!;
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
    view.byPrice ??= this.priceRows(view, this.hasReserved ? isUnreserved : undefined);
    return view.byPrice;
  }

  /** Which rows of `byPrice` have room for what. */
  fittingRows(view: View): FittingRows {
    view.fitting ??= this.#sameFitting(this.byPrice(view));
    return view.fitting;
  }

  readonly #fittings: { readonly rows: Int32Array; readonly fitting: FittingRows }[] = [];

  /** Views of different zones often have the same rows in the same order, if at other prices. */
  #sameFitting(priced: PricedRows): FittingRows {
    const { rows } = priced;
    for (const known of this.#fittings) if (areEqual(known.rows, rows)) return known.fitting;
    const fitting = new FittingRows(this, priced);
    if (this.#fittings.length < maxFittings) this.#fittings.push({ rows, fitting });
    return fitting;
  }

  /** The price of the cheapest launch with room for `total` that no reservation pays; Infinity when there is none. */
  priceOf(view: View, total: Float64Array): number {
    const { rows, prices } = this.byPrice(view);
    for (let i = 0; i < rows.length; i++) if (this.fitsRow(rows[i]!, total)) return prices[i]!;
    return Number.POSITIVE_INFINITY;
  }

  /** The price of the cheapest launch with room for `total`, among the offerings that `counts`. */
  leastPrice(view: View, total: Float64Array, counts: (offering: CatalogOffering) => boolean): number {
    let least = Number.POSITIVE_INFINITY;
    for (const row of view.rows) {
      const start = this.#firstOffering[row]!;
      for (let i = start; i < this.#firstOffering[row + 1]!; i++) {
        const price = this.#priceOf[i]!;
        if (price >= least || view.offeringAllowed[this.#setOf[i]!] === 0) continue;
        if (counts(this.#variants[row]!.offerings[i - start]!) && this.fitsRow(row, total)) least = price;
      }
    }
    return least;
  }

  /** Like `byPrice`, counting only the offerings that `counts` (all when undefined); rows without any are left out. */
  priceRows(view: View, counts: ((offering: CatalogOffering) => boolean) | undefined): PricedRows {
    const [first, setOf, priceOf] = [this.#firstOffering, this.#setOf, this.#priceOf];
    const { offeringAllowed, has } = view;
    const cheapest = new Float64Array(has.length);
    const rows = new Int32Array(view.rows.length);
    let count = 0;
    // Rows in their usual order of price: what is left is nearly sorted.
    const order = this.#usualOrder();
    for (let at = 0; at < order.length; at++) {
      const row = order[at]!;
      if (has[row] === 0) continue;
      const start = first[row]!;
      const end = first[row + 1]!;
      let best = Number.POSITIVE_INFINITY;
      for (let i = start; i < end; i++) {
        if (priceOf[i]! >= best || offeringAllowed[setOf[i]!] === 0) continue;
        if (counts === undefined || counts(this.#variants[row]!.offerings[i - start]!)) best = priceOf[i]!;
      }
      if (best === Number.POSITIVE_INFINITY) continue;
      cheapest[row] = best;
      rows[count++] = row;
    }
    const found = count === rows.length ? rows : rows.slice(0, count);
    this.#sortByPrice(found, cheapest);
    const prices = new Float64Array(count);
    for (let i = 0; i < count; i++) prices[i] = cheapest[found[i]!]!;
    return { rows: found, prices };
  }

  /** Sorts rows by price, then name. They mostly are sorted already. */
  #sortByPrice(rows: Int32Array, price: Float64Array): void {
    let sorted = true;
    for (let i = 1; sorted && i < rows.length; i++) sorted = price[rows[i - 1]!]! < price[rows[i]!]!;
    if (sorted) return;
    const rank = this.#ranksByName();
    const compare = (a: number, b: number): number => price[a]! - price[b]! || rank[a]! - rank[b]! || a - b;
    if (!isSorted(rows, compare)) rows.sort(compare);
  }

  #usual: Int32Array | undefined;
  #nameRank: Int32Array | undefined;

  /** All rows by the price of their cheapest offering, then by name. */
  #usualOrder(): Int32Array {
    if (this.#usual) return this.#usual;
    const [first, priceOf] = [this.#firstOffering, this.#priceOf];
    const count = this.typeOf.length;
    const least = new Float64Array(count);
    const order = new Int32Array(count);
    for (let row = 0; row < count; row++) {
      const end = first[row + 1]!;
      let best = Number.POSITIVE_INFINITY;
      for (let i = first[row]!; i < end; i++) if (priceOf[i]! < best) best = priceOf[i]!;
      least[row] = best;
      order[row] = row;
    }
    this.#sortByPrice(order, least);
    this.#usual = order;
    return order;
  }

  /** By row: the place of its type's name among all. Only equal prices ask for it. */
  #ranksByName(): Int32Array {
    if (this.#nameRank) return this.#nameRank;
    const { types, typeOf } = this;
    // Without a function of ours V8 compares strings natively, by code units as we do.
    const names = types.map(({ name }) => name).sort();
    const rankOf = new Map<string, number>();
    for (let i = 0; i < names.length; i++) rankOf.set(names[i]!, i);
    const rank = new Int32Array(typeOf.length);
    for (let row = 0; row < rank.length; row++) rank[row] = rankOf.get(types[typeOf[row]!]!.name)!;
    this.#nameRank = rank;
    return rank;
  }

  /** Rows of the view with room for `total`, ascending. */
  fitting(view: View, total: Float64Array): number[] {
    const found: number[] = [];
    for (const row of view.rows) if (this.fitsRow(row, total)) found.push(row);
    return found;
  }
}

function areEqual(a: Int32Array, b: Int32Array): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

function isSorted(rows: Int32Array, compare: (a: number, b: number) => number): boolean {
  for (let i = 1; i < rows.length; i++) if (compare(rows[i - 1]!, rows[i]!) > 0) return false;
  return true;
}

function isUnreserved({ reservation }: CatalogOffering): boolean {
  return reservation === undefined;
}
