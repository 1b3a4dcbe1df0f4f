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
  /** For how long the same event is not told again, whatever it says. */
  readonly dedupeMs: number;
  /** For how long the same words are not told again. */
  readonly repeatMs: number;
  /** The kinds of objects it is about. */
  readonly on: readonly string[];
  /** What it means, for the reference. */
  readonly help: string;
}

const minute = 60_000;
/**
 * What stands for hours is told again before kube-apiserver forgets the last time (an hour), and not in every window: on a
 * cluster at rest nearly all writes were events about what had not changed.
 */
const standingMs = 30 * minute;

interface Described {
  readonly on: readonly string[];
  readonly help: string;
  readonly dedupeMs?: number;
  readonly repeatMs?: number;
}

function normal(reason: string, { on, help, dedupeMs = 2 * minute, repeatMs = dedupeMs }: Described): EventKind {
  return { reason, type: 'Normal', dedupeMs, repeatMs, on, help };
}

function warning(reason: string, { on, help, dedupeMs = 2 * minute, repeatMs = dedupeMs }: Described): EventKind {
  return { reason, type: 'Warning', dedupeMs, repeatMs, on, help };
}

const pod = ['Pod'];
const node = ['Node'];
const claim = ['NodeClaim'];
const pool = ['NodePool'];
const machine = ['Node', 'NodeClaim'];
const ours = ['NodePool', 'NodeClaim', 'Node'];

/** All kinds of events, by the name the program uses. */
export const eventKinds = {
  // Provisioning
  nominated: normal('Nominated', {
    on: pod,
    help: 'The pod should fit on this NodeClaim or node; kube-scheduler places it.',
  }),
  failedScheduling: warning('FailedScheduling', {
    on: pod,
    help: 'No NodePool can serve the pod, or the pod asks for something impossible; the message says why.',
    dedupeMs: 5 * minute,
  }),
  noCompatibleInstanceTypes: warning('NoCompatibleInstanceTypes', {
    on: pool,
    help: 'The requirements of the NodePool leave no instance type.',
    dedupeMs: minute,
  }),
  // Disruption
  disruptionBlocked: normal('DisruptionBlocked', {
    on: machine,
    help: 'The machine cannot be disrupted now; the message says what stands in the way.',
    repeatMs: standingMs,
  }),
  /** On a NodePool whose budget is zero. */
  poolDisruptionBlocked: normal('DisruptionBlocked', {
    on: pool,
    help: 'A budget of the NodePool allows no disruption now.',
    dedupeMs: minute,
    repeatMs: standingMs,
  }),
  disruptionLaunching: normal('DisruptionLaunching', {
    on: claim,
    help: 'It was created to replace machines that are to go.',
  }),
  disruptionWaitingReadiness: normal('DisruptionWaitingReadiness', {
    on: claim,
    help: 'The machines that it replaces go once it is ready.',
  }),
  disruptionTerminating: normal('DisruptionTerminating', {
    on: machine,
    help: 'The machine is disrupted; the message names the reason.',
  }),
  unconsolidatable: normal('Unconsolidatable', {
    on: machine,
    help: 'Consolidation leaves the machine as it is; the message says why.',
    dedupeMs: 15 * minute,
    repeatMs: standingMs,
  }),
  consolidationCandidate: normal('ConsolidationCandidate', {
    on: machine,
    help: 'The machine could be removed or replaced by something cheaper.',
  }),
  consolidationRejected: normal('ConsolidationRejected', {
    on: machine,
    help: 'A consolidation was given up, because something changed while it waited.',
  }),
  consolidationApproved: normal('ConsolidationApproved', {
    on: machine,
    help: 'A consolidation is worth what it moves (policy Balanced).',
  }),
  nodeRepairBlocked: warning('NodeRepairBlocked', {
    on: machine,
    help: 'The node is unhealthy, and too many others are as well: it is not replaced.',
    dedupeMs: 15 * minute,
    repeatMs: standingMs,
  }),
  // Termination
  evicted: normal('Evicted', { on: pod, help: 'The pod was evicted, because its node goes away.' }),
  disrupted: normal('Disrupted', { on: pod, help: 'The pod is deleted, because the time of its node is over.' }),
  failedDraining: warning('FailedDraining', {
    on: node,
    help: 'Pods are still to be evicted; the message says which and what holds them.',
  }),
  awaitingVolumeDetachment: normal('AwaitingVolumeDetachment', {
    on: node,
    help: 'The node is drained, and volumes are still attached to it.',
  }),
  terminationGracePeriodExpiring: warning('TerminationGracePeriodExpiring', {
    on: machine,
    help: 'At the time in the message everything left on the node is deleted.',
  }),
  // NodeClaims
  failedConsistencyCheck: warning('FailedConsistencyCheck', {
    on: claim,
    help: 'The node is not what was bought: it has less of a resource than its cloud said; the message says of which.',
  }),
  insufficientCapacityError: warning('InsufficientCapacityError', {
    on: claim,
    help: 'The cloud has no such machine now; the NodeClaim is deleted and its pods are planned for again.',
  }),
  nodeClassNotReady: warning('NodeClassNotReady', {
    on: claim,
    help: 'The NodeClass cannot be used; the NodeClaim is deleted and its pods are planned for again.',
  }),
  unregisteredTaintMissing: warning('UnregisteredTaintMissing', {
    on: claim,
    help: 'The node came without the taint karpenter.sh/unregistered: pods may land on it too early.',
  }),
  // Pods that protect themselves
  invalidDoNotDisruptAnnotation: warning('InvalidDoNotDisruptAnnotation', {
    on: pod,
    help: 'The value of karpenter.sh/do-not-disrupt is neither true nor a duration.',
  }),
  doNotDisruptUntil: normal('DoNotDisruptUntil', {
    on: pod,
    help: 'The pod protects its node until the time in the message.',
    repeatMs: standingMs,
  }),
  doNotDisruptGracePeriodElapsed: normal('DoNotDisruptGracePeriodElapsed', {
    on: pod,
    help: 'The protection that the pod asked for has run out.',
  }),
  // Any object of ours
  finalized: normal('Finalized', {
    on: ours,
    help: 'A finalizer was removed: the object is gone or about to be.',
    dedupeMs: 0,
  }),
} as const satisfies Readonly<Record<string, EventKind>>;

/** A condition of an object changed: the reason is the condition's type. */
export function conditionEvent(type: string): EventKind {
  return normal(type, {
    on: ours,
    help: 'A condition of the object changed; the message says from what to what.',
    // One that goes to and fro is worth knowing about.
    dedupeMs: 0,
  });
}

export interface EventOptions {
  /** What makes it the same event again, beside the reason; the object's UID unless told. */
  readonly dedupeValues?: readonly string[];
  readonly limiter?: { tryTake(): boolean };
}

/** An event of a kind about an object; the same kind about the same object is told once in its window, whatever it says, and the same words as its kind says. */
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
