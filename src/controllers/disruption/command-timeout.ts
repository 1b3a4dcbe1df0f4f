// SPDX-License-Identifier: Apache-2.0
// How long a command may take before it is given up.

const shortestMs = 10 * 60_000;
const longestMs = 60 * 60_000;
/** With more machines on their way a cloud is slower. */
const perMachineMs = 80;

/** For a command that is carried out while so many machines are on their way. */
export function commandTimeoutMs(machines: number): number {
  return Math.min(longestMs, Math.max(shortestMs, perMachineMs * machines));
}
