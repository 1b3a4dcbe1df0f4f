// SPDX-License-Identifier: Apache-2.0
// In the end, every pod runs: all that users of these worlds make fits into the pool `anchor`.
import type { Pod } from '../../kube/kinds.ts';
import { collections } from '../collections.ts';
import type { Invariant } from '../contract.ts';
import { hasEnded, isDaemon, isGoing } from './reading.ts';

export function podsRun(): Invariant {
  return {
    name: 'pods/run',
    onQuiet(facts, report) {
      const waiting: string[] = [];
      for (const pod of facts.list<Pod>(collections.pods)) {
        const { metadata, spec, status } = pod;
        // A new DaemonSet finds no room on nodes that are full, and nobody makes any: that is so on every cluster.
        if (isGoing(pod) || hasEnded(pod) || isDaemon(pod)) continue;
        report.checked();
        const ready = status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True');
        const why = status?.conditions?.find(({ type, status: is }) => type === 'PodScheduled' && is === 'False');
        if (!spec.nodeName || !ready) waiting.push(`${metadata.name} (${spec.nodeName ?? why?.message ?? 'no node'})`);
      }
      if (waiting.length > 0) report.violated(`${waiting.length} pods do not run: ${waiting.slice(0, 5).join(', ')}`);
    },
  };
}
