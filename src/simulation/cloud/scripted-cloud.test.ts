// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { labels } from '../../api/labels.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import { Subject } from '../../cloud/conformance/subject.ts';
import { isInsufficientCapacity, isNodeClaimNotFound } from '../../cloud/errors.ts';
import type { Instance } from '../../cloud/provider.ts';
import { kinds, type Node } from '../../kube/kinds.ts';
import { type Mishap, mishaps } from './mishaps.ts';
import { ScriptedHarness } from './testing/harness.ts';

const minute = 60_000;

let harness: ScriptedHarness;
let subject: Subject;
/** Ends the fault of the test. */
let end: () => void;
beforeEach(async () => {
  harness = await ScriptedHarness.start();
  subject = new Subject(harness);
});
afterEach(() => harness.close());

const nodes = async (): Promise<Node[]> => (await harness.client.resource(kinds.Node).list()).items;
const begin = (mishap: Mishap): (() => void) => harness.cloud.backend.mishaps.begin(mishap, 1, harness.random);
const bites = (name: string): number => harness.coverage.counts().get(`fault/cloud/${name}`) ?? 0;

async function launch(): Promise<{ instance: Instance; claim: NodeClaim }> {
  const claim = await subject.claim();
  const instance = await subject.create(claim);
  return { instance, claim: { ...claim, status: { providerID: instance.providerID } } };
}

describe('a machine of the scripted cloud', () => {
  test('becomes a Node after a while, tainted until it is registered', async () => {
    const { instance } = await launch();
    expect(await nodes()).toEqual([]);
    await harness.clock.step(2 * minute);
    const [node] = await nodes();
    expect(node?.spec?.providerID).toBe(instance.providerID);
    expect(node?.spec?.taints).toContainEqual({ key: 'karpenter.sh/unregistered', effect: 'NoExecute' });
    expect(node?.status?.allocatable).toEqual(instance.allocatable);
  });

  test('falls silent when it is removed, and its Node is swept away later', async () => {
    const { claim } = await launch();
    await harness.clock.step(2 * minute);
    await subject.delete(claim);
    const [node] = await nodes();
    expect(node?.status?.conditions).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'Unknown' }));
    await harness.clock.step(5 * minute);
    expect(await nodes()).toEqual([]);
    expect(harness.cloud.ledger.all()).toHaveLength(1);
    expect(harness.cloud.ledger.alive()).toEqual([]);
  });

  test('that dies is gone at once, and the books say why', async () => {
    await launch();
    const { backend, ledger } = harness.cloud;
    backend.die(backend.books.alive()[0]!);
    expect(ledger.alive()).toEqual([]);
    expect(ledger.all()[0]).toMatchObject({ goneBecause: 'died' });
    // It never became a Node, and never will.
    await harness.clock.step(5 * minute);
    expect(await nodes()).toEqual([]);
  });

  test('that is interrupted is announced two minutes before', async () => {
    await launch();
    const { backend, ledger } = harness.cloud;
    const { signal } = new AbortController();
    const told = backend.notices(signal);
    backend.interrupt(backend.books.alive()[0]!);
    expect(await told).toHaveLength(1);
    await harness.clock.step(2 * minute - 1);
    expect(ledger.alive()).toHaveLength(1);
    await harness.clock.step(1);
    expect(ledger.all()[0]).toMatchObject({ goneBecause: 'interrupted' });
  });

  test('of somebody else is listed without an owner', async () => {
    harness.cloud.backend.addStranger();
    expect(await subject.provider.list(subject.signal)).toMatchObject([{ providerID: expect.any(String) }]);
    expect((await subject.provider.list(subject.signal))[0]).not.toHaveProperty('nodeClaim');
    await harness.clock.step(5 * minute);
    expect(await nodes()).toEqual([]);
  });
});

describe('the market of the scripted cloud', () => {
  test('sells something else of what was ordered when the cheapest is sold out, and remembers for three minutes', async () => {
    const types = await subject.types();
    const claim = await subject.claim();
    const [zone] = [claim.spec.requirements.find(({ key }) => key === labels.zone)!.values![0]!];
    const anywhere = {
      ...claim,
      spec: { ...claim.spec, requirements: claim.spec.requirements.filter(({ key }) => key !== labels.zone) },
    };
    const restock = harness.cloud.backend.market.sellOut({ zone });
    const instance = await subject.create(anywhere);
    expect(instance.labels[labels.zone]).not.toBe(zone);
    restock();
    const unavailable = async (): Promise<number> =>
      (await subject.types()).flatMap(({ offerings }) => offerings).filter(({ available }) => available === false)
        .length;
    expect(await unavailable()).toBe(1);
    await harness.clock.step(3 * minute);
    expect(await unavailable()).toBe(0);
    expect(await subject.types()).toBe(types);
  });

  test('runs out of what is reserved', async () => {
    const claim = await subject.claim();
    const reserved = (number: number): NodeClaim => ({
      ...claim,
      metadata: { ...claim.metadata, uid: `reserved-${number}` },
      spec: {
        ...claim.spec,
        requirements: [{ key: labels.capacityType, operator: 'In', values: ['reserved'] }],
      },
    });
    for (const number of [1, 2, 3]) await subject.create(reserved(number));
    expect(isInsufficientCapacity(await subject.failureOf(() => subject.create(reserved(4))))).toBe(true);
    const [first] = harness.cloud.ledger.alive();
    await subject.deleteUntilGone({ ...reserved(1), status: { providerID: first!.providerID } });
    expect((await subject.create(reserved(4))).labels[labels.capacityType]).toBe('reserved');
  });

  test('moves its prices, within bounds', () => {
    const { market } = harness.cloud.backend;
    const before = market.types();
    for (let i = 0; i < 200; i++) market.movePrices(harness.random);
    const prices = market.types().flatMap(({ offerings }) => offerings.map(({ price }) => price));
    const original = before.flatMap(({ offerings }) => offerings.map(({ price }) => price));
    expect(prices).not.toEqual(original);
    prices.forEach((price, i) => {
      expect(price).toBeGreaterThanOrEqual(original[i]! / 2);
      expect(price).toBeLessThanOrEqual(original[i]! * 2);
    });
  });
});

/** What each fault does to its users; the coverage of a world counts it under its name. */
const effects: Readonly<Record<Mishap, () => Promise<void>>> = {
  async slow() {
    let isOver = false;
    const answer = subject.provider.list(subject.signal).finally(() => (isOver = true));
    await harness.clock.step(29_000);
    expect(isOver).toBe(false);
    await harness.clock.step(10_000);
    expect(await answer).toEqual([]);
  },
  async silent() {
    let isOver = false;
    const answer = subject.provider.list(subject.signal).finally(() => (isOver = true));
    answer.catch(() => undefined);
    await harness.clock.step(60 * minute);
    expect(isOver).toBe(false);
    end();
    await expect(answer).rejects.toThrow('did not answer');
  },
  unreachable: () => expectFailure('the cloud cannot be reached'),
  throttled: () => expectFailure('too many requests'),
  failing: () => expectFailure('internal error'),
  async 'lost-create-response'() {
    expect(String(await subject.failureOf(() => launch()))).toContain('connection was reset');
    expect(harness.cloud.ledger.alive()).toHaveLength(1);
  },
  async 'late-create-response'() {
    let isOver = false;
    const claim = await subject.claim();
    const answer = subject.provider.create(claim, subject.signal).finally(() => (isOver = true));
    await harness.clock.step(2 * minute);
    expect(isOver).toBe(false);
    expect(await subject.provider.list(subject.signal)).toHaveLength(1);
    await harness.clock.step(2 * minute);
    expect(await answer).toMatchObject({ nodeClaim: { uid: claim.metadata.uid } });
  },
  async 'lost-delete-response'() {
    const { claim } = await launch();
    expect(String(await subject.failureOf(() => subject.delete(claim)))).toContain('connection was reset');
    expect(harness.cloud.ledger.alive()[0]).toHaveProperty('deletingAt');
  },
  async 'launch-refused'() {
    expect(await subject.failureOf(() => launch())).toMatchObject({ code: 'KRP_CREATE_FAILED' });
  },
  async 'partial-list'() {
    for (let i = 0; i < 20; i++) await launch();
    expect((await subject.provider.list(subject.signal)).length).toBeLessThan(20);
  },
  async 'duplicated-list'() {
    for (let i = 0; i < 20; i++) await launch();
    expect((await subject.provider.list(subject.signal)).length).toBeGreaterThan(20);
  },
  async 'not-found-yet'() {
    const { instance } = await launch();
    const found = (): Promise<unknown> =>
      subject.failureOf(() => subject.provider.get(instance.providerID, subject.signal));
    expect(isNodeClaimNotFound(await found())).toBe(true);
    await harness.clock.step(minute);
    expect(await found()).toBeUndefined();
  },
  async 'never-joins'() {
    await launch();
    await harness.clock.step(30 * minute);
    expect(await nodes()).toEqual([]);
  },
  async 'joins-late'() {
    await launch();
    await harness.clock.step(3 * minute);
    expect(await nodes()).toEqual([]);
    await harness.clock.step(3 * minute);
    expect(await nodes()).toHaveLength(1);
  },
  async 'joins-twice'() {
    const { instance } = await launch();
    await harness.clock.step(5 * minute);
    expect((await nodes()).map(({ spec }) => spec?.providerID)).toEqual([instance.providerID, instance.providerID]);
  },
  async 'lies-about-capacity'() {
    const { instance } = await launch();
    await harness.clock.step(2 * minute);
    const [node] = await nodes();
    expect(node?.status?.allocatable).not.toEqual(instance.allocatable);
  },
};

async function expectFailure(message: string): Promise<void> {
  expect(String(await subject.failureOf(() => subject.provider.list(subject.signal)))).toContain(message);
}

describe.each(Object.keys(mishaps) as Mishap[])('the fault %s', (mishap) => {
  test('bites while it is on, and is counted', async () => {
    end = begin(mishap);
    await effects[mishap]();
    end();
    const counted = bites(mishap);
    expect(counted).toBeGreaterThan(0);
    const { instance } = await launch();
    await subject.provider.list(subject.signal);
    expect(instance.providerID).toContain('scripted://');
    expect(bites(mishap)).toBe(counted);
  });
});
