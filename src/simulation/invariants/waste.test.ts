// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { StoreEvent } from '../../embedded/store.ts';
import { collections } from '../collections.ts';
import type { Facts, LedgerInstance } from '../contract.ts';
import { littleWaste } from './waste.ts';

/** A world in which so many machines were bought and the first few of them ran a pod; what the judge says of it. */
function judged(story: { bought: number; used: number; broken?: number; waitAlone?: number }): string[] {
  const { bought, used, broken = 0, waitAlone = 0 } = story;
  const judge = littleWaste();
  const told = (collection: string, type: StoreEvent['type'], object: object): void =>
    judge.onChange!(
      { at: 0, by: 'cluster', request: '', collection, event: { type, object } as StoreEvent },
      { get: () => undefined } as unknown as Facts,
      { violated: () => undefined, checked: () => undefined },
    );
  const alone = {
    podAntiAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        { weight: 1, podAffinityTerm: { topologyKey: 'kubernetes.io/hostname' } },
      ],
    },
  };
  for (let i = 0; i < waitAlone; i++)
    told(collections.pods, 'ADDED', { metadata: { name: `alone-${i}`, uid: `alone-${i}` }, spec: { affinity: alone } });
  const machines = Array.from({ length: bought }, (_, i): LedgerInstance => {
    told(collections.claims, 'ADDED', { metadata: { name: `claim-${i}`, uid: `claim-${i}` } });
    const [providerID, isBroken] = [`machine-${i}`, i >= bought - broken];
    if (!isBroken) told(collections.nodes, 'ADDED', { metadata: { name: `node-${i}` }, spec: { providerID } });
    if (i < used)
      told(collections.pods, 'MODIFIED', { metadata: { name: 'p', uid: `p-${i}` }, spec: { nodeName: `node-${i}` } });
    const claim = { name: `claim-${i}`, uid: `claim-${i}` };
    return { providerID, claim, isBroken, instanceType: '', zone: '', capacityType: '', price: 1, launchedAt: 0 };
  });
  const said: string[] = [];
  const clouds = [{ ledger: { all: () => machines, alive: () => machines } }];
  void judge.onQuiet!({ clouds } as unknown as Facts, {
    violated: (message) => said.push(message),
    checked: () => undefined,
  });
  return said;
}

test('of forty machines fifteen that no pod ran on are too many, and fourteen are not', () => {
  expect(judged({ bought: 40, used: 25 })).toEqual(['15 of 40 machines never ran a pod']);
  expect(judged({ bought: 40, used: 26 })).toEqual([]);
});

test('a machine that its cloud broke is not held against who bought it', () => {
  expect(judged({ bought: 60, used: 26, broken: 20 })).toEqual([]);
  expect(judged({ bought: 60, used: 25, broken: 20 })).toEqual(['15 of 40 machines never ran a pod']);
});

test('each pod that would rather be alone excuses one machine, and no more', () => {
  expect(judged({ bought: 40, used: 0, waitAlone: 21 })).toEqual([]); // Too few are left to judge.
  expect(judged({ bought: 40, used: 0, waitAlone: 20 })).toEqual(['20 of 20 machines never ran a pod']);
});

test('it excuses one that stayed empty, whichever was made for it', () => {
  expect(judged({ bought: 60, used: 26, waitAlone: 20 })).toEqual([]);
  expect(judged({ bought: 60, used: 25, waitAlone: 20 })).toEqual(['15 of 40 machines never ran a pod']);
});
