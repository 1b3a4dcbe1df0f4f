// SPDX-License-Identifier: Apache-2.0
// A Deployment's status: counts, availability, and whether its rollout makes progress.
import type { Deployment, DeploymentStatus, ReplicaSet } from '../../../kube/kinds.ts';
import { formatTime, parseTime } from '../../../kube/time.ts';
import { findCondition, withCondition, withoutCondition } from '../conditions.ts';
import { maxUnavailable, replicasOf, totalReplicas } from './arithmetic.ts';

type Condition = NonNullable<DeploymentStatus['conditions']>[number];

export function deploymentCondition(
  type: string,
  status: 'True' | 'False' | 'Unknown',
  reason: string,
  message: string,
  now: number,
): Condition {
  const time = formatTime(now);
  return { type, status, reason, message, lastUpdateTime: time, lastTransitionTime: time };
}

/** A deadline of the largest number means none. */
export function hasDeadline(deployment: Deployment): boolean {
  const seconds = deployment.spec.progressDeadlineSeconds;
  return seconds !== undefined && seconds !== 2147483647;
}

export function isComplete(deployment: Deployment, status: DeploymentStatus | undefined): boolean {
  const wanted = replicasOf(deployment);
  return (
    (status?.updatedReplicas ?? 0) === wanted &&
    (status?.replicas ?? 0) === wanted &&
    (status?.availableReplicas ?? 0) === wanted &&
    (status?.observedGeneration ?? 0) >= (deployment.metadata.generation ?? 0)
  );
}

/** Counts and availability; progress is judged by `rolloutStatus`. */
export function countedStatus(
  deployment: Deployment,
  sets: readonly ReplicaSet[],
  fresh: ReplicaSet | undefined,
  now: number,
): DeploymentStatus {
  const sum = (field: 'replicas' | 'readyReplicas' | 'availableReplicas' | 'terminatingReplicas'): number =>
    sets.reduce((total, set) => total + (set.status?.[field] ?? 0), 0);
  const available = sum('availableReplicas');
  const enough = available >= replicasOf(deployment) - maxUnavailable(deployment);
  const availability = enough
    ? deploymentCondition('Available', 'True', 'MinimumReplicasAvailable', 'Deployment has minimum availability.', now)
    : deploymentCondition(
        'Available',
        'False',
        'MinimumReplicasUnavailable',
        'Deployment does not have minimum availability.',
        now,
      );
  return dropZeros({
    observedGeneration: deployment.metadata.generation ?? 0,
    replicas: sum('replicas'),
    updatedReplicas: fresh?.status?.replicas ?? 0,
    readyReplicas: sum('readyReplicas'),
    availableReplicas: available,
    unavailableReplicas: Math.max(0, totalReplicas(sets) - available),
    terminatingReplicas: sum('terminatingReplicas'),
    ...(deployment.status?.collisionCount === undefined ? {} : { collisionCount: deployment.status.collisionCount }),
    conditions: withCondition(deployment.status?.conditions, availability),
  });
}

const omitEmpty = ['replicas', 'updatedReplicas', 'readyReplicas', 'availableReplicas', 'unavailableReplicas'] as const;

/** As on the wire: these fields are absent when zero. */
function dropZeros(status: DeploymentStatus): DeploymentStatus {
  const copy = { ...status };
  for (const field of omitEmpty) if (copy[field] === 0) delete copy[field];
  return copy;
}

/** The status with the Progressing and ReplicaFailure conditions brought up to date. */
export function rolloutStatus(
  deployment: Deployment,
  sets: readonly ReplicaSet[],
  fresh: ReplicaSet | undefined,
  now: number,
): DeploymentStatus {
  const status = countedStatus(deployment, sets, fresh, now);
  let conditions = status.conditions;
  if (!hasDeadline(deployment)) conditions = withoutCondition(conditions, 'Progressing');
  const current = findCondition(deployment.status?.conditions, 'Progressing');
  const settled =
    (status.replicas ?? 0) === (status.updatedReplicas ?? 0) && current?.reason === 'NewReplicaSetAvailable';
  if (hasDeadline(deployment) && !settled) {
    const subject = fresh ? `ReplicaSet "${fresh.metadata.name}"` : `Deployment "${deployment.metadata.name}"`;
    conditions = progress(deployment, status, conditions, subject, now);
  }
  const failure = [fresh, ...sets]
    .map((set) => findCondition(set?.status?.conditions, 'ReplicaFailure'))
    .find((condition) => condition !== undefined);
  conditions = failure
    ? withCondition(
        conditions,
        deploymentCondition('ReplicaFailure', 'True', failure.reason ?? '', failure.message ?? '', now),
      )
    : withoutCondition(conditions, 'ReplicaFailure');
  return { ...status, conditions };
}

function progress(
  deployment: Deployment,
  status: DeploymentStatus,
  conditions: Condition[] | undefined,
  subject: string,
  now: number,
): Condition[] | undefined {
  const current = findCondition(conditions, 'Progressing');
  if (isComplete(deployment, status)) {
    return withCondition(
      conditions,
      deploymentCondition(
        'Progressing',
        'True',
        'NewReplicaSetAvailable',
        `${subject} has successfully progressed.`,
        now,
      ),
    );
  }
  if (madeProgress(deployment.status, status)) {
    // The update time moves with each step, though neither status nor reason does.
    const moved = deploymentCondition('Progressing', 'True', 'ReplicaSetUpdated', `${subject} is progressing.`, now);
    const kept = current?.status === 'True' ? current.lastTransitionTime : undefined;
    return [
      ...withoutCondition(conditions, 'Progressing'),
      kept === undefined ? moved : { ...moved, lastTransitionTime: kept },
    ];
  }
  if (!timedOut(deployment, current, now)) return conditions;
  return withCondition(
    conditions,
    deploymentCondition(
      'Progressing',
      'False',
      'ProgressDeadlineExceeded',
      `${subject} has timed out progressing.`,
      now,
    ),
  );
}

function madeProgress(before: DeploymentStatus | undefined, after: DeploymentStatus): boolean {
  const old = (status: DeploymentStatus | undefined): number =>
    (status?.replicas ?? 0) - (status?.updatedReplicas ?? 0);
  return (
    (after.updatedReplicas ?? 0) > (before?.updatedReplicas ?? 0) ||
    old(after) < old(before) ||
    (after.readyReplicas ?? 0) > (before?.readyReplicas ?? 0) ||
    (after.availableReplicas ?? 0) > (before?.availableReplicas ?? 0)
  );
}

function timedOut(deployment: Deployment, current: Condition | undefined, now: number): boolean {
  if (!current || current.reason === 'NewReplicaSetAvailable') return false;
  if (current.reason === 'ProgressDeadlineExceeded') return true;
  return deadlineIn(deployment, current, now) < 0;
}

/** Milliseconds until the progress deadline passes. */
export function deadlineIn(deployment: Deployment, progressing: Condition, now: number): number {
  const from = progressing.lastUpdateTime ? parseTime(progressing.lastUpdateTime) : now;
  return from + (deployment.spec.progressDeadlineSeconds ?? 0) * 1000 - now;
}
