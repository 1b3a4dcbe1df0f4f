// SPDX-License-Identifier: Apache-2.0
// Work that ends: jobs and what starts them.
import type { CronJob, Job } from '../../kube/kinds.ts';
import type { FieldError } from '../../kube/schema/field-error.ts';
import * as print from '../printing/workloads.ts';
import type { Resource } from '../resource.ts';
import { define } from './define.ts';
import { defaultTemplate, notNegative, validateTemplate } from './workloads.ts';

/** A job must say that its pods end: what most pods do by default is no choice. */
const endlessTemplate: FieldError = {
  field: 'spec.template.spec.restartPolicy',
  type: 'Required',
  detail: 'valid values: "OnFailure", "Never"',
};

const jobs = define<Job>({
  group: 'batch',
  kind: 'Job',
  namespaced: true,
  categories: ['all'],
  status: true,
  generation: true,
  columns: print.jobColumns,
  fields: { 'status.successful': (job) => String(job.status?.succeeded ?? 0) },
  strategy: {
    orphansByDefault: true,
    default: ({ spec }) => {
      if (!spec) return;
      if (spec.completions === undefined && spec.parallelism === undefined) {
        spec.completions = 1;
        spec.parallelism = 1;
      }
      spec.parallelism ??= 1;
      spec.backoffLimit ??= spec.backoffLimitPerIndex === undefined ? 6 : 2_147_483_647;
      spec.completionMode ??= 'NonIndexed';
      spec.suspend ??= false;
      spec.podReplacementPolicy ??= spec.podFailurePolicy ? 'Failed' : 'TerminatingOrFailed';
      defaultTemplate(spec.template);
    },
    prepareCreate: (job) => {
      job.status = {};
      if (job.spec && !job.spec.manualSelector) selectByUid(job, job.metadata.uid!);
    },
    validate: ({ spec }) => [
      ...notNegative('spec.parallelism', spec?.parallelism),
      ...notNegative('spec.completions', spec?.completions),
      ...notNegative('spec.backoffLimit', spec?.backoffLimit),
      ...(spec?.template?.spec?.restartPolicy === 'Always'
        ? [endlessTemplate]
        : validateTemplate(spec?.template, ['OnFailure', 'Never'])),
    ],
  },
});

/** A job picks its pods by an id of its own, under the labels of the API server. */
function selectByUid(job: Job, uid: string): void {
  const spec = job.spec!;
  spec.manualSelector = false;
  const name = job.metadata.name ?? '';
  spec.selector = { matchLabels: { 'batch.kubernetes.io/controller-uid': uid } };
  if (!spec.template) return;
  spec.template.metadata = {
    ...spec.template.metadata,
    labels: {
      ...spec.template.metadata?.labels,
      'controller-uid': uid,
      'batch.kubernetes.io/controller-uid': uid,
      'job-name': name,
      'batch.kubernetes.io/job-name': name,
    },
  };
  const labels = job.metadata.labels;
  if (!labels || Object.keys(labels).length === 0) job.metadata.labels = { ...spec.template.metadata.labels };
}

const cronJobs = define<CronJob>({
  group: 'batch',
  kind: 'CronJob',
  namespaced: true,
  shortNames: ['cj'],
  categories: ['all'],
  status: true,
  generation: true,
  columns: print.cronJobColumns,
  strategy: {
    default: ({ spec }) => {
      if (!spec) return;
      spec.concurrencyPolicy ??= 'Allow';
      spec.suspend ??= false;
      spec.successfulJobsHistoryLimit ??= 3;
      spec.failedJobsHistoryLimit ??= 1;
      defaultTemplate(spec.jobTemplate?.spec?.template);
    },
    prepareCreate: (job) => {
      job.status = {};
    },
    validate: ({ spec }) => scheduleErrors(spec?.schedule ?? ''),
  },
});

const cronField = /^(\*|\?|[\w,-]+)(\/\d+)?([\w,*/?-]*)$/;

function scheduleErrors(schedule: string): FieldError[] {
  if (schedule === '') return [{ field: 'spec.schedule', type: 'Required', detail: '' }];
  if (/^@(yearly|annually|monthly|weekly|daily|midnight|hourly|every \S+)$/.test(schedule)) return [];
  const fields = schedule.trim().split(/\s+/);
  if (fields.length === 5 && fields.every((field) => cronField.test(field))) return [];
  const detail = `expected exactly 5 fields, found ${fields.length}: [${fields.join(' ')}]`;
  return [{ field: 'spec.schedule', type: 'Invalid', value: schedule, detail }];
}

export const batchResources: readonly Resource[] = [jobs, cronJobs];
