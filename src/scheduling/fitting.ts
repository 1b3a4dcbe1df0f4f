// SPDX-License-Identifier: Apache-2.0
// Which rows have room for what a node holds, asked for thousands of nodes. Between two sizes that follow each other nothing
// changes, so few answers serve all nodes.
import type { Catalog, PricedRows } from './catalog.ts';

/** What has room, cheapest launch first. */
export interface Fitting {
  /** The place of the cheapest among the priced rows; -1 when nothing has room. */
  readonly first: number;
  /** The types, each once. */
  readonly types: Int32Array;
  readonly names: readonly string[];
}

const nothing: Fitting = { first: -1, types: new Int32Array(0), names: [] };

export class FittingRows {
  readonly #catalog: Catalog;
  readonly #rows: Int32Array;
  /** Where every row has all that a cheaper one has: what fits is the rest of the list, from the first on. */
  readonly #rest: { readonly all: Fitting; readonly from: (Fitting | undefined)[] } | undefined;
  /** By resource: what the rows have free, ascending. */
  readonly #sizes: Float64Array[] = [];
  readonly #known = new Map<number, Fitting>();
  /** Whether the steps of all resources together make one whole number. */
  readonly #isNumbered: boolean;

  constructor(catalog: Catalog, { rows }: PricedRows) {
    this.#catalog = catalog;
    this.#rows = rows;
    const { free, width, hasVariants } = catalog;
    this.#isNumbered = (rows.length + 1) ** width < Number.MAX_SAFE_INTEGER;
    if (rows.length > 0 && !hasVariants && isNested(catalog, rows)) {
      this.#rest = { all: this.#find(new Float64Array(width)), from: [] };
      return;
    }
    for (let r = 0; r < width; r++) {
      const sizes = new Float64Array(rows.length);
      for (let i = 0; i < sizes.length; i++) sizes[i] = free[rows[i]! * width + r]!;
      this.#sizes.push(sizes.sort());
    }
  }

  /** What has room for `total`. */
  of(total: Float64Array): Fitting {
    if (this.#rest) return this.#restFor(total);
    if (!this.#isNumbered) return this.#find(total);
    let number = 0;
    for (let r = 0; r < total.length; r++)
      number = number * (this.#rows.length + 1) + below(this.#sizes[r]!, total[r]!);
    let fitting = this.#known.get(number);
    if (!fitting) {
      fitting = this.#find(total);
      this.#known.set(number, fitting);
    }
    return fitting;
  }

  #restFor(total: Float64Array): Fitting {
    const { all, from } = this.#rest!;
    const rows = this.#rows;
    let low = 0;
    let high = rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.#catalog.fitsRow(rows[middle]!, total)) high = middle;
      else low = middle + 1;
    }
    if (low === rows.length) return nothing;
    return (from[low] ??= { first: low, types: all.types.subarray(low), names: all.names.slice(low) });
  }

  #find(total: Float64Array): Fitting {
    const { free, width, typeOf, hasVariants, types } = this.#catalog;
    const rows = this.#rows;
    const found = new Int32Array(rows.length);
    const names: string[] = [];
    const seen = hasVariants ? new Uint8Array(types.length) : undefined;
    let count = 0;
    let first = -1;
    next: for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!;
      for (let r = 0, at = row * width; r < width; r++, at++) if (free[at]! < total[r]!) continue next;
      if (first < 0) first = i;
      const type = typeOf[row]!;
      if (seen) {
        if (seen[type] === 1) continue;
        seen[type] = 1;
      }
      found[count++] = type;
      names.push(types[type]!.name);
    }
    return { first, types: found.slice(0, count), names };
  }
}

/** Whether every row has at least what the one before it has. */
function isNested({ free, width }: Catalog, rows: Int32Array): boolean {
  for (let i = 1; i < rows.length; i++) {
    const less = rows[i - 1]! * width;
    const more = rows[i]! * width;
    for (let r = 0; r < width; r++) if (free[more + r]! < free[less + r]!) return false;
  }
  return true;
}

/** How many of the ascending sizes are less than an amount. */
function below(sizes: Float64Array, amount: number): number {
  let low = 0;
  let high = sizes.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sizes[middle]! < amount) low = middle + 1;
    else high = middle;
  }
  return low;
}
