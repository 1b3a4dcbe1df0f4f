// SPDX-License-Identifier: Apache-2.0
// What is counted often is kept as plain numbers and handed to the library when somebody looks: it checks, sorts and joins the
// labels of every call anew, and makes all buckets of a series that nobody may ever ask for.
import type { Counter as PromCounter, Histogram as PromHistogram } from 'prom-client';
import type { Counter, Labels, Observer } from './metrics.ts';

/** A metric, and how the library gets to know what was counted. The library's own is made when it is first needed. */
interface Plain<H> {
  readonly handle: H;
  readonly flush: () => void;
}

/** What is known of the series of one metric, by their labels. */
class ByLabels<L extends string, R extends { readonly labels: Labels<L> }> {
  readonly #names: readonly L[];
  readonly #make: (labels: Labels<L>) => R;
  readonly #byText = new Map<string, R>();
  /** Whoever counts often hands in the same frozen labels each time: they are found by the object itself. */
  #byObject = new WeakMap<object, R>();

  constructor(names: readonly L[], make: (labels: Labels<L>) => R) {
    this.#names = names;
    this.#make = make;
  }

  /** Undefined for labels other than the metric has: those are for the library to judge. */
  of(labels: Labels<L>): R | undefined {
    return this.#byObject.get(labels) ?? this.#find(labels);
  }

  /** Forgets the series whose labels include these. */
  drop(labels: Partial<Labels<L>>): void {
    const wanted = Object.entries(labels) as [L, string][];
    for (const [text, record] of this.#byText)
      if (wanted.every(([name, value]) => record.labels[name] === value)) this.#byText.delete(text);
    this.#byObject = new WeakMap();
  }

  #find(labels: Labels<L>): R | undefined {
    let text = '';
    for (const name of this.#names) {
      const value: unknown = labels[name];
      if (typeof value !== 'string') return undefined;
      text += `${value}\u0000`;
    }
    let given = 0;
    for (const _ in labels) given++;
    if (given !== this.#names.length) return undefined;
    let record = this.#byText.get(text);
    if (!record) {
      record = this.#make({ ...labels });
      this.#byText.set(text, record);
    }
    if (Object.isFrozen(labels)) this.#byObject.set(labels, record);
    return record;
  }
}

interface Count<L extends string> {
  readonly labels: Labels<L>;
  by: number;
  waits: boolean;
}

/** A counter that the library hears of when somebody looks. */
export function plainCounter<L extends string>(make: () => PromCounter<L>, names: readonly L[]): Plain<Counter<L>> {
  let made: PromCounter<L> | undefined;
  const metric = (): PromCounter<L> => (made ??= make());
  const counts = new ByLabels<L, Count<L>>(names, (labels) => ({ labels, by: 0, waits: false }));
  let waiting: Count<L>[] = [];
  const flush = (): void => {
    const kept = metric();
    for (const count of waiting) {
      kept.inc(count.labels, count.by);
      count.by = 0;
      count.waits = false;
    }
    waiting = [];
  };
  const inc = (labels: Labels<L>, by = 1): void => {
    // What no counter can do is refused at once.
    const count = by >= 0 && by < Number.POSITIVE_INFINITY ? counts.of(labels) : undefined;
    if (!count) return metric().inc(labels, by);
    count.by += by;
    if (count.waits) return;
    count.waits = true;
    waiting.push(count);
  };
  return { handle: { inc }, flush };
}

interface LabelledSeries {
  readonly labels: Readonly<Record<string, unknown>>;
}

/** A series of a histogram as the library keeps it. */
interface HistogramSeries extends LabelledSeries {
  sum: number;
  count: number;
  readonly bucketValues: Record<number, number>;
}

/** What was observed of a series since somebody looked. */
interface Tally<L extends string> {
  readonly labels: Labels<L>;
  /** By bucket; what is above all of them is only counted. */
  readonly buckets: Float64Array;
  count: number;
  sum: number;
  series: HistogramSeries | undefined;
}

/** A histogram that the library hears of when somebody looks. */
export function plainHistogram<L extends string>(
  make: () => PromHistogram<L>,
  names: readonly L[],
  bounds: readonly number[],
): Plain<Observer<L>> {
  let made: PromHistogram<L> | undefined;
  const metric = (): PromHistogram<L> => (made ??= make());
  const tallies = new ByLabels<L, Tally<L>>(names, (labels) => ({
    labels,
    buckets: new Float64Array(bounds.length + 1),
    count: 0,
    sum: 0,
    series: undefined,
  }));
  let waiting: Tally<L>[] = [];
  const flush = (): void => {
    open(metric(), waiting);
    for (const tally of waiting) {
      const series = tally.series!;
      const { buckets } = tally;
      series.sum += tally.sum;
      series.count += tally.count;
      for (const [i, bound] of bounds.entries()) if (buckets[i]! > 0) series.bucketValues[bound]! += buckets[i]!;
      buckets.fill(0);
      tally.sum = 0;
      tally.count = 0;
    }
    waiting = [];
  };
  const handle: Observer<L> = {
    observe: (labels, value) => {
      const tally = Number.isFinite(value) ? tallies.of(labels) : undefined;
      if (!tally) return metric().observe(labels, value);
      if (tally.count++ === 0) waiting.push(tally);
      tally.sum += value;
      tally.buckets[bucketOf(bounds, value)]!++;
    },
    deleteMatching: (labels) => {
      flush();
      tallies.drop(labels);
      removeMatching(metric(), labels);
    },
  };
  return { handle, flush };
}

/** Finds or makes the library's own series of tallies: it has no call for many observations at once. */
function open<L extends string>(metric: PromHistogram<L>, tallies: readonly Tally<L>[]): void {
  const fresh = new Map<object, Tally<L>>();
  for (const tally of tallies) {
    if (tally.series) continue;
    metric.zero(tally.labels);
    fresh.set(tally.labels, tally);
  }
  if (fresh.size === 0) return;
  for (const series of allOf<HistogramSeries>(metric)) {
    const tally = fresh.get(series.labels);
    if (tally) tally.series = series;
  }
}

/** The place of the first bound that a value does not exceed; behind the last when it exceeds all. */
function bucketOf(bounds: readonly number[], value: number): number {
  let [low, high] = [0, bounds.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (value <= bounds[middle]!) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Drops the series whose labels include these. */
export function removeMatching<L extends string>(
  metric: { remove(labels: Labels<L>): void },
  labels: Partial<Labels<L>>,
): void {
  const wanted = Object.entries(labels);
  for (const series of allOf(metric))
    if (wanted.every(([key, value]) => series.labels[key] === value)) metric.remove(series.labels as Labels<L>);
}

/** All series of a metric. The library has no such call; its own table is the only place where labels are. */
function allOf<S extends LabelledSeries>(metric: object): S[] {
  return Object.values((metric as { readonly hashMap: Record<string, S> }).hashMap);
}
