// SPDX-License-Identifier: Apache-2.0
import { afterEach } from 'vitest';
import { LinodeWorld, type WorldOptions } from './world.ts';

/** Starts worlds for the tests of a file, with these options unless told otherwise; each ends with its test. */
export function worldsPerTest(usual: WorldOptions = {}): (options?: WorldOptions) => Promise<LinodeWorld> {
  const worlds: LinodeWorld[] = [];
  // The last first: some share the account of an earlier one.
  afterEach(async () => {
    for (const world of worlds.splice(0).reverse()) await world.stop();
  });
  return async (options) => {
    const world = await LinodeWorld.start({ ...usual, ...options });
    worlds.push(world);
    return world;
  };
}
