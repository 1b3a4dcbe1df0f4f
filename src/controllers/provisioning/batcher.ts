// SPDX-License-Identifier: Apache-2.0
// Collects what happens at about the same time, so that pods that come together are planned together.
import type { Clock } from '../../base/clock.ts';

export interface BatcherOptions {
  readonly clock: Clock;
  /** The window ends when nothing new came for this long, */
  readonly idleMs: number;
  /** and at the latest after this long. */
  readonly maxMs: number;
  /** Whether more is about to come: then it does not end for want of news. */
  readonly isMoreComing?: () => boolean;
}

/** How long `wait` waits for the first trigger. */
const firstTriggerMs = 1000;
/** What was triggered this recently is no news: pods that wait are told every ten seconds. */
const newsMs = 30_000;

/**
 * Windows of triggers. The same element twice in one window counts once, and one of an earlier window opens another but does
 * not lengthen it: pods that came over ten seconds are told again over ten seconds, and would delay all that came after them.
 */
export class Batcher {
  readonly #options: BatcherOptions;
  readonly #elements = new Set<string>();
  /** When each was last triggered, the latest last. */
  readonly #told = new Map<string, number>();
  #isOpen = false;
  #onNew: (() => void) | undefined;
  #onTrigger: (() => void) | undefined;

  constructor(options: BatcherOptions) {
    this.#options = options;
  }

  /** Something to plan for, by UID. Opens a window, or lengthens the one that is open if it is news; between windows it waits for the next. */
  trigger(element: string): void {
    if (this.#elements.has(element)) return;
    this.#elements.add(element);
    const now = this.#options.clock.monotonic();
    const before = this.#told.get(element);
    this.#told.delete(element);
    this.#told.set(element, now);
    this.#onTrigger?.();
    if (!this.#isOpen || before === undefined || now - before > newsMs) this.#onNew?.();
  }

  /** Whether something waits for the next window, or for the one that is open to end. */
  get isTriggered(): boolean {
    return this.#elements.size > 0;
  }

  /** Calls `listener` whenever something was triggered: whoever serves the windows need not look for them. */
  onTrigger(listener: () => void): void {
    this.#onTrigger = listener;
  }

  /**
   * Waits for a window to open and to end. False when nothing was triggered within a second, or when the signal aborts
   * before.
   */
  async wait(signal: AbortSignal): Promise<boolean> {
    try {
      if (this.#elements.size === 0 && !(await this.#event([firstTriggerMs], signal))) return false;
      const { clock, idleMs, maxMs, isMoreComing } = this.#options;
      const end = clock.monotonic() + maxMs;
      this.#isOpen = true;
      while (!signal.aborted) {
        const isNew = await this.#event([idleMs, end - clock.monotonic()], signal);
        if (clock.monotonic() >= end || !(isNew || isMoreComing?.())) break;
      }
      return true;
    } finally {
      this.#isOpen = false;
      this.#elements.clear();
      this.#forget();
    }
  }

  #forget(): void {
    const oldest = this.#options.clock.monotonic() - newsMs;
    for (const [element, at] of this.#told) {
      if (at >= oldest) return;
      this.#told.delete(element);
    }
  }

  /** True when something new comes before all of the times are over and before the signal aborts. */
  #event(timesMs: readonly number[], signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const settle = (isNew: boolean): void => {
        timer.cancel();
        this.#onNew = undefined;
        signal.removeEventListener('abort', onAbort);
        resolve(isNew);
      };
      const onAbort = (): void => settle(false);
      const timer = this.#options.clock.after(Math.min(...timesMs), () => settle(false));
      signal.addEventListener('abort', onAbort, { once: true });
      this.#onNew = () => settle(true);
    });
  }
}
