// SPDX-License-Identifier: Apache-2.0
// The validator itself: programs that are broken on purpose are found out.
import { describe, expect, test } from 'vitest';
import { labels } from '../../api/labels.ts';
import type { Candidate } from './candidates.ts';
import { defaultMethods } from './index.ts';
import type { Method, MethodView, Proposal } from './method.ts';
import { live, type Mutant } from './testing/random-story.ts';
import type { Promised } from './testing/validator.ts';

/** A method that acts at once. */
function brute(name: string, propose: (view: MethodView) => Proposal[]): Method {
  return {
    name,
    reason: 'Underutilized',
    disruptionClass: 'graceful',
    consolidationType: 'multi',
    validateAfterMs: 0,
    concerns: () => true,
    propose,
  };
}

/** The usual methods, but whatever budgets say is not heard. */
const overBudget: Mutant = () =>
  defaultMethods().map((method) => ({
    ...method,
    name: method.name,
    reason: method.reason,
    disruptionClass: method.disruptionClass,
    consolidationType: method.consolidationType,
    validateAfterMs: 0,
    concerns: (candidate) => method.concerns(candidate),
    propose: (view) => method.propose({ ...view, budgets: { left: () => 100, take: () => true } as never }),
  }));

/** Takes any node, also those whose pods are protected. */
const ruthless: Mutant = (world) => [
  brute('ruthless', ({ candidates, catalog, snapshot }) => {
    const usual = new Set(candidates.map(({ machine }) => machine.key));
    const held: Candidate[] = [];
    for (const machine of world.state.nodes()) {
      const { node, nodeClaim } = machine;
      const nodePool = catalog.pools.find(({ metadata }) => metadata.name === machine.nodePool);
      if (!node || !nodeClaim || !nodePool || !machine.initialized || machine.markedForDeletion) continue;
      if (usual.has(machine.key) || snapshot.isQueued(machine.key)) continue;
      const reschedulablePods = [...machine.pods()];
      held.push({
        machine,
        node,
        nodeClaim,
        nodePool,
        instanceType: undefined,
        price: 0,
        reschedulablePods,
        rescheduleCost: 1,
      });
    }
    return held.slice(0, 1).map((candidate) => ({ candidates: [candidate], replacements: [], destinations: [] }));
  }),
];

/** Replaces a node by a machine like it, every half minute. */
const restless: Mutant = ({ clock }) => {
  let nextAt = 0;
  return [
    brute('restless', ({ candidates: [candidate] }) => {
      if (!candidate || clock.monotonic() < nextAt) return [];
      nextAt = clock.monotonic() + 30_000;
      const replacement = {
        nodePool: candidate.nodePool.metadata.name!,
        requirements: [],
        instanceTypes: [candidate.machine.labels[labels.instanceType]!],
        price: 0,
        requests: {},
        pods: [],
      };
      return [{ candidates: [candidate], replacements: [replacement], destinations: [] }];
    }),
  ];
};

/** Replaces each node by the largest machine there is, once, and says that it saves. */
const spendthrift: Mutant = () => [
  brute('spendthrift', ({ candidates, catalog }) =>
    candidates
      .map((candidate) => ({ candidate, types: catalog.instanceTypes[candidate.nodePool.metadata.name!]! }))
      .map(({ candidate, types }) => ({
        candidate,
        largest: types.toSorted((a, b) => Number(b.capacity['cpu']) - Number(a.capacity['cpu']))[0]!,
      }))
      .filter(({ candidate, largest }) => candidate.instanceType !== largest)
      .slice(0, 1)
      .map(({ candidate, largest }) => ({
        candidates: [candidate],
        replacements: [
          {
            nodePool: candidate.nodePool.metadata.name!,
            requirements: [],
            instanceTypes: [largest.name],
            price: 0,
            requests: {},
            pods: [],
          },
        ],
        destinations: [],
      })),
  ),
];

describe.each<[string, Mutant, Promised[]]>([
  ['goes beyond budgets', overBudget, ['budget']],
  ['does not care who is protected', ruthless, ['protection', 'pdb']],
  ['makes the cluster dearer, once', spendthrift, ['price']],
  ['never comes to rest, and buys what is no cheaper', restless, ['rest', 'cost']],
])('a program that %s', (_, mutant, promises) => {
  test('is found out', async () => {
    const broken = new Set<Promised>();
    for (let seed = 1; seed <= 20 && !promises.every((promise) => broken.has(promise)); seed++)
      for (const { promise } of (await live(seed, { mutant, restMinutes: 3 })).violations) broken.add(promise);
    expect(promises.filter((promise) => !broken.has(promise))).toEqual([]);
  }, 300_000);
});
