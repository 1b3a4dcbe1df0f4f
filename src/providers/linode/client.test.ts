// SPDX-License-Identifier: Apache-2.0
import { beforeEach, describe, expect, test } from 'vitest';
import { VirtualClock } from '../../base/clock.ts';
import { Metrics } from '../../runtime/metrics.ts';
import { isBusy, isGone, isTemporary, isUncertain, LinodeApiError, shortageOf } from './api-errors.ts';
import { LinodeClient } from './client.ts';
import type { LinodeRequest, LinodeResponse } from './door.ts';
import { machineLabel, ownedTag, tagOf } from './names.ts';
import { SlidingWindow } from './rate-limits.ts';

const secret = 'this-is-the-secret-token';
const { signal } = new AbortController();
let clock: VirtualClock;
let requests: (LinodeRequest & { at: number })[];
let answer: (request: LinodeRequest) => LinodeResponse | Promise<LinodeResponse>;
let client: LinodeClient;

const ok = (body: unknown): LinodeResponse => ({ status: 200, headers: {}, body: JSON.stringify(body) });
const refused = (status: number, reason: string, headers: Record<string, string> = {}): LinodeResponse => ({
  status,
  headers,
  body: JSON.stringify({ errors: [{ reason }] }),
});

beforeEach(() => {
  clock = new VirtualClock();
  requests = [];
  answer = () => ok({});
  const door = {
    handle: async (request: LinodeRequest) => {
      requests.push({ ...request, at: clock.now() });
      return answer(request);
    },
  };
  client = new LinodeClient({ door, token: secret, clock, metrics: new Metrics() });
});

const finish = <T>(call: Promise<T>): Promise<T> => clock.finish(call, 120_000);

describe('lists', () => {
  test('are put together from all pages, with the filter on each, and nothing twice', async () => {
    answer = ({ path }) => {
      const page = Number(/[?&]page=(\d+)/.exec(path)?.[1]);
      return ok({ data: [{ id: page }, { id: page + 1 }], page, pages: 3, results: 6 });
    };
    const filter = { '+and': [{ tags: 'a' }, { tags: 'b' }] };
    const found = await finish(client.list('things', { filter, signal }));
    expect(found.map(({ id }) => id)).toEqual([1, 2, 3, 4]);
    expect(requests.map(({ headers }) => headers['x-filter'])).toEqual(Array(3).fill(JSON.stringify(filter)));
  });

  test.each(['{"data": [{"id"', '[]', 'null', '<html>', '{"data": "x", "pages": 1}'])(
    'an answer that is not a page (%s) fails, instead of being an empty list',
    async (body) => {
      answer = () => ({ status: 200, headers: {}, body });
      await expect(finish(client.list('things', { signal }))).rejects.toThrow();
    },
  );
});

describe('answers of another shape', () => {
  const linode = { id: 1, label: 'a', type: 't', region: 'r', image: null, status: 'running', tags: [], created: 'c' };

  test.each([
    ['a Linode whose tags cannot be read', { ...linode, tags: null }],
    ['a Linode with an id that no path can have', { ...linode, id: '../../account' }],
    ['a list where there should be one', [linode]],
  ])('%s is no answer: it must not be taken for a stranger’s', async (_, body) => {
    answer = () => ok(body);
    await expect(finish(client.get('linode/instances/1', signal))).rejects.toMatchObject({
      code: 'KRP_LINODE_UNREACHABLE',
    });
  });

  test('one damaged item makes a list none', async () => {
    answer = () => ok({ data: [linode, { ...linode, id: 2, tags: 'x' }], page: 1, pages: 1 });
    await expect(finish(client.list('linode/instances', { signal }))).rejects.toThrow(/tags/);
  });

  test.each([1e9, 1.5, -0.5, 'x'])('a list of %s pages is not followed', async (pages) => {
    answer = () => ok({ data: [], page: 1, pages });
    await expect(finish(client.list('linode/instances', { signal }))).rejects.toThrow('not a page');
    expect(requests.length).toBeLessThan(10);
  });

  test('a refusal of a megabyte costs no time and fits into a condition', async () => {
    const reason = 'exceeds a '.repeat(2 ** 17);
    answer = () => ({
      status: 400,
      headers: {},
      body: JSON.stringify({ errors: [{ reason }, ...Array<object>(1000).fill({ reason: 'no' })] }),
    });
    const before = process.cpuUsage();
    const error = await finish(client.post('things', {}, signal)).catch((thrown: unknown) => thrown);
    expect([shortageOf(error), isBusy(error)]).toEqual([undefined, false]);
    expect((error as Error).message.length).toBeLessThan(20_000);
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(1000);
  });
});

describe('what is repeated', () => {
  test('429 after as long as the API asks for, for reads and writes', async () => {
    let left = 1;
    answer = () => (left-- > 0 ? refused(429, 'Too many requests', { 'retry-after': '3' }) : ok({ id: 1 }));
    await finish(client.post('things', { a: 1 }, signal));
    expect(requests).toHaveLength(2);
    expect(requests[1]!.at - requests[0]!.at).toBeGreaterThanOrEqual(3000);
  });

  // The library of the existing provider waits inside the call for as long as it is told.
  test('[TRAP 4] a long Retry-After is the caller’s to wait for', async () => {
    answer = () => refused(429, 'Too many requests', { 'retry-after': '120' });
    const started = clock.now();
    await expect(finish(client.get('things/1', signal))).rejects.toMatchObject({ status: 429, retryAfterMs: 120_000 });
    expect(clock.now() - started).toBeLessThan(10_000);
  });

  test('reads that fail, a few times; never a write whose outcome is not known', async () => {
    answer = () => refused(500, 'oops');
    await expect(finish(client.get('things/1', signal))).rejects.toMatchObject({ status: 500 });
    const reads = requests.length;
    expect(reads).toBeGreaterThan(1);
    await expect(finish(client.post('things', {}, signal))).rejects.toMatchObject({ status: 500 });
    expect(requests).toHaveLength(reads + 1);
  });

  test('a Linode that is busy is asked again', async () => {
    let left = 2;
    answer = () => (left-- > 0 ? refused(400, 'Linode busy.') : ok({}));
    await finish(client.post('linode/instances/1/boot', undefined, signal));
    expect(requests).toHaveLength(3);
  });

  test('maintenance is told at once', async () => {
    answer = () => refused(503, 'down', { 'x-maintenance-mode': 'all' });
    await expect(finish(client.get('things/1', signal))).rejects.toThrow(/maintenance/);
    expect(requests).toHaveLength(1);
  });
});

test('a call that is not answered ends in time, with an outcome that is not known', async () => {
  answer = () => new Promise(() => undefined);
  const failure = await finish(client.post('things', {}, signal)).catch((error: unknown) => error);
  expect(isUncertain(failure)).toBe(true);
  expect(isTemporary(failure)).toBe(true);
  expect(isGone(failure)).toBe(false);
});

test('the token is in one header and in no error, whatever the API or the network says', async () => {
  answer = () => refused(401, `Invalid token ${secret}`);
  const denied = await finish(client.get('things/1', signal)).catch((error: unknown) => error);
  answer = () => {
    throw new Error(`connect failed: Bearer ${secret}`);
  };
  const broken = await finish(client.post('things', {}, signal)).catch((error: unknown) => error);
  for (const error of [denied, broken] as Error[]) {
    expect(`${error.message} ${JSON.stringify(error)} ${String(error.cause)} ${error.stack}`).not.toContain(secret);
  }
  expect(requests[0]?.headers['authorization']).toBe(`Bearer ${secret}`);
  expect(requests[0]?.path).not.toContain(secret);
});

describe('what a 400 means', () => {
  const of = (reason: string, status = 400) => new LinodeApiError('POST x', { status, problems: [{ reason }] });

  test.each([
    [
      'The Linode plan you chose is not currently available in the selected region. Please select another region or plan type, or contact Support for assistance.',
      'plan',
    ],
    ['No capacity', 'plan'],
    ['Account Limit reached. Please open a support ticket.', 'limit'],
    ['This cluster has reached the maximum number of node pools', 'limit'],
    ['Label must be unique among your linodes', undefined],
    ['tags must be between 3 and 50 characters', undefined],
    ['Invalid Firewall', undefined],
  ])('%s', (reason, shortage) => expect(shortageOf(of(reason))).toBe(shortage));

  test('only of a 400', () => {
    expect(shortageOf(of('No capacity', 500))).toBeUndefined();
    expect(isBusy(of('Linode busy.'))).toBe(true);
  });
});

describe('the limits', () => {
  test('let through so many in any stretch of time, in order', async () => {
    const window = new SlidingWindow({ calls: 3, windowMs: 1000 }, clock);
    const times: [number, number][] = [];
    const started = clock.now();
    for (let i = 0; i < 8; i++) void window.pass().then(() => times.push([i, clock.now() - started]));
    await clock.step(5000);
    expect(times).toEqual([0, 1, 2, 3, 4, 5, 6, 7].map((i) => [i, Math.floor(i / 3) * 1000]));
  });

  test('let nobody through for as long as the API asks for', async () => {
    const window = new SlidingWindow({ calls: 3, windowMs: 1000 }, clock);
    const started = clock.now();
    const times: number[] = [];
    window.pause(5000);
    window.pause(2000);
    for (let i = 0; i < 2; i++) void window.pass().then(() => times.push(clock.now() - started));
    await clock.step(10_000);
    expect(times).toEqual([5000, 5000]);
  });

  test('whoever gives up takes no place', async () => {
    const window = new SlidingWindow({ calls: 1, windowMs: 1000 }, clock);
    await window.pass();
    const stop = new AbortController();
    const gone = window.pass(stop.signal);
    const next = window.pass();
    stop.abort(new Error('enough'));
    await expect(gone).rejects.toThrow('enough');
    await clock.step(1000);
    await next;
    expect(window.waiting).toBe(0);
  });
});

describe('names', () => {
  test('tags are shortened to what Linode allows: 27 characters of a NodeClaim stay', () => {
    const tag = (length: number): string => tagOf('karpenter.sh/nodeclaim', 'x'.repeat(length));
    expect(tag(27)).toBe(`karpenter.sh/nodeclaim=${'x'.repeat(27)}`);
    expect(tag(28)).toMatch(/^karpenter\.sh\/nodeclaim=x{18}-[0-9a-f]{8}$/);
    expect(ownedTag('a-name-that-is-far-too-long-for-a-tag')).toHaveLength(50);
  });

  test('the label of a machine is a label to Linode and a name to Kubernetes', () => {
    const label = machineLabel({ name: `A--b_${'c'.repeat(80)}`, uid: '6ba7b810-9dad-11d1-80b4-00c04fd430c8' });
    expect(label).toMatch(/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/);
    expect(label).not.toContain('--');
    expect(label.length).toBeLessThanOrEqual(63);
  });
});
