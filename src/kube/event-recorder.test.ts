// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { settle, VirtualClock } from '../base/clock.ts';
import { KubeClient } from './client.ts';
import { EventRecorder, type EventRecorderOptions, type EventToRecord } from './event-recorder.ts';
import type { Event } from './kinds.ts';
import { TokenBucket } from './rate-limiter.ts';
import { failure } from './testing/fake-transport.ts';
import { MemoryApi } from './testing/memory-api.ts';
import { TransportError } from './transport-error.ts';

const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1', uid: 'u1', resourceVersion: '5' } };
const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web', namespace: 'shop', uid: 'u2' } };

const blocked = (more: Partial<EventToRecord> = {}): EventToRecord => ({
  object: node,
  type: 'Normal',
  reason: 'DisruptionBlocked',
  message: 'a pod is in the way',
  dedupeValues: ['n1'],
  ...more,
});

function setup(options: Partial<EventRecorderOptions> = {}) {
  const api = new MemoryApi();
  const clock = new VirtualClock(Date.UTC(2026, 0, 1));
  const lines: string[] = [];
  const say = (message: string): void => void lines.push(message);
  const log = { debug: say, info: say, warn: say, error: say };
  const recorder = new EventRecorder({ client: new KubeClient({ transport: api, clock }), clock, log, ...options });
  const stored = (namespace = 'default'): Event[] =>
    (api.serve({ method: 'GET', path: `/api/v1/namespaces/${namespace}/events` }).body as { items: Event[] }).items;
  return { api, clock, recorder, stored, lines };
}

describe('EventRecorder', () => {
  test('writes what kubectl describe shows, in "default" for objects without a namespace', async () => {
    const { recorder, stored } = setup();
    recorder.publish(
      blocked(),
      blocked({ object: pod, type: 'Warning', reason: 'FailedScheduling', dedupeValues: ['u2'] }),
    );
    await recorder.flush();
    expect(stored()).toMatchObject([
      {
        metadata: { name: expect.stringMatching(/^n1\.[0-9a-f]{16}$/) as string, namespace: 'default' },
        involvedObject: { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'u1', resourceVersion: '5' },
        type: 'Normal',
        reason: 'DisruptionBlocked',
        message: 'a pod is in the way',
        count: 1,
        firstTimestamp: '2026-01-01T00:00:00Z',
        lastTimestamp: '2026-01-01T00:00:00Z',
        source: { component: 'karpenter' },
        reportingComponent: 'karpenter',
      },
    ]);
    expect(stored('shop')).toMatchObject([{ involvedObject: { namespace: 'shop', name: 'web' }, type: 'Warning' }]);
  });

  test('does not repeat itself within the window', async () => {
    const { recorder, stored, clock } = setup();
    recorder.publish(blocked(), blocked(), blocked({ message: 'other words, same thing' }));
    await recorder.flush();
    await clock.step(119_000);
    recorder.publish(blocked());
    await recorder.flush();
    expect(stored().map((event) => event.count)).toEqual([1]);
    await clock.step(1000);
    recorder.publish(blocked());
    await recorder.flush();
    expect(stored()).toMatchObject([
      { count: 2, firstTimestamp: '2026-01-01T00:00:00Z', lastTimestamp: '2026-01-01T00:02:00Z' },
    ]);
  });

  test('the key is the reason whatever its case, and the values one by one', async () => {
    const { recorder, stored } = setup();
    recorder.publish(
      blocked({ dedupeValues: ['a', 'b'] }),
      blocked({ dedupeValues: ['a', 'b'], reason: 'DISRUPTIONBLOCKED' }),
      blocked({ dedupeValues: ['a-b'], message: 'second' }),
    );
    await recorder.flush();
    expect(stored().length).toBe(2);
  });

  test('a window of its own, and a limiter for its class', async () => {
    const { recorder, stored, clock } = setup();
    const limiter = new TokenBucket({ qps: 5, burst: 10, clock });
    for (let i = 0; i < 30; i++) {
      recorder.publish(
        blocked({
          limiter,
          dedupeValues: [`${i}`],
          object: { ...pod, metadata: { ...pod.metadata, name: `p${i}`, uid: `${i}` } },
        }),
      );
    }
    await recorder.flush();
    expect(stored('shop').length).toBe(10);
    recorder.publish(blocked({ dedupeMs: 900_000 }));
    await recorder.flush();
    await clock.step(899_000);
    recorder.publish(blocked());
    await recorder.flush();
    expect(stored()).toMatchObject([{ count: 1 }]);
  });

  test('an event that has gone is written anew instead of counted up', async () => {
    const { recorder, stored, clock, api } = setup();
    recorder.publish(blocked());
    await recorder.flush();
    api.serve({ method: 'DELETE', path: `/api/v1/namespaces/default/events/${stored()[0]!.metadata.name}` });
    await clock.step(3_600_000);
    recorder.publish(blocked());
    await recorder.flush();
    expect(stored()).toMatchObject([{ count: 1, firstTimestamp: '2026-01-01T01:00:00Z' }]);
  });

  test('many different messages for one reason become one event', async () => {
    const { recorder, stored } = setup();
    for (let i = 0; i < 15; i++) recorder.publish(blocked({ message: `pod ${i}`, dedupeValues: [`${i}`] }));
    await recorder.flush();
    const events = stored();
    expect(events.length).toBe(11);
    expect(events.filter((event) => event.message?.startsWith('(combined from similar events): '))).toMatchObject([
      { count: 5, message: '(combined from similar events): pod 14' },
    ]);
  });

  test('one object cannot flood the rest', async () => {
    const { recorder, stored } = setup();
    for (let i = 0; i < 100; i++) recorder.publish(blocked({ reason: `R${i}` }));
    await recorder.flush();
    expect(stored().length).toBe(25);
  });

  test("names are unique and valid, however long the object's", async () => {
    const { recorder, stored } = setup();
    const long = { ...node, metadata: { name: 'n'.repeat(253), uid: 'u' } };
    recorder.publish(blocked({ object: long }), blocked({ object: long, reason: 'Other' }));
    await recorder.flush();
    const names = stored().map((event) => event.metadata.name!);
    expect(new Set(names).size).toBe(2);
    for (const name of names) expect(name.length).toBeLessThanOrEqual(253);
  });

  test('a refusal is logged and forgotten', async () => {
    const { recorder, stored, api, lines } = setup();
    const serve = api.answer;
    api.answer = () => failure(403, 'Forbidden');
    recorder.publish(blocked());
    await recorder.flush();
    api.answer = serve;
    recorder.publish(blocked({ reason: 'Next' }));
    await recorder.flush();
    expect(stored().map((event) => event.reason)).toEqual(['Next']);
    expect(lines).toEqual(['failed to record event']);
  });

  test('an unreachable server is waited for, two minutes at most', async () => {
    const { recorder, stored, api, clock } = setup();
    const serve = api.answer;
    api.answer = () => new TransportError('refused', 'down');
    recorder.publish(blocked());
    await clock.step(35_000);
    api.answer = serve;
    await clock.step(10_000);
    expect(stored().length).toBe(1);
    api.answer = () => new TransportError('refused', 'down');
    recorder.publish(blocked({ reason: 'Lost' }));
    await clock.step(121_000);
    await recorder.flush();
    expect(stored().length).toBe(1);
  });

  test('an event whose receipt was lost is not written twice', async () => {
    const { recorder, stored, api, clock } = setup();
    const serve = api.answer;
    api.answer = async (request) => {
      await serve(request);
      return new TransportError('broken', 'reset');
    };
    recorder.publish(blocked());
    await settle();
    api.answer = serve;
    await clock.step(130_000);
    recorder.publish(blocked());
    await recorder.flush();
    expect(stored()).toMatchObject([{ count: 2 }]);
  });

  test('two recorders may tell of objects of one name in one tick', async () => {
    const { api, clock, recorder, stored } = setup();
    const other = new EventRecorder({ client: new KubeClient({ transport: api, clock }), clock, component: 'other' });
    const namesake = { ...node, kind: 'NodePool', metadata: { name: 'n1', uid: 'u3' } };
    other.publish(blocked());
    recorder.publish(blocked({ object: namesake, dedupeValues: ['u3'] }));
    await Promise.all([other.flush(), recorder.flush()]);
    expect(stored().map(({ involvedObject }) => involvedObject.kind)).toEqual(['Node', 'NodePool']);
  });

  test('holds no more than it may, in the queue and in memory', async () => {
    const { recorder, api, clock, lines } = setup({ maxQueued: 5, maxRemembered: 50 });
    const serve = api.answer;
    api.answer = () => new TransportError('refused', 'down');
    for (let i = 0; i < 500; i++) recorder.publish(blocked({ dedupeValues: [`${i}`], message: `${i}` }));
    await settle();
    api.answer = serve;
    await clock.step(10_000);
    await recorder.flush();
    expect(api.requests.filter((request) => request.method === 'POST').length).toBe(6);
    expect(lines).toContain('dropped events, too many at once');
    // The oldest were forgotten and may be told again; the newest may not.
    const before = api.requests.length;
    recorder.publish(blocked({ dedupeValues: ['499'] }));
    await recorder.flush();
    expect(api.requests.length).toBe(before);
  });

  test('never throws into its callers', async () => {
    const { recorder, lines } = setup({
      onEvent: () => {
        throw new Error('oops');
      },
    });
    expect(() => recorder.publish(blocked())).not.toThrow();
    expect(lines).toEqual(['failed to take in event']);
  });

  test('after the end it takes nothing more', async () => {
    const { recorder, api, clock } = setup();
    api.answer = () => new TransportError('refused', 'down');
    recorder.publish(blocked());
    await settle();
    recorder.stop();
    await recorder.flush();
    recorder.publish(blocked({ reason: 'Late' }));
    await clock.step(60_000);
    expect(api.requests.length).toBe(1);
  });
});
