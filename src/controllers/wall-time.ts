// SPDX-License-Identifier: Apache-2.0
// Waiting for a time of the wall clock, such as that of a timestamp in an object. Somebody may set that clock meanwhile: a
// timer that was counted on a wrong one may be late by days, and nothing else calls for a look.
import type { Result } from '../runtime/controller.ts';

const longestWaitMs = 5 * 60_000;

/** Looks again when so much time has passed, and every five minutes until then: it may have come sooner. */
export function againAtWallTime(leftMs: number): Result & { readonly requeueAfterMs: number } {
  return { requeueAfterMs: Math.min(leftMs, longestWaitMs) };
}
