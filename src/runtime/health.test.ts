// SPDX-License-Identifier: Apache-2.0
import { EventEmitter } from 'node:events';
import { connect } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { RealClock } from '../base/clock.ts';
import { HealthChecks, healthRoute, metricsRoute, type Route, SmallServer } from './health.ts';
import { RecordingLogger, silentLogger } from './logging.ts';
import { Metrics } from './metrics.ts';
import { profilingRoute } from './profiling.ts';
import { stopOnSignals } from './signals.ts';

const servers: SmallServer[] = [];
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
});

async function serve(...routes: Route[]) {
  const log = new RecordingLogger();
  const server = new SmallServer({ name: 'test', routes, log });
  servers.push(server);
  const port = await server.listen(0, '127.0.0.1');
  const get = async (path: string, init?: RequestInit) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, init);
    return { status: response.status, body: await response.text(), headers: response.headers };
  };
  return { get, log, port };
}

describe('a probe', () => {
  const checks = new HealthChecks()
    .add('caches', () => undefined)
    .add('crds', () => Promise.reject(new Error('nodepools are missing')));

  test('is ok when every check is', async () => {
    const { get } = await serve(healthRoute('/healthz', new HealthChecks()));
    expect(await get('/healthz')).toMatchObject({ status: 200, body: 'ok' });
    expect((await get('/healthz?verbose')).body).toBe('[+]ping ok\nhealthz check passed\n');
  });

  test('names what failed and why', async () => {
    const { get } = await serve(healthRoute('/readyz', checks));
    expect(await get('/readyz')).toMatchObject({
      status: 500,
      body: '[+]ping ok\n[+]caches ok\n[-]crds failed: nodepools are missing\nreadyz check failed\n',
    });
  });

  test('can be asked for one check, or without one', async () => {
    const { get } = await serve(healthRoute('/readyz', checks));
    expect((await get('/readyz/caches')).status).toBe(200);
    expect((await get('/readyz/crds')).status).toBe(500);
    expect((await get('/readyz/moon')).status).toBe(404);
    expect((await get('/readyz?exclude=crds')).status).toBe(200);
    expect((await get('/readyz?exclude=crds&verbose')).body).toContain('[+]crds excluded: ok');
  });
});

describe('a small server', () => {
  test('serves metrics in the text format', async () => {
    const metrics = new Metrics();
    metrics.counter({ type: 'counter', name: 'x_total', help: 'x', labels: [], stability: 'stable' }).inc({}, 3);
    const { get } = await serve(metricsRoute(metrics));
    const answer = await get('/metrics');
    expect(answer.headers.get('content-type')).toContain('text/plain; version=0.0.4');
    expect(answer.body).toContain('# TYPE x_total counter\nx_total 3');
  });

  test('serves metrics packed to whoever can unpack them, and as they are to others', async () => {
    const metrics = new Metrics();
    const zones = { type: 'gauge', name: 'zones', help: 'z', labels: ['zone'], stability: 'stable' } as const;
    metrics.collect(zones, function* () {
      for (let i = 0; i < 20_000; i++) yield { labels: `zone="zone-${i}"`, value: i };
    });
    const { get } = await serve(metricsRoute(metrics));
    const [plain, packed] = [
      await get('/metrics', { headers: { 'accept-encoding': 'gzip;q=0' } }),
      await get('/metrics', { headers: { 'accept-encoding': 'deflate, gzip;q=0.5' } }),
    ];
    expect(plain.headers.get('content-encoding')).toBeNull();
    expect(packed.headers.get('content-encoding')).toBe('gzip');
    expect(packed.body).toBe(plain.body);
    expect(plain.body).toContain('zones{zone="zone-19999"} 19999\n');
  });

  test('takes no harm from a scraper that goes away', async () => {
    const metrics = new Metrics();
    const zones = { type: 'gauge', name: 'zones', help: 'z', labels: ['zone'], stability: 'stable' } as const;
    const ended = Promise.withResolvers<void>();
    metrics.collect(zones, function* () {
      try {
        for (let i = 0; ; i++) yield { labels: `zone="zone-${i}"`, value: i };
      } finally {
        ended.resolve();
      }
    });
    const { port, log } = await serve(metricsRoute(metrics));
    const response = await fetch(`http://127.0.0.1:${port}/metrics`);
    await response.body?.cancel();
    await ended.promise;
    expect(log.messages('error')).toEqual([]);
  });

  test('refuses what it does not know', async () => {
    const { get } = await serve();
    expect((await get('/')).status).toBe(404);
    expect((await get('/metrics', { method: 'POST' })).status).toBe(405);
  });

  test('stays up when a route fails, and says so in the log only', async () => {
    const { get, log } = await serve(() => {
      throw new Error('secret');
    });
    expect(await get('/x')).toMatchObject({ status: 500, body: 'internal error\n' });
    expect(log.messages('error')).toEqual(['answering a request failed']);
    expect((await get('/x')).status).toBe(500);
  });

  test('stays up when it is sent garbage', async () => {
    const { get, port } = await serve(healthRoute('/healthz', new HealthChecks()));
    await new Promise<void>((resolve) => {
      const socket = connect(port, '127.0.0.1', () =>
        socket.write('GET //[ HTTP/1.1\r\nHost: x\r\n\r\n\u0000\u0001garbage'),
      );
      socket.on('data', () => socket.destroy());
      socket.on('close', () => resolve());
    });
    expect((await get('/healthz')).status).toBe(200);
    expect((await get('/healthz/%E0%A4%A')).status).toBe(404);
  });

  test('closes though a client holds its connection', async () => {
    const { port } = await serve();
    const socket = connect(port, '127.0.0.1');
    await new Promise((resolve) => socket.on('connect', resolve));
    const closed = new Promise((resolve) => socket.on('close', resolve));
    socket.on('error', () => undefined);
    await servers.pop()!.close();
    await closed;
  });
});

describe('profiling', () => {
  test('gives a CPU profile and a heap snapshot', async () => {
    const { get, port } = await serve(profilingRoute(new RealClock()));
    const profile = await get('/debug/pprof/profile?seconds=0.05');
    expect(JSON.parse(profile.body)).toHaveProperty('nodes');
    const hangUp = new AbortController();
    const snapshot = await fetch(`http://127.0.0.1:${port}/debug/pprof/heap`, { signal: hangUp.signal });
    const { value } = await snapshot.body!.getReader().read();
    expect(new TextDecoder().decode(value)).toMatch(/^\{"snapshot":/);
    hangUp.abort();
    expect((await get('/debug/pprof/')).body).toContain('heap');
    expect((await get('/debug/pprof/profile?seconds=x')).status).toBe(400);
    expect((await get('/debug/pprof/goroutine')).status).toBe(404);
  });

  test('takes one at a time', async () => {
    const { get } = await serve(profilingRoute(new RealClock()));
    const [first, second] = await Promise.all([
      get('/debug/pprof/profile?seconds=0.2'),
      get('/debug/pprof/profile?seconds=0.2'),
    ]);
    expect([first.status, second.status].toSorted((a, b) => a - b)).toEqual([200, 429]);
  });
});

describe('a signal of the system', () => {
  test('stops once, and insists when it comes again', () => {
    const source = new EventEmitter();
    let exits = 0;
    const { signal, dispose } = stopOnSignals(source, { log: silentLogger, exit: () => exits++ });
    source.emit('SIGTERM');
    expect([signal.aborted, exits]).toEqual([true, 0]);
    source.emit('SIGINT');
    expect(exits).toBe(1);
    dispose();
    expect(source.listenerCount('SIGTERM')).toBe(0);
  });
});
