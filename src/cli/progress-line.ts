// SPDX-License-Identifier: Apache-2.0
// How far something is that takes longer than a moment: one line that changes on a terminal, a line now and then elsewhere. It goes
// to standard error, so that what a command prints stays what it is.
import type { Clock } from '../base/clock.ts';

interface Output {
  readonly isTTY?: boolean;
  write(text: string): unknown;
}

/** Nothing is said of what is over by then. */
const patienceMs = 2000;
const onTerminalMs = 200;
const elsewhereMs = 10_000;

export class ProgressLine {
  readonly #output: Output;
  readonly #clock: Clock;
  #next: number;
  #isShown = false;

  constructor(output: Output, clock: Clock) {
    this.#output = output;
    this.#clock = clock;
    this.#next = clock.monotonic() + patienceMs;
  }

  /** Shows a text, unless one was shown a moment ago. */
  tell(text: string): void {
    const now = this.#clock.monotonic();
    if (now < this.#next) return;
    const { isTTY } = this.#output;
    this.#next = now + (isTTY ? onTerminalMs : elsewhereMs);
    this.#output.write(isTTY ? `\r\u001b[2K${text}` : `${text}\n`);
    this.#isShown = true;
  }

  /** Takes the line away before something else is printed. */
  end(): void {
    if (this.#isShown && this.#output.isTTY) this.#output.write('\r\u001b[2K');
    this.#isShown = false;
  }
}
