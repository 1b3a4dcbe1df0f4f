// SPDX-License-Identifier: Apache-2.0
// Places on machines that were bought for pods which had to leave another. Whoever owns such a pod makes a new one, under another
// name: the place is for that one. Without it each pass would plan the new pods anew, not as the machines were bought, and what
// fits together only one way would need a machine more.

interface Vacancy {
  readonly claim: string;
  readonly until: number;
}

/** By the UID of the pods' owner, in the order they became vacant. Times are monotonic. */
export class Vacancies {
  readonly #byOwner = new Map<string, Vacancy[]>();

  /** The pod of an owner is over that had a place on the NodeClaim. Without an owner nobody comes after it. */
  leave(owner: string | undefined, claim: string, now: number, until: number): void {
    if (owner === undefined) return;
    this.#forget(now);
    const vacancies = this.#byOwner.get(owner);
    if (vacancies) vacancies.push({ claim, until });
    else this.#byOwner.set(owner, [{ claim, until }]);
  }

  /** The NodeClaim on which a new pod of an owner has a place, if any. It is not vacant any more. */
  take(owner: string | undefined, now: number): string | undefined {
    if (owner === undefined || this.#byOwner.size === 0) return undefined;
    this.#forget(now);
    const vacancies = this.#byOwner.get(owner);
    const first = vacancies?.shift();
    if (vacancies?.length === 0) this.#byOwner.delete(owner);
    return first?.claim;
  }

  /** Nobody came. */
  #forget(now: number): void {
    for (const [owner, vacancies] of this.#byOwner) {
      const left = vacancies.filter(({ until }) => now < until);
      if (left.length === 0) this.#byOwner.delete(owner);
      else if (left.length < vacancies.length) this.#byOwner.set(owner, left);
    }
  }
}
