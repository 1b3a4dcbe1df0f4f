// SPDX-License-Identifier: Apache-2.0
// One timer for the bookmarks of all watches; it runs only while somebody wants them.
import type { Clock, Timer } from '../../base/clock.ts';
import type { BookmarkClock } from './context.ts';

const everyMs = 60_000;

export class Bookmarks implements BookmarkClock {
  readonly #clock: Clock;
  readonly #subscribers = new Set<() => void>();
  #timer: Timer | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  subscribe(callback: () => void): () => void {
    this.#subscribers.add(callback);
    this.#arm();
    return () => {
      this.#subscribers.delete(callback);
      if (this.#subscribers.size === 0) this.stop();
    };
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #arm(): void {
    this.#timer ??= this.#clock.after(everyMs, () => {
      this.#timer = undefined;
      for (const subscriber of this.#subscribers) subscriber();
      if (this.#subscribers.size > 0) this.#arm();
    });
  }
}
