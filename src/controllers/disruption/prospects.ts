// SPDX-License-Identifier: Apache-2.0
// Whether another search can be expected to find something where the last one found nothing. A cluster that only becomes fuller
// offers less than before; what little is new or became free can wait a minute; what is much is looked at at once. A search costs as much
// whether it finds something or not, and nearly all of them find nothing.
import type { ReadonlyAmounts } from '../../state/amounts.ts';
import type { StateNode } from '../../state/state-node.ts';
import { isYoung } from './calm.ts';
import type { MethodView } from './method.ts';

/** The share of the cluster that has to become free, or to be new, for a search at once. */
const muchFree = 0.02;
/** After this long a search is made if anything became free since the last one, or is new, */
const freedRestMs = 60_000;
/** and after this long in any case. */
export const longestRestMs = 300_000;
/** A candidate that was not looked at counts for something though it is full. */
const leastUnseen = 1e-6;

interface Used {
  readonly cpu: number;
  readonly memory: number;
}

/** What a pool offers. */
interface Terms {
  /** Changes with the pool. */
  readonly version: string;
  /** How many of its machines could go. */
  readonly left: number;
  /** What can be bought; another list when a price changed. */
  readonly types: readonly unknown[] | undefined;
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
  /** By pool. */
  #terms = new Map<string, Terms>();
  /** By machine that was open to pods: what was used of it then. */
  #used = new Map<string, Used>();
  /** All machines that were there to stay. */
  #there: ReadonlySet<string> = new Set();
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
    const there = new Set<string>();
    for (const machine of view.snapshot.machines.nodes()) {
      const { key } = machine;
      if (!machine.markedForDeletion) there.add(key);
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
      this.#there = there;
    };
  }

  #restingUntil(view: MethodView, closed: ReadonlySet<string>, at: number): number {
    const pools = new Set(
      view.candidates.filter((one) => mayGo(one, view)).map(({ nodePool }) => nodePool.metadata.name),
    );
    let hasNews = this.#isAnyGone(view);
    for (const [name, { version, left, types }] of termsOf(view)) {
      const before = this.#terms.get(name);
      if (before?.version !== version || (left > before.left && pools.has(name))) return at;
      hasNews ||= before.types !== types;
    }
    const better = this.#freedSince(view, closed) + this.#unseen(view);
    if (better >= muchFree) return at;
    return at + (better > 1e-9 || hasNews ? freedRestMs : longestRestMs);
  }

  /** Whether a machine is gone that was there: limits have more room then, and a pod may cost less on average. */
  #isAnyGone({ snapshot: { machines } }: MethodView): boolean {
    let known = 0;
    for (const { key, markedForDeletion } of machines.nodes()) if (!markedForDeletion && this.#there.has(key)) known++;
    return known < this.#there.size;
  }

  /** The share of the cluster that candidates leave free which could not go before, and what became free since others were looked at. */
  #unseen(view: MethodView): number {
    const { snapshot } = view;
    let least = this.#freed;
    const idle = { cpu: 0, memory: 0 };
    let isAny = false;
    for (const candidate of view.candidates) {
      if (!mayGo(candidate, view)) continue;
      const { machine } = candidate;
      const before = this.#looked.get(machine.key);
      if (before && !(before.wasYoung && !isYoung(candidate, snapshot.now))) {
        least = Math.min(least, before.freed);
        continue;
      }
      isAny = true;
      const [has, used] = [usedOf(machine.allocatable), usedOf(machine.requests)];
      for (const r of ['cpu', 'memory'] as const) idle[r] += Math.max(0, has[r] - used[r]);
    }
    const share = isAny ? Math.max(shareOf(idle, totalOf(snapshot.machines.nodes())), leastUnseen) : 0;
    return share + this.#freed - least;
  }

  /** The share of the cluster that became free since the last search. */
  #freedSince({ snapshot: { machines } }: MethodView, closed: ReadonlySet<string>): number {
    const freed = { cpu: 0, memory: 0 };
    for (const machine of machines.nodes()) {
      if (!isOpen(machine, closed)) continue;
      const [now, before] = [usedOf(machine.requests), this.#used.get(machine.key) ?? usedOf(machine.allocatable)];
      for (const r of ['cpu', 'memory'] as const) freed[r] += Math.max(0, before[r] - now[r]);
    }
    return freed.cpu + freed.memory > 0 ? shareOf(freed, totalOf(machines.nodes())) : 0;
  }
}

function isOpen({ key, markedForDeletion, initialized }: StateNode, closed: ReadonlySet<string>): boolean {
  return initialized && !markedForDeletion && !closed.has(key);
}

function usedOf(amounts: ReadonlyAmounts): Used {
  return { cpu: Number(amounts.get('cpu') ?? 0n), memory: Number(amounts.get('memory') ?? 0n) };
}

function totalOf(machines: Iterable<StateNode>): Used {
  const total = { cpu: 0, memory: 0 };
  for (const { allocatable, markedForDeletion } of machines) {
    const has = usedOf(allocatable);
    if (!markedForDeletion) [total.cpu, total.memory] = [total.cpu + has.cpu, total.memory + has.memory];
  }
  return total;
}

/** Of whichever it is more. */
function shareOf(part: Used, total: Used): number {
  return Math.max(total.cpu > 0 ? part.cpu / total.cpu : 0, total.memory > 0 ? part.memory / total.memory : 0);
}

function mayGo({ nodePool }: MethodView['candidates'][number], { budgets }: MethodView): boolean {
  return budgets.left(nodePool) > 0;
}

function termsOf({ catalog, budgets }: MethodView): Map<string, Terms> {
  return new Map(
    catalog.pools.map((pool) => {
      const { name = '', uid, generation } = pool.metadata;
      return [name, { version: `${uid} ${generation}`, left: budgets.left(pool), types: catalog.instanceTypes[name] }];
    }),
  );
}
