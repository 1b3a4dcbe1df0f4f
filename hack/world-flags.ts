// SPDX-License-Identifier: Apache-2.0
// How V8 runs processes that simulate world after world, one on each core. For the program itself none of it holds.

/**
 * Worlds make 400 MB of objects in an hour, nearly all for a moment: with much room for young ones, fewer are still in use
 * when it is full and copied. Collecting and compiling in threads beside would only take the core of the world next door,
 * and cost more in all. And what functions see is noted from their first call on: the ones that matter run in every world.
 */
const flags: readonly string[] = [
  '--min-semi-space-size=256',
  '--max-semi-space-size=256',
  '--single-threaded',
  '--no-lazy-feedback-allocation',
];

/** For a process of its own: these, and what this one was started with. */
export function worldArgv(own: readonly string[] = process.execArgv): string[] {
  return [...own, ...flags];
}
