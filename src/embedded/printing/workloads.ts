// SPDX-License-Identifier: Apache-2.0
// The columns of workloads.
import type {
  ControllerRevision,
  CronJob,
  DaemonSet,
  Deployment,
  Job,
  PodTemplateSpec,
  ReplicaSet,
  StatefulSet,
} from '../../kube/kinds.ts';
import type { LabelSelector } from '../../kube/labels.ts';
import type { KubeObject } from '../../kube/object.ts';
import { parseTime } from '../../kube/time.ts';
import type { Column } from '../resource.ts';
import { ageColumn, column, nameColumn } from './columns.ts';
import { age, humanDuration } from './human-duration.ts';
import { containerImages, containerNames, labelText, selectorText } from './parts.ts';

function templateColumns<T extends KubeObject>(
  template: (object: T) => PodTemplateSpec | undefined,
  selector?: (object: T) => LabelSelector | undefined,
): readonly Column<T>[] {
  const wide = { wide: true };
  return [
    column('Containers', (object) => containerNames(template(object)), wide),
    column('Images', (object) => containerImages(template(object)), wide),
    ...(selector ? [column<T>('Selector', (object) => selectorText(selector(object)), wide)] : []),
  ];
}

const integer = { type: 'integer' } as const;

export const deploymentColumns: readonly Column<Deployment>[] = [
  nameColumn,
  column('Ready', ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 0}`),
  column('Up-to-date', ({ status }) => status?.updatedReplicas ?? 0),
  column('Available', ({ status }) => status?.availableReplicas ?? 0),
  ageColumn,
  ...templateColumns<Deployment>(
    ({ spec }) => spec?.template,
    ({ spec }) => spec?.selector,
  ),
];

export const replicaSetColumns: readonly Column<ReplicaSet>[] = [
  nameColumn,
  column('Desired', ({ spec }) => spec?.replicas ?? 0, integer),
  column('Current', ({ status }) => status?.replicas ?? 0, integer),
  column('Ready', ({ status }) => status?.readyReplicas ?? 0, integer),
  ageColumn,
  ...templateColumns<ReplicaSet>(
    ({ spec }) => spec?.template,
    ({ spec }) => spec?.selector,
  ),
];

export const daemonSetColumns: readonly Column<DaemonSet>[] = [
  nameColumn,
  column('Desired', ({ status }) => status?.desiredNumberScheduled ?? 0, integer),
  column('Current', ({ status }) => status?.currentNumberScheduled ?? 0, integer),
  column('Ready', ({ status }) => status?.numberReady ?? 0, integer),
  column('Up-to-date', ({ status }) => status?.updatedNumberScheduled ?? 0, integer),
  column('Available', ({ status }) => status?.numberAvailable ?? 0, integer),
  column('Node Selector', ({ spec }) => labelText(spec?.template?.spec?.nodeSelector)),
  ageColumn,
  ...templateColumns<DaemonSet>(
    ({ spec }) => spec?.template,
    ({ spec }) => spec?.selector,
  ),
];

export const statefulSetColumns: readonly Column<StatefulSet>[] = [
  nameColumn,
  column('Ready', ({ spec, status }) => `${status?.readyReplicas ?? 0}/${spec?.replicas ?? 0}`),
  ageColumn,
  ...templateColumns<StatefulSet>(({ spec }) => spec?.template),
];

export const controllerRevisionColumns: readonly Column<ControllerRevision>[] = [
  nameColumn,
  column('Controller', (revision) => {
    const owner = revision.metadata.ownerReferences?.find((reference) => reference.controller);
    if (!owner) return '<none>';
    const group = owner.apiVersion.includes('/') ? `.${owner.apiVersion.split('/')[0]}` : '';
    return `${owner.kind.toLowerCase()}${group}/${owner.name}`;
  }),
  column('Revision', (revision) => String(revision.revision)),
  ageColumn,
];

function jobStatus(job: Job): string {
  const holds = (type: string): boolean =>
    (job.status?.conditions ?? []).some((condition) => condition.type === type && condition.status === 'True');
  if (holds('Complete')) return 'Complete';
  if (holds('Failed')) return 'Failed';
  if (job.metadata.deletionTimestamp) return 'Terminating';
  if (holds('Suspended')) return 'Suspended';
  if (holds('FailureTarget')) return 'FailureTarget';
  return holds('SuccessCriteriaMet') ? 'SuccessCriteriaMet' : 'Running';
}

function completions({ spec, status }: Job): string {
  const succeeded = status?.succeeded ?? 0;
  if (spec?.completions !== undefined) return `${succeeded}/${spec.completions}`;
  return (spec?.parallelism ?? 0) > 1 ? `${succeeded}/1 of ${spec!.parallelism}` : `${succeeded}/1`;
}

function jobDuration(job: Job, now: number): string {
  const { startTime, completionTime } = job.status ?? {};
  if (!startTime) return '';
  return humanDuration((completionTime ? parseTime(completionTime) : now) - parseTime(startTime));
}

export const jobColumns: readonly Column<Job>[] = [
  nameColumn,
  column('Status', jobStatus),
  column('Completions', completions),
  column('Duration', jobDuration),
  ageColumn,
  ...templateColumns<Job>(
    ({ spec }) => spec?.template,
    ({ spec }) => spec?.selector,
  ),
];

export const cronJobColumns: readonly Column<CronJob>[] = [
  nameColumn,
  column('Schedule', ({ spec }) => spec?.schedule ?? ''),
  column('Timezone', ({ spec }) => spec?.timeZone ?? '<none>'),
  column('Suspend', ({ spec }) => (spec?.suspend ? 'True' : 'False'), { type: 'boolean' }),
  column('Active', ({ status }) => (status?.active ?? []).length, integer),
  column('Last Schedule', ({ status }, now) =>
    status?.lastScheduleTime ? age(status.lastScheduleTime, now) : '<none>',
  ),
  ageColumn,
  ...templateColumns<CronJob>(
    ({ spec }) => spec?.jobTemplate?.spec?.template,
    ({ spec }) => spec?.jobTemplate?.spec?.selector,
  ),
];
