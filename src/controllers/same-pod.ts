// SPDX-License-Identifier: Apache-2.0
// What everybody who rests while nothing changes compares of two versions of a pod: all of it but the status, of which each looks at
// another part.
import type { Pod } from '../kube/kinds.ts';

/** Parts that did not change are the same object in memory: whatever is another one counts as a change. */
export function isSameBesideStatus(a: Pod, b: Pod): boolean {
  const [was, is] = [a.metadata, b.metadata];
  return (
    a.spec === b.spec &&
    was.uid === is.uid &&
    was.labels === is.labels &&
    was.annotations === is.annotations &&
    was.ownerReferences === is.ownerReferences &&
    was.deletionTimestamp === is.deletionTimestamp
  );
}
