// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test, vi } from 'vitest';
import { labelText } from './collected-gauge.ts';
import {
  counter,
  durationBuckets,
  exponentialBuckets,
  GaugeStore,
  gauge,
  histogram,
  Metrics,
  recordBuildInfo,
  summary,
} from './metrics.ts';

const pods = gauge({ name: 'pods_state', help: 'Pods.', labels: ['name', 'phase'] });

describe('a registry', () => {
  test('turns declarations into series in the text format', async () => {
    const metrics = new Metrics();
    metrics
      .counter(counter({ name: 'made_total', help: 'Made.', labels: ['reason'] }))
      .inc({ reason: 'a "quoted"\n' }, 2);
    metrics.histogram(histogram({ name: 'took_seconds', help: 'Took.', buckets: [1, 2] })).observe({}, 1.5);
    const lasted = metrics.summary(summary({ name: 'lasted_seconds', help: 'Lasted.' }));
    for (let i = 1; i <= 100; i++) lasted.observe({}, i);
    const text = await metrics.render();
    expect(text).toContain(
      '# HELP made_total Made.\n# TYPE made_total counter\nmade_total{reason="a \\"quoted\\"\\n"} 2',
    );
    expect(text).toContain('took_seconds_bucket{le="1"} 0\ntook_seconds_bucket{le="2"} 1');
    expect(text).toContain('took_seconds_sum 1.5');
    expect(text).toContain('lasted_seconds{quantile="0"} 1\n');
    expect(text).toContain('lasted_seconds{quantile="1"} 100\n');
    expect(text).toContain('lasted_seconds_count 100');
  });

  test('counts the same in a histogram whether labels are handed in anew or as one frozen object', async () => {
    const declaration = histogram({ name: 'took_seconds', help: 'Took.', labels: ['pool'], buckets: [1, 2, 4] });
    const texts = await Promise.all(
      [Object.freeze({ pool: 'a' }), undefined].map(async (frozen) => {
        const metrics = new Metrics();
        const took = metrics.histogram(declaration);
        took.observe({ pool: 'b' }, 3);
        for (const value of [0, 1, 1.5, 2, 4, 5]) took.observe(frozen ?? { pool: 'a' }, value);
        took.deleteMatching({ pool: 'b' });
        took.observe(frozen ?? { pool: 'a' }, 3);
        took.deleteMatching({ pool: 'a' });
        for (const value of [1, 9]) took.observe(frozen ?? { pool: 'a' }, value);
        expect(() => took.observe(frozen ?? { pool: 'a' }, Number.NaN)).toThrow(TypeError);
        return metrics.render();
      }),
    );
    expect(texts[0]).toContain('took_seconds_bucket{le="1",pool="a"} 1\n');
    expect(texts[0]).toContain('took_seconds_bucket{le="+Inf",pool="a"} 2\n');
    expect(texts[0]).toBe(texts[1]);
  });

  test('gives the series of many declarations at once, each of its own type', async () => {
    const metrics = new Metrics();
    const made = counter({ name: 'made_total', help: 'Made.', labels: ['reason'] });
    const took = histogram({ name: 'took_seconds', help: 'Took.' });
    const lasted = summary({ name: 'lasted_seconds', help: 'Lasted.' });
    const series = metrics.all({ made, pods, took, lasted });
    series.made.inc({ reason: 'a' }, 2);
    series.pods.set({ name: 'one', phase: 'Running' }, 3);
    for (const observer of [series.took, series.lasted]) observer.observe({}, 1);
    // @ts-expect-error: labels are those of the declaration.
    const wrong = (): void => series.made.inc({ cause: 'a' });
    expect(wrong).toThrow(/cause/);
    // @ts-expect-error: and so are the calls.
    expect(series.made.set).toBeUndefined();
    expect(await metrics.value('made_total', { reason: 'a' })).toBe(2);
    expect(await metrics.value('pods_state', { name: 'one' })).toBe(3);
    expect([await metrics.value('took_seconds'), await metrics.value('lasted_seconds')]).toEqual([1, 1]);
    metrics.counter(made).inc({ reason: 'a' });
    expect(await metrics.value('made_total', { reason: 'a' })).toBe(3);
    metrics.onScrape(() => series.made.inc({ reason: 'b' }, 5));
    expect(await metrics.series('made_total')).toEqual([
      { labels: { reason: 'a' }, value: 3 },
      { labels: { reason: 'b' }, value: 5 },
    ]);
    expect(await metrics.series('unheard_of')).toEqual([]);
  });

  test('gives everybody who asks for a metric the same series', async () => {
    const metrics = new Metrics();
    const made = counter({ name: 'made_total', help: 'Made.' });
    metrics.counter(made).inc({});
    metrics.counter(counter({ name: 'made_total', help: 'Made.' })).inc({});
    expect(await metrics.value('made_total')).toBe(2);
  });

  test('refuses two metrics of one name', () => {
    const metrics = new Metrics();
    metrics.counter(counter({ name: 'x', help: 'x', labels: ['a'] }));
    expect(() => metrics.counter(counter({ name: 'x', help: 'x', labels: ['b'] }))).toThrow('declared twice');
    expect(() => metrics.gauge(gauge({ name: 'x', help: 'x', labels: ['a'] }))).toThrow('declared twice');
  });

  test('knows nothing of another registry', async () => {
    const [one, other] = [new Metrics(), new Metrics()];
    one.gauge(pods).set({ name: 'a', phase: 'Running' }, 1);
    expect(await other.render()).not.toContain('pods_state');
  });

  test('asks for fresh values before each scrape, until told not to', async () => {
    const metrics = new Metrics();
    const depth = metrics.gauge(gauge({ name: 'depth', help: 'Depth.' }));
    let now = 1;
    const stop = metrics.onScrape(() => depth.set({}, now++));
    expect(await metrics.render()).toContain('depth 1');
    expect(await metrics.value('depth')).toBe(2);
    stop();
    expect(await metrics.value('depth')).toBe(2);
  });

  test('tells what it holds, by name', () => {
    const metrics = new Metrics();
    metrics.gauge(pods);
    metrics.counter(counter({ name: 'a_total', help: 'a' }));
    expect(metrics.declarations.map(({ name }) => name)).toEqual(['a_total', 'pods_state']);
  });

  test('has the process in it when asked', async () => {
    const metrics = new Metrics();
    metrics.collectProcess();
    expect(await metrics.render()).toContain('process_cpu_seconds_total');
  });
});

test('a gauge drops one series, those that match, or all', async () => {
  const metrics = new Metrics();
  const state = metrics.gauge(pods);
  for (const name of ['a', 'b', 'c']) {
    for (const phase of ['Pending', 'Running']) state.set({ name, phase }, 1);
  }
  state.delete({ name: 'a', phase: 'Pending' });
  expect(await metrics.value('pods_state', { name: 'a', phase: 'Pending' })).toBeUndefined();
  expect(await metrics.value('pods_state', { name: 'a', phase: 'Running' })).toBe(1);
  state.deleteMatching({ name: 'b' });
  expect(await metrics.value('pods_state', { name: 'b' })).toBeUndefined();
  expect(await metrics.value('pods_state', { name: 'c' })).toBe(1);
  state.clear();
  expect(await metrics.value('pods_state', { name: 'c' })).toBeUndefined();
});

test('an observer drops the series that match', async () => {
  const metrics = new Metrics();
  const took = metrics.histogram(histogram({ name: 'took_seconds', help: 'Took.', labels: ['pool'] }));
  took.observe({ pool: 'a' }, 1);
  took.observe({ pool: 'b' }, 1);
  took.deleteMatching({ pool: 'a' });
  expect(await metrics.value('took_seconds', { pool: 'a' })).toBeUndefined();
  expect(await metrics.value('took_seconds', { pool: 'b' })).toBe(1);
});

describe('a gauge store', () => {
  function makeStore() {
    const metrics = new Metrics();
    const state = metrics.gauge(pods);
    const store = new GaugeStore();
    const sample = (name: string, phase: string, value = 1) => ({ gauge: state, labels: { name, phase }, value });
    const value = (name: string, phase: string) => metrics.value('pods_state', { name, phase });
    return { store, sample, value };
  }

  test('replaces what a key had', async () => {
    const { store, sample, value } = makeStore();
    store.update('default/a', [sample('a', 'Pending')]);
    store.update('default/a', [sample('a', 'Running', 2)]);
    expect([await value('a', 'Pending'), await value('a', 'Running')]).toEqual([undefined, 2]);
    store.delete('default/a');
    expect([await value('a', 'Running'), store.size]).toEqual([undefined, 0]);
  });

  test('sets what a key says again only where it says something else, whoever said it last', async () => {
    const { store, sample, value } = makeStore();
    const set = vi.fn();
    const watched = { set, add: vi.fn(), delete: vi.fn(), deleteMatching: vi.fn(), clear: vi.fn() };
    const of = (amount: number) => [{ gauge: watched, labels: { name: 'a', phase: 'Running' }, value: amount }];
    store.update('one', of(1));
    store.update('one', of(1));
    expect(set).toHaveBeenCalledTimes(1);
    store.update('two', of(2));
    store.update('one', of(1));
    expect(set.mock.calls.map(([, amount]) => amount as number)).toEqual([1, 2, 1]);
    store.update('b', [sample('b', 'Running'), sample('c', 'Running')]);
    store.update('b', [sample('b', 'Running', 3), sample('c', 'Running')]);
    store.update('b', [sample('c', 'Running', 4), sample('b', 'Running', 5)]);
    expect([await value('b', 'Running'), await value('c', 'Running')]).toEqual([5, 4]);
  });

  test('keeps a series as long as one of its keys gives it', async () => {
    const { store, sample, value } = makeStore();
    store.update('one', [sample('a', 'Running')]);
    store.update('two', [sample('a', 'Running')]);
    store.delete('one');
    expect(await value('a', 'Running')).toBe(1);
    store.delete('two');
    expect(await value('a', 'Running')).toBeUndefined();
  });

  test('drops the keys that a full replacement leaves out', async () => {
    const { store, sample, value } = makeStore();
    store.update('a', [sample('a', 'Running')]);
    store.update('b', [sample('b', 'Running')]);
    store.replaceAll(new Map([['b', [sample('b', 'Running', 5)]]]));
    expect([await value('a', 'Running'), await value('b', 'Running'), store.size]).toEqual([undefined, 5, 1]);
  });
});

test('buckets are those of upstream', () => {
  expect(durationBuckets).toHaveLength(45);
  expect([durationBuckets[0], durationBuckets.at(-1)]).toEqual([0.005, 600]);
  expect(durationBuckets).toEqual(durationBuckets.toSorted((a, b) => a - b));
  expect(exponentialBuckets(1, 2, 5)).toEqual([1, 2, 4, 8, 16]);
  expect(exponentialBuckets(1e-8, 10, 3)).toEqual([1e-8, 1e-7, 1e-6]);
});

test('the build tells what runs', async () => {
  const metrics = new Metrics();
  recordBuildInfo(metrics, { version: '0.1.0', commit: 'abc', runtime: 'v24', arch: 'x64' });
  expect(await metrics.render()).toContain(
    'karpenter_build_info{version="0.1.0",goversion="v24",goarch="amd64",commit="abc"} 1',
  );
});

describe('a collected gauge', () => {
  const zones = gauge({ name: 'zones', help: 'Zones.', labels: ['zone'] });

  test('is read anew at each scrape', async () => {
    const metrics = new Metrics();
    const counts = new Map([['a', 1]]);
    metrics.collect(zones, () => [...counts].map(([zone, value]) => ({ labels: labelText({ zone }), value })));
    expect(await metrics.render()).toContain('# HELP zones Zones.\n# TYPE zones gauge\nzones{zone="a"} 1\n');
    counts.delete('a');
    expect(await metrics.render()).not.toContain('zones');
    counts.set('"b"\n', Number.POSITIVE_INFINITY);
    expect(await metrics.render()).toContain('zones{zone="\\"b\\"\\n"} +Inf\n');
    expect(await metrics.value('zones', { zone: '"b"\n' })).toBe(Number.POSITIVE_INFINITY);
  });

  test('takes its series from all who know some, until they go', async () => {
    const metrics = new Metrics();
    const undo = metrics.collect(zones, () => [{ labels: 'zone="a"', value: 1 }]);
    metrics.collect(zones, () => [{ labels: 'zone="b"', value: 2 }]);
    expect(await metrics.value('zones', { zone: 'a' })).toBe(1);
    expect(await metrics.value('zones', { zone: 'b' })).toBe(2);
    undo();
    expect(await metrics.value('zones', { zone: 'a' })).toBeUndefined();
  });

  test('comes in pieces when it is large', async () => {
    const metrics = new Metrics();
    metrics.collect(zones, function* () {
      for (let i = 0; i < 10_000; i++) yield { labels: labelText({ zone: `zone-${i}` }), value: i };
    });
    const chunks: string[] = [];
    for await (const chunk of metrics.chunks()) chunks.push(chunk);
    expect(chunks.length).toBeGreaterThan(3);
    expect(chunks.join('')).toBe(await metrics.render());
    expect(chunks.join('').match(/^zones\{/gm)).toHaveLength(10_000);
  });

  test('cannot also be a kept one', () => {
    const metrics = new Metrics();
    metrics.collect(zones, () => []);
    expect(() => metrics.gauge(zones)).toThrow('declared twice');
    metrics.gauge(pods);
    expect(() => metrics.collect(pods, () => [])).toThrow('declared twice');
  });
});
