// SPDX-License-Identifier: Apache-2.0
// Metrics as declarations (plain data, also the source of the reference page) and a registry that turns them into
// series. There is no registry of the process: whoever runs a program makes one and hands it in.
import {
  collectDefaultMetrics,
  Counter as PromCounter,
  Gauge as PromGauge,
  Histogram as PromHistogram,
  Summary as PromSummary,
  Registry,
} from 'prom-client';
import { KarpenterError } from '../base/errors.ts';
import { deepEqual } from '../base/freeze.ts';
import { compareStrings } from '../base/order.ts';
import { CollectedGauge, type Collector } from './collected-gauge.ts';
import { plainCounter, plainHistogram, removeMatching } from './plain-series.ts';

export type MetricType = 'counter' | 'gauge' | 'histogram' | 'summary';
export type Stability = 'stable' | 'beta' | 'alpha' | 'deprecated';

/** A metric before it has a registry. `L` are its label names. */
export interface MetricDeclaration<T extends MetricType = MetricType, L extends string = string> {
  readonly type: T;
  readonly name: string;
  readonly help: string;
  readonly labels: readonly L[];
  readonly stability: Stability;
  /** Only of histograms: upper bounds, ascending. */
  readonly buckets?: readonly number[];
  /** Only of summaries. */
  readonly quantiles?: readonly number[];
}

interface Declared<L extends string> {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly L[];
  readonly stability?: Stability;
}

export function counter<L extends string = never>(metric: Declared<L>): MetricDeclaration<'counter', L> {
  return { type: 'counter', labels: [], stability: 'stable', ...metric };
}

export function gauge<L extends string = never>(metric: Declared<L>): MetricDeclaration<'gauge', L> {
  return { type: 'gauge', labels: [], stability: 'stable', ...metric };
}

export function histogram<L extends string = never>(
  metric: Declared<L> & { readonly buckets?: readonly number[] },
): MetricDeclaration<'histogram', L> {
  return { type: 'histogram', labels: [], stability: 'stable', buckets: durationBuckets, ...metric };
}

export function summary<L extends string = never>(
  metric: Declared<L> & { readonly quantiles?: readonly number[] },
): MetricDeclaration<'summary', L> {
  return { type: 'summary', labels: [], stability: 'stable', quantiles: [0, 0.5, 0.9, 0.99, 1], ...metric };
}

/** Upper bounds in seconds for durations, from 5 ms to 10 min: upstream's, so that its dashboards fit. */
export const durationBuckets: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75, 2,
  2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60, 120, 150, 300, 450, 600,
];

/** `count` upper bounds, each `factor` times the one before. */
export function exponentialBuckets(start: number, factor: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => Number((start * factor ** i).toPrecision(12)));
}

export type Labels<L extends string> = Readonly<Record<L, string>>;

export interface Counter<L extends string> {
  inc(labels: Labels<L>, by?: number): void;
}

export interface Gauge<L extends string> {
  set(labels: Labels<L>, value: number): void;
  add(labels: Labels<L>, by: number): void;
  /** Drops one series. */
  delete(labels: Labels<L>): void;
  /** Drops every series whose labels include these. */
  deleteMatching(labels: Partial<Labels<L>>): void;
  /** Drops every series. */
  clear(): void;
}

/** Histograms and summaries. */
export interface Observer<L extends string> {
  observe(labels: Labels<L>, value: number): void;
  deleteMatching(labels: Partial<Labels<L>>): void;
}

/** The series of declarations, by the same names: what `Metrics.all` gives. */
export type Series<D> = { readonly [K in keyof D]: SeriesOf<D[K]> };
type SeriesOf<D> =
  D extends MetricDeclaration<infer T, infer L>
    ? { counter: Counter<L>; gauge: Gauge<L>; histogram: Observer<L>; summary: Observer<L> }[T]
    : never;

/** Two declarations claim one name. */
export class MetricConflictError extends KarpenterError {
  constructor(name: string) {
    super('KRP_METRIC_CONFLICT', `metric ${name} is declared twice, with different types, labels or buckets`);
  }
}

interface Entry {
  readonly declaration: MetricDeclaration;
  readonly handle: unknown;
}

/**
 * The metrics of one program. Asking for a declaration registers it at the first call and gives the same series to
 * everybody who asks again.
 */
export class Metrics {
  readonly #registry = new Registry();
  readonly #entries = new Map<string, Entry>();
  readonly #collected = new Map<string, CollectedGauge>();
  readonly #beforeScrape = new Set<() => void>();
  /** By the name of the metric; called after all those, which count as well. */
  readonly #flushes = new Map<string, () => void>();

  counter<L extends string>(declaration: MetricDeclaration<'counter', L>): Counter<L> {
    return this.#once(declaration, () => {
      const { handle, flush } = plainCounter(
        () => new PromCounter({ ...this.#common(declaration) }),
        declaration.labels,
      );
      this.#flushes.set(declaration.name, flush);
      return handle;
    });
  }

  gauge<L extends string>(declaration: MetricDeclaration<'gauge', L>): Gauge<L> {
    if (this.#collected.has(declaration.name)) throw new MetricConflictError(declaration.name);
    return this.#once(declaration, () => {
      const metric = new PromGauge({ ...this.#common(declaration) });
      return {
        set: (labels: Labels<L>, value: number) => metric.set(labels, value),
        add: (labels: Labels<L>, by: number) => metric.inc(labels, by),
        delete: (labels: Labels<L>) => metric.remove(labels),
        deleteMatching: (labels: Partial<Labels<L>>) => removeMatching(metric, labels),
        clear: () => metric.reset(),
      };
    });
  }

  histogram<L extends string>(declaration: MetricDeclaration<'histogram', L>): Observer<L> {
    return this.#once(declaration, () => {
      const buckets = [...(declaration.buckets ?? durationBuckets)];
      const make = (): PromHistogram<L> => new PromHistogram({ ...this.#common(declaration), buckets });
      const { handle, flush } = plainHistogram(make, declaration.labels, buckets);
      this.#flushes.set(declaration.name, flush);
      return handle;
    });
  }

  summary<L extends string>(declaration: MetricDeclaration<'summary', L>): Observer<L> {
    return this.#once(declaration, () =>
      observer(
        new PromSummary({
          ...this.#common(declaration),
          percentiles: [...(declaration.quantiles ?? [0.5, 0.9, 0.99])],
          maxAgeSeconds: 600,
          ageBuckets: 5,
          pruneAgedBuckets: true,
        }),
      ),
    );
  }

  /** The series of several declarations, by the same names. */
  all<D extends Readonly<Record<string, MetricDeclaration>>>(declared: D): Series<D> {
    const made = Object.entries(declared).map(([name, one]) => [name, this[one.type](one as never)] as const);
    return Object.fromEntries(made) as Series<D>;
  }

  /** A gauge whose series `collector` gives at each scrape; several may give parts of it. Returns the undo. */
  collect<L extends string>(declaration: MetricDeclaration<'gauge', L>, collector: Collector): () => void {
    const { name } = declaration;
    const taken = this.#entries.has(name) && !this.#collected.has(name);
    if (taken) throw new MetricConflictError(name);
    const collected = this.#once(declaration, () => {
      const made = new CollectedGauge(declaration);
      this.#collected.set(name, made);
      return made;
    });
    return collected.add(collector);
  }

  /** Calls `refresh` before each scrape: for values that are cheaper to look up than to keep. Returns the undo. */
  onScrape(refresh: () => void): () => void {
    this.#beforeScrape.add(refresh);
    return () => this.#beforeScrape.delete(refresh);
  }

  /** Adds the metrics of the process and of Node. Only for a program of its own: it measures the whole process. */
  collectProcess(): void {
    collectDefaultMetrics({ register: this.#registry });
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** Everything, in Prometheus' text format. */
  async render(): Promise<string> {
    let text = '';
    for await (const chunk of this.chunks()) text += chunk;
    return text;
  }

  /** The same in pieces, made as they are asked for: the whole may be larger than what should be in memory at once. */
  async *chunks(): AsyncGenerator<string, void, undefined> {
    this.#refresh();
    yield (await this.#registry.metrics()).replace(/\n*$/, '\n\n');
    for (const collected of this.#collected.values()) yield* collected.chunks();
  }

  /** The value of one series (of a histogram or summary: how many observations), or undefined. For tests and insight. */
  async value(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number | undefined> {
    this.#refresh(name);
    const collected = this.#collected.get(name);
    if (collected) return collected.value(labels);
    const metric = await this.#registry.getSingleMetric(name)?.get();
    const wanted = Object.entries(labels);
    const found = metric?.values.find((sample) => {
      const named = 'metricName' in sample ? sample.metricName : name;
      const has = sample.labels as Readonly<Record<string, unknown>>;
      return (named === name || named === `${name}_count`) && wanted.every(([key, value]) => has[key] === value);
    });
    return found?.value;
  }

  /** The series of one counter or gauge, without anything being rendered. */
  async series(name: string): Promise<readonly { readonly labels: Partial<Record<string, string>>; value: number }[]> {
    this.#refresh(name);
    const metric = await this.#registry.getSingleMetric(name)?.get();
    return (metric?.values ?? []).map(({ labels, value }) => ({ labels: labels as Record<string, string>, value }));
  }

  /** What has been asked for so far, by name. */
  get declarations(): MetricDeclaration[] {
    return [...this.#entries.values()]
      .map((entry) => entry.declaration)
      .toSorted((a, b) => compareStrings(a.name, b.name));
  }

  /** Brings all that the library has up to date, or only one metric. */
  #refresh(name?: string): void {
    for (const refresh of this.#beforeScrape) refresh();
    if (name === undefined) for (const flush of this.#flushes.values()) flush();
    else this.#flushes.get(name)?.();
  }

  #common<L extends string>(
    declaration: MetricDeclaration<MetricType, L>,
  ): { name: string; help: string; labelNames: L[]; registers: Registry[] } {
    const { name, help, labels } = declaration;
    return { name, help, labelNames: [...labels], registers: [this.#registry] };
  }

  #once<H>(declaration: MetricDeclaration, make: () => H): H {
    const entry = this.#entries.get(declaration.name);
    if (!entry) {
      const handle = make();
      this.#entries.set(declaration.name, { declaration, handle });
      return handle;
    }
    if (entry.declaration !== declaration && !sameShape(entry.declaration, declaration)) {
      throw new MetricConflictError(declaration.name);
    }
    return entry.handle as H;
  }
}

function sameShape(a: MetricDeclaration, b: MetricDeclaration): boolean {
  const shape = (m: MetricDeclaration): string => JSON.stringify([m.type, m.labels, m.buckets, m.quantiles]);
  return shape(a) === shape(b);
}

function observer<L extends string>(metric: PromSummary<L>): Observer<L> {
  return {
    observe: (labels, value) => metric.observe(labels, value),
    deleteMatching: (labels) => removeMatching(metric, labels),
  };
}

/** One series of a gauge with its value. */
export interface GaugeSample<L extends string = string> {
  readonly gauge: Gauge<L>;
  readonly labels: Labels<L>;
  readonly value: number;
}

interface StoredSeries {
  readonly gauge: Gauge<string>;
  readonly labels: Labels<string>;
  readonly owners: Set<string>;
  /** What it was set to last, by whichever key. */
  value: number;
}

/**
 * The series of gauges that describe objects, by the object's key: `update` replaces all that a key had, so that a
 * node that changed its zone does not count in both. A series that two keys give goes when the last one drops it.
 */
export class GaugeStore {
  /** By key its series under their ids, in the order of its samples. */
  readonly #byKey = new Map<string, Map<string, StoredSeries>>();
  readonly #series = new Map<string, StoredSeries>();
  readonly #gaugeIds = new Map<Gauge<string>, number>();

  update(key: string, samples: readonly GaugeSample[]): void {
    const before = this.#byKey.get(key);
    if (before && setAgain(before, samples)) return;
    const after = new Map<string, StoredSeries>();
    for (const { gauge: target, labels, value } of samples) {
      const id = this.#idOf(target, labels);
      const series = this.#series.get(id) ?? { gauge: target, labels, owners: new Set<string>(), value };
      after.set(id, series);
      series.owners.add(key);
      series.value = value;
      this.#series.set(id, series);
      target.set(labels, value);
    }
    if (after.size > 0) this.#byKey.set(key, after);
    else this.#byKey.delete(key);
    for (const id of before?.keys() ?? []) if (!after.has(id)) this.#drop(key, id);
  }

  delete(key: string): void {
    this.update(key, []);
  }

  /** Makes `all` the whole content: keys that are not in it are dropped. */
  replaceAll(all: ReadonlyMap<string, readonly GaugeSample[]>): void {
    for (const key of this.#byKey.keys()) if (!all.has(key)) this.delete(key);
    for (const [key, samples] of all) this.update(key, samples);
  }

  get size(): number {
    return this.#byKey.size;
  }

  #drop(key: string, id: string): void {
    const series = this.#series.get(id);
    if (!series) return;
    series.owners.delete(key);
    if (series.owners.size > 0) return;
    this.#series.delete(id);
    series.gauge.delete(series.labels);
  }

  #idOf(target: Gauge<string>, labels: Labels<string>): string {
    let id = this.#gaugeIds.get(target);
    if (id === undefined) {
      id = this.#gaugeIds.size;
      this.#gaugeIds.set(target, id);
    }
    const pairs = Object.entries(labels).toSorted(([a], [b]) => compareStrings(a, b));
    return `${id} ${JSON.stringify(pairs)}`;
  }
}

/** Mostly an object is described by the series it had: then only those that say something else are set. Gives false for others. */
function setAgain(before: ReadonlyMap<string, StoredSeries>, samples: readonly GaugeSample[]): boolean {
  const all = [...before.values()];
  const isSame = ({ gauge: target, labels }: GaugeSample, i: number): boolean =>
    all[i]!.gauge === target && deepEqual(all[i]!.labels, labels);
  if (all.length !== samples.length || !samples.every(isSame)) return false;
  for (const [i, { value }] of samples.entries()) {
    const series = all[i]!;
    if (!Object.is(series.value, value)) series.gauge.set(series.labels, (series.value = value));
  }
  return true;
}

/** What is running. `goversion` and `goarch` keep upstream's label names; the runtime here is Node. */
export const buildInfo: MetricDeclaration<'gauge', 'version' | 'goversion' | 'goarch' | 'commit'> = gauge({
  name: 'karpenter_build_info',
  help: 'Always 1; its labels say which version of the program runs, on which runtime and architecture.',
  labels: ['version', 'goversion', 'goarch', 'commit'],
});

const goArchitectures: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' };

/** Sets `karpenter_build_info`. */
export function recordBuildInfo(
  metrics: Metrics,
  build: { readonly version: string; readonly commit: string; readonly runtime: string; readonly arch: string },
): void {
  const { version, commit, runtime, arch } = build;
  metrics.gauge(buildInfo).set({ version, goversion: runtime, goarch: goArchitectures[arch] ?? arch, commit }, 1);
}
