// SPDX-License-Identifier: Apache-2.0
// Writes that the cache has not shown yet. Until it has, a controller must not count its objects: it would make the
// missing ones a second time.
import type { Clock } from '../../base/clock.ts';

interface Expected {
  readonly created: Set<string>;
  readonly deleted: Set<string>;
  since: number;
}

/** A watch that is this late has lost something: stop waiting for it. */
const patienceMs = 5 * 60_000;

/** Per owner: the uids of objects created and deleted that the informer has yet to report. */
export class Expectations {
  readonly #clock: Clock;
  readonly #expected = new Map<string, Expected>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  expectCreated(owner: string, uid: string): void {
    this.#of(owner).created.add(uid);
  }

  expectDeleted(owner: string, uid: string): void {
    this.#of(owner).deleted.add(uid);
  }

  /** Whether the cache shows everything that was written for this owner. */
  satisfied(owner: string, has: (uid: string) => { deleting: boolean } | undefined): boolean {
    const expected = this.#expected.get(owner);
    if (!expected) return true;
    for (const uid of expected.created) if (has(uid)) expected.created.delete(uid);
    for (const uid of expected.deleted) if (has(uid)?.deleting ?? true) expected.deleted.delete(uid);
    const open = expected.created.size + expected.deleted.size;
    if (open > 0 && this.#clock.monotonic() - expected.since < patienceMs) return false;
    this.#expected.delete(owner);
    return true;
  }

  /** A creation was reported, perhaps of something that is gone again by now. */
  seen(owner: string, uid: string): void {
    this.#expected.get(owner)?.created.delete(uid);
  }

  forget(owner: string): void {
    this.#expected.delete(owner);
  }

  #of(owner: string): Expected {
    let expected = this.#expected.get(owner);
    if (!expected) {
      expected = { created: new Set(), deleted: new Set(), since: this.#clock.monotonic() };
      this.#expected.set(owner, expected);
    }
    return expected;
  }
}
