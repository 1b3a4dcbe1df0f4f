// SPDX-License-Identifier: Apache-2.0
// A part of the benchmarks that fits CI, and floors under it. Floors are ratios against upstream, measured in the same
// run on the same machine, well below what docs/performance.md shows: a noisy neighbour must not fail a change, a
// lost order of magnitude must. The embedded cluster has no peer: it has bounds of its own.
import { execFileSync } from 'node:child_process';

interface Row {
  readonly name: string;
  readonly unit: string;
  readonly ours: number | null;
  readonly upstream: number | null;
  readonly ratio: number | null;
  readonly detail: string;
}

const floors: Readonly<Record<string, number>> = {
  'scheduling/diverse-1000-cold': 12,
  'scheduling/diverse-1000-warm': 40,
  'scheduling/diverse-5000-cold': 50,
  'scheduling/preferences-ignore-4000-cold': 7,
};
/**
 * What must hold on any machine. Of numbers in wall time a third of what is promised: CI shares its two cores, and a
 * neighbour takes that much. What the same work costs in CPU time a neighbour hardly changes, so half of the promise
 * (a thousand creates a second, 500 updates a second for 20 watchers on one core) is asked of that, client included.
 */
const bounds: Readonly<Record<string, (value: number) => boolean>> = {
  'embedded/memory-per-pod': (bytes) => bytes < 8192,
  'embedded/https-creates': (perSecond) => perSecond >= 333,
  'embedded/https-creates-per-core': (perCpuSecond) => perCpuSecond >= 500,
  'embedded/https-watch-lag': (ms) => ms < 3000,
  'embedded/https-watch-load': (percent) => percent < 200,
  'controller/idle-cpu-500': (percent) => percent < 15,
  'controller/rss-500': (megabytes) => megabytes < 450,
  'controller/pod-event-500': (micros) => micros < 400,
  'controller/claims-for-1000-pods-500': (seconds) => seconds < 9,
  // In CPU time, too: two seconds and 20 ms are promised.
  'disruption/pass-5000': (ms) => ms < 6000,
  'disruption/unchanged-5000': (ms) => ms < 100,
};
const groups = [
  ...Object.keys(bounds).filter((name) => /^(controller|disruption)\//.test(name)),
  'embedded',
  'scheduling/diverse-1000',
  'scheduling/diverse-5000',
  'scheduling/preferences-ignore-4000',
];

const output = execFileSync(process.execPath, ['benchmarks/run.ts', '--json', ...groups], {
  encoding: 'utf8',
  stdio: ['ignore', 'pipe', 'inherit'],
  maxBuffer: 64 * 1024 * 1024,
});
const rows = JSON.parse(output) as Row[];
const problems: string[] = [];
for (const { name, unit, ours, upstream, ratio, detail } of rows) {
  const floor = floors[name];
  const against =
    ratio === null ? '' : `, upstream ${upstream}, ratio ${ratio.toFixed(1)}${floor ? ` (floor ${floor})` : ''}`;
  console.log(`${name}: ${ours} ${unit}${against}; ${detail}`);
  if (ours === null) problems.push(`${name} has no result`);
  if (floor !== undefined && !(ratio !== null && ratio >= floor))
    problems.push(`${name}: ratio ${ratio} is below ${floor}`);
  if (ours !== null && bounds[name]?.(ours) === false) problems.push(`${name}: ${ours} ${unit} is out of bounds`);
  if (/violations [1-9]/.test(detail)) problems.push(`${name}: ${detail}`);
}
for (const name of [...Object.keys(floors), ...Object.keys(bounds)])
  if (!rows.some((row) => row.name === name)) problems.push(`${name} did not run`);
if (!rows.some((row) => row.name.startsWith('embedded/'))) problems.push('the group embedded gave no rows');
for (const problem of problems) console.error(problem);
console.log(`${rows.length - problems.length} passed, ${problems.length} failed`);
process.exitCode = problems.length > 0 ? 1 : 0;
