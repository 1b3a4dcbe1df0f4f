// SPDX-License-Identifier: Apache-2.0
// What every benchmark returns, and how it is shown.

/** One measured number, ours and upstream's side by side. */
export interface Row {
  /** `group/case-cold` or `-warm` where it matters. */
  readonly name: string;
  readonly unit: string;
  readonly ours: number;
  /** Null where there is no peer. */
  readonly upstream: number | null;
  /** How many times better ours is; null without a peer. */
  readonly ratio: number | null;
  readonly detail: string;
}

/** Says what is being done, on standard error. */
export type Progress = (line: string) => void;

/** Whether a case (`scheduling/diverse-1000`) was asked for. */
export type Wanted = (name: string) => boolean;

/** A group of benchmarks: `rows` is what its module exports. */
export type Group = (progress: Progress, wanted: Wanted) => Promise<readonly Row[]>;

/** A row of which less is better. */
export function lowerIsBetter(name: string, unit: string, ours: number, upstream: number | null, detail: string): Row {
  const ratio = upstream === null || ours === 0 ? null : round(upstream / ours);
  return { name, unit, ours: round(ours), upstream: upstream === null ? null : round(upstream), ratio, detail };
}

export function round(value: number): number {
  return Number(value.toPrecision(5));
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** A table and, for rows with a peer, a bar chart of the ratios. */
export function render(rows: readonly Row[]): string {
  const cells = rows.map((r) => [
    r.name,
    `${r.ours} ${r.unit}`,
    r.upstream === null ? '–' : `${r.upstream} ${r.unit}`,
    r.ratio === null ? '–' : `${r.ratio}×`,
    r.detail,
  ]);
  const head = ['benchmark', 'ours', 'upstream', 'ratio', 'detail'];
  const widths = head.map((h, i) => Math.max(h.length, ...cells.map((c) => (i === 4 ? 0 : c[i]!.length))));
  const line = (c: readonly string[]) =>
    c
      .map((text, i) => (i === 0 || i === 4 ? text.padEnd(widths[i]!) : text.padStart(widths[i]!)))
      .join('  ')
      .trimEnd();
  const compared = rows.filter((r) => r.ratio !== null && r.ratio > 0);
  // Ratios span orders of magnitude: one block per doubling.
  const bars = compared.map((r) => {
    const length = Math.max(0, Math.round(4 * Math.log2(r.ratio!)));
    return `${r.name.padEnd(widths[0]!)}  ${'█'.repeat(Math.min(length, 60))} ${r.ratio}×`;
  });
  return [line(head), line(widths.map((w) => '─'.repeat(Math.min(w, 40)))), ...cells.map(line), '', ...bars].join('\n');
}
