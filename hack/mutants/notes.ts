// SPDX-License-Identifier: Apache-2.0
// What a run has found out so far, a line each: whatever ends it, what was noted is there.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';

export class Notes<T> {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  /** In the order in which they were noted; what was being written when the run ended is left out. */
  all(): T[] {
    if (!existsSync(this.#path)) return [];
    const lines = readFileSync(this.#path, 'utf8').split('\n');
    lines.pop();
    return lines.map((line) => JSON.parse(line) as T);
  }

  add(note: T): void {
    appendFileSync(this.#path, `${JSON.stringify(note)}\n`);
  }
}
