// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { VirtualClock } from '../../base/clock.ts';
import type { Store, StoreEvent } from '../../embedded/store.ts';
import type { StoredCloudParts } from '../contract.ts';
import { kwokCloud } from './kwok-cloud.ts';

test('a machine that is gone stays in the books, with the time of its end', async () => {
  const clock = new VirtualClock();
  let told: (type: StoreEvent['type']) => void = () => undefined;
  const store = {
    listen(listener: Parameters<Store['listen']>[0]) {
      const object = { metadata: { name: 'n', uid: 'u' }, spec: { providerID: 'kwok://n' } };
      told = (type) => listener({ name: 'nodes' } as never, { type, object } as unknown as StoreEvent);
      return () => undefined;
    },
  } as unknown as Store;
  const { ledger } = kwokCloud({ clock, store } as unknown as StoredCloudParts);
  told('ADDED');
  const launchedAt = clock.now();
  await clock.step(60_000);
  expect(ledger.alive()).toHaveLength(1);
  told('DELETED');
  expect(ledger.alive()).toEqual([]);
  expect(ledger.all()).toMatchObject([{ providerID: 'kwok://n', launchedAt, goneAt: launchedAt + 60_000 }]);
});
