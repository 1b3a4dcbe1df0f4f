// SPDX-License-Identifier: Apache-2.0
// Consolidations that lead nowhere: pods do not always go where they were meant to, and then the cluster may come back to
// where it was. Whoever finds the same nodes with the same pods again, as many as the last time, and would do the same,
// waits, and does it again only when something changed meanwhile.
import { labels } from '../../api/labels.ts';
import { compareStrings } from '../../base/order.ts';
import type { Pod } from '../../kube/kinds.ts';
import type { StateNode } from '../../state/state-node.ts';
import type { Proposal } from './method.ts';

const firstWaitMs = 5 * 60_000;
const longestWaitMs = 24 * 3_600_000;
/** What comes up again this long after its wait was over came up for another reason. */
const episodeMs = 2 * 60_000;
/** Older ones are forgotten, so that nothing grows without end. */
const most = 1000;

interface Known {
  /** How often it was done or held back, one right after the other. */
  times: number;
  /** Before this the same is not done again. Monotonic. */
  until: number;
  /** What ran in the cluster when it was done. */
  readonly demand: string;
}

/** A proposal that is not carried out for now. */
export interface Held {
  readonly proposal: Proposal;
  readonly waitMs: number;
}

/** What consolidation did before, and which machines it leaves alone because of that. Times are monotonic. */
export class Recurrences {
  /** The latest last. */
  readonly #known = new Map<string, Known>();
  /** By machine: until when, and as long as it is what it was. */
  readonly #held = new Map<string, { readonly until: number; readonly signature: string }>();

  /** Keys of the machines that consolidation leaves alone now. `machines`: all there are. */
  heldAt(now: number, machines: Iterable<StateNode>): ReadonlySet<string> {
    if (this.#held.size === 0) return nobody;
    const held = new Set<string>();
    for (const machine of machines) {
      const known = this.#held.get(machine.key);
      if (known && known.until > now && known.signature === signatureOf(machine)) held.add(machine.key);
    }
    for (const key of this.#held.keys()) if (!held.has(key)) this.#held.delete(key);
    return held;
  }

  /** When the first of them may be tried again; infinite when there are none. */
  endInMs(now: number): number {
    let first = Number.POSITIVE_INFINITY;
    for (const { until } of this.#held.values()) first = Math.min(first, until - now);
    return first;
  }

  /** Which of the proposals of one look to carry out, which counts as done, and which not. `machines`: all there are. */
  judge(
    proposals: readonly Proposal[],
    machines: Iterable<StateNode>,
    now: number,
  ): { fresh: Proposal[]; held: Held[] } {
    const all = [...machines];
    const demand = demandOf(all);
    const fresh: Proposal[] = [];
    const held: Held[] = [];
    const keys: string[] = [];
    for (const proposal of proposals) {
      const key = keyOf(proposal, all);
      const waitMs = this.#waitMs(key, demand, now);
      if (waitMs > 0) held.push({ proposal, waitMs });
      else {
        fresh.push(proposal);
        keys.push(key);
      }
    }
    for (const { proposal, waitMs } of held)
      for (const { machine } of proposal.candidates)
        this.#held.set(machine.key, { until: now + waitMs, signature: signatureOf(machine) });
    // Only now: of machines that are alike several may go at once.
    for (const key of new Set(keys)) this.#note(key, (this.#known.get(key)?.times ?? 0) + 1, demand, now);
    return { fresh, held };
  }

  #waitMs(key: string, demand: string, now: number): number {
    const known = this.#known.get(key);
    if (!known) return 0;
    if (now < known.until) return known.until - now;
    if (now > known.until + episodeMs) this.#known.delete(key);
    else if (known.demand === demand) {
      // It waited, and nothing changed: it would lead nowhere again.
      this.#note(key, known.times + 1, demand, now);
      return this.#known.get(key)!.until - now;
    }
    return 0;
  }

  #note(key: string, times: number, demand: string, now: number): void {
    this.#known.delete(key);
    this.#known.set(key, { times, until: now + Math.min(longestWaitMs, firstWaitMs * 2 ** (times - 1)), demand });
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= most) break;
      this.#known.delete(oldest);
    }
  }
}

const nobody: ReadonlySet<string> = new Set();

/** How many pods of each workload run. */
function demandOf(machines: readonly StateNode[]): string {
  const counts = new Map<string, number>();
  for (const machine of machines)
    for (const pod of machine.pods()) {
      const workload = workloadOf(pod);
      counts.set(workload, (counts.get(workload) ?? 0) + 1);
    }
  return JSON.stringify([...counts].sort(([a], [b]) => compareStrings(a, b)));
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
