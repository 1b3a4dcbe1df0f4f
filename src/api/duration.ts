// SPDX-License-Identifier: Apache-2.0
// Durations as our kinds write them: `720h`, `1h30m`, `0s`, or `Never`. The text in an object is never rewritten, so
// that tools which compare manifests see no change.
import { KarpenterError } from '../base/errors.ts';

/** The word that switches a duration off. */
export const never = 'Never';

/** A text that is no duration of our kinds. Admission refuses most of them; what is too long passes it. */
export class DurationError extends KarpenterError {
  constructor(text: string, problem: string) {
    super('KRP_DURATION_INVALID', `duration ${JSON.stringify(text)} ${problem}`, { details: { text } });
  }
}

const nanosPerUnit: Readonly<Record<string, bigint>> = {
  h: 3_600_000_000_000n,
  m: 60_000_000_000n,
  s: 1_000_000_000n,
};
const maxNanos = 2n ** 63n - 1n;

/** The exact length in nanoseconds. Throws DurationError, also beyond 2^63-1 ns (292 years): nothing upstream can count further. */
export function durationNanos(text: string): bigint {
  if (!/^(?:[0-9]+[hms])+$/.test(text)) throw new DurationError(text, 'is not made of hours, minutes and seconds');
  let nanos = 0n;
  for (const [, count, unit] of text.matchAll(/([0-9]+)([hms])/g)) {
    // Twenty digits of any unit are too long already; more would only cost time.
    if (count!.replace(/^0+/, '').length > 20) throw new DurationError(text, 'is longer than 292 years');
    nanos += BigInt(count!) * nanosPerUnit[unit!]!;
  }
  if (nanos > maxNanos) throw new DurationError(text, 'is longer than 292 years');
  return nanos;
}

/** What was read before: there are few durations in a cluster, and each is looked at in every pass. */
const readBefore = new Map<string, number>();
const mostRemembered = 1000;

/**
 * The length in milliseconds of a field that may be absent or `Never`: both give undefined, "it does not happen".
 * Throws DurationError.
 */
export function durationMs(text: string | undefined): number | undefined {
  if (text === undefined || text === never) return undefined;
  let ms = readBefore.get(text);
  if (ms === undefined) {
    ms = Number(durationNanos(text) / 1_000_000n);
    if (readBefore.size >= mostRemembered) readBefore.clear();
    readBefore.set(text, ms);
  }
  return ms;
}
