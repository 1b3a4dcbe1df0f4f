// SPDX-License-Identifier: Apache-2.0
// What was told lately and is not told again yet. Whoever goes over the whole cluster says the same about every node each
// time: nearly all that is asked here is answered with no, and has to cost next to nothing.
import type { Clock } from '../base/clock.ts';

/** What is asked about an event. */
export interface Telling {
  readonly reason: string;
  /** What makes it the same event again, beside the reason. */
  readonly values: readonly string[];
  readonly message: string;
  /** For how long the same event is not told again, whatever it says. */
  readonly dedupeMs: number;
  /** For how long the same words are not told again. */
  readonly repeatMs: number;
}

interface Told {
  /** Until then nothing more is told. */
  quietUntil: number;
  /** When all of it can be forgotten. */
  until: number;
  /** When which words may be told again, those told last at the end; undefined where words make no difference. */
  words: Map<string, number> | undefined;
}

/** Different words about one thing that are remembered: who says more may be heard again. */
const mostWords = 10;

/** Remembers at most `capacity` events; those told last are kept longest. */
export class EventMemory {
  readonly #clock: Clock;
  readonly #capacity: number;
  /** By reason and by values, those told last at the end. */
  readonly #byReason = new Map<string, Map<string, Told>>();
  readonly #reasons = new Map<string, string>();
  #size = 0;

  constructor(clock: Clock, capacity: number) {
    this.#clock = clock;
    this.#capacity = capacity;
  }

  /** Whether it may be told; if so, it counts as told. */
  isNews({ reason, values, message, dedupeMs, repeatMs }: Telling): boolean {
    const all = this.#ofReason(reason);
    // Mostly it is a UID, whose hash is known. No value holds a NUL: names cannot, and messages are ours.
    const key = values.length === 1 ? values[0]! : values.join('\0');
    const now = this.#clock.monotonic();
    const told = all.get(key);
    if (told && (told.quietUntil > now || (told.words?.get(message) ?? -1) > now)) return false;
    all.delete(key);
    const words = repeatMs > dedupeMs ? wordsWith(told?.words, message, now + repeatMs) : undefined;
    all.set(key, { quietUntil: now + dedupeMs, until: now + Math.max(dedupeMs, repeatMs), words });
    if (!told && ++this.#size > this.#capacity) this.#forget(now);
    return true;
  }

  /** Reasons are the same whatever their case. There are few, and each is told often. */
  #ofReason(told: string): Map<string, Told> {
    let reason = this.#reasons.get(told);
    if (reason === undefined) this.#reasons.set(told, (reason = told.toLowerCase()));
    let all = this.#byReason.get(reason);
    if (!all) this.#byReason.set(reason, (all = new Map()));
    return all;
  }

  /** Drops what has run out; when that is not enough, the oldest tenth of each reason. */
  #forget(now: number): void {
    const drop = (all: Map<string, Told>, key: string): void => {
      all.delete(key);
      this.#size--;
    };
    for (const all of this.#byReason.values()) for (const [key, { until }] of all) if (until <= now) drop(all, key);
    if (this.#size <= this.#capacity) return;
    for (const all of this.#byReason.values()) {
      let excess = Math.ceil(all.size / 10);
      for (const key of all.keys()) {
        if (excess-- <= 0) break;
        drop(all, key);
      }
    }
  }
}

function wordsWith(known: Map<string, number> | undefined, message: string, until: number): Map<string, number> {
  const words = known ?? new Map<string, number>();
  words.delete(message);
  words.set(message, until);
  if (words.size > mostWords) words.delete(words.keys().next().value!);
  return words;
}
