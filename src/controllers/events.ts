// SPDX-License-Identifier: Apache-2.0
// Every kind of event we record: its reason as users see it, and how often the same one is told. Reasons are upstream's,
// so that alerts and habits carry over. What an event says is written by the controller it comes from.
import type { Clock } from '../base/clock.ts';
import type { EventToRecord } from '../kube/event-recorder.ts';
import type { KubeObject } from '../kube/object.ts';
import { TokenBucket } from '../kube/rate-limiter.ts';

/** A kind of event. */
export interface EventKind {
  readonly reason: string;
  readonly type: 'Normal' | 'Warning';
  /** For how long the same event is not told again. */
  readonly dedupeMs: number;
}

const minute = 60_000;

function normal(reason: string, dedupeMs = 2 * minute): EventKind {
  return { reason, type: 'Normal', dedupeMs };
}

function warning(reason: string, dedupeMs = 2 * minute): EventKind {
  return { reason, type: 'Warning', dedupeMs };
}

/** All kinds of events, by the name the program uses. */
export const eventKinds = {
  // Provisioning
  nominated: normal('Nominated'),
  failedScheduling: warning('FailedScheduling', 5 * minute),
  noCompatibleInstanceTypes: warning('NoCompatibleInstanceTypes', minute),
  // Disruption
  disruptionBlocked: normal('DisruptionBlocked'),
  /** On a NodePool whose budget is zero. */
  poolDisruptionBlocked: normal('DisruptionBlocked', minute),
  disruptionLaunching: normal('DisruptionLaunching'),
  disruptionWaitingReadiness: normal('DisruptionWaitingReadiness'),
  disruptionTerminating: normal('DisruptionTerminating'),
  unconsolidatable: normal('Unconsolidatable', 15 * minute),
  consolidationCandidate: normal('ConsolidationCandidate'),
  consolidationRejected: normal('ConsolidationRejected'),
  consolidationApproved: normal('ConsolidationApproved'),
  nodeRepairBlocked: warning('NodeRepairBlocked', 15 * minute),
  // Termination
  evicted: normal('Evicted'),
  disrupted: normal('Disrupted'),
  failedDraining: warning('FailedDraining'),
  awaitingVolumeDetachment: normal('AwaitingVolumeDetachment'),
  terminationGracePeriodExpiring: warning('TerminationGracePeriodExpiring'),
  // NodeClaims
  failedConsistencyCheck: warning('FailedConsistencyCheck'),
  insufficientCapacityError: warning('InsufficientCapacityError'),
  nodeClassNotReady: warning('NodeClassNotReady'),
  unregisteredTaintMissing: warning('UnregisteredTaintMissing'),
  // Pods that protect themselves
  invalidDoNotDisruptAnnotation: warning('InvalidDoNotDisruptAnnotation'),
  doNotDisruptUntil: normal('DoNotDisruptUntil'),
  doNotDisruptGracePeriodElapsed: normal('DoNotDisruptGracePeriodElapsed'),
  // Any object of ours
  finalized: normal('Finalized'),
} as const satisfies Readonly<Record<string, EventKind>>;

/** A condition of an object changed: the reason is the condition's type. */
export function conditionEvent(type: string): EventKind {
  return normal(type);
}

export interface EventOptions {
  /** What makes it the same event again, beside the reason; the object's UID unless told. */
  readonly dedupeValues?: readonly string[];
  readonly limiter?: { tryTake(): boolean };
}

/** An event of a kind about an object; the same kind about the same object is told once in its window, whatever it says. */
export function eventOf(
  kind: EventKind,
  object: KubeObject,
  message: string,
  options: EventOptions = {},
): EventToRecord {
  const { dedupeValues = [object.metadata.uid ?? ''], limiter } = options;
  return { ...kind, object, message, dedupeValues, ...(limiter ? { limiter } : {}) };
}

/** A pass may place thousands of pods: of their Nominated events only so many go out. Shared by all who nominate. */
export function nominationLimiter(clock: Clock): TokenBucket {
  return new TokenBucket({ qps: 5, burst: 10, clock });
}
