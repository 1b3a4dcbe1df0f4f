// SPDX-License-Identifier: Apache-2.0
// What a Job's status says: how far it is, whether it is over, and how many pods should run. Pure.
import type { Job, Pod } from '../../kube/kinds.ts';
import { formatTime, parseTime } from '../../kube/time.ts';
import { findCondition, withCondition } from './conditions.ts';
import { isPodReady } from './pods.ts';

type JobStatus = NonNullable<Job['status']>;
export type Verdict = { readonly type: 'Complete' | 'Failed'; readonly reason: string; readonly message: string };

/** How a Job stands, counted. */
export interface JobProgress {
  readonly succeeded: { readonly count: number; readonly indexes: ReadonlySet<number> };
  readonly failed: number;
  readonly active: readonly Pod[];
  readonly verdict: Verdict | undefined;
  readonly now: number;
}

/** Whether a Job is over, and how; undefined while it goes on. */
export function verdictOf(
  job: Job,
  succeeded: number,
  failed: number,
  active: number,
  now: number,
): Verdict | undefined {
  const { backoffLimit = 6, activeDeadlineSeconds, completions } = job.spec;
  if (failed > backoffLimit) {
    return { type: 'Failed', reason: 'BackoffLimitExceeded', message: 'Job has reached the specified backoff limit' };
  }
  const started = job.status?.startTime ? parseTime(job.status.startTime) : now;
  if (activeDeadlineSeconds !== undefined && now - started >= activeDeadlineSeconds * 1000) {
    return { type: 'Failed', reason: 'DeadlineExceeded', message: 'Job was active longer than specified deadline' };
  }
  // Without a number of completions, the first success ends the work once the others have ended.
  const done = completions === undefined ? succeeded > 0 && active === 0 : succeeded >= completions;
  return done
    ? { type: 'Complete', reason: 'CompletionsReached', message: 'Reached expected number of succeeded pods' }
    : undefined;
}

/** How many pods should run now. */
export function wantedActive(job: Job, succeeded: number, active: number): number {
  const { parallelism = 1, completions } = job.spec;
  if (job.spec.suspend) return 0;
  if (completions === undefined) return succeeded > 0 ? Math.min(active, parallelism) : parallelism;
  return Math.min(parallelism, completions - succeeded);
}

/** The status to write for a Job that stands as counted. */
export function jobStatus(job: Job, progress: JobProgress): JobStatus {
  const { verdict, succeeded, failed, active } = progress;
  const time = formatTime(progress.now);
  const startTime = job.status?.startTime ?? (job.spec.suspend ? undefined : time);
  const conditions = jobConditions(job, verdict, time);
  return {
    ...(startTime ? { startTime } : {}),
    ...(verdict?.type === 'Complete' ? { completionTime: time } : {}),
    ...positive('active', active.length),
    ...positive('succeeded', succeeded.count),
    ...positive('failed', failed),
    ...(succeeded.indexes.size > 0 ? { completedIndexes: formatIndexes(succeeded.indexes) } : {}),
    ...(conditions ? { conditions } : {}),
    uncountedTerminatedPods: {},
    ready: active.filter(isPodReady).length,
    terminating: 0,
  };
}

/** As on the wire: counts of zero are absent. */
function positive<K extends string>(name: K, count: number): Partial<Record<K, number>> {
  return count > 0 ? ({ [name]: count } as Record<K, number>) : {};
}

function jobConditions(job: Job, verdict: Verdict | undefined, time: string): JobStatus['conditions'] {
  let conditions = job.status?.conditions;
  const times = { lastProbeTime: time, lastTransitionTime: time };
  if (verdict) {
    const { reason, message } = verdict;
    const announced = verdict.type === 'Complete' ? 'SuccessCriteriaMet' : 'FailureTarget';
    for (const type of [announced, verdict.type]) {
      conditions = withCondition(conditions, { type, status: 'True', reason, message, ...times });
    }
  }
  const { suspend } = job.spec;
  if (suspend) {
    const suspended = { status: 'True', reason: 'JobSuspended', message: 'Job suspended' };
    conditions = withCondition(conditions, { type: 'Suspended', ...suspended, ...times });
  } else if (findCondition(conditions, 'Suspended')) {
    const resumed = { status: 'False', reason: 'JobResumed', message: 'Job resumed' };
    conditions = withCondition(conditions, { type: 'Suspended', ...resumed, ...times });
  }
  return conditions;
}

/** `0-2,5` as numbers. */
export function parseIndexes(text: string): Set<number> {
  const indexes = new Set<number>();
  for (const part of text.split(',').filter(Boolean)) {
    const [first, last = first] = part.split('-').map(Number) as [number, number?];
    for (let index = first; index <= (last ?? first); index++) indexes.add(index);
  }
  return indexes;
}

/** Numbers as `0-2,5`; two in a row are `0,1`. */
export function formatIndexes(indexes: ReadonlySet<number>): string {
  const sorted = [...indexes].sort((a, b) => a - b);
  const runs: [number, number][] = [];
  for (const index of sorted) {
    const run = runs.at(-1);
    if (run && run[1] === index - 1) run[1] = index;
    else runs.push([index, index]);
  }
  return runs
    .map(([first, last]) =>
      first === last ? `${first}` : last === first + 1 ? `${first},${last}` : `${first}-${last}`,
    )
    .join(',');
}
