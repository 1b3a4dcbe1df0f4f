// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { NodePool } from '../../api/node-pool.ts';
import { formatTime } from '../../kube/time.ts';
import type { StateNode } from '../../state/state-node.ts';
import { BudgetLedger } from './budgets.ts';
import type { Candidate } from './candidates.ts';
import type { MethodView } from './method.ts';
import { type Found, longestRestMs, Prospects } from './prospects.ts';

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

const pool = { metadata: { name: 'pool', uid: 'u', generation: 1 }, spec: {} } as unknown as NodePool;

function look(machines: readonly Machine[], { left = 1, generation = 1, allowed = Math.max(left, 1) } = {}): Look {
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
    later: [],
    budgets: new BudgetLedger([{ pool: nodePool, nodes: 9, disrupting: allowed - left, allowed, problem: undefined }]),
    catalog: { pools: [nodePool], instanceTypes: { pool: [] } },
    snapshot: { now, machines: { nodes: () => nodes } },
  } as unknown as MethodView;
  return { view, closed: new Set(machines.filter(({ isClosed }) => isClosed).map(({ name }) => name)) };
}

const nothing: Found = { going: [], isHeldBack: false };

/** After a search over a cluster found nothing at 0, or what is told: whether another is worth it over the second. */
function again(first: Look, second: Look, at: number, found = nothing): boolean {
  const prospects = new Prospects();
  prospects.before(first.view, first.closed, 0)(found);
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

  test.each<[string, Look]>([['budgets allow more', look(ten, { left: 2 })]])(
    'there is none for five minutes where %s',
    (_, later) => {
      expect(again(look(ten), later, 299 * second)).toBe(false);
      expect(again(look(ten), later, 300 * second)).toBe(true);
    },
  );

  test('there is one at once where a pool changed', () => {
    expect(again(look(ten), look(ten, { generation: 2 }), 0)).toBe(true);
  });

  test.each<[string, Look, number]>([
    ['a little became free', look(but({ used: 45 })), 60],
    ['two nodes are gone', look(ten.slice(2)), 4.8],
    ['a node is new, and full', look([...ten, { name: 'new', used: 100 }]), 60],
    ['a fiftieth became free', look(but({ used: 30 })), 60],
    ['four times as much became free', look([...but({ used: 10 }).slice(0, 9), { ...ten[9]!, used: 10 }]), 15],
    [
      'almost half of a new node is free, to pods and to whoever would remove it',
      look([...ten, { name: 'new', used: 56 }]),
      15,
    ],
    ['a cluster is new', look(ten.map((one) => ({ ...one, name: `${one.name}-new` }))), 0.6],
  ])('where %s there is one the sooner the more it is', (_, later, seconds) => {
    expect(again(look(ten), later, seconds * second - 1)).toBe(false);
    expect(again(look(ten), later, seconds * second)).toBe(true);
  });

  test('a node that is no longer young is new', () => {
    expect(again(look(but({ ageMs: 9 * minute })), look(but({ ageMs: 11 * minute })), 24 * second)).toBe(true);
    expect(again(look(but({ ageMs: 8 * minute })), look(but({ ageMs: 9 * minute })), 299 * second)).toBe(false);
  });

  test('there is one later each time that it was for nothing', () => {
    const prospects = new Prospects();
    const first = look(ten);
    prospects.before(first.view, first.closed, 0)(nothing);
    let at = 0;
    for (const [i, rest] of [1, 2, 4, 4, 4].map((minutes) => minutes * minute).entries()) {
      const { view, closed } = look(but({ used: 49 - i }));
      expect(prospects.isWorthwhile(view, closed, at + rest - 1)).toBe(false);
      expect(prospects.isWorthwhile(view, closed, at + rest)).toBe(true);
      at += rest;
      prospects.before(view, closed, at)(nothing);
    }
    const much = look([...but({ used: 5 }).slice(0, 9), { ...ten[9]!, used: 10 }]);
    expect(prospects.isWorthwhile(much.view, much.closed, at + minute)).toBe(true);
    prospects.before(much.view, much.closed, at)({ going: ['n0'], isHeldBack: false });
    const little = look(but({ used: 4 }));
    expect(prospects.isWorthwhile(little.view, little.closed, at + minute)).toBe(true);
  });

  test('a search in which nothing was new was not for nothing', () => {
    const prospects = new Prospects();
    const { view, closed } = look(ten);
    for (let at = 0; at <= 4 * longestRestMs; at += longestRestMs) {
      expect(prospects.isWorthwhile(view, closed, at)).toBe(true);
      prospects.before(view, closed, at)(nothing);
    }
    const little = look(but({ used: 49 }));
    expect(prospects.isWorthwhile(little.view, little.closed, 4 * longestRestMs + minute)).toBe(true);
  });

  test('there is none for five minutes where fewer may go', () => {
    expect(again(look(ten, { left: 2 }), look(ten, { left: 1 }), 299 * second)).toBe(false);
  });

  test('what came and went counts for nothing', () => {
    const prospects = new Prospects();
    const first = look(ten);
    prospects.before(first.view, first.closed, 0)(nothing);
    for (const used of [90, 50, 70, 50]) {
      const { view, closed } = look(but({ used }));
      expect(prospects.isWorthwhile(view, closed, 10)).toBe(false);
    }
  });

  test('a node that comes back counts what became free elsewhere meanwhile', () => {
    const prospects = new Prospects();
    const first = look(ten);
    prospects.before(first.view, first.closed, 0)(nothing);
    const elsewhere = look([{ ...ten[0]!, isCandidate: false }, { ...ten[1]!, used: 20 }, ...ten.slice(2)]);
    prospects.before(elsewhere.view, elsewhere.closed, 10)(nothing);
    expect(prospects.isWorthwhile(elsewhere.view, elsewhere.closed, 299 * second)).toBe(false);
    const back = look([ten[0]!, { ...ten[1]!, used: 20 }, ...ten.slice(2)]);
    expect(prospects.isWorthwhile(back.view, back.closed, minute)).toBe(true);
  });
});

describe('after a search that budgets held back', () => {
  const heldBack: Found = { going: [], isHeldBack: true };

  test('there is one at once where they allow more', () => {
    expect(again(look(ten), look(ten, { left: 2 }), 0, heldBack)).toBe(true);
    expect(again(look(ten, { left: 2 }), look(ten), 299 * second, heldBack)).toBe(false);
  });

  test('nodes that could not go are new as soon as they can', () => {
    const closed = look(ten, { left: 0 });
    const open = look(ten, { left: 1 });
    expect(again(closed, open, 0, heldBack)).toBe(true);
    expect(again(closed, open, 299 * second, nothing)).toBe(false);
  });
});

test('after a search that found something there is one a quarter of a minute later, and sooner where that was done or came to nothing', () => {
  const found: Found = { going: ['n0'], isHeldBack: false };
  expect(again(look(ten), look(but({ isCandidate: false })), 14 * second, found)).toBe(false);
  expect(again(look(ten), look(but({ isCandidate: false })), 15 * second, found)).toBe(true);
  expect(again(look(ten), look(ten.slice(1)), 11 * second, found)).toBe(true);
  // It stayed after all: half of it is news.
  expect(again(look(ten), look(but({ used: 0 })), 12 * second, found)).toBe(true);
});

test('after a glance that found something there is always one', () => {
  const prospects = new Prospects();
  const { view, closed } = look(ten);
  prospects.before(view, closed, 0)(nothing);
  prospects.foundSomething();
  expect(prospects.isWorthwhile(view, closed, 1)).toBe(true);
});

test('whatever happens, it rests for five minutes at most, and says until when', () => {
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
      for (const { machines, after } of moments) {
        now += after * second;
        const named = machines.map((one, i): Machine => ({ ...one, name: `n${i}` }));
        const { view, closed } = look(named);
        const isWorthwhile = prospects.isWorthwhile(view, closed, now);
        expect(prospects.restsUntil! <= now).toBe(isWorthwhile);
        const rested = now - last;
        if (rested >= longestRestMs) expect(isWorthwhile).toBe(true);
        if (!isWorthwhile) continue;
        prospects.before(view, closed, now)(nothing);
        last = now;
      }
    }),
  );
});
