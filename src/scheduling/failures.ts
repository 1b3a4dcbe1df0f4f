// SPDX-License-Identifier: Apache-2.0
// Why a pod has no place, said in a sentence. Worked out only for pods that failed.
import type { Failure } from './pack.ts';
import type { PodError } from './problem.ts';
import type { World } from './world.ts';

/** Reason and detail for a pod that was not placed. */
export function failureOf(world: World, pod: number, why: Failure): Omit<PodError, 'pod'> {
  void world;
  void pod;
  return { reason: why, detail: why, ...(why === 'unschedulable' ? {} : { deferred: true }) };
}
