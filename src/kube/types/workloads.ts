// SPDX-License-Identifier: Apache-2.0
// The kinds that make pods (apps, batch) and those that rule over them (policy, autoscaling, scheduling).
import type * as apps from 'kubernetes-types/apps/v1.d.ts';
import type * as autoscaling from 'kubernetes-types/autoscaling/v2.d.ts';
import type * as batch from 'kubernetes-types/batch/v1.d.ts';
import type * as policy from 'kubernetes-types/policy/v1.d.ts';
import type * as scheduling from 'kubernetes-types/scheduling/v1.d.ts';
import type { ObjectMeta } from '../object.ts';
import type { PersistentVolumeClaim, PodTemplateSpec } from './core.ts';
import type { Kind, Part } from './own.ts';

export interface DeploymentSpec extends Part<apps.DeploymentSpec, 'template'> {
  template: PodTemplateSpec;
}

export interface DeploymentStatus extends Part<apps.DeploymentStatus> {
  terminatingReplicas?: number;
}

export interface Deployment extends Kind<apps.Deployment, 'spec' | 'status'> {
  spec: DeploymentSpec;
  status?: DeploymentStatus;
}

export interface ReplicaSetSpec extends Part<apps.ReplicaSetSpec, 'template'> {
  template: PodTemplateSpec;
}

export interface ReplicaSetStatus extends Part<apps.ReplicaSetStatus> {
  terminatingReplicas?: number;
}

export interface ReplicaSet extends Kind<apps.ReplicaSet, 'spec' | 'status'> {
  spec: ReplicaSetSpec;
  status?: ReplicaSetStatus;
}

export interface StatefulSetSpec extends Part<apps.StatefulSetSpec, 'template' | 'volumeClaimTemplates'> {
  template: PodTemplateSpec;
  volumeClaimTemplates?: PersistentVolumeClaim[];
}

export interface StatefulSet extends Kind<apps.StatefulSet, 'spec'> {
  spec: StatefulSetSpec;
}

export interface DaemonSetSpec extends Part<apps.DaemonSetSpec, 'template'> {
  template: PodTemplateSpec;
}

export interface DaemonSet extends Kind<apps.DaemonSet, 'spec'> {
  spec: DaemonSetSpec;
}

export interface ControllerRevision extends Kind<apps.ControllerRevision> {}

export interface JobSpec extends Part<batch.JobSpec, 'template'> {
  template: PodTemplateSpec;
}

export interface Job extends Kind<batch.Job, 'spec'> {
  spec: JobSpec;
}

export interface CronJobSpec extends Part<batch.CronJobSpec, 'jobTemplate'> {
  jobTemplate: { metadata?: ObjectMeta; spec: JobSpec };
}

export interface CronJob extends Kind<batch.CronJob, 'spec'> {
  spec: CronJobSpec;
}

export interface PodDisruptionBudget extends Kind<policy.PodDisruptionBudget> {}
export interface PriorityClass extends Kind<scheduling.PriorityClass> {}
export interface HorizontalPodAutoscaler extends Kind<autoscaling.HorizontalPodAutoscaler> {}
