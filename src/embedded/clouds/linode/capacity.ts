// SPDX-License-Identifier: Apache-2.0
// How many machines of a plan a region has left: without limit unless somebody sets one.
import type { Plan } from './plans.ts';
import { badRequest } from './refusal.ts';
import { isRestricted, isSold, type Region } from './regions.ts';

interface Stock {
  left: number;
  /** The lists of availability do not say so yet. */
  hidden: boolean;
  /** Orders are taken, and machines never come. */
  stalled: boolean;
}

export const soldOut =
  'The Linode plan you chose is not currently available in the selected region. ' +
  'Please select another region or plan type, or contact Support for assistance.';

export class Capacity {
  readonly #stock = new Map<string, Stock>();

  /** From now on this many can be bought; what is deleted comes back. */
  set(plan: string, region: string, left: number): void {
    this.#of(plan, region).left = left;
  }

  /** The lists of availability go on saying that there is some. */
  hide(plan: string, region: string): void {
    this.#of(plan, region).hidden = true;
  }

  /** Node pools take orders, and their machines never come. */
  stall(plan: string, region: string): void {
    this.#of(plan, region).stalled = true;
  }

  /** As many as anybody wants, and at once. */
  clear(plan: string, region: string): void {
    this.#stock.delete(key(plan, region));
  }

  stalls(plan: string, region: string): boolean {
    return this.#stock.get(key(plan, region))?.stalled ?? false;
  }

  /** Takes `count` machines. Throws a Refusal (400) when there are not as many. */
  take(plan: Plan, region: Region, count: number, field?: string): void {
    const stock = this.#stock.get(key(plan.id, region.id));
    if (!isSold(plan, region) || (stock && stock.left < count)) throw badRequest(soldOut, field);
    if (stock) stock.left -= count;
  }

  giveBack(plan: string, region: string): void {
    const stock = this.#stock.get(key(plan, region));
    if (stock) stock.left++;
  }

  /** What the lists of availability say of a plan; undefined: they do not mention it. */
  announced(plan: Plan, region: Region): boolean | undefined {
    const stock = this.#stock.get(key(plan.id, region.id));
    if (!isRestricted(plan) && !stock) return undefined;
    return isSold(plan, region) && (!stock || stock.hidden || stock.left > 0);
  }

  #of(plan: string, region: string): Stock {
    const name = key(plan, region);
    let stock = this.#stock.get(name);
    if (!stock) {
      stock = { left: Number.POSITIVE_INFINITY, hidden: false, stalled: false };
      this.#stock.set(name, stock);
    }
    return stock;
  }
}

function key(plan: string, region: string): string {
  return `${plan} ${region}`;
}
