// SPDX-License-Identifier: Apache-2.0
// A program that dies at one of its writes, and what it must not leave behind.
import { expect } from 'vitest';
import type { WriteHandler } from '../../kube/testing/faulty-transport.ts';
import type { CallHandler } from './fake-cloud.ts';
import type { TestWorld } from './world.ts';

/** Right before a write, or when it was carried out and the answer never came. */
export type Moment = 'before' | 'after';

/** Counts writes of the program and ends it at the n-th. Resolves `died` when that came. */
export function dieAt(
  write: number,
  moment: Moment,
  world: TestWorld,
): { readonly died: Promise<void>; readonly isDead: () => boolean } {
  const { promise: died, resolve } = Promise.withResolvers<void>();
  let [count, dead] = [0, false];
  const fatal = async <R>(carryOut: () => Promise<R>): Promise<R> => {
    if (dead) return new Promise<R>(() => undefined);
    if (++count !== write) return carryOut();
    dead = true;
    // However it ended, nobody hears of it.
    if (moment === 'after') await carryOut().catch(() => undefined);
    for (const door of new Set(Object.values(world.doors))) door.cut();
    resolve();
    return new Promise<R>(() => undefined);
  };
  const writes: WriteHandler = (send) => fatal(send);
  const calls: CallHandler = (call) => fatal(call);
  for (const door of new Set(Object.values(world.doors))) door.handleWrites(writes);
  world.cloud.handleCalls(calls);
  return { died, isDead: () => dead };
}

/** Every machine has its NodeClaim and its Node, and nothing is left over. */
export async function expectNoLeaks(world: TestWorld): Promise<void> {
  const claims = (await world.claims()).map(({ status }) => status?.providerID ?? '').sort();
  const nodes = (await world.nodes()).map(({ spec }) => spec?.providerID ?? '').sort();
  expect({ nodes, machines: [...world.cloud.instances.keys()].sort() }).toEqual({ nodes: claims, machines: claims });
}
