// SPDX-License-Identifier: Apache-2.0
// The one line that says how a pod is doing.
import type { ContainerStatus, Pod } from '../../kube/kinds.ts';
import type { Column } from '../resource.ts';
import { ageColumn, column, nameColumn } from './columns.ts';
import { age } from './human-duration.ts';

interface Summary {
  readonly reason: string;
  readonly ready: number;
  readonly total: number;
  readonly restarts: number;
  readonly lastRestart: string | undefined;
}

/** The word in the STATUS column, and the counts beside it. */
export function podSummary(pod: Pod): Summary {
  const sidecars = (pod.spec?.initContainers ?? []).filter((container) => container.restartPolicy === 'Always');
  const initial = initProgress(pod, new Set(sidecars.map((container) => container.name)));
  const starting = initial.reason !== undefined;
  const running = starting ? undefined : containerProgress(pod);
  return {
    reason: reasonOf(pod, initial.reason, running),
    ready: (running?.ready ?? 0) + initial.readySidecars,
    total: (pod.spec?.containers ?? []).length + sidecars.length,
    restarts: running ? running.restarts + initial.sidecarRestarts : initial.restarts,
    lastRestart: running?.lastRestart ?? initial.lastRestart,
  };
}

function reasonOf(pod: Pod, starting: string | undefined, running: ContainerProgress | undefined): string {
  const reason = starting ?? startedReason(pod, running);
  if (pod.metadata.deletionTimestamp === undefined || podIsOver(pod)) return reason;
  return pod.status?.reason === 'NodeLost' ? 'Unknown' : 'Terminating';
}

function startedReason(pod: Pod, running: ContainerProgress | undefined): string {
  if (schedulingGated(pod)) return 'SchedulingGated';
  const reason = running?.reason ?? pod.status?.reason ?? pod.status?.phase ?? 'Unknown';
  if (reason !== 'Completed' || !running?.hasRunning) return reason;
  return isReady(pod) ? 'Running' : 'NotReady';
}

function schedulingGated(pod: Pod): boolean {
  return (pod.status?.conditions ?? []).some(
    (condition) => condition.type === 'PodScheduled' && condition.reason === 'SchedulingGated',
  );
}

function podIsOver(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
}

function isReady(pod: Pod): boolean {
  return (pod.status?.conditions ?? []).some((condition) => condition.type === 'Ready' && condition.status === 'True');
}

interface InitProgress {
  /** What keeps the pod from starting; undefined when nothing does. */
  reason: string | undefined;
  initialised: boolean;
  readySidecars: number;
  restarts: number;
  sidecarRestarts: number;
  lastRestart: string | undefined;
}

function initProgress(pod: Pod, sidecars: ReadonlySet<string>): InitProgress {
  const progress: InitProgress = {
    reason: undefined,
    initialised: (pod.status?.conditions ?? []).some(
      (condition) => condition.type === 'Initialized' && condition.status === 'True',
    ),
    readySidecars: 0,
    restarts: 0,
    sidecarRestarts: 0,
    lastRestart: undefined,
  };
  const statuses = pod.status?.initContainerStatuses ?? [];
  const total = (pod.spec?.initContainers ?? []).length;
  for (const [i, status] of statuses.entries()) {
    progress.restarts += status.restartCount;
    progress.lastRestart = later(progress.lastRestart, status.lastState?.terminated?.finishedAt);
    const { terminated, waiting } = status.state ?? {};
    if (sidecars.has(status.name)) {
      progress.sidecarRestarts += status.restartCount;
      if (status.started) {
        if (status.ready) progress.readySidecars++;
        continue;
      }
    }
    if (terminated && terminated.exitCode === 0) continue;
    progress.reason = `Init:${terminated ? terminationReason(terminated) : waitingReason(waiting?.reason, i, total)}`;
    break;
  }
  if (progress.initialised) progress.reason = undefined;
  return progress;
}

function waitingReason(reason: string | undefined, done: number, total: number): string {
  return reason !== undefined && reason !== 'PodInitializing' ? reason : `${done}/${total}`;
}

type Terminated = NonNullable<NonNullable<ContainerStatus['state']>['terminated']>;

function terminationReason(terminated: Terminated): string {
  if (terminated.reason) return terminated.reason;
  return terminated.signal ? `Signal:${terminated.signal}` : `ExitCode:${terminated.exitCode}`;
}

interface ContainerProgress {
  reason: string | undefined;
  ready: number;
  restarts: number;
  hasRunning: boolean;
  lastRestart: string | undefined;
}

function containerProgress(pod: Pod): ContainerProgress {
  const progress: ContainerProgress = {
    reason: undefined,
    ready: 0,
    restarts: 0,
    hasRunning: false,
    lastRestart: undefined,
  };
  for (const status of (pod.status?.containerStatuses ?? []).toReversed()) {
    progress.restarts += status.restartCount;
    progress.lastRestart = later(progress.lastRestart, status.lastState?.terminated?.finishedAt);
    const { waiting, terminated, running } = status.state ?? {};
    if (waiting?.reason) progress.reason = waiting.reason;
    else if (terminated) progress.reason = terminationReason(terminated);
    else if (status.ready && running) {
      progress.hasRunning = true;
      progress.ready++;
    }
  }
  return progress;
}

function later(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return a > b ? a : b;
}

function restartsText(pod: Pod, now: number): string {
  const { restarts, lastRestart } = podSummary(pod);
  return restarts > 0 && lastRestart ? `${restarts} (${age(lastRestart, now)} ago)` : String(restarts);
}

function readinessGates(pod: Pod): string {
  const gates = pod.spec?.readinessGates ?? [];
  if (gates.length === 0) return '<none>';
  const passed = gates.filter((gate) =>
    pod.status?.conditions?.some((condition) => condition.type === gate.conditionType && condition.status === 'True'),
  );
  return `${passed.length}/${gates.length}`;
}

export const podColumns: readonly Column<Pod>[] = [
  nameColumn,
  column('Ready', (pod) => {
    const { ready, total } = podSummary(pod);
    return `${ready}/${total}`;
  }),
  column('Status', (pod) => podSummary(pod).reason),
  column('Restarts', restartsText),
  ageColumn,
  column('IP', (pod) => pod.status?.podIP || '<none>', { wide: true }),
  column('Node', (pod) => pod.spec?.nodeName || '<none>', { wide: true }),
  column('Nominated Node', (pod) => pod.status?.nominatedNodeName || '<none>', { wide: true }),
  column('Readiness Gates', readinessGates, { wide: true }),
];
