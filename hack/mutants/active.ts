// SPDX-License-Identifier: Apache-2.0
// What the sources of a mutated copy ask at every changed place: whether this is the mistake that is made in this process. It
// comes from the environment, so that it holds in worker threads and child processes, too.
const made = process.env['MUTANT'];

/** The places that were passed since somebody last emptied it. */
export const passed = new Set<string>();

export function isMade(id: string): boolean {
  passed.add(id);
  return id === made;
}
