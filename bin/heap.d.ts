// SPDX-License-Identifier: Apache-2.0
// The types of heap.js, for our own TypeScript.
export const smallYoungSpace: string;
export const quickYoungSpace: string;
export function growYoungSpaceQuickly(): void;
export function heapFlagsFor(
  args: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  execArgv: readonly string[],
): string[];
