// SPDX-License-Identifier: Apache-2.0
// Lists that lag behind: every version of every item, and what was true a while ago.
import type { Clock } from '../../../base/clock.ts';

interface Version {
  readonly at: number;
  /** Undefined: it was gone. */
  readonly view: object | undefined;
}

export class History {
  readonly #clock: Clock;
  readonly #lagMs: number;
  readonly #versions = new Map<number, Version[]>();

  constructor(clock: Clock, lagMs: number) {
    this.#clock = clock;
    this.#lagMs = lagMs;
  }

  /** Keeps what an item looks like now. */
  note(id: number, view: object | undefined): void {
    if (this.#lagMs <= 0) return;
    const versions = this.#versions.get(id) ?? [];
    versions.push({ at: this.#clock.monotonic(), view });
    // Only the last version before the lag, and what came after it, can still be asked for.
    const since = this.#clock.monotonic() - this.#lagMs;
    while (versions.length > 1 && versions[1]!.at <= since) versions.shift();
    this.#versions.set(id, versions);
  }

  /** The items as a list shows them: `current` without a lag. */
  list(current: () => readonly object[]): readonly object[] {
    if (this.#lagMs <= 0) return current();
    const since = this.#clock.monotonic() - this.#lagMs;
    const seen: object[] = [];
    for (const [id, versions] of this.#versions) {
      const last = versions.findLast(({ at }) => at <= since);
      if (last?.view) seen.push(last.view);
      else if (last && versions.length === 1) this.#versions.delete(id);
    }
    return seen;
  }
}
