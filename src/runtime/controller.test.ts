// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { RealClock, settle, VirtualClock } from '../base/clock.ts';
import { KarpenterError, wrap } from '../base/errors.ts';
import { SeededRandom } from '../base/random.ts';
import { ApiError } from '../kube/api-error.ts';
import {
  type ChangeSource,
  Controller,
  type ControllerOptions,
  type Reconciler,
  singleton,
  TerminalError,
} from './controller.ts';
import { RecordingLogger } from './logging.ts';
import { Metrics } from './metrics.ts';
import { ExponentialBackoff } from './rate-limiters.ts';

function run(reconcile: Reconciler['reconcile'], options: Partial<ControllerOptions> = {}) {
  const clock = new VirtualClock();
  const log = new RecordingLogger();
  const metrics = new Metrics();
  const stop = new AbortController();
  const controller = new Controller({
    name: 'web',
    reconciler: { reconcile },
    clock,
    log,
    metrics,
    limiter: new ExponentialBackoff(100, 60_000),
    random: new SeededRandom(1),
    ...options,
  });
  const stopped = controller.start(stop.signal);
  const total = (result: string) => metrics.value('controller_runtime_reconcile_total', { controller: 'web', result });
  return { clock, log, metrics, stop, controller, stopped, total };
}

/** A reconciler whose runs end when the test says so. */
function gated() {
  const open = new Map<string, () => void>();
  let most = 0;
  return {
    open,
    most: () => most,
    reconcile: (key: string) =>
      new Promise<void>((resolve) => {
        if (open.has(key)) throw new Error(`${key} is run twice at once`);
        open.set(key, () => {
          open.delete(key);
          resolve();
        });
        most = Math.max(most, open.size);
      }),
  };
}

describe('a controller', () => {
  test('reconciles each key that is enqueued, also those from before the start', async () => {
    const seen: string[] = [];
    const { controller } = run(async (key) => void seen.push(key));
    controller.enqueue('default/a');
    controller.enqueue('default/b');
    controller.enqueue('default/a');
    await settle();
    expect(seen).toEqual(['default/a', 'default/b']);
  });

  test('never runs a reconcile in the stack of whoever enqueues', async () => {
    const seen: string[] = [];
    const { controller } = run(async (key) => void seen.push(key));
    await settle();
    controller.enqueue('a');
    expect(seen).toEqual([]);
    await settle();
    expect(seen).toEqual(['a']);
  });

  test('shares its series with another of its name: what both are at is the sum', async () => {
    const gate = gated();
    const metrics = new Metrics();
    for (const key of ['a', 'b']) run(gate.reconcile, { metrics }).controller.enqueue(key);
    await settle();
    const working = () => metrics.value('controller_runtime_active_workers', { controller: 'web' });
    expect([await working(), await working()]).toEqual([2, 2]);
    gate.open.get('a')!();
    await settle();
    expect(await working()).toBe(1);
    expect(await metrics.value('controller_runtime_reconcile_total', { controller: 'web', result: 'success' })).toBe(1);
  });

  test('works on so many keys at once and no more, and never on one key twice', async () => {
    const gate = gated();
    const { controller, metrics } = run(gate.reconcile, { maxConcurrent: 2 });
    for (const key of ['a', 'b', 'c']) controller.enqueue(key);
    await settle();
    controller.enqueue('a');
    await settle();
    expect([...gate.open.keys()]).toEqual(['a', 'b']);
    expect(await metrics.value('controller_runtime_active_workers', { controller: 'web' })).toBe(2);
    gate.open.get('a')!();
    await settle();
    expect([...gate.open.keys()]).toEqual(['b', 'c']);
    gate.open.get('b')!();
    await settle();
    expect([...gate.open.keys()]).toEqual(['c', 'a']);
    expect(gate.most()).toBe(2);
  });

  test('looks again when the reconciler asks for it', async () => {
    let runs = 0;
    const { clock, controller, total } = run(async () => (++runs < 3 ? { requeueAfterMs: 5000 } : {}));
    controller.enqueue('a');
    await clock.step(4999);
    expect(runs).toBe(1);
    await clock.step(5001);
    expect(runs).toBe(3);
    expect([await total('requeue_after'), await total('success')]).toEqual([2, 1]);
  });

  test('lets others run when the reconciler always wants more at once', async () => {
    const seen: string[] = [];
    const { clock, controller } = run(async (key) => {
      seen.push(key);
      return key === 'greedy' ? { requeueAfterMs: 0 } : {};
    });
    controller.enqueue('greedy');
    controller.enqueue('modest');
    await clock.step(2);
    expect(seen).toEqual(['greedy', 'modest', 'greedy', 'greedy']);
  });

  test('keeps the priority of a key over its requeues, unless the reconciler names another', async () => {
    const seen: number[] = [];
    const { clock, controller } = run(async (_key, _signal, context) => {
      seen.push(context.priority);
      return seen.length === 1 ? { requeueAfterMs: 10 } : seen.length === 2 ? { requeueAfterMs: 10, priority: 1 } : {};
    });
    controller.enqueue('a', { priority: 5 });
    await clock.step(100);
    expect(seen).toEqual([5, 5, 1]);
  });

  test('tries a failed key again with growing waits and tells of it', async () => {
    const at: number[] = [];
    const { clock, controller, log, total, metrics } = run(async () => {
      at.push(clock.monotonic());
      if (at.length < 4) throw new KarpenterError('KRP_TEST', 'no luck', { details: { tries: at.length } });
    });
    controller.enqueue('default/a');
    await clock.step(10_000);
    expect(at).toEqual([0, 100, 300, 700]);
    expect(await total('error')).toBe(3);
    expect(await metrics.value('controller_runtime_reconcile_errors_total', { controller: 'web' })).toBe(3);
    expect(log.messages('error')).toEqual(Array(3).fill('Reconciler error'));
    expect(log.lines.find((line) => line.level === 'error')?.fields).toMatchObject({
      controller: 'web',
      namespace: 'default',
      name: 'a',
      reconcileID: expect.stringMatching(/^[0-9a-f-]{36}$/) as unknown,
      error: expect.objectContaining({ message: 'no luck' }) as unknown,
    });
  });

  test('contains what is thrown in the caller turn, and what is not even an error', async () => {
    const { clock, controller, metrics } = run(() => {
      // oxlint-disable-next-line no-throw-literal -- the point of the test
      throw 'a string';
    });
    controller.enqueue('a');
    await clock.step(150);
    expect(await metrics.value('controller_runtime_reconcile_errors_total', { controller: 'web' })).toBe(2);
    expect(await metrics.value('controller_runtime_reconcile_panics_total', { controller: 'web' })).toBe(2);
  });

  test('gives up on a terminal error, also when it comes wrapped', async () => {
    let runs = 0;
    const { clock, controller, metrics, log } = run(async () => {
      runs++;
      throw wrap('launching nodeclaim', new TerminalError('the shape of this is wrong'));
    });
    controller.enqueue('a');
    await clock.step(100_000);
    expect(runs).toBe(1);
    expect(await metrics.value('controller_runtime_terminal_reconcile_errors_total', { controller: 'web' })).toBe(1);
    expect(log.messages('error')).toEqual(['Reconciler error']);
  });

  test('takes a write conflict as a reason to look again, not as an error', async () => {
    let runs = 0;
    const { clock, controller, log, total } = run(async () => {
      if (++runs > 1) return;
      throw new ApiError({
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        reason: 'Conflict',
        code: 409,
        message: 'the object has been modified',
      });
    });
    controller.enqueue('a');
    await clock.step(1000);
    expect(runs).toBe(2);
    expect([await total('requeue'), await total('error')]).toEqual([1, 0]);
    expect(log.messages('info')).toEqual([]);
  });

  test('aborts a reconcile that exceeds its time', async () => {
    const { clock, controller, log } = run((_key, signal) => clock.sleep(60_000, signal), { timeoutMs: 1000 });
    controller.enqueue('a');
    await clock.step(1050);
    expect(log.lines.find((line) => line.level === 'error')?.fields['error']).toMatchObject({
      code: 'KRP_RECONCILE_TIMEOUT',
    });
  });

  test('refuses a wait that is not a number instead of spinning or stopping', async () => {
    const { clock, controller, total } = run(async () => ({ requeueAfterMs: Number.NaN }));
    controller.enqueue('a');
    await clock.step(150);
    expect(await total('error')).toBe(2);
  });

  test('cannot be started twice', async () => {
    const { controller, stop } = run(async () => undefined);
    await expect(controller.start(stop.signal)).rejects.toMatchObject({ code: 'KRP_CONTROLLER_STARTED' });
  });
});

describe('a controller that is asked to stop', () => {
  test('lets the running reconciles finish and takes no others', async () => {
    const gate = gated();
    const { controller, stop, stopped } = run(gate.reconcile);
    controller.enqueue('a');
    controller.enqueue('b');
    await settle();
    stop.abort();
    await settle();
    expect([...gate.open.keys()]).toEqual(['a']);
    gate.open.get('a')!();
    await stopped;
    expect([...gate.open.keys()]).toEqual([]);
  });

  test('cuts waits short at once and everything after the grace, silently', async () => {
    const { clock, controller, log, stop, stopped } = run(
      async (key, signal, { stopping }) => clock.sleep(3_600_000, key === 'waits' ? stopping : signal),
      { maxConcurrent: 2, stopGraceMs: 5000 },
    );
    controller.enqueue('waits');
    controller.enqueue('works');
    await settle();
    stop.abort();
    await settle();
    expect(controller.active).toBe(1);
    await clock.step(5000);
    await stopped;
    expect(log.messages('info')).toEqual([]);
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('a watch', () => {
  interface Thing {
    metadata: { name: string; namespace?: string };
    owner?: string;
  }

  /** A source with some things in it from the start, whose changes the test makes. */
  class Things implements ChangeSource<Thing> {
    hasSynced = true;
    readonly present: Thing[];
    handler: Parameters<ChangeSource<Thing>['addHandler']>[0] | undefined;

    constructor(...present: Thing[]) {
      this.present = present;
    }

    addHandler(handler: NonNullable<Things['handler']>): void {
      this.handler = handler;
      for (const thing of this.present) handler.added(thing);
    }
  }

  const thing = (name: string, owner?: string): Thing => ({
    metadata: { name, namespace: 'default' },
    ...(owner ? { owner } : {}),
  });

  test('enqueues the object, or what it points to now and pointed to before', async () => {
    const seen: string[] = [];
    const { controller } = run(async (key) => void seen.push(key));
    const [own, owned] = [new Things(), new Things()];
    controller.watch(own).watch(owned, {
      keys: ({ owner }) => (owner ? [owner] : []),
      when: (now, old) => now.owner !== old?.owner,
    });
    own.handler!.added(thing('x'));
    owned.handler!.added(thing('x', 'a'));
    owned.handler!.updated(thing('x', 'c'), thing('x', 'b'));
    owned.handler!.updated(thing('x', 'z'), thing('x', 'z'));
    owned.handler!.deleted(thing('x', 'd'));
    await settle();
    expect(seen).toEqual(['default/x', 'a', 'c', 'b', 'd']);
  });

  test('puts what was there before behind what changes', async () => {
    const seen: string[] = [];
    const { controller } = run(async (key) => void seen.push(key));
    const unsynced = new Things();
    unsynced.hasSynced = false;
    const synced = new Things(thing('old'));
    controller.watch(unsynced).watch(synced);
    unsynced.handler!.added(thing('listed'));
    unsynced.hasSynced = true;
    synced.handler!.added(thing('new'));
    unsynced.handler!.updated(thing('changed'), thing('changed'));
    await settle();
    expect(seen).toEqual(['default/new', 'default/changed', 'default/old', 'default/listed']);
  });

  test('holds the controller until the source is synced', async () => {
    const seen: string[] = [];
    const synced = Promise.withResolvers<void>();
    const source = Object.assign(new Things(thing('a')), { waitForSync: () => synced.promise });
    const clock = new VirtualClock();
    const stop = new AbortController();
    const controller = new Controller({
      name: 'web',
      clock,
      reconciler: { reconcile: async (key) => void seen.push(key) },
    }).watch(source);
    const stopped = controller.start(stop.signal);
    await settle();
    expect(seen).toEqual([]);
    synced.resolve();
    await settle();
    expect(seen).toEqual(['default/a']);
    stop.abort();
    await stopped;
  });
});

describe('a singleton', () => {
  test('runs at the start, as often as it asks, and when it is woken', async () => {
    const clock = new VirtualClock();
    const at: number[] = [];
    const stop = new AbortController();
    const loop = singleton({
      name: 'loop',
      clock,
      reconcile: async () => {
        at.push(clock.monotonic());
        return at.length < 3 ? { requeueAfterMs: 10_000 } : {};
      },
    });
    const stopped = loop.start(stop.signal);
    await clock.step(60_000);
    expect(at).toEqual([0, 10_000, 20_000]);
    loop.enqueue('');
    await settle();
    expect(at).toHaveLength(4);
    stop.abort();
    await stopped;
  });

  test('that fails for an hour is back within a minute', async () => {
    const clock = new VirtualClock();
    const stop = new AbortController();
    let isBroken = true;
    let last = 0;
    const loop = singleton({
      name: 'loop',
      clock,
      reconcile: async () => {
        last = clock.monotonic();
        if (isBroken) throw new Error('the API server is away');
        return {};
      },
    });
    const stopped = loop.start(stop.signal);
    await clock.step(3_600_000);
    isBroken = false;
    await clock.step(60_000);
    expect(last).toBeGreaterThan(3_600_000);
    stop.abort();
    await stopped;
  });
});

test('a long burst of reconciles lets the process breathe', async () => {
  const clock = new RealClock();
  const stop = new AbortController();
  let others = 0;
  let left = 500;
  const controller = new Controller({
    name: 'burst',
    clock,
    reconciler: {
      reconcile: async () => {
        left--;
        // Work that never waits for anything: a fifth of a millisecond of it.
        for (const until = clock.monotonic() + 0.2; clock.monotonic() < until; );
      },
    },
  });
  for (let i = 0; i < left; i++) controller.enqueue(`k${i}`);
  const tick = (): void => {
    others++;
    if (left > 0) setImmediate(tick);
  };
  setImmediate(tick);
  const stopped = controller.start(stop.signal);
  while (left > 0) await settle();
  expect(others).toBeGreaterThan(4);
  stop.abort();
  await stopped;
});

test('the same start gives the same story, to the letter', async () => {
  const story = async (): Promise<string> => {
    const chance = new SeededRandom(5);
    const { clock, controller, log } = run(
      async (key, signal, context) => {
        context.log.info('looking');
        await clock.sleep(chance.int(100), signal);
        if (chance.int(3) === 0) throw new Error(`no luck with ${key}`);
        return chance.int(2) === 0 ? { requeueAfterMs: chance.int(1000) } : {};
      },
      { maxConcurrent: 3, kind: 'Pod' },
    );
    for (let i = 0; i < 20; i++) controller.enqueue(`default/p${i}`, { priority: i % 3, afterMs: chance.int(50) });
    await clock.step(20_000);
    return log.lines.map((line) => `${line.message} ${JSON.stringify(line.fields)}`).join('\n');
  };
  const [first, second] = [await story(), await story()];
  expect(first.split('\n').length).toBeGreaterThan(50);
  expect(second).toBe(first);
});
