// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { finish } from '../../base/steps.ts';
import type { NewNodeClaim } from '../../scheduling/problem.ts';
import type { Candidate } from './candidates.ts';
import type { Proposal } from './method.ts';
import { type PieceOptions, piecesOf } from './pieces.ts';

/** A machine of a pool with so many pods, each named after it. */
function candidate(name: string, price: number, pods: number, pool = 'default'): Candidate {
  const reschedulablePods = Array.from({ length: pods }, (_, i) => ({
    metadata: { name: `${name}-${i}`, namespace: 'x' },
  }));
  return {
    machine: { key: name, name },
    nodePool: { metadata: { name: pool } },
    price,
    reschedulablePods,
    rescheduleCost: pods + 1,
  } as unknown as Candidate;
}

const podsOf = (...candidates: Candidate[]): string[] =>
  candidates.flatMap(({ reschedulablePods }) =>
    reschedulablePods.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`),
  );

const claim = (price: number, pods: readonly string[]): NewNodeClaim => ({
  nodePool: 'default',
  requirements: [],
  instanceTypes: ['any'],
  price,
  requests: {},
  pods,
});

const plan = (candidates: readonly Candidate[], replacements: readonly NewNodeClaim[] = []): Proposal => ({
  candidates,
  replacements,
  destinations: [],
});

const cheaper: PieceOptions['approve'] = (candidates, claims) => {
  const price = candidates.reduce((sum, { price: own }) => sum + own, 0);
  return claims.reduce((sum, { price: own }) => sum + own, 0) < price ? claims : 'dearer';
};

/** Pods go to the machines that were planned for them. */
const asPlanned: PieceOptions['needed'] = function* (candidates, claims) {
  yield;
  const moving = new Set(podsOf(...candidates));
  return claims.filter(({ pods }) => pods.some((pod) => moving.has(pod)));
};

function pieces(proposals: readonly Proposal[], left: number) {
  const made = finish(piecesOf(proposals, { left: () => left, approve: cheaper, needed: asPlanned, take: () => true }));
  return {
    now: made.proposals.map(({ candidates, replacements }) => ({
      going: candidates.map(({ machine }) => machine.key),
      bought: replacements.map(({ price }) => price),
    })),
    deferred: [...made.deferred],
  };
}

describe('of a plan', () => {
  test('everything goes where budgets allow it', () => {
    const [a, b] = [candidate('a', 1, 2), candidate('b', 1, 2)];
    const whole = plan([a, b], [claim(0.5, podsOf(a, b))]);
    expect(pieces([whole], 2)).toEqual({ now: [{ going: ['a', 'b'], bought: [0.5] }], deferred: [] });
  });

  test('the command goes first that saves most for what it moves; the others wait', () => {
    const [a, b, c] = [candidate('a', 1, 9), candidate('b', 1, 0), candidate('c', 1, 4)];
    expect(pieces([plan([a]), plan([b]), plan([c])], 1)).toEqual({
      now: [{ going: ['b'], bought: [] }],
      deferred: ['c', 'a'],
    });
  });

  test('a part of a command goes for what was to be bought for all of it', () => {
    const [a, b] = [candidate('a', 1, 20), candidate('b', 4, 1)];
    expect(pieces([plan([a, b], [claim(0.5, podsOf(a, b))])], 1)).toEqual({
      now: [{ going: ['b'], bought: [0.5] }],
      deferred: ['a'],
    });
  });

  test('machines for other nodes are not bought yet', () => {
    const [a, b] = [candidate('a', 1, 20), candidate('b', 4, 1)];
    expect(pieces([plan([a, b], [claim(0.5, podsOf(a)), claim(0.3, podsOf(b))])], 1).now).toEqual([
      { going: ['b'], bought: [0.3] },
    ]);
  });

  test('what pays only together does not wait for a budget that never lets it go', () => {
    const [a, b, c] = [candidate('a', 0.3, 1), candidate('b', 0.3, 1), candidate('c', 0.3, 1)];
    expect(pieces([plan([a, b, c], [claim(0.5, podsOf(a, b, c))])], 1)).toEqual({ now: [], deferred: [] });
    expect(pieces([plan([a, b, c], [claim(0.5, podsOf(a, b, c))])], 2)).toEqual({
      now: [{ going: ['a', 'b'], bought: [0.5] }],
      deferred: ['c'],
    });
  });

  test('each pool has its own budget', () => {
    const [a, b, c] = [candidate('a', 1, 1), candidate('b', 1, 1, 'other'), candidate('c', 1, 2)];
    expect(pieces([plan([a]), plan([b]), plan([c])], 1)).toEqual({
      now: [
        { going: ['a'], bought: [] },
        { going: ['b'], bought: [] },
      ],
      deferred: ['c'],
    });
  });
});
