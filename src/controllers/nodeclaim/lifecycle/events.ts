// SPDX-License-Identifier: Apache-2.0
// What users are told about a NodeClaim on its way.
import type { NodeClaim } from '../../../api/node-claim.ts';
import { unregisteredTaint } from '../../../api/taints.ts';
import { messageOf } from '../../../base/errors.ts';
import type { EventToRecord } from '../../../kube/event-recorder.ts';
import { eventKinds, eventOf } from '../../events.ts';

const longestMessage = 300;

/** A message short enough for a condition or an event. */
export function shortened(message: string): string {
  return message.length <= longestMessage ? message : `${message.slice(0, longestMessage)}...`;
}

export function insufficientCapacity(claim: NodeClaim, error: unknown): EventToRecord {
  return eventOf(eventKinds.insufficientCapacityError, claim, `No machine can be had now: ${short(error)}`);
}

export function nodeClassNotReady(claim: NodeClaim, error: unknown): EventToRecord {
  return eventOf(eventKinds.nodeClassNotReady, claim, `The NodeClass cannot be used: ${short(error)}`);
}

export function unregisteredTaintMissing(claim: NodeClaim): EventToRecord {
  return eventOf(
    eventKinds.unregisteredTaintMissing,
    claim,
    `The node came without the taint ${unregisteredTaint.key}: pods may have been placed on it before it got its labels and taints`,
  );
}

export function terminationGracePeriodExpiring(claim: NodeClaim, at: string): EventToRecord {
  return eventOf(
    eventKinds.terminationGracePeriodExpiring,
    claim,
    `All pods will be deleted by ${at}: the termination grace period ends`,
  );
}

function short(error: unknown): string {
  return shortened(messageOf(error));
}
