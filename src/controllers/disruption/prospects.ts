// SPDX-License-Identifier: Apache-2.0
// Whether another search can be expected to find something where the last one found nothing. A cluster that only becomes fuller
// offers less than before; what little became free can wait a minute; what never was looked at, or much that became free, is looked at
// at once. A search costs as much whether it finds something or not, and nearly all of them find nothing.
import type { ReadonlyAmounts } from '../../state/amounts.ts';
import type { StateNode } from '../../state/state-node.ts';
import { isYoung } from './calm.ts';
import type { MethodView } from './method.ts';

/** The share of the cluster that has to become free for a search at once. */
const muchFree = 0.01;
/** After this long a search is made if anything became free since the last one, */
const freedRestMs = 60_000;
/** and after this long in any case. */
export const longestRestMs = 300_000;

interface Used {
  readonly cpu: number;
  readonly memory: number;
}

interface Looked {
  /** What had become free by then. */
  readonly freed: number;
  readonly wasYoung: boolean;
}

/** Times are monotonic. */
export class Prospects {
  /** When nothing was found; undefined when the last search found something. */
  #at: number | undefined;
  /** What can be bought, and how many machines of each pool could go. */
  #terms: readonly unknown[] = [];
  /** By machine that was open to pods: what was used of it then. */
  #used = new Map<string, Used>();
  /** By machine that could have gone: what it was like then. */
  #looked = new Map<string, Looked>();
  /** The share of the cluster that became free before the last search. */
  #freed = 0;
  #restsUntil: number | undefined;

  /** Until when to rest if nothing changes; undefined: no rest. */
  get restsUntil(): number | undefined {
    return this.#restsUntil;
  }

  /** Whether to search now. `closed`: machines by key that take no pods. */
  isWorthwhile(view: MethodView, closed: ReadonlySet<string>, now: number): boolean {
    this.#restsUntil = this.#at === undefined ? now : this.#restingUntil(view, closed, this.#at);
    return now >= this.#restsUntil;
  }

  /** A search over this found something. */
  foundSomething(): void {
    this.#at = undefined;
    this.#restsUntil = undefined;
  }

  /** Looks at a cluster before a search; what it gives is called when that found nothing. */
  before(view: MethodView, closed: ReadonlySet<string>, now: number): () => void {
    const terms = termsOf(view);
    const freed = this.#freed + this.#freedSince(view, closed);
    const [used, looked] = [new Map<string, Used>(), new Map<string, Looked>()];
    for (const machine of view.snapshot.machines.nodes()) {
      const { key } = machine;
      const known = this.#used.get(key);
      if (isOpen(machine, closed)) used.set(key, usedOf(machine.requests));
      else if (known) used.set(key, known);
      const before = this.#looked.get(key);
      if (before) looked.set(key, before);
    }
    for (const candidate of view.candidates)
      if (mayGo(candidate, view))
        looked.set(candidate.machine.key, {
          freed,
          wasYoung: isYoung(candidate, view.snapshot.now),
        });
    return () => {
      [this.#at, this.#restsUntil] = [now, now + longestRestMs];
      [this.#terms, this.#freed, this.#used, this.#looked] = [terms, freed, used, looked];
    };
  }

  #restingUntil(view: MethodView, closed: ReadonlySet<string>, at: number): number {
    const terms = termsOf(view);
    if (terms.length !== this.#terms.length || terms.some((term, i) => term !== this.#terms[i])) return at;
    let least = Number.POSITIVE_INFINITY;
    for (const candidate of view.candidates) {
      if (!mayGo(candidate, view)) continue;
      const before = this.#looked.get(candidate.machine.key);
      if (!before || (before.wasYoung && !isYoung(candidate, view.snapshot.now))) return at;
      least = Math.min(least, before.freed);
    }
    const freed = this.#freed - least + this.#freedSince(view, closed);
    if (freed >= muchFree) return at;
    return at + (freed > 1e-9 ? freedRestMs : longestRestMs);
  }

  /** The share of the cluster that became free since the last search. */
  #freedSince({ snapshot: { machines } }: MethodView, closed: ReadonlySet<string>): number {
    const [total, freed] = [
      { cpu: 0, memory: 0 },
      { cpu: 0, memory: 0 },
    ];
    for (const machine of machines.nodes()) {
      if (!isOpen(machine, closed)) continue;
      const has = usedOf(machine.allocatable);
      const [now, before] = [usedOf(machine.requests), this.#used.get(machine.key) ?? has];
      for (const r of ['cpu', 'memory'] as const) {
        total[r] += has[r];
        freed[r] += Math.max(0, before[r] - now[r]);
      }
    }
    return Math.max(total.cpu > 0 ? freed.cpu / total.cpu : 0, total.memory > 0 ? freed.memory / total.memory : 0);
  }
}

function isOpen({ key, markedForDeletion, initialized }: StateNode, closed: ReadonlySet<string>): boolean {
  return initialized && !markedForDeletion && !closed.has(key);
}

function usedOf(amounts: ReadonlyAmounts): Used {
  return { cpu: Number(amounts.get('cpu') ?? 0n), memory: Number(amounts.get('memory') ?? 0n) };
}

function mayGo({ nodePool }: MethodView['candidates'][number], { budgets }: MethodView): boolean {
  return budgets.left(nodePool) > 0;
}

function termsOf({ catalog, budgets }: MethodView): unknown[] {
  return catalog.pools.flatMap((pool) => {
    const { name = '', uid, generation } = pool.metadata;
    return [uid, generation, budgets.left(pool), catalog.instanceTypes[name]];
  });
}
