// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { NodePool } from '../../api/node-pool.ts';
import { formatTime } from '../../kube/time.ts';
import type { StateNode } from '../../state/state-node.ts';
import { BudgetLedger } from './budgets.ts';
import type { Candidate } from './candidates.ts';
import type { MethodView } from './method.ts';
import { longestRestMs, Prospects } from './prospects.ts';

const second = 1000;
const minute = 60 * second;

interface Machine {
  readonly name: string;
  /** Of a hundred. */
  readonly used: number;
  readonly isCandidate?: boolean;
  readonly isClosed?: boolean;
  readonly ageMs?: number;
}

interface Look {
  readonly view: MethodView;
  readonly closed: ReadonlySet<string>;
}

const sameTypes: never[] = [];
const pool = { metadata: { name: 'pool', uid: 'u', generation: 1 }, spec: {} } as unknown as NodePool;

function look(machines: readonly Machine[], { left = 1, generation = 1, types = sameTypes } = {}): Look {
  const now = 10_000 * minute;
  const nodePool = { ...pool, metadata: { ...pool.metadata, generation } } as NodePool;
  const amounts = (cpu: number) => new Map([['cpu', BigInt(cpu)]]);
  const nodes = machines.map(
    ({ name, used }) =>
      ({ key: name, initialized: true, allocatable: amounts(100), requests: amounts(used) }) as unknown as StateNode,
  );
  const candidates = machines.flatMap(({ isCandidate = true, isClosed, ageMs = 60 * minute }, i) =>
    isCandidate && !isClosed
      ? [
          {
            machine: nodes[i]!,
            nodePool,
            nodeClaim: { metadata: { creationTimestamp: formatTime(now - ageMs) } },
          } as unknown as Candidate,
        ]
      : [],
  );
  const view = {
    candidates,
    budgets: new BudgetLedger([{ pool: nodePool, nodes: 9, disrupting: 0, allowed: left, problem: undefined }]),
    catalog: { pools: [nodePool], instanceTypes: { pool: types } },
    snapshot: { now, machines: { nodes: () => nodes } },
  } as unknown as MethodView;
  return { view, closed: new Set(machines.filter(({ isClosed }) => isClosed).map(({ name }) => name)) };
}

/** After a search over a cluster found nothing at 0: whether another is worth it over the second. */
function again(first: Look, second: Look, at: number): boolean {
  const prospects = new Prospects();
  prospects.before(first.view, first.closed, 0)();
  return prospects.isWorthwhile(second.view, second.closed, at);
}

const ten = Array.from({ length: 10 }, (_, i): Machine => ({ name: `n${i}`, used: 50 }));
const but = (change: Partial<Machine>): Machine[] => [{ ...ten[0]!, ...change }, ...ten.slice(1)];

describe('after a search that found nothing', () => {
  test('there is none while nothing changes, for five minutes', () => {
    expect(again(look(ten), look(ten), 299 * second)).toBe(false);
    expect(again(look(ten), look(ten), 300 * second)).toBe(true);
  });

  test.each<[string, Look]>([
    ['a pod came', look(but({ used: 90 }))],
    ['a node may no longer go', look(but({ isCandidate: false }))],
    ['a node takes no more pods', look(but({ isClosed: true }))],
  ])('there is none for five minutes where %s', (_, later) => {
    expect(again(look(ten), later, 299 * second)).toBe(false);
  });

  test.each<[string, Look]>([
    ['a quarter of a node became free', look(but({ used: 25 }))],
    ['a node is new', look([...ten, { name: 'new', used: 60 }])],
    ['more may go', look(ten, { left: 2 })],
    ['a pool changed', look(ten, { generation: 2 })],
  ])('there is one at once where %s', (_, later) => {
    expect(again(look(ten), later, 0)).toBe(true);
  });

  test('there is one at once where a node is no longer young', () => {
    expect(again(look(but({ ageMs: 9 * minute })), look(but({ ageMs: 11 * minute })), 0)).toBe(true);
    expect(again(look(but({ ageMs: 8 * minute })), look(but({ ageMs: 9 * minute })), 299 * second)).toBe(false);
  });

  test.each<[string, Look]>([
    ['a little became free', look(but({ used: 45 }))],
    ['a node is new, and full', look([...ten, { name: 'new', used: 100 }])],
    ['a node is gone', look(ten.slice(1))],
    ['prices changed', look(ten, { types: [] })],
  ])('there is one after a minute where %s', (_, later) => {
    expect(again(look(ten), later, 59 * second)).toBe(false);
    expect(again(look(ten), later, 60 * second)).toBe(true);
  });

  test('there is none for five minutes where fewer may go', () => {
    expect(again(look(ten, { left: 2 }), look(ten, { left: 1 }), 299 * second)).toBe(false);
  });

  test('what came and went counts for nothing', () => {
    const prospects = new Prospects();
    const first = look(ten);
    prospects.before(first.view, first.closed, 0)();
    for (const used of [90, 50, 70, 50]) {
      const { view, closed } = look(but({ used }));
      expect(prospects.isWorthwhile(view, closed, 10)).toBe(false);
    }
  });

  test('a node that comes back counts what became free elsewhere meanwhile', () => {
    const prospects = new Prospects();
    const first = look(ten);
    prospects.before(first.view, first.closed, 0)();
    const elsewhere = look([{ ...ten[0]!, isCandidate: false }, { ...ten[1]!, used: 20 }, ...ten.slice(2)]);
    expect(prospects.isWorthwhile(elsewhere.view, elsewhere.closed, 10)).toBe(true);
    prospects.before(elsewhere.view, elsewhere.closed, 10)();
    expect(prospects.isWorthwhile(elsewhere.view, elsewhere.closed, 20)).toBe(false);
    const back = look([ten[0]!, { ...ten[1]!, used: 20 }, ...ten.slice(2)]);
    expect(prospects.isWorthwhile(back.view, back.closed, 30)).toBe(true);
  });
});

test('after a search that found something there is always one', () => {
  const prospects = new Prospects();
  const { view, closed } = look(ten);
  prospects.before(view, closed, 0)();
  prospects.foundSomething();
  expect(prospects.isWorthwhile(view, closed, 1)).toBe(true);
});

test('whatever happens, it rests for five minutes at most, for one if anything is freer than at the last search, and says until when', () => {
  const machine = fc.record({
    used: fc.integer({ min: 0, max: 100 }),
    isCandidate: fc.boolean(),
    isClosed: fc.boolean(),
  });
  const moment = fc.record({ machines: fc.array(machine, { maxLength: 6 }), after: fc.integer({ min: 0, max: 100 }) });
  fc.assert(
    fc.property(fc.array(moment, { maxLength: 20 }), (moments) => {
      const prospects = new Prospects();
      let [now, last] = [0, Number.NEGATIVE_INFINITY];
      let before: Machine[] = [];
      for (const { machines, after } of moments) {
        now += after * second;
        const named = machines.map((one, i): Machine => ({ ...one, name: `n${i}` }));
        const { view, closed } = look(named);
        const isWorthwhile = prospects.isWorthwhile(view, closed, now);
        expect(prospects.restsUntil! <= now).toBe(isWorthwhile);
        const isFreer = named.some(({ name, used, isClosed }) => {
          const known = before.find((one) => one.name === name && !one.isClosed);
          return !isClosed && known !== undefined && used < known.used;
        });
        const rested = now - last;
        if (rested >= longestRestMs || (isFreer && view.candidates.length > 0 && rested >= minute))
          expect(isWorthwhile).toBe(true);
        if (!isWorthwhile) continue;
        prospects.before(view, closed, now)();
        [before, last] = [named, now];
      }
    }),
  );
});
