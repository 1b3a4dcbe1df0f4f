// SPDX-License-Identifier: Apache-2.0
// A run in a few lines for people.
import { formatTime } from '../kube/time.ts';
import type { RunReport } from './run.ts';
import type { Shrunk } from './shrink.ts';

/** What a run came to. */
export function summaryText({ scenario, seed, hours, summary, coverage, hash }: RunReport): string {
  const { cost, machinesLaunched, pendingSeconds, podsPlaced, disruptions, medianNodes, medianPods } = summary;
  const reasons = Object.entries(disruptions).map(([reason, count]) => `${count} ${reason}`);
  const of = (kind: string): string => {
    const found = Object.entries(coverage).filter(([key]) => key.startsWith(`${kind}/`));
    const exercised = found.filter(([, count]) => count > 0).length;
    return `${exercised} of ${found.length} kinds, ${found.reduce((sum, [, count]) => sum + count, 0)} times`;
  };
  return [
    `scenario ${scenario}, seed ${seed}, ${hours} h: ${medianNodes} nodes and ${medianPods} pods at the median`,
    `  cost         $${cost.toFixed(2)} for ${machinesLaunched} machines`,
    `  pending      median ${pendingSeconds.median.toFixed(1)} s, 99 % ${pendingSeconds.p99.toFixed(1)} s, longest ${pendingSeconds.max.toFixed(0)} s (${podsPlaced} pods)`,
    `  disruptions  ${reasons.length === 0 ? 'none' : reasons.join(', ')}`,
    `  happenings   ${of('happening')}`,
    `  faults       ${of('fault')}`,
    `  invariants   ${of('invariant')}`,
    `  hash         ${hash}`,
  ].join('\n');
}

/** What went wrong, and how to see it again. */
export function violationText(report: RunReport, shrunk: Shrunk | undefined): string {
  const { scenario, seed, hours } = report;
  const shown = shrunk?.report ?? report;
  const violations = shown.violations.map(
    ({ invariant, at, message }) => `  ${formatTime(at)} ${invariant}: ${message}`,
  );
  const prefix =
    shrunk === undefined ? [] : [`shortest prefix that fails: ${shrunk.events} of ${shrunk.of} happenings and faults`];
  return [
    `VIOLATED, seed ${seed}: karpenter simulate ${scenario} --seed ${seed} --hours ${hours}${shrunk ? ` --events ${shrunk.events}` : ''}`,
    ...violations,
    ...prefix,
    'what led to it:',
    ...shown.trace.slice(-80).map((line) => `  ${line}`),
  ].join('\n');
}
