// SPDX-License-Identifier: Apache-2.0
import { afterEach, describe, expect, test } from 'vitest';
import { settle, VirtualClock } from '../base/clock.ts';
import { SeededRandom } from '../base/random.ts';
import { KubeClient } from './client.ts';
import type { Lease } from './kinds.ts';
import { type LeaderElectionOptions, LeaderElector } from './lease.ts';
import { failure } from './testing/fake-transport.ts';
import { MemoryApi } from './testing/memory-api.ts';
import { TransportError } from './transport-error.ts';

const path = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/karpenter-leader-election';
const stops: AbortController[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop.abort();
});

function world() {
  const api = new MemoryApi();
  const clock = new VirtualClock(Date.UTC(2026, 0, 1));
  const story: string[] = [];
  let seed = 1;
  return {
    api,
    clock,
    story,
    lease: () => (api.at(path) as Lease | undefined)?.spec,
    candidate: (identity: string, options: Partial<LeaderElectionOptions> = {}) => {
      const stop = new AbortController();
      stops.push(stop);
      const transport = new MemoryLink(api);
      const elector = new LeaderElector({
        client: new KubeClient({ transport, clock }),
        name: 'karpenter-leader-election',
        namespace: 'kube-system',
        identity,
        clock,
        random: new SeededRandom(seed++),
        onStartedLeading: (signal) => {
          story.push(`${identity} leads`);
          signal.addEventListener('abort', () => story.push(`${identity} must end`));
        },
        onStoppedLeading: () => story.push(`${identity} stopped`),
        ...options,
      });
      return { elector, stop, transport, done: elector.run(stop.signal) };
    },
  };
}

/** One candidate's connection: it can be cut without cutting the others'. */
class MemoryLink extends MemoryApi {
  cut: 'none' | 'refused' | 'hangs' = 'none';

  constructor(api: MemoryApi) {
    super();
    this.answer = (request) => {
      if (this.cut === 'refused') return new TransportError('refused', 'no route');
      if (this.cut === 'hangs') return new Promise(() => undefined);
      return api.serve(request);
    };
  }
}

describe('LeaderElector', () => {
  test('makes the lease and leads', async () => {
    const { candidate, lease, clock, story } = world();
    const a = candidate('a', { labels: { app: 'karpenter' } });
    await settle();
    expect(a.elector.isLeader).toBe(true);
    expect(lease()).toEqual({
      holderIdentity: 'a',
      leaseDurationSeconds: 15,
      acquireTime: '2026-01-01T00:00:00.000000Z',
      renewTime: '2026-01-01T00:00:00.000000Z',
      leaseTransitions: 0,
    });
    await clock.step(4000);
    expect(lease()).toMatchObject({
      acquireTime: '2026-01-01T00:00:00.000000Z',
      renewTime: '2026-01-01T00:00:04.000000Z',
      leaseTransitions: 0,
    });
    expect(story).toEqual(['a leads']);
  });

  test('renews with one request at a time', async () => {
    const { candidate, clock } = world();
    const a = candidate('a');
    await settle();
    const before = a.transport.requests.length;
    await clock.step(20_000);
    expect(a.transport.requests.slice(before).map((request) => request.method)).toEqual(
      Array.from({ length: 10 }, () => 'PUT'),
    );
  });

  test('only one leads while it lives', async () => {
    const { candidate, clock, story } = world();
    const a = candidate('a');
    await settle();
    const b = candidate('b');
    await clock.step(120_000);
    expect([a.elector.isLeader, b.elector.isLeader]).toEqual([true, false]);
    expect(b.elector.leader).toBe('a');
    expect(story).toEqual(['a leads']);
  });

  test('a leader that ends in order hands over at once', async () => {
    const { candidate, clock, story, lease } = world();
    const a = candidate('a');
    await settle();
    candidate('b');
    await clock.step(1000);
    a.stop.abort();
    await a.done;
    expect(lease()).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1 });
    await clock.step(5000);
    expect(story).toEqual(['a leads', 'a must end', 'a stopped', 'b leads']);
    expect(lease()).toMatchObject({ holderIdentity: 'b', leaseDurationSeconds: 15, leaseTransitions: 1 });
  });

  test('without release, the others wait for the lease to run out', async () => {
    const { candidate, clock, story } = world();
    const a = candidate('a', { releaseOnCancel: false });
    await settle();
    candidate('b');
    await clock.step(1000);
    a.stop.abort();
    await clock.step(10_000);
    expect(story).not.toContain('b leads');
    await clock.step(15_000);
    expect(story).toContain('b leads');
  });

  test.each(['refused', 'hangs'] as const)('a leader that is cut off (%s) stops before another begins', async (how) => {
    const { candidate, clock, story } = world();
    const a = candidate('a');
    await settle();
    candidate('b');
    await clock.step(7000);
    a.transport.cut = how;
    await clock.step(60_000);
    expect(story).toEqual(['a leads', 'a must end', 'a stopped', 'b leads']);
    expect(a.elector.isLeader).toBe(false);
    await a.done;
  });

  test('short failures cost nothing', async () => {
    const { candidate, clock, story } = world();
    const a = candidate('a');
    await settle();
    candidate('b');
    for (let i = 0; i < 10; i++) {
      a.transport.cut = 'refused';
      await clock.step(6000);
      a.transport.cut = 'none';
      await clock.step(6000);
    }
    expect(story).toEqual(['a leads']);
  });

  test('the times that others write do not count, only how long they were silent', async () => {
    const { candidate, clock, story, api } = world();
    const foreign = {
      metadata: { name: 'karpenter-leader-election', namespace: 'kube-system' },
      spec: {
        holderIdentity: 'x',
        leaseDurationSeconds: 15,
        renewTime: '1999-01-01T00:00:00.000000Z',
        leaseTransitions: 4,
      },
    };
    api.serve({ method: 'POST', path: path.slice(0, path.lastIndexOf('/')), body: foreign });
    const a = candidate('a');
    await clock.step(14_000);
    expect(story).toEqual([]);
    await clock.step(6000);
    expect(story).toEqual(['a leads']);
    expect(a.elector.leader).toBe('a');
    expect((api.at(path) as Lease).spec).toMatchObject({ holderIdentity: 'a', leaseTransitions: 5 });
  });

  test('a leader whose lease was taken stops at once', async () => {
    const { candidate, clock, story, api } = world();
    const a = candidate('a');
    await settle();
    api.serve({ method: 'PATCH', path, body: { spec: { holderIdentity: 'thief' } } });
    await clock.step(2000);
    expect(story).toEqual(['a leads', 'a must end', 'a stopped']);
    await a.done;
    expect((api.at(path) as Lease).spec?.holderIdentity).toBe('thief');
  });

  test('a lease that was deleted is made again', async () => {
    const { candidate, clock, story, api } = world();
    candidate('a');
    await settle();
    api.serve({ method: 'DELETE', path });
    await clock.step(2000);
    expect((api.at(path) as Lease).spec?.holderIdentity).toBe('a');
    expect(story).toEqual(['a leads']);
  });

  test('a write from outside between renewals is no reason to stop', async () => {
    const { candidate, clock, story, api } = world();
    candidate('a');
    await settle();
    api.serve({ method: 'PATCH', path, body: { metadata: { annotations: { note: 'hello' } } } });
    await clock.step(4000);
    expect(story).toEqual(['a leads']);
    expect(api.at(path)?.metadata.annotations).toEqual({ note: 'hello' });
  });

  test('of two that race, one wins', async () => {
    const { candidate, clock, story } = world();
    const both = [candidate('a'), candidate('b')];
    await clock.step(100);
    expect(both.filter(({ elector }) => elector.isLeader).length).toBe(1);
    await clock.step(60_000);
    expect(story.length).toBe(1);
  });

  test('keeps trying while it may not', async () => {
    const { candidate, clock, story, api } = world();
    const serve = api.serve.bind(api);
    api.serve = () => failure(403, 'Forbidden');
    candidate('a');
    await clock.step(60_000);
    api.serve = serve;
    await clock.step(5000);
    expect(story).toEqual(['a leads']);
  });

  test('tells who leads, once per change', async () => {
    const { candidate, clock } = world();
    const a = candidate('a');
    await settle();
    const seen: string[] = [];
    candidate('b', { onNewLeader: (identity) => seen.push(identity) });
    await clock.step(10_000);
    a.stop.abort();
    await clock.step(10_000);
    expect(seen).toEqual(['a', 'b']);
  });

  test('ends while waiting', async () => {
    const { candidate, clock } = world();
    candidate('a');
    await settle();
    const b = candidate('b');
    await clock.step(3000);
    b.stop.abort();
    await b.done;
    expect(b.elector.isLeader).toBe(false);
  });

  test('refuses times that cannot work', () => {
    const { candidate } = world();
    expect(() => candidate('a', { leaseDurationMs: 10_000 })).toThrow('leaseDuration must exceed renewDeadline');
    expect(() => candidate('a', { retryPeriodMs: 9000 })).toThrow('renewDeadline must exceed');
    expect(() => candidate('a', { retryPeriodMs: 0 })).toThrow('positive');
    expect(() => candidate('')).toThrow('identity');
  });
});
