// SPDX-License-Identifier: Apache-2.0
// How time and memory grow: 10,000 to 100,000 pods, all of EC2, 10,000 nodes. Upstream has no number here: it would take hours.
import { runOurs } from './processes.ts';
import { lowerIsBetter, type Progress, type Row, round } from './rows.ts';

export async function rows(progress: Progress): Promise<Row[]> {
  const found: Row[] = [];
  let first: number | undefined;
  for (const pods of [10_000, 20_000, 50_000, 100_000]) {
    progress(`${pods} pods`);
    const ours = await runOurs(['--growth', String(pods)]);
    const perPod = (ours.coldMs * 1000) / pods;
    first ??= perPod;
    const detail = `${round(perPod)} µs per pod (${round(perPod / first)}× of 10,000), ${ours.nodes} new nodes, ${ours.errors} unplaced`;
    progress(`${pods}: ${ours.coldMs.toFixed(0)} ms, ${ours.peakMegabytes} MB; ${detail}`);
    found.push(lowerIsBetter(`growth/pods-${pods}-cold`, 'ms', ours.coldMs, null, detail));
    found.push(
      lowerIsBetter(
        `growth/pods-${pods}-memory`,
        'MB',
        ours.peakMegabytes,
        null,
        'peak resident set of the whole process',
      ),
    );
  }
  return found;
}
