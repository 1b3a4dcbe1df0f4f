// SPDX-License-Identifier: Apache-2.0
// What users are told about a node that goes away.
import type { EventToRecord } from '../../../kube/event-recorder.ts';
import type { Node, VolumeAttachment } from '../../../kube/kinds.ts';
import { formatList } from '../../../runtime/logging.ts';
import { eventKinds, eventOf } from '../../events.ts';

/** A message lists so many names, and says how many there are beyond. */
const mostNames = 5;

export function failedToDrain(node: Node, waiting: number): EventToRecord {
  return eventOf(eventKinds.failedDraining, node, `Failed to drain node, ${waiting} pods are waiting to be evicted`);
}

export function awaitingVolumeDetachment(node: Node, attachments: readonly VolumeAttachment[]): EventToRecord {
  const names = formatList(
    attachments.map(({ metadata }) => metadata.name),
    mostNames,
  );
  return eventOf(eventKinds.awaitingVolumeDetachment, node, `Awaiting deletion of bound volumeattachments (${names})`);
}

export function terminationGracePeriodExpiring(node: Node, deadline: string): EventToRecord {
  return eventOf(eventKinds.terminationGracePeriodExpiring, node, `All pods will be deleted by ${deadline}`);
}
