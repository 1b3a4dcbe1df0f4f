// SPDX-License-Identifier: Apache-2.0
// The story of a run. Every line goes into the hash; only the latest are kept.
import { createHash } from 'node:crypto';
import { formatTime } from '../kube/time.ts';
import type { Trace } from './contract.ts';

/** Kept for people: enough to see what led to a violation. */
const keptLines = 400;
const flushAt = 65_536;

export class RunTrace implements Trace {
  readonly #hash = createHash('sha256');
  #buffer = '';
  readonly #lines: (readonly [at: number, line: string])[] = [];
  #next = 0;

  add(at: number, line: string, quiet = false): void {
    this.#buffer += `${at} ${line}\n`;
    if (this.#buffer.length > flushAt) this.#flush();
    if (quiet) return;
    if (this.#lines.length < keptLines) this.#lines.push([at, line]);
    else this.#lines[this.#next] = [at, line];
    this.#next = (this.#next + 1) % keptLines;
  }

  hash(): string {
    this.#flush();
    return this.#hash.copy().digest('hex').slice(0, 32);
  }

  lines(): readonly string[] {
    const oldest = this.#lines.length < keptLines ? 0 : this.#next;
    return [...this.#lines.slice(oldest), ...this.#lines.slice(0, oldest)].map(
      ([at, line]) => `${formatTime(at).slice(11, 19)}.${String(Math.floor(at % 1000)).padStart(3, '0')} ${line}`,
    );
  }

  #flush(): void {
    this.#hash.update(this.#buffer);
    this.#buffer = '';
  }
}
