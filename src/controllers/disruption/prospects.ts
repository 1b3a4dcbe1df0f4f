// SPDX-License-Identifier: Apache-2.0
// Whether another search can be expected to find something where the last one found nothing more. A cluster that only becomes fuller
// offers less than before; what is new or became free can wait, the longer the less it is, and longer each time that it was looked at for
// nothing. A search costs as much whether it finds something or not, and nearly all of them find nothing.
import type { ReadonlyAmounts } from '../../state/amounts.ts';
import type { StateNode } from '../../state/state-node.ts';
import { isYoung } from './calm.ts';
import type { MethodView } from './method.ts';

/** After so long a search is made of this share of the cluster that became free since the last one, or is new, */
const [freedRestMs, muchFree] = [60_000, 0.02];
/** sooner where it is more, as many times as it is more, and twice as late after each search that was for nothing, so often at most, */
const mostInVain = 2;
/** and after this long in any case. */
export const longestRestMs = 300_000;
/** After a search that found something the next follows after this long: pods are rarely placed as planned. */
const foundRestMs = 15_000;
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
}

interface Looked {
  /** What had become free by then. */
  readonly freed: number;
  readonly wasYoung: boolean;
}

/** What came of a search. */
export interface Found {
  /** Keys of the machines that go. */
  readonly going: Iterable<string>;
  /** Whether it would have found something, or more, had budgets let more machines go. */
  readonly isHeldBack: boolean;
}

/** Times are monotonic. */
export class Prospects {
  /** When nothing more was found; undefined when what was found is looked for again. */
  #at: number | undefined;
  /** Whether the last search found something. */
  #hasFound = false;
  /** Whether budgets kept the last search from finding something. */
  #isHeldBack = false;
  /** By pool. */
  #terms = new Map<string, Terms>();
  /** By machine that was open to pods: what was used of it then. */
  #used = new Map<string, Used>();
  /** By machine that could have gone: what it was like then. */
  #looked = new Map<string, Looked>();
  /** By machine that was there, and not on its way out: what it offers. */
  #there = new Map<string, Used>();
  /** Machines that the last search chose. */
  #chosen: ReadonlySet<string> = new Set();
  /** The share of the cluster that became free before the last search. */
  #freed = 0;
  /** How many searches in a row found nothing in what was new. */
  #inVain = 0;
  /** Whether the next search has something new to go by. */
  #hasNews = false;
  #restsUntil: number | undefined;

  /** Until when to rest if nothing changes; undefined: no rest. */
  get restsUntil(): number | undefined {
    return this.#restsUntil;
  }

  /** Whether to search now. `closed`: machines by key that take no pods. */
  isWorthwhile(view: MethodView, closed: ReadonlySet<string>, now: number): boolean {
    this.#restsUntil = this.#at === undefined ? now : this.#restingUntil(view, closed, this.#at);
    this.#hasNews &&= this.#at !== undefined;
    return now >= this.#restsUntil;
  }

  /** A search at a glance found something: it is looked for again, closely, whatever happens. */
  foundSomething(): void {
    this.#at = undefined;
    this.#restsUntil = undefined;
    this.#inVain = 0;
  }

  /**
   * Looks at a cluster before a search; what it gives is called with what came of that, once budgets are spent for it. Whatever it did not choose it had a look at: only
   * what changes after it is new.
   */
  before(view: MethodView, closed: ReadonlySet<string>, now: number): (found: Found) => void {
    const inVain = this.#hasNews ? Math.min(this.#inVain + 1, mostInVain) : 0;
    const freed = this.#freed + this.#freedSince(view, closed);
    const [used, looked] = [new Map<string, Used>(), new Map<string, Looked>()];
    const there = new Map<string, Used>();
    for (const machine of view.snapshot.machines.nodes()) {
      const { key } = machine;
      if (!machine.markedForDeletion) there.set(key, usedOf(machine.allocatable));
      const known = this.#used.get(key);
      if (isOpen(machine, closed)) used.set(key, usedOf(machine.requests));
      else if (known) used.set(key, known);
      const before = this.#looked.get(key);
      if (before) looked.set(key, before);
    }
    const { candidates, later, budgets, snapshot } = view;
    const open = candidates.filter((candidate) => mayGo(candidate, view));
    const all = [...candidates, ...later].filter(({ nodePool }) => budgets.allowed(nodePool) > 0);
    return ({ going, isHeldBack }) => {
      for (const candidate of isHeldBack ? open : all)
        looked.set(candidate.machine.key, { freed, wasYoung: isYoung(candidate, snapshot.now) });
      const chosen = new Set(going);
      // Should one stay after all, it is as good as new.
      for (const key of chosen) looked.delete(key);
      const hasFound = chosen.size > 0;
      [this.#at, this.#isHeldBack, this.#hasFound] = [now, isHeldBack, hasFound];
      this.#inVain = hasFound ? 0 : inVain;
      this.#restsUntil = now + (hasFound ? foundRestMs : longestRestMs);
      [this.#terms, this.#freed, this.#used, this.#looked] = [termsOf(view), freed, used, looked];
      [this.#there, this.#chosen] = [there, chosen];
    };
  }

  #restingUntil(view: MethodView, closed: ReadonlySet<string>, at: number): number {
    const pools = new Set(
      view.candidates.filter((one) => mayGo(one, view)).map(({ nodePool }) => nodePool.metadata.name),
    );
    for (const [name, { version, left }] of termsOf(view)) {
      const before = this.#terms.get(name);
      if (before?.version !== version) return at;
      // What was not found without regard to budgets is not found because they allow more.
      if (this.#isHeldBack && left > before.left && pools.has(name)) return at;
    }
    const gone = this.#gone(view);
    const better = this.#freedSince(view, closed) + this.#unseen(view) + gone;
    this.#hasNews = this.#hasFound || better > 1e-9;
    if (!this.#hasNews) return at + longestRestMs;
    const rest = freedRestMs * 2 ** this.#inVain * Math.min(1, muchFree / better);
    return at + Math.min(rest, this.#hasFound ? foundRestMs : gone > 0 ? freedRestMs : longestRestMs);
  }

  /**
   * The share of the cluster that is gone, or about to go: limits have more room then, and a pod may cost less on average. What the last
   * search chose counts once it is gone, and its pods are where kube-scheduler put them.
   */
  #gone({ snapshot: { machines } }: MethodView): number {
    const left = new Map(this.#there);
    for (const { key, markedForDeletion } of machines.nodes())
      if (!markedForDeletion || this.#chosen.has(key)) left.delete(key);
    const lost = { cpu: 0, memory: 0 };
    for (const { cpu, memory } of left.values()) [lost.cpu, lost.memory] = [lost.cpu + cpu, lost.memory + memory];
    return left.size > 0 ? Math.max(shareOf(lost, totalOf(machines.nodes())), leastUnseen) : 0;
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
      return [name, { version: `${uid} ${generation}`, left: budgets.left(pool) }];
    }),
  );
}
