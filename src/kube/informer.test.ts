// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { settle, VirtualClock } from '../base/clock.ts';
import { SeededRandom } from '../base/random.ts';
import { KubeClient } from './client.ts';
import { Informer, type InformerOptions } from './informer.ts';
import { kinds, type Pod } from './kinds.ts';
import type { Log } from './log.ts';
import { keyOf } from './object.ts';
import { FakeWatch, failure } from './testing/fake-transport.ts';
import { MemoryApi } from './testing/memory-api.ts';
import type { TransportRequest } from './transport.ts';
import { TransportError } from './transport-error.ts';

const stops: AbortController[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop.abort();
});

function setup(options: Partial<InformerOptions<Pod>> = {}) {
  const api = new MemoryApi();
  const clock = new VirtualClock();
  const client = new KubeClient({ transport: api, clock });
  const lines: string[] = [];
  const say = (message: string, fields?: object): void => void lines.push(`${message} ${JSON.stringify(fields)}`);
  const log: Log = { debug: say, info: say, warn: say, error: say };
  const informer = new Informer({ client, type: kinds.Pod, clock, random: new SeededRandom(1), log, ...options });
  const events: string[] = [];
  informer.addHandler({
    added: (pod) => events.push(`+${pod.metadata.name}`),
    updated: (pod, old) => events.push(`~${pod.metadata.name} ${old.status?.phase}>${pod.status?.phase}`),
    deleted: (pod, stale) => events.push(`-${pod.metadata.name}${stale ? ' (stale)' : ''}`),
  });
  const stop = new AbortController();
  stops.push(stop);
  const pods = client.resource(kinds.Pod);
  const at = { namespace: 'shop' };
  return {
    api,
    clock,
    informer,
    events,
    lines,
    stop,
    start: async () => {
      informer.start(stop.signal);
      await settle();
    },
    create: (name: string, more: Partial<Pod> = {}) =>
      pods.create({
        metadata: { name, namespace: 'shop' },
        spec: { containers: [] },
        status: { phase: 'Pending' },
        ...more,
      }),
    phase: (name: string, phase: string) => pods.patch(name, { status: { phase } }, at),
    remove: (name: string) => pods.delete(name, at),
    lists: () => api.requests.filter((request) => request.method === 'GET').length,
  };
}

type World = ReturnType<typeof setup>;

describe('Informer', () => {
  test('holds what is there and follows what changes', async () => {
    const world = setup();
    await world.create('a');
    expect(world.informer.hasSynced).toBe(false);
    await world.start();
    expect(world.informer.hasSynced).toBe(true);
    await world.informer.waitForSync();
    await world.create('b');
    await world.phase('a', 'Running');
    await world.remove('b');
    await settle();
    expect(world.events).toEqual(['+a', '+b', '~a Pending>Running', '-b']);
    expect(world.informer.list().map(keyOf)).toEqual(['shop/a']);
    expect(world.informer.get('shop/a')?.status?.phase).toBe('Running');
    expect(world.lists()).toBe(1);
  });

  test('asks for bookmarks and a timeout between five and ten minutes', async () => {
    const world = setup({ labelSelector: 'app=web', fieldSelector: 'spec.nodeName=n' });
    await world.start();
    const { query } = world.api.lastWatch.request;
    expect(query).toMatchObject({
      allowWatchBookmarks: 'true',
      labelSelector: 'app=web',
      fieldSelector: 'spec.nodeName=n',
    });
    expect(Number(query?.['timeoutSeconds'])).toBeGreaterThanOrEqual(300);
    expect(Number(query?.['timeoutSeconds'])).toBeLessThan(600);
  });

  test('asks for neither when the server is in its own process', async () => {
    const world = setup({ isDirect: true });
    await world.start();
    const { query } = world.api.lastWatch.request;
    expect(query?.['allowWatchBookmarks']).toBeUndefined();
    expect(query?.['timeoutSeconds']).toBeUndefined();
    await world.clock.step(3_600_000);
    await world.create('a');
    await settle();
    expect(world.events).toEqual(['+a']);
  });

  test('objects cannot be changed, and are smaller than they were', async () => {
    const world = setup();
    await world.create('a', {
      metadata: { name: 'a', namespace: 'shop', managedFields: [{ manager: 'x' }], labels: { a: 'b' } },
    });
    await world.start();
    const pod = world.informer.get('shop/a')!;
    expect(pod.metadata.managedFields).toBeUndefined();
    expect(() => (pod.metadata.labels!['a'] = 'c')).toThrow(TypeError);
    expect(() => (world.informer.list() as Pod[]).push(pod)).toThrow(TypeError);
  });

  test('goes on from the last version when the watch ends', async () => {
    const world = setup();
    await world.create('a');
    await world.start();
    await world.clock.step(2000);
    world.api.watches.splice(0)[0]!.end();
    await settle();
    await world.create('b');
    await settle();
    expect(world.events).toEqual(['+a', '+b']);
    expect(world.lists()).toBe(1);
    expect(world.api.watches.length).toBe(1);
  });

  test('a bookmark moves the version on, so that old history may go', async () => {
    const world = setup();
    await world.start();
    // The server moves on through writes that this watch does not see.
    await new KubeClient({ transport: world.api }).resource(kinds.Node).create({ metadata: { name: 'n' } });
    world.api.bookmark();
    await world.clock.step(2000);
    const { version } = world.api;
    world.api.compact();
    world.api.watches.splice(0)[0]!.end();
    await settle();
    expect(world.api.lastWatch.request.query?.['resourceVersion']).toBe(version);
    expect(world.lists()).toBe(1);
  });

  test.each([
    ['when opened', (world: World) => world.api.watches.splice(0)[0]!.end()],
    [
      'under way',
      (world: World) => world.api.watches.splice(0)[0]!.send('ERROR', failure(410, 'Expired', 'too old').body),
    ],
  ])('lists again when its version is gone %s, and tells what was missed', async (_, breakIt) => {
    const world = setup();
    await world.create('a');
    await world.create('b');
    await world.create('c');
    await world.start();
    await world.clock.step(2000);
    const before = world.informer.get('shop/c');
    for (const watch of world.api.watches) watch.request.signal?.throwIfAborted();
    const [watch] = world.api.watches;
    world.api.watches.splice(0);
    await world.remove('a');
    await world.phase('b', 'Running');
    await world.create('d');
    world.api.compact();
    world.api.watches.push(watch!);
    breakIt(world);
    await settle();
    await world.clock.step(10_000);
    expect(world.events.slice(3)).toEqual(['-a (stale)', '~b Pending>Running', '+d']);
    // What did not change is the same object still.
    expect(world.informer.get('shop/c')).toBe(before);
    expect(world.lists()).toBe(2);
  });

  test('an object made again under its name is another one', async () => {
    const world = setup();
    await world.create('a');
    await world.start();
    await world.clock.step(2000);
    const [watch] = world.api.watches.splice(0);
    await world.remove('a');
    await world.create('a');
    world.api.compact();
    watch!.end();
    await world.clock.step(5000);
    expect(world.events).toEqual(['+a', '-a (stale)', '+a']);
  });

  test('never stops on errors and never runs hot', async () => {
    const world = setup();
    const serve = world.api.answer;
    let down = true;
    world.api.answer = (request) => (down ? failure(500, 'InternalError') : serve(request));
    await world.start();
    await world.clock.step(600_000);
    const tries = world.lists();
    expect(tries).toBeGreaterThan(10);
    expect(tries).toBeLessThan(60);
    down = false;
    await world.clock.step(60_000);
    expect(world.informer.hasSynced).toBe(true);
    expect(world.lines.some((line) => line.includes('trying again'))).toBe(true);
  });

  test('bad times are forgotten once it works again', async () => {
    const world = setup();
    const serve = world.api.answer;
    world.api.answer = () => failure(500, 'InternalError');
    await world.start();
    await world.clock.step(600_000);
    world.api.answer = serve;
    await world.clock.step(60_000);
    expect(world.api.watches.length).toBe(1);
    world.api.breakWatches(new TransportError('broken', 'reset'));
    await world.clock.step(1600);
    expect(world.api.watches.length).toBe(1);
  });

  test('a server that ends every watch at once is not hammered', async () => {
    const world = setup();
    let opened = 0;
    world.api.watch = async (request: TransportRequest) => {
      opened++;
      const watch = new FakeWatch(request);
      watch.end();
      return watch;
    };
    await world.start();
    await world.clock.step(600_000);
    expect(opened).toBeGreaterThan(5);
    expect(opened).toBeLessThan(60);
  });

  test('a server that answers every watch with 410 is not hammered with lists', async () => {
    const world = setup();
    world.api.answerWatch = () => failure(410, 'Expired');
    await world.start();
    await world.clock.step(600_000);
    expect(world.lists()).toBeGreaterThan(5);
    expect(world.lists()).toBeLessThan(60);
  });

  test('waits as long as a busy server asks', async () => {
    const world = setup();
    world.api.answerWatch = () => failure(429, 'TooManyRequests', 'busy', { details: { retryAfterSeconds: 60 } });
    await world.start();
    world.api.answerWatch = () => undefined;
    await world.clock.step(59_000);
    expect(world.api.watches.length).toBe(0);
    await world.clock.step(2000);
    expect(world.api.watches.length).toBe(1);
  });

  test('a kind that is not served yet is empty until it is, if so wished', async () => {
    const world = setup({ tolerateMissing: true });
    const serve = world.api.answer;
    world.api.answer = () => failure(404, 'NotFound');
    await world.start();
    expect(world.informer.hasSynced).toBe(true);
    expect(world.informer.list()).toEqual([]);
    await world.clock.step(60_000);
    expect(world.lines.length).toBe(1);
    world.api.answer = serve;
    await world.create('a');
    await world.clock.step(10_000);
    expect(world.events).toEqual(['+a']);
    // And when it goes again, so do its objects.
    world.api.answer = () => failure(404, 'NotFound');
    world.api.answerWatch = () => failure(404, 'NotFound');
    world.api.watches.splice(0)[0]!.end();
    await world.clock.step(10_000);
    expect(world.events).toEqual(['+a', '-a (stale)']);
    // It comes back as it was: only a list shows that.
    world.api.answer = serve;
    world.api.answerWatch = () => undefined;
    await world.clock.step(10_000);
    expect(world.events).toEqual(['+a', '-a (stale)', '+a']);
  });

  test('a kind that is not served is an error otherwise', async () => {
    const world = setup();
    world.api.answer = () => failure(404, 'NotFound');
    await world.start();
    await world.clock.step(60_000);
    expect(world.informer.hasSynced).toBe(false);
  });

  test('handlers that throw hurt nobody else', async () => {
    const world = setup();
    world.informer.addHandler({
      added: () => {
        throw new Error('oops');
      },
    });
    const after: string[] = [];
    world.informer.addHandler({ added: (pod) => after.push(pod.metadata.name!) });
    await world.start();
    await world.create('a');
    await world.create('b');
    await settle();
    expect(after).toEqual(['a', 'b']);
    expect(world.lines[0]).toContain('oops');
  });

  test('a late handler is told what is there; one that was taken off is told nothing', async () => {
    const world = setup();
    await world.create('a');
    await world.start();
    const late: string[] = [];
    const off = world.informer.addHandler({ added: (pod) => late.push(pod.metadata.name!) });
    expect(late).toEqual(['a']);
    off();
    await world.create('b');
    await settle();
    expect(late).toEqual(['a']);
  });

  test('finds objects by index, also by one that came later', async () => {
    const world = setup({ indexes: { phase: (pod) => pod.status?.phase } });
    await world.create('a');
    await world.create('b');
    await world.start();
    const names = (pods: Pod[]) => pods.map((pod) => pod.metadata.name);
    expect(names(world.informer.byIndex('phase', 'Pending'))).toEqual(['a', 'b']);
    await world.phase('a', 'Running');
    await settle();
    expect(names(world.informer.byIndex('phase', 'Pending'))).toEqual(['b']);
    expect(names(world.informer.byIndex('phase', 'Running'))).toEqual(['a']);
    world.informer.addIndex('several', (pod) => [pod.metadata.name!, 'all']);
    expect(names(world.informer.byIndex('several', 'all'))).toEqual(['a', 'b']);
    await world.remove('a');
    await settle();
    expect(names(world.informer.byIndex('phase', 'Running'))).toEqual([]);
    expect(names(world.informer.byIndex('several', 'a'))).toEqual([]);
    expect(() => world.informer.byIndex('none', 'x')).toThrow('no index "none"');
  });

  test('an index function that throws hides one object, not the others', async () => {
    const world = setup({
      indexes: {
        name: (pod) => {
          if (pod.metadata.name === 'bad') throw new Error('oops');
          return pod.metadata.name;
        },
      },
    });
    await world.create('bad');
    await world.create('good');
    await world.start();
    expect(world.informer.byIndex('name', 'good').length).toBe(1);
    expect(world.informer.size).toBe(2);
  });

  test('waiting for the first list can be given up', async () => {
    const world = setup();
    const stop = new AbortController();
    const waiting = expect(world.informer.waitForSync(stop.signal)).rejects.toThrow('enough');
    stop.abort(new Error('enough'));
    await waiting;
    await expect(world.informer.waitForSync(stop.signal)).rejects.toThrow('enough');
    await world.start();
    await world.informer.waitForSync(new AbortController().signal);
  });

  test('waiting for the first list ends when the informer does', async () => {
    const world = setup();
    world.api.answer = () => failure(500, 'InternalError');
    await world.start();
    const waiting = expect(world.informer.waitForSync()).rejects.toThrow('stopped before its first list');
    world.stop.abort();
    await waiting;
    await expect(world.informer.waitForSync(new AbortController().signal)).rejects.toThrow('stopped before');
  });

  test('stops when told to, and closes its watch', async () => {
    const world = setup();
    await world.start();
    const [watch] = world.api.watches;
    world.stop.abort();
    await world.informer.stopped();
    expect(watch!.closed).toBe(true);
    expect(world.clock.nextDue()).toBeUndefined();
  });

  test('whatever breaks, in the end it holds what the server holds', async () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant('create' as const), name: fc.constantFrom('a', 'b', 'c', 'd') }),
      fc.record({ do: fc.constant('phase' as const), name: fc.constantFrom('a', 'b', 'c', 'd') }),
      fc.record({ do: fc.constant('remove' as const), name: fc.constantFrom('a', 'b', 'c', 'd') }),
      fc.record({
        do: fc.constantFrom(
          'compact' as const,
          'break' as const,
          'fail' as const,
          'wait' as const,
          'bookmark' as const,
        ),
      }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 40 }), fc.integer(), async (steps, seed) => {
        const world = setup({ random: new SeededRandom(seed), indexes: { phase: (pod) => pod.status?.phase } });
        const mirror = new Map<string, string>();
        world.informer.addHandler({
          added: (pod) => {
            expect(mirror.has(keyOf(pod))).toBe(false);
            mirror.set(keyOf(pod), pod.metadata.uid!);
          },
          updated: (pod) => expect(mirror.get(keyOf(pod))).toBe(pod.metadata.uid),
          deleted: (pod) => expect(mirror.delete(keyOf(pod))).toBe(true),
        });
        let failures = 0;
        const serve = world.api.answer;
        world.api.answer = (request) => {
          const failing = request.path === '/api/v1/pods' && failures > 0;
          if (failing) failures--;
          return failing ? new TransportError('broken', 'reset') : serve(request);
        };
        await world.start();
        for (const [i, action] of steps.entries()) {
          if (action.do === 'create') await world.create(action.name).catch(() => undefined);
          else if (action.do === 'phase') await world.phase(action.name, `p${i}`).catch(() => undefined);
          else if (action.do === 'remove') await world.remove(action.name).catch(() => undefined);
          else if (action.do === 'compact') world.api.compact();
          else if (action.do === 'bookmark') world.api.bookmark();
          else if (action.do === 'break') world.api.breakWatches(new TransportError('broken', 'reset'));
          else if (action.do === 'fail') failures += 2;
          else await world.clock.step(3000);
        }
        await world.clock.step(300_000);
        const truth = ['a', 'b', 'c', 'd']
          .map((name) => world.api.at(`/api/v1/namespaces/shop/pods/${name}`))
          .filter(Boolean);
        const held = [...world.informer.list()].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
        expect(held).toEqual(truth);
        expect([...mirror.keys()].sort()).toEqual(truth.map((pod) => keyOf(pod!)));
        for (const pod of held) expect(world.informer.byIndex('phase', pod.status!.phase!)).toContain(pod);
        expect(world.lines.filter((line) => line.startsWith('handler'))).toEqual([]);
        world.stop.abort();
      }),
      { numRuns: 300 },
    );
  });
});
