// SPDX-License-Identifier: Apache-2.0
// How the owners of pods hear of them.
import { deepEqual } from '../../base/freeze.ts';
import { kinds, type Pod } from '../../kube/kinds.ts';
import type { Controller } from '../../runtime/controller.ts';
import type { ControlPlane } from './context.ts';
import { isPodActive } from './pods.ts';

/** How long a lean control plane gathers what pods and nodes say of themselves. */
export const gatherMs = 1000;

/**
 * Pods that come and go are told at once. How those that stay are doing only leads to other numbers in a status: a lean
 * control plane gathers that, so that pods that start together are counted together.
 */
export function watchOwnedPods(
  controller: Controller,
  { informers, lean }: ControlPlane,
  keys: (pod: Pod) => string[],
): Controller {
  const pods = informers.of(kinds.Pod);
  if (!lean) return controller.watch(pods, { keys });
  return controller
    .watch(pods, { keys, when: (pod, old) => !isStaying(pod, old) })
    .watch(pods, { keys, when: isStaying, afterMs: gatherMs });
}

/** The change that was asked about last: every owner asks twice about each. */
let last: { readonly pod: Pod; readonly old: Pod | undefined; readonly stays: boolean } | undefined;

/** Whether a pod was there before and is still wanted by the same owner. */
function isStaying(pod: Pod, old?: Pod): boolean {
  if (last?.pod !== pod || last.old !== old) last = { pod, old, stays: stays(pod, old) };
  return last.stays;
}

function stays(pod: Pod, old?: Pod): boolean {
  return (
    old !== undefined &&
    isPodActive(pod) &&
    isPodActive(old) &&
    deepEqual(pod.metadata.labels, old.metadata.labels) &&
    deepEqual(pod.metadata.ownerReferences, old.metadata.ownerReferences)
  );
}
