// SPDX-License-Identifier: Apache-2.0
// Times of objects for metrics: never a reason to fail, and never before they can be.

/** The time in milliseconds; `otherwise` where there is none that can be read. */
export function timeOf(text: string | null | undefined, otherwise: number): number {
  const time = Date.parse(text ?? '');
  return Number.isNaN(time) ? otherwise : time;
}

/** A length of time in seconds. Times of objects are whole seconds, ours are not: an effect may seem to precede its cause. */
export function seconds(ms: number): number {
  return Math.max(0, ms) / 1000;
}
