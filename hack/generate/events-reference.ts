// SPDX-License-Identifier: Apache-2.0
// `docs/reference/events.md`: every event that the program records, from the table it records them by.
import { compareStrings } from '../../src/base/order.ts';
import { conditionEvent, type EventKind, eventKinds } from '../../src/controllers/events.ts';
import { formatDuration } from '../../src/kube/time.ts';
import type { Generator } from './generator.ts';

/** The page; sorted by reason, then by what it is about. */
export function renderEventsReference(kinds: readonly EventKind[]): string {
  const all = kinds.toSorted((a, b) => compareStrings(a.reason, b.reason) || compareStrings(a.on.join(), b.on.join()));
  const rows = all.map(({ reason, type, on, dedupeMs, repeatMs, help }) =>
    row([`\`${reason}\``, type, on.join(', '), windowOf(dedupeMs), windowOf(repeatMs), help]),
  );
  const { help, on, dedupeMs, repeatMs } = conditionEvent('');
  return [
    '<!-- Generated from src/controllers/events.ts by `npm run generate`. Do not edit. -->',
    '',
    '# Events',
    '',
    'What `kubectl describe` and `kubectl events` show of the autoscaler. Reasons are those of upstream Karpenter. The same',
    'event about the same object is told once in its window, and the same words again after the longer one: what stands in the',
    'way for hours is told every half an hour. An event is written to the cluster its object lives in.',
    '',
    row(['Reason', 'Type', 'About', 'Once in', 'Same words', 'Meaning']),
    row(['---', '---', '---', '---', '---', '---']),
    ...rows,
    row(['*the type of a condition*', 'Normal', on.join(', '), windowOf(dedupeMs), windowOf(repeatMs), help]),
    '',
  ].join('\n');
}

function windowOf(dedupeMs: number): string {
  return dedupeMs === 0 ? 'each time' : formatDuration(dedupeMs).replace(/0s$/, '');
}

function row(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

export const eventsReferenceGenerators: readonly Generator[] = [
  { path: 'docs/reference/events.md', content: () => renderEventsReference(Object.values(eventKinds)) },
];
