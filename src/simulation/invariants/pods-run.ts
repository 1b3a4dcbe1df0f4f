// SPDX-License-Identifier: Apache-2.0
// In the end, every pod runs: all that users of these worlds make fits into the pool `anchor`. Nodes that expire give their
// pods back until the last minute; those have a while to find another place.
import type { Pod } from '../../kube/kinds.ts';
import { collections } from '../collections.ts';
import type { Invariant } from '../contract.ts';
import { hasEnded, isDaemon, isGoing } from './reading.ts';

/** A batch, a machine that is slow to come, and one more try. */
const bearableMs = 5 * 60_000;

export function podsRun(): Invariant {
  return {
    name: 'pods/run',
    onQuiet(facts, report) {
      const waiting: string[] = [];
      for (const pod of facts.list<Pod>(collections.pods)) {
        const { metadata, spec, status } = pod;
        // A new DaemonSet finds no room on nodes that are full, and nobody makes any: that is so on every cluster.
        if (isGoing(pod) || hasEnded(pod) || isDaemon(pod)) continue;
        if (facts.now - Date.parse(metadata.creationTimestamp ?? '') < bearableMs) continue;
        report.checked();
        const ready = status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True');
        const why = status?.conditions?.find(({ type, status: is }) => type === 'PodScheduled' && is === 'False');
        if (!spec.nodeName || !ready) waiting.push(`${metadata.name} (${spec.nodeName ?? why?.message ?? 'no node'})`);
      }
      if (waiting.length > 0) report.violated(`${waiting.length} pods do not run: ${waiting.slice(0, 5).join(', ')}`);
    },
  };
}
