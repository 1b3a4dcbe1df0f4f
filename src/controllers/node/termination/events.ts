// SPDX-License-Identifier: Apache-2.0
// What users are told about a node that goes away.
import type { EventToRecord } from '../../../kube/event-recorder.ts';
import type { Node, VolumeAttachment } from '../../../kube/kinds.ts';
import { eventKinds, eventOf } from '../../events.ts';

/** Names that a message lists; of the rest it says how many there are. */
const mostNames = 5;

export function failedToDrain(node: Node, waiting: number): EventToRecord {
  return eventOf(eventKinds.failedDraining, node, `Failed to drain node, ${waiting} pods are waiting to be evicted`);
}

export function awaitingVolumeDetachment(node: Node, attachments: readonly VolumeAttachment[]): EventToRecord {
  const names = attachments.slice(0, mostNames).map(({ metadata }) => metadata.name);
  const rest = attachments.length - names.length;
  const listed = `${names.join(', ')}${rest > 0 ? ` and ${rest} other(s)` : ''}`;
  return eventOf(eventKinds.awaitingVolumeDetachment, node, `Awaiting deletion of bound volumeattachments (${listed})`);
}

export function terminationGracePeriodExpiring(node: Node, deadline: string): EventToRecord {
  return eventOf(eventKinds.terminationGracePeriodExpiring, node, `All pods will be deleted by ${deadline}`);
}
