// SPDX-License-Identifier: Apache-2.0
// Capacity that is paid for already. A node holds every reservation it might be launched into, so that two nodes never count
// on the same one.
import { commonLabelSet } from '../api/labels.ts';
import { planted } from '../base/defects.ts';
import type { Catalog, View } from './catalog.ts';
import type { Problem } from './problem.ts';
import type { Template } from './templates.ts';

/** What a node would hold; 'wait' when reserved offerings suit but none can be had now, 'no' when nothing is left to buy. */
export type ReservationAnswer = readonly string[] | 'wait' | 'no';

export class Reservations {
  readonly #left = new Map<string, number>();
  /** Those that had anything to give when the pass began: only for them it makes sense to wait. */
  readonly #open = new Set<string>();

  constructor(problem: Problem, templates: readonly Template[]) {
    if (!templates.some(({ catalog }) => catalog.hasReserved)) return;
    for (const [nodePool, types] of Object.entries(problem.instanceTypes)) {
      const key = problem.labels?.[nodePool]?.reservationId;
      for (const { offerings } of types) {
        for (const offering of offerings ?? []) {
          const { requirements, reservationCapacity } = offering ?? {};
          if (reservationCapacity === undefined) continue;
          const id =
            requirements?.find((r) => (key === undefined ? !commonLabelSet.wellKnown.has(r.key) : r.key === key))
              ?.values?.[0] ?? '';
          this.#left.set(id, Math.min(this.#left.get(id) ?? Number.POSITIVE_INFINITY, reservationCapacity));
        }
      }
    }
    for (const [id, left] of this.#left) if (left > 0) this.#open.add(id);
  }

  /**
   * Which reservations a node that holds `held` would hold with these rows of its catalog. `enough` says whether rows are
   * choice enough: a node that holds nothing loses the types that only a reservation sells.
   */
  ask(
    catalog: Catalog,
    view: View,
    rows: readonly number[],
    held: readonly string[],
    strict: boolean,
    enough: (rows: readonly number[]) => boolean,
  ): ReservationAnswer {
    const hold = new Set<string>();
    const open: number[] = [];
    let suits = held.length > 0;
    for (const row of rows) {
      const offerings = catalog.offeringsOf(row);
      for (let n = 0; n < offerings.length; n++) {
        const { reservation } = offerings[n]!;
        if (!catalog.allowsOffering(view, row, n)) continue;
        if (reservation === undefined) {
          open.push(row);
          continue;
        }
        suits ||= this.#open.has(reservation);
        if (held.includes(reservation) || (this.#left.get(reservation) ?? 0) > 0) hold.add(reservation);
      }
    }
    if (hold.size > 0) return [...hold].sort();
    if (strict && suits) return 'wait';
    return open.length > 0 && enough(open) ? [] : 'no';
  }

  /** Whether a node could still hold it. */
  isLeft(reservation: string): boolean {
    return (this.#left.get(reservation) ?? 0) > 0;
  }

  /** Takes what is newly held and gives back what no longer is. */
  exchange(held: readonly string[], hold: readonly string[]): void {
    for (const id of planted('forgets-reservations') ? [] : hold)
      if (!held.includes(id)) this.#left.set(id, (this.#left.get(id) ?? 0) - 1);
    for (const id of held) if (!hold.includes(id)) this.#left.set(id, (this.#left.get(id) ?? 0) + 1);
  }
}
