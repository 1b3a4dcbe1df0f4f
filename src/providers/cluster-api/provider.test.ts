// SPDX-License-Identifier: Apache-2.0
import { afterEach, describe, expect, test } from 'vitest';
import { CapiWorld, type WorldOptions } from './testing/world.ts';

let w: CapiWorld;
afterEach(() => w.stop());

async function world(options?: WorldOptions): Promise<CapiWorld> {
  w = await CapiWorld.start(options);
  return w;
}

describe('launching', () => {
  test('raises the member by one, takes the Machine that comes, and gives its provider id', async () => {
    await world();
    await w.member('md');
    await w.pass();
    const claim = await w.launch(await w.claim('a'));
    const [machine, ...others] = await w.machines();
    expect(others).toEqual([]);
    expect(claim.status?.providerID).toBe(machine?.spec?.providerID);
    expect(await w.replicas('md')).toBe(1);
    expect(await w.remove(claim)).toBeGreaterThan(1);
    expect(await w.machines()).toEqual([]);
    expect(await w.replicas('md')).toBe(0);
    expect(w.writes).toHaveLength(4);
  });
});
