// SPDX-License-Identifier: Apache-2.0
// What provisioning tells users.
import type { NodePool } from '../../api/node-pool.ts';
import type { EventToRecord } from '../../kube/event-recorder.ts';
import type { Pod } from '../../kube/kinds.ts';
import { eventKinds, eventOf } from '../events.ts';

/** The pod is expected on this machine: kube-scheduler decides, once it is there. */
export function nominated(
  pod: Pod,
  target: { readonly nodeClaim?: string | undefined; readonly node?: string | undefined },
  limiter: { tryTake(): boolean },
): EventToRecord {
  const names = [
    ...(target.nodeClaim === undefined ? [] : [`nodeclaim/${target.nodeClaim}`]),
    ...(target.node === undefined ? [] : [`node/${target.node}`]),
  ];
  return eventOf(eventKinds.nominated, pod, `Pod should schedule on: ${names.join(', ')}`, { limiter });
}

export function failedScheduling(pod: Pod, reason: string): EventToRecord {
  return eventOf(eventKinds.failedScheduling, pod, `Failed to schedule pod, ${reason}`);
}

export function noCompatibleInstanceTypes(pool: NodePool, reason: string): EventToRecord {
  const message = `NodePool requirements filtered out all compatible available instance types: ${reason}`;
  return eventOf(eventKinds.noCompatibleInstanceTypes, pool, message);
}
