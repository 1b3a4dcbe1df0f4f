// SPDX-License-Identifier: Apache-2.0
// What a container has written: the end of it, in bounded memory, for any number of readers.

/** One line and when it was written. */
export interface LogLine {
  /** Milliseconds since the epoch. */
  readonly at: number;
  /** Without its newline. */
  readonly text: string;
}

/** Lines by number. Readers keep their own place, so that a slow one costs nothing: it misses what is gone by then. */
export interface LogSource {
  /** The number of the oldest line that is kept. */
  readonly first: number;
  /** The number that the next line will get. */
  readonly next: number;
  /** The container has ended: no further line will come. */
  readonly ended: boolean;
  /** The line of a number from `first` to `next - 1`. */
  line(number: number): LogLine;
  /** Calls back when there are more lines or the end has come; returns the undo. */
  onChange(listener: () => void): () => void;
}

export interface LogBufferOptions {
  /** In milliseconds since the epoch. */
  readonly now: () => number;
  /** About how much is kept; the newest line always is. */
  readonly maxBytes: number;
}

/** A log in memory. Old lines go when it grows beyond its size. */
export class LogBuffer implements LogSource {
  readonly #now: () => number;
  readonly #maxBytes: number;
  readonly #listeners = new Set<() => void>();
  /** Lines from `#start` on are kept; the part before it is cut off now and then. */
  #lines: LogLine[] = [];
  #start = 0;
  /** The number of `#lines[0]`. */
  #offset = 0;
  #bytes = 0;
  #partial = '';
  #ended = false;

  constructor({ now, maxBytes }: LogBufferOptions) {
    this.#now = now;
    this.#maxBytes = maxBytes;
  }

  get first(): number {
    return this.#offset + this.#start;
  }

  get next(): number {
    return this.#offset + this.#lines.length;
  }

  get ended(): boolean {
    return this.#ended;
  }

  line(number: number): LogLine {
    return this.#lines[number - this.#offset]!;
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Takes text as a process writes it: whole lines, several, or the beginning of one. */
  write(text: string): void {
    const parts = (this.#partial + text).split('\n');
    this.#partial = parts.pop()!;
    // A line without an end must not grow for ever either.
    if (this.#partial.length > this.#maxBytes) parts.push(...this.#takePartial());
    for (const part of parts) this.#push(part);
    if (parts.length > 0) this.#tell();
  }

  /** No more is written: readers that follow come to the end. */
  end(): void {
    if (this.#ended) return;
    for (const part of this.#takePartial()) this.#push(part);
    this.#ended = true;
    this.#tell();
  }

  #takePartial(): string[] {
    const partial = this.#partial;
    this.#partial = '';
    return partial === '' ? [] : [partial];
  }

  #push(text: string): void {
    this.#lines.push({ at: this.#now(), text });
    this.#bytes += text.length;
    while (this.#bytes > this.#maxBytes && this.#start < this.#lines.length - 1) {
      this.#bytes -= this.#lines[this.#start++]!.text.length;
    }
    // Cutting costs as much as is kept: only when half of it is waste.
    if (this.#start * 2 <= this.#lines.length) return;
    this.#lines = this.#lines.slice(this.#start);
    this.#offset += this.#start;
    this.#start = 0;
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}
