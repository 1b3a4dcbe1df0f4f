// SPDX-License-Identifier: Apache-2.0
// `npm run bench -- [--json] [group…] [group/case…]`: measures ours and upstream's side by side. Results go to standard output (one
// JSON array, or a table and a chart), progress to standard error.
import { type Group, type Row, render } from './rows.ts';

/** Groups load when they run: each brings its own tools. Those marked `slow` run only when named. */
const groups: Readonly<Record<string, { readonly load: () => Promise<Group>; readonly slow?: boolean }>> = {
  scheduling: { load: async () => (await import('./scheduling.ts')).rows },
  packing: { load: async () => (await import('./packing.ts')).rows },
  disruption: { load: async () => (await import('./disruption.ts')).rows, slow: true },
  growth: { load: async () => (await import('./growth.ts')).rows, slow: true },
  controller: { load: async () => (await import('./controller.ts')).rows, slow: true },
  embedded: { load: () => fromModules('./embedded.ts', './embedded-scheduler.ts') },
};

/** Joins modules that export one function returning rows. */
async function fromModules(...paths: readonly string[]): Promise<Group> {
  const found: Group[] = [];
  for (const path of paths) {
    const module = (await import(path)) as Record<string, unknown>;
    const entry = module['rows'] ?? Object.values(module).find((value) => typeof value === 'function');
    if (typeof entry !== 'function') throw new Error(`${path} exports no function that returns rows`);
    found.push(entry as Group);
  }
  return async (progress, wanted) => {
    const rows: Row[] = [];
    for (const group of found) rows.push(...(await group(progress, wanted)));
    return rows;
  };
}

async function main(args: readonly string[]): Promise<number> {
  const json = args.includes('--json');
  const named = args.filter((a) => !a.startsWith('-'));
  const groupOf = (n: string): string => n.split('/')[0] ?? n;
  const unknown = named.filter((n) => !(groupOf(n) in groups));
  const odd = args.filter((a) => a.startsWith('-') && a !== '--json');
  if (unknown.length + odd.length > 0) {
    console.error(
      `no such group or option: ${[...unknown, ...odd].join(', ')}; groups: ${Object.keys(groups).join(', ')}; option: --json`,
    );
    return 2;
  }
  const all = Object.keys(groups).filter((n) => !groups[n]!.slow);
  const chosen = named.length > 0 ? [...new Set(named.map(groupOf))] : all;
  // A case is named whole; naming its group asks for all of them.
  const wanted = (row: string): boolean => named.length === 0 || named.includes(groupOf(row)) || named.includes(row);
  const rows: Row[] = [];
  let failed = false;
  for (const name of chosen) {
    const started = performance.now();
    try {
      const group = await groups[name]!.load();
      rows.push(...(await group((line) => console.error(`[${name}] ${line}`), wanted)));
    } catch (error) {
      failed = true;
      console.error(`[${name}] failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    }
    console.error(`[${name}] ${((performance.now() - started) / 1000).toFixed(1)} s`);
  }
  console.log(json ? JSON.stringify(rows, null, 1) : render(rows));
  return failed ? 1 : 0;
}

process.exitCode = await main(process.argv.slice(2));
