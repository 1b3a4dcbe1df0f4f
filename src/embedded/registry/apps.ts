// SPDX-License-Identifier: Apache-2.0
// The workloads of the apps group.
import { deepEqual } from '../../base/freeze.ts';
import type {
  DaemonSet,
  Deployment,
  PodTemplateSpec,
  ReplicaSet,
  StatefulSet,
  StatefulSetSpec,
} from '../../kube/kinds.ts';
import type { FieldError } from '../../kube/schema/field-error.ts';
import * as print from '../printing/workloads.ts';
import type { Resource } from '../resource.ts';
import { define } from './define.ts';
import { invalid } from './pod-validation.ts';
import { defaultTemplate, immutable, notNegative, selectorMatchesTemplate, validateTemplate } from './workloads.ts';

const always = ['Always'];
const scale = { specReplicas: '.spec.replicas', statusReplicas: '.status.replicas', selector: '.spec.selector' };

const deployments = define<Deployment>({
  group: 'apps',
  kind: 'Deployment',
  namespaced: true,
  shortNames: ['deploy'],
  categories: ['all'],
  status: true,
  scale,
  generation: true,
  columns: print.deploymentColumns,
  strategy: {
    default: ({ spec }) => {
      if (!spec) return;
      spec.replicas ??= 1;
      spec.revisionHistoryLimit ??= 10;
      spec.progressDeadlineSeconds ??= 600;
      const strategy = (spec.strategy ??= {});
      strategy.type ??= 'RollingUpdate';
      if (strategy.type === 'RollingUpdate') {
        const rolling = (strategy.rollingUpdate ??= {});
        rolling.maxSurge ??= '25%';
        rolling.maxUnavailable ??= '25%';
      }
      defaultTemplate(spec.template);
    },
    prepareCreate: (deployment) => {
      deployment.status = {};
    },
    validate: ({ spec }) => [
      ...notNegative('spec.replicas', spec?.replicas),
      ...selectorMatchesTemplate(spec?.selector, spec?.template),
      ...validateTemplate(spec?.template, always),
      ...notNegative('spec.minReadySeconds', spec?.minReadySeconds),
      ...stuckRollout(spec?.strategy?.rollingUpdate),
    ],
    validateUpdate: ({ spec }, old) => immutable('spec.selector', spec?.selector, old.spec?.selector),
    validateStatus: ({ status }) => replicaCounts(status),
  },
});

const isZero = (value: unknown): boolean => value === 0 || value === '0%' || value === '0';

/** A rollout that may neither add nor take away a pod never moves. */
function stuckRollout(rolling: { maxSurge?: unknown; maxUnavailable?: unknown } | undefined): FieldError[] {
  if (!rolling || !isZero(rolling.maxSurge) || !isZero(rolling.maxUnavailable)) return [];
  const field = 'spec.strategy.rollingUpdate.maxUnavailable';
  return [invalid(field, rolling.maxUnavailable, 'may not be 0 when `maxSurge` is 0')];
}

/** None of the counts of a status is more than all pods, or fewer than none. */
function replicaCounts(status: Deployment['status']): FieldError[] {
  const { replicas = 0, updatedReplicas = 0, readyReplicas = 0, availableReplicas = 0 } = status ?? {};
  const counts = { updatedReplicas, readyReplicas, availableReplicas };
  const errors: FieldError[] = notNegative('status.replicas', replicas);
  for (const [name, count] of Object.entries(counts)) {
    errors.push(...notNegative(`status.${name}`, count));
    if (count > replicas) errors.push(invalid(`status.${name}`, count, 'cannot be greater than status.replicas'));
  }
  if (availableReplicas > readyReplicas) {
    errors.push(invalid('status.availableReplicas', availableReplicas, 'cannot be greater than readyReplicas'));
  }
  return errors;
}

const replicaSets = define<ReplicaSet>({
  group: 'apps',
  kind: 'ReplicaSet',
  namespaced: true,
  shortNames: ['rs'],
  categories: ['all'],
  status: true,
  scale,
  generation: true,
  columns: print.replicaSetColumns,
  fields: { 'status.replicas': (set) => String(set.status?.replicas ?? 0) },
  strategy: {
    default: ({ spec }) => {
      if (!spec) return;
      spec.replicas ??= 1;
      defaultTemplate(spec.template);
    },
    prepareCreate: (set) => {
      set.status = { replicas: 0 };
    },
    validate: ({ spec }) => [
      ...notNegative('spec.replicas', spec?.replicas),
      ...selectorMatchesTemplate(spec?.selector, spec?.template),
      ...validateTemplate(spec?.template, always),
    ],
    validateUpdate: ({ spec }, old) => immutable('spec.selector', spec?.selector, old.spec?.selector),
  },
});

const templateGeneration = 'deprecated.daemonset.template.generation';

/** An old way of counting templates that the API server still keeps up. */
function countTemplates(set: DaemonSet, count: number): void {
  set.metadata.annotations = { ...set.metadata.annotations, [templateGeneration]: String(count) };
}

const daemonSets = define<DaemonSet>({
  group: 'apps',
  kind: 'DaemonSet',
  namespaced: true,
  shortNames: ['ds'],
  categories: ['all'],
  status: true,
  generation: true,
  columns: print.daemonSetColumns,
  strategy: {
    default: ({ spec }) => {
      if (!spec) return;
      spec.revisionHistoryLimit ??= 10;
      const strategy = (spec.updateStrategy ??= {});
      strategy.type ??= 'RollingUpdate';
      if (strategy.type === 'RollingUpdate') {
        const rolling = (strategy.rollingUpdate ??= {});
        rolling.maxUnavailable ??= 1;
        rolling.maxSurge ??= 0;
      }
      defaultTemplate(spec.template);
    },
    prepareCreate: (set) => {
      set.status = { currentNumberScheduled: 0, desiredNumberScheduled: 0, numberMisscheduled: 0, numberReady: 0 };
      countTemplates(set, 1);
    },
    prepareUpdate: (set, old) => {
      const before = Number(old.metadata.annotations?.[templateGeneration] ?? 1);
      countTemplates(set, deepEqual(set.spec?.template, old.spec?.template) ? before : before + 1);
    },
    validate: ({ spec }) => [
      ...selectorMatchesTemplate(spec?.selector, spec?.template),
      ...validateTemplate(spec?.template, always),
    ],
    validateUpdate: ({ spec }, old) => immutable('spec.selector', spec?.selector, old.spec?.selector),
  },
});

const statefulSets = define<StatefulSet>({
  group: 'apps',
  kind: 'StatefulSet',
  namespaced: true,
  shortNames: ['sts'],
  categories: ['all'],
  status: true,
  scale,
  generation: true,
  columns: print.statefulSetColumns,
  strategy: {
    default: ({ spec }) => {
      if (!spec) return;
      spec.replicas ??= 1;
      spec.revisionHistoryLimit ??= 10;
      spec.podManagementPolicy ??= 'OrderedReady';
      const strategy = (spec.updateStrategy ??= {});
      strategy.type ??= 'RollingUpdate';
      if (strategy.type === 'RollingUpdate') strategy.rollingUpdate ??= { partition: 0 };
      spec.persistentVolumeClaimRetentionPolicy ??= { whenDeleted: 'Retain', whenScaled: 'Retain' };
      defaultTemplate(spec.template);
      for (const claim of spec.volumeClaimTemplates ?? []) {
        claim.apiVersion ??= 'v1';
        claim.kind ??= 'PersistentVolumeClaim';
        if (claim.spec) claim.spec.volumeMode ??= 'Filesystem';
        claim.status ??= { phase: 'Pending' };
      }
    },
    prepareCreate: (set) => {
      set.status = { replicas: 0, availableReplicas: 0 };
    },
    validate: ({ spec }) => [
      ...notNegative('spec.replicas', spec?.replicas),
      ...selectorMatchesTemplate(spec?.selector, spec?.template),
      ...validateTemplate(spec && withClaims(spec), always),
    ],
    validateUpdate: ({ spec }, old) => {
      const same = deepEqual({ ...spec, ...pick(old.spec!, mutableParts) }, old.spec);
      return same
        ? []
        : [
            {
              field: 'spec',
              type: 'Forbidden',
              detail:
                "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
            },
          ];
    },
  },
});

/** The template as pods get it: with a volume for each claim, in place of one of the same name. */
function withClaims({ template, volumeClaimTemplates = [] }: StatefulSetSpec): PodTemplateSpec | undefined {
  if (!template?.spec || volumeClaimTemplates.length === 0) return template;
  const claims = new Map(
    volumeClaimTemplates.map(({ metadata }) => {
      const name = metadata?.name ?? '';
      return [name, { name, persistentVolumeClaim: { claimName: name } }];
    }),
  );
  const others = template.spec.volumes?.filter(({ name }) => !claims.has(name)) ?? [];
  return { ...template, spec: { ...template.spec, volumes: [...claims.values(), ...others] } };
}

const mutableParts = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
] as const;

function pick<T extends object, K extends keyof T>(object: T, keys: readonly K[]): Pick<T, K> {
  return Object.fromEntries(keys.map((key) => [key, object[key]])) as Pick<T, K>;
}

export const appsResources: readonly Resource[] = [
  deployments,
  replicaSets,
  daemonSets,
  statefulSets,
  define({ group: 'apps', kind: 'ControllerRevision', namespaced: true, columns: print.controllerRevisionColumns }),
];
