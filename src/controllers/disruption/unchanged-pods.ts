// SPDX-License-Identifier: Apache-2.0
// Pods report all day long: a container restarted, a probe failed. Of all that, disruption looks at little: whoever rests
// while nothing changes must not take the rest for a change.
import type { Pod } from '../../kube/kinds.ts';
import { isSameBesideStatus } from '../same-pod.ts';
import { SettledList } from '../settled-list.ts';

/** Tells lists of pods that differ only in what disruption does not look at from others. */
export class UnchangedPods extends SettledList<Pod> {
  constructor() {
    super(isAlike);
  }
}

function isAlike(a: Pod, b: Pod): boolean {
  return isSameBesideStatus(a, b) && hasSameStatus(a, b);
}

function hasSameStatus(a: Pod, b: Pod): boolean {
  const [was, is] = [a.status ?? {}, b.status ?? {}];
  return (
    was.phase === is.phase &&
    was.startTime === is.startTime &&
    was.nominatedNodeName === is.nominatedNodeName &&
    was.containerStatuses === is.containerStatuses &&
    was.initContainerStatuses === is.initContainerStatuses &&
    was.resourceClaimStatuses === is.resourceClaimStatuses &&
    conditionsOf(a) === conditionsOf(b)
  );
}

/** What the conditions say, without since when. */
function conditionsOf({ status }: Pod): string {
  let text = '';
  for (const { type, status: value, reason } of status?.conditions ?? []) text += `${type}=${value}:${reason};`;
  return text;
}
