// SPDX-License-Identifier: Apache-2.0
// A log as a client reads it: what is there, and with `follow` what comes, until the container ends or the client goes.
import type { LineStream } from '../rest/request.ts';
import type { LogLine, LogSource } from './log-buffer.ts';
import type { LogOptions } from './log-options.ts';

/** The lines that the options ask for, as one text. */
export function readLog(source: LogSource, options: LogOptions): string {
  const reader = new Reader(source, options);
  let text = '';
  for (let chunk = reader.take(); chunk !== ''; chunk = reader.take()) text += chunk;
  return text;
}

/** The lines that the options ask for, and those that follow. Ends with the log; `close` ends it sooner. */
export function followLog(source: LogSource, options: LogOptions): LineStream {
  const reader = new Reader(source, options);
  let closed = false;
  let wakeUp: (() => void) | undefined;
  const close = (): void => {
    closed = true;
    wakeUp?.();
  };
  async function* lines(): AsyncGenerator<Buffer> {
    const undo = source.onChange(() => wakeUp?.());
    try {
      while (!closed) {
        const chunk = reader.take();
        if (chunk !== '') yield Buffer.from(chunk);
        else if (source.ended || reader.isFull) return;
        else await new Promise<void>((resolve) => (wakeUp = resolve));
      }
    } finally {
      undo();
    }
  }
  return { lines, close };
}

/** Lines are handed out in pieces of about this size. */
const chunkSize = 64 * 1024;

/** One client's place in a log. */
class Reader {
  readonly #source: LogSource;
  readonly #options: LogOptions;
  #at: number;
  #left: number;

  constructor(source: LogSource, options: LogOptions) {
    this.#source = source;
    this.#options = options;
    const { tailLines } = options;
    this.#at = tailLines === undefined ? source.first : Math.max(source.first, source.next - tailLines);
    this.#left = options.limitBytes ?? Number.POSITIVE_INFINITY;
  }

  /** Has given all that it may. */
  get isFull(): boolean {
    return this.#left <= 0;
  }

  /** The next piece; '' when there is none now. */
  take(): string {
    let text = '';
    // What was dropped while nobody read is lost to this reader.
    this.#at = Math.max(this.#at, this.#source.first);
    while (this.#at < this.#source.next && text.length < chunkSize && !this.isFull) {
      const line = this.#source.line(this.#at++);
      if (line.at < this.#options.since) continue;
      text += this.#limited(`${this.#options.timestamps ? `${stampOf(line)} ` : ''}${line.text}\n`);
    }
    return text;
  }

  #limited(text: string): string {
    const size = Buffer.byteLength(text);
    const left = this.#left;
    this.#left -= size;
    return size <= left ? text : Buffer.from(text).subarray(0, left).toString();
  }
}

/** As the kubelet prints it: nine digits after the second. */
function stampOf({ at }: LogLine): string {
  return new Date(at).toISOString().replace('Z', '000000Z');
}
