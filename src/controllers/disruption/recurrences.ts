// SPDX-License-Identifier: Apache-2.0
// Consolidations that lead nowhere: pods do not always go where they were meant to, and then the cluster may come back to
// where it was. Whoever finds the same nodes with the same pods again, as many as the last time, and would do the same,
// waits: longer each time.
import { labels } from '../../api/labels.ts';
import { compareStrings } from '../../base/order.ts';
import type { Pod } from '../../kube/kinds.ts';
import type { StateNode } from '../../state/state-node.ts';
import type { Proposal } from './method.ts';

const firstWaitMs = 5 * 60_000;
const longestWaitMs = 24 * 3_600_000;
/** Older ones are forgotten, so that nothing grows without end. */
const most = 1000;

interface Known {
  /** Since the first time. */
  times: number;
  /** Before this the same is not done again. Monotonic. */
  until: number;
}

/** What consolidation did before. */
export class Recurrences {
  /** The latest last. */
  readonly #known = new Map<string, Known>();

  /**
   * How long to wait before this is carried out; 0 for now, which counts as done. `machines`: all there are.
   */
  waitMs(proposal: Proposal, machines: Iterable<StateNode>, now: number): number {
    const key = keyOf(proposal, machines);
    const known = this.#known.get(key);
    if (known && now < known.until) return known.until - now;
    const times = (known?.times ?? 0) + 1;
    this.#known.delete(key);
    this.#known.set(key, { times, until: now + Math.min(longestWaitMs, firstWaitMs * 2 ** (times - 1)) });
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= most) break;
      this.#known.delete(oldest);
    }
    return 0;
  }
}

/** What goes, how many like it there are, and what comes. In a cluster that shrinks the number shrinks as well. */
function keyOf({ candidates, replacements }: Proposal, machines: Iterable<StateNode>): string {
  const going = new Map<string, number>();
  for (const { machine } of candidates) going.set(signatureOf(machine), 0);
  const sizes = new Set(candidates.map(({ machine }) => sizeOf(machine)));
  for (const machine of machines) {
    // Cheap first: most machines are like none of them.
    if (!sizes.has(sizeOf(machine)) || machine.markedForDeletion) continue;
    const signature = signatureOf(machine);
    const count = going.get(signature);
    if (count !== undefined) going.set(signature, count + 1);
  }
  const gone = [...going].map(([signature, count]) => `${count} ${signature}`).sort(compareStrings);
  const bought = replacements
    .map(({ nodePool, instanceTypes }) => `${nodePool} ${instanceTypes[0]}`)
    .sort(compareStrings);
  return JSON.stringify([candidates.length, gone, bought]);
}

function sizeOf({ nodePool, labels: own }: StateNode): string {
  return `${nodePool} ${own[labels.instanceType]} ${own[labels.zone]} ${own[labels.capacityType]}`;
}

/** Machines with the same are alike: the same kind, with pods of the same workloads. */
function signatureOf(machine: StateNode): string {
  const pods = Array.from(machine.pods(), workloadOf).sort(compareStrings);
  return `${sizeOf(machine)} ${pods.join()}`;
}

function workloadOf({ metadata }: Pod): string {
  return metadata.ownerReferences?.find(({ controller }) => controller)?.uid ?? metadata.uid ?? '';
}
