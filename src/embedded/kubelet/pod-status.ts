// SPDX-License-Identifier: Apache-2.0
// What a kubelet writes into a pod's status at each stage of its life. Pure.
import type { Container, ContainerStatus, Pod, PodCondition, PodStatus } from '../../kube/kinds.ts';
import { formatTime } from '../../kube/time.ts';

export interface StatusContext {
  readonly now: number;
  readonly hostIP: string;
  readonly podIP: string;
}

/** Pods with this label run and never become ready. */
const stageLabel = 'kwok.x-k8s.io/stage';

export function isUnhealthy(pod: Pod): boolean {
  return pod.metadata.labels?.[stageLabel] === 'unhealthy';
}

/** Seen by the kubelet, images on their way. */
export function creatingStatus(pod: Pod, context: StatusContext): PodStatus {
  const time = formatTime(context.now);
  const waiting = (pod.spec.initContainers?.length ?? 0) > 0 ? 'PodInitializing' : 'ContainerCreating';
  const names = pod.spec.containers.map((container) => container.name);
  const unready = `containers with unready status: [${names.join(' ')}]`;
  return {
    phase: 'Pending',
    startTime: time,
    ...hostAddress(context),
    qosClass: qosClass(pod),
    conditions: conditionsOf(pod, context.now, [
      ['PodReadyToStartContainers', 'False'],
      ['Initialized', 'True'],
      ['Ready', 'False', 'ContainersNotReady', unready],
      ['ContainersReady', 'False', 'ContainersNotReady', unready],
      ['PodScheduled', 'True'],
    ]),
    containerStatuses: pod.spec.containers.map((container) => ({
      ...containerBase(container),
      ready: false,
      started: false,
      state: { waiting: { reason: waiting } },
    })),
  };
}

/** Running; ready as well, unless the pod is marked as unhealthy or a readiness gate is closed. */
export function runningStatus(pod: Pod, context: StatusContext): PodStatus {
  const time = formatTime(context.now);
  const ready = shouldBeReady(pod);
  const started = pod.status?.containerStatuses?.[0]?.state?.running?.startedAt ?? time;
  return {
    phase: 'Running',
    ...hostAddress(context),
    ...(context.podIP ? { podIP: context.podIP, podIPs: [{ ip: context.podIP }] } : {}),
    qosClass: qosClass(pod),
    conditions: conditionsOf(pod, context.now, [
      ['PodReadyToStartContainers', 'True'],
      ['Initialized', 'True'],
      ready ? ['Ready', 'True'] : ['Ready', 'False', 'ContainersNotReady', 'the pod is not ready'],
      ['ContainersReady', 'True'],
      ['PodScheduled', 'True'],
    ]),
    containerStatuses: pod.spec.containers.map((container) => running(container, started)),
    ...(pod.spec.initContainers
      ? {
          initContainerStatuses: pod.spec.initContainers.map((container) =>
            container.restartPolicy === 'Always'
              ? running(container, started)
              : ended(container, started, time, 0, true),
          ),
        }
      : {}),
  };
}

/** Ended with the exit code given. */
export function finishedStatus(pod: Pod, context: StatusContext, exitCode: number): PodStatus {
  const time = formatTime(context.now);
  const started = pod.status?.containerStatuses?.[0]?.state?.running?.startedAt ?? pod.status?.startTime ?? time;
  return {
    phase: exitCode === 0 ? 'Succeeded' : 'Failed',
    conditions: conditionsOf(pod, context.now, [
      ['PodReadyToStartContainers', 'False'],
      ['Initialized', 'True', 'PodCompleted'],
      ['Ready', 'False', 'PodCompleted'],
      ['ContainersReady', 'False', 'PodCompleted'],
      ['PodScheduled', 'True'],
    ]),
    containerStatuses: pod.spec.containers.map((container) => ended(container, started, time, exitCode)),
  };
}

/** Whether a running pod's Ready condition says what it should. */
export function readinessMatches(pod: Pod): boolean {
  const ready = pod.status?.conditions?.find((condition) => condition.type === 'Ready');
  return (ready?.status === 'True') === shouldBeReady(pod);
}

function shouldBeReady(pod: Pod): boolean {
  const gates = pod.spec.readinessGates ?? [];
  const open = gates.every((gate) =>
    pod.status?.conditions?.some((c) => c.type === gate.conditionType && c.status === 'True'),
  );
  return open && !isUnhealthy(pod);
}

function hostAddress({ hostIP }: StatusContext): Pick<PodStatus, 'hostIP' | 'hostIPs'> {
  return hostIP ? { hostIP, hostIPs: [{ ip: hostIP }] } : {};
}

type ConditionRow = readonly [type: string, status: string, reason?: string, message?: string];

/** Conditions that keep their transition time while their status stays. */
function conditionsOf(pod: Pod, now: number, rows: readonly ConditionRow[]): PodCondition[] {
  return rows.map(([type, status, reason, message]) => {
    const current = pod.status?.conditions?.find((condition) => condition.type === type);
    return {
      type,
      status,
      lastProbeTime: null as unknown as string,
      lastTransitionTime:
        current?.status === status && current.lastTransitionTime ? current.lastTransitionTime : formatTime(now),
      ...(reason ? { reason } : {}),
      ...(message ? { message } : {}),
    };
  });
}

function containerBase(container: Container): Pick<ContainerStatus, 'name' | 'image' | 'imageID' | 'restartCount'> {
  return { name: container.name, image: container.image ?? '', imageID: '', restartCount: 0 };
}

function running(container: Container, startedAt: string): ContainerStatus {
  return {
    ...containerBase(container),
    containerID: `fake://${container.name}`,
    ready: true,
    started: true,
    state: { running: { startedAt } },
  };
}

/** A container that has ended; an init container that did so well counts as ready. */
function ended(
  container: Container,
  startedAt: string,
  finishedAt: string,
  exitCode: number,
  initial = false,
): ContainerStatus {
  return {
    ...containerBase(container),
    containerID: `fake://${container.name}`,
    ready: initial && exitCode === 0,
    started: false,
    state: { terminated: { exitCode, reason: exitCode === 0 ? 'Completed' : 'Error', startedAt, finishedAt } },
  };
}

/** Guaranteed, Burstable or BestEffort, from CPU and memory alone. */
export function qosClass(pod: Pod): string {
  const containers = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])];
  let some = false;
  let all = true;
  for (const { resources } of containers) {
    for (const name of ['cpu', 'memory']) {
      const request = resources?.requests?.[name];
      const limit = resources?.limits?.[name];
      if (request !== undefined || limit !== undefined) some = true;
      if (limit === undefined || (request !== undefined && request !== limit)) all = false;
    }
  }
  return some ? (all ? 'Guaranteed' : 'Burstable') : 'BestEffort';
}
