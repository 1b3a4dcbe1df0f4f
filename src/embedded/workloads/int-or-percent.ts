// SPDX-License-Identifier: Apache-2.0
// `3` or `25%` of something.

/** The number meant; percentages round up or down as asked. What makes no sense counts as zero. */
export function scaled(value: number | string | undefined, total: number, round: 'up' | 'down'): number {
  if (value === undefined) return 0;
  if (typeof value === 'number') return value;
  const percent = /^(\d+)%$/.exec(value);
  if (!percent) return 0;
  const exact = (total * Number(percent[1])) / 100;
  return round === 'up' ? Math.ceil(exact) : Math.floor(exact);
}
