// SPDX-License-Identifier: Apache-2.0
// Pods: what is filled in on creation, what may change later, how long they take to go.
import { deepEqual } from '../../base/freeze.ts';
import type { Container, Pod, PriorityClass, RuntimeClass } from '../../kube/kinds.ts';
import { Quantity } from '../../kube/quantity.ts';
import type { FieldError } from '../../kube/schema/field-error.ts';
import type { Strategy, StrategyContext } from '../resource.ts';
import { forbidden } from '../status.ts';
import { defaultPodSpec, defaultRequests } from './pod-defaults.ts';
import { validatePodSpec } from './pod-validation.ts';

const pods = { group: '', plural: 'pods' };

export const podStrategy: Strategy<Pod> = {
  default: (pod) => {
    if (!pod.spec) return;
    defaultPodSpec(pod.spec);
    for (const container of pod.spec.initContainers ?? []) defaultRequests(container);
    for (const container of pod.spec.containers ?? []) defaultRequests(container);
    pod.spec.enableServiceLinks ??= true;
  },
  prepareCreate: (pod, context) => {
    const spec = pod.spec;
    if (spec) {
      applyPriority(pod, context);
      applyRuntimeClass(pod, context);
      spec.tolerations = withDefaultTolerations(spec.tolerations ?? []);
    }
    pod.status = {
      phase: 'Pending',
      qosClass: qosClassOf(pod),
      ...(spec?.schedulingGates?.length ? { conditions: [gated] } : {}),
    };
  },
  prepareUpdate: (pod, old) => {
    // Set by the server on creation; a writer that leaves them out does not mean to remove them.
    if (pod.spec) pod.spec.tolerations = withDefaultTolerations(pod.spec.tolerations ?? []);
    if (old.spec?.priority !== undefined && pod.spec && pod.spec.priority === undefined) {
      pod.spec.priority = old.spec.priority;
    }
    if (old.spec?.preemptionPolicy && pod.spec && !pod.spec.preemptionPolicy) {
      pod.spec.preemptionPolicy = old.spec.preemptionPolicy;
    }
  },
  validate: (pod) => validatePodSpec(pod.spec, 'spec'),
  validateUpdate,
  gracePeriod: (pod, asked) => {
    const wanted = asked ?? pod.spec?.terminationGracePeriodSeconds ?? 30;
    const phase = pod.status?.phase;
    // Nothing runs: there is nobody to wait for.
    if (!pod.spec?.nodeName || phase === 'Failed' || phase === 'Succeeded') return 0;
    return Math.max(wanted < 0 ? 1 : wanted, 0);
  },
};

/** What a pod says that nobody may schedule yet. */
const gated = {
  type: 'PodScheduled',
  status: 'False',
  reason: 'SchedulingGated',
  message: 'Scheduling is blocked due to non-empty scheduling gates',
  lastProbeTime: null as unknown as string,
  lastTransitionTime: null as unknown as string,
};

/** The numbers behind a priority class, or of the default one. */
function applyPriority(pod: Pod, context: StrategyContext): void {
  const spec = pod.spec!;
  const classes = context.store.collection('priorityclasses.scheduling.k8s.io');
  let chosen: PriorityClass | undefined;
  if (spec.priorityClassName) {
    chosen = classes.get('', spec.priorityClassName) as PriorityClass | undefined;
    if (!chosen) {
      throw forbidden(pods, pod.metadata.name ?? '', `no PriorityClass with name ${spec.priorityClassName} was found`);
    }
  } else if (classes.size > 0) {
    chosen = (classes.list().items as readonly PriorityClass[])
      .filter((candidate) => candidate.globalDefault === true)
      .sort((a, b) => a.value - b.value)[0];
    if (chosen) spec.priorityClassName = chosen.metadata.name!;
  }
  const priority = chosen?.value ?? 0;
  if (spec.priority !== undefined && spec.priority !== priority) {
    throw forbidden(
      pods,
      pod.metadata.name ?? '',
      'the integer value of priority must not be provided in pod spec; priority admission controller computed ' +
        `${priority} from the given PriorityClass name`,
    );
  }
  spec.priority = priority;
  spec.preemptionPolicy ??= chosen?.preemptionPolicy ?? 'PreemptLowerPriority';
}

/** The overhead of the runtime, which counts as a request. */
function applyRuntimeClass(pod: Pod, context: StrategyContext): void {
  const name = pod.spec?.runtimeClassName;
  if (!name) return;
  const found = context.store.collection('runtimeclasses.node.k8s.io').get('', name) as RuntimeClass | undefined;
  if (!found) throw forbidden(pods, pod.metadata.name ?? '', `pod rejected: RuntimeClass "${name}" not found`);
  const overhead = found.overhead?.podFixed;
  if (overhead) pod.spec!.overhead ??= { ...overhead };
}

type Tolerations = NonNullable<NonNullable<Pod['spec']>['tolerations']>;

/** Pods stay on a node that is gone for five minutes, unless they say otherwise. */
function withDefaultTolerations(tolerations: Tolerations): Tolerations {
  const result = [...tolerations];
  for (const key of ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']) {
    const tolerated = tolerations.some(
      (toleration) =>
        (toleration.key === key || (!toleration.key && toleration.operator === 'Exists')) &&
        (!toleration.effect || toleration.effect === 'NoExecute'),
    );
    if (!tolerated) result.push({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 });
  }
  return result;
}

/** Guaranteed: every container limits cpu and memory to what it requests. BestEffort: nobody asks for anything. */
export function qosClassOf(pod: Pod): 'Guaranteed' | 'Burstable' | 'BestEffort' {
  const containers = [...(pod.spec?.initContainers ?? []), ...(pod.spec?.containers ?? [])];
  let asks = false;
  let guaranteed = containers.length > 0;
  for (const container of containers) {
    const { requests = {}, limits = {} } = container.resources ?? {};
    for (const name of ['cpu', 'memory']) {
      const request = quantity(requests[name]);
      const limit = quantity(limits[name]);
      if (request || limit) asks = true;
      if (!limit || (request && request.cmp(limit) !== 0)) guaranteed = false;
    }
  }
  if (!asks) return 'BestEffort';
  return guaranteed ? 'Guaranteed' : 'Burstable';
}

function quantity(text: unknown): Quantity | undefined {
  const parsed = text === undefined ? undefined : Quantity.tryParse(text);
  return parsed && !parsed.isZero() ? parsed : undefined;
}

const mayChange =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)';

function validateUpdate(pod: Pod, old: Readonly<Pod>): FieldError[] {
  const spec = pod.spec!;
  const before = old.spec!;
  const kept = before.tolerations ?? [];
  const lost = kept.some((toleration) => !(spec.tolerations ?? []).some((other) => sameToleration(toleration, other)));
  if (lost)
    return [
      {
        field: 'spec.tolerations',
        type: 'Forbidden',
        detail: 'existing toleration can not be modified except its tolerationSeconds',
      },
    ];
  const gated = (before.schedulingGates ?? []).length > 0;
  const addedGate = (spec.schedulingGates ?? []).some(
    (gate) => !(before.schedulingGates ?? []).some((other) => other.name === gate.name),
  );
  if (addedGate) {
    return [
      {
        field: 'spec.schedulingGates',
        type: 'Forbidden',
        detail: 'only deletion is allowed, but found new scheduling gate',
      },
    ];
  }
  const allowed = {
    ...spec,
    activeDeadlineSeconds: before.activeDeadlineSeconds,
    tolerations: before.tolerations,
    schedulingGates: before.schedulingGates,
    terminationGracePeriodSeconds: before.terminationGracePeriodSeconds,
    containers: withImagesOf(spec.containers, before.containers),
    initContainers: withImagesOf(spec.initContainers, before.initContainers),
    ...(gated ? { nodeSelector: before.nodeSelector, affinity: before.affinity } : {}),
  };
  if (deepEqual(allowed, before)) return [];
  return [{ field: 'spec', type: 'Forbidden', detail: mayChange }];
}

function sameToleration(a: Tolerations[number], b: Tolerations[number]): boolean {
  return deepEqual({ ...a, tolerationSeconds: undefined }, { ...b, tolerationSeconds: undefined });
}

function withImagesOf(containers: Container[] | undefined, old: readonly Container[] | undefined): unknown {
  return containers?.map((container, i) => ({ ...container, image: old?.[i]?.image }));
}
