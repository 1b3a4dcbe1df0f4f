// SPDX-License-Identifier: Apache-2.0
// Upstream's own benchmark and five hard cases, through both programs, on the same files.
import type { Problem } from '../src/scheduling/problem.ts';
import { diverse, hardCases, preferences } from './fixtures.ts';
import { buildPeer, type OursResult, type PeerResult, runOurs, runPeer, withProblemFile } from './processes.ts';
import { lowerIsBetter, median, type Progress, type Row, type Wanted } from './rows.ts';

/** Largest problem that upstream solves more than once: beyond, a run takes half a minute and more. */
const repeatUpTo = 2000;
/** V8 needs a second or so to have compiled what runs often: of this many solves of a small problem the later half is warm. */
const warmUp = 40;

export async function rows(progress: Progress, wanted: Wanted): Promise<Row[]> {
  const peer = await buildPeer();
  const cases: [string, () => Problem][] = [
    ...[1, 50, 100, 500, 1000, 2000, 5000, 10_000, 20_000].map((pods): [string, () => Problem] => [
      `diverse-${pods}`,
      () => diverse(pods),
    ]),
    ...(['Respect', 'Ignore'] as const).map((policy): [string, () => Problem] => [
      `preferences-${policy.toLowerCase()}-4000`,
      () => preferences(4000, policy),
    ]),
    ...Object.entries(hardCases).map(([name, make]): [string, () => Problem] => [
      `hard-${name}-5000`,
      () => make(5000),
    ]),
  ];
  const found: Row[] = [];
  for (const [name, make] of cases) {
    if (wanted(`scheduling/${name}`)) found.push(...(await compare(peer, name, make(), progress, true)));
  }
  return found;
}

async function compare(
  peer: string,
  name: string,
  problem: Problem,
  progress: Progress,
  judge: boolean,
): Promise<Row[]> {
  const pods = problem.pods.filter((p) => !p.spec.nodeName).length;
  return withProblemFile(problem, async (file) => {
    progress(`${name}: ours`);
    const isSmall = pods <= repeatUpTo;
    const cold: OursResult[] = [];
    // A small one is over in a moment, and moments differ.
    for (let i = 0; i < (isSmall ? 7 : 3); i++) cold.push(await runOurs([file]));
    const warm = await runOurs([file], isSmall ? warmUp : 6, judge);
    const repeat = isSmall ? 3 : 1;
    progress(`${name}: upstream`);
    const upstream = await runPeer(peer, file, repeat);
    const upstreamColds = [upstream.stats.durationMs];
    for (let i = 1; i < repeat; i++) upstreamColds.push((await runPeer(peer, file)).stats.durationMs);
    const upstreamCold = median(upstreamColds);
    const upstreamWarm = upstream.stats.warmMs ? median(upstream.stats.warmMs) : upstreamCold;
    const detail = describe(cold[0]!, warm, upstream);
    progress(
      `${name}: ${median(cold.map((c) => c.coldMs)).toFixed(1)} ms cold, upstream ${upstreamCold.toFixed(0)} ms; ${detail}`,
    );
    return [
      lowerIsBetter(`scheduling/${name}-cold`, 'ms', median(cold.map((c) => c.coldMs)), upstreamCold, detail),
      lowerIsBetter(
        `scheduling/${name}-warm`,
        'ms',
        median(isSmall ? warm.warmMs.slice(warmUp / 2) : warm.warmMs),
        upstreamWarm,
        repeat > 1 ? detail : `${detail}; upstream ran once`,
      ),
    ];
  });
}

function describe(ours: OursResult, judged: OursResult, upstream: PeerResult): string {
  const parts = [
    `pods ${ours.scheduled} / ${upstream.stats.pods}`,
    `nodes ${ours.nodes} / ${upstream.stats.nodes}`,
    `upstream's Solve alone ${upstream.stats.solveMs.toFixed(0)} ms`,
    `peak ${ours.peakMegabytes} MB`,
  ];
  if (judged.violations !== undefined) parts.push(`violations ${judged.violations}`);
  if (ours.errors > 0 || upstream.errors.length > 0) parts.push(`unplaced ${ours.errors} / ${upstream.errors.length}`);
  return parts.join(', ');
}
