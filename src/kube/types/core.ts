// SPDX-License-Identifier: Apache-2.0
// The core group: the generated types of Kubernetes 1.30 plus the fields that came later. A `spec` that validation
// demands is mandatory here as well; one that may be empty is optional.
import type * as core from 'kubernetes-types/core/v1.d.ts';
import type { KubeObject, ObjectMeta } from '../object.ts';
import type { Kind, Part } from './own.ts';

export type {
  Affinity,
  ContainerImage,
  ContainerPort,
  ContainerState,
  EndpointAddress,
  EndpointPort,
  EndpointSubset,
  EnvFromSource,
  EnvVar,
  EventSource,
  LimitRangeItem,
  LocalObjectReference,
  NodeAddress,
  NodeAffinity,
  NodeCondition,
  NodeSelector,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  NodeSystemInfo,
  ObjectReference,
  PersistentVolumeClaimSpec,
  PodAffinity,
  PodAffinityTerm,
  PodAntiAffinity,
  PodReadinessGate,
  PodSchedulingGate,
  PreferredSchedulingTerm,
  Probe,
  SecurityContext,
  ServicePort,
  Taint,
  Toleration,
  TopologySelectorTerm,
  TopologySpreadConstraint,
  TypedLocalObjectReference,
  VolumeMount,
  WeightedPodAffinityTerm,
} from 'kubernetes-types/core/v1.d.ts';
export type { Condition, LabelSelector, LabelSelectorRequirement } from 'kubernetes-types/meta/v1.d.ts';

/** Amounts by resource name, as written: `{ cpu: '500m', memory: '1Gi' }`. */
export type ResourceList = Record<string, string>;

export interface ResourceRequirements {
  requests?: ResourceList;
  limits?: ResourceList;
  claims?: { name: string; request?: string }[];
}

type ReplacedInContainer = 'resources' | 'lifecycle';

export interface Container extends Part<core.Container, ReplacedInContainer> {
  resources?: ResourceRequirements;
  lifecycle?: core.Lifecycle & { stopSignal?: string };
  /** `Always` makes an init container a sidecar. */
  restartPolicy?: string;
  restartPolicyRules?: { action: string; exitCodes?: { operator: string; values?: number[] } }[];
}

export interface EphemeralContainer extends Part<core.EphemeralContainer, ReplacedInContainer> {
  resources?: ResourceRequirements;
  lifecycle?: core.Lifecycle & { stopSignal?: string };
}

export interface PersistentVolumeClaimTemplate {
  metadata?: ObjectMeta;
  spec: core.PersistentVolumeClaimSpec;
}

export interface Volume extends Part<core.Volume, 'ephemeral'> {
  ephemeral?: { volumeClaimTemplate?: PersistentVolumeClaimTemplate };
  image?: { reference?: string; pullPolicy?: string };
}

/** A claim for devices by name or by template, seen by containers as `name`. */
export interface PodResourceClaim {
  name: string;
  resourceClaimName?: string;
  resourceClaimTemplateName?: string;
}

export interface PodSpec
  extends Part<core.PodSpec, 'containers' | 'initContainers' | 'ephemeralContainers' | 'volumes' | 'resourceClaims'> {
  containers: Container[];
  initContainers?: Container[];
  ephemeralContainers?: EphemeralContainer[];
  volumes?: Volume[];
  resourceClaims?: PodResourceClaim[];
  /** Requests and limits of the pod as a whole. */
  resources?: ResourceRequirements;
  hostnameOverride?: string;
  workloadRef?: { name: string; podGroup: string; podGroupReplicaKey?: string };
}

export interface ContainerStatus extends Part<core.ContainerStatus, 'resources'> {
  resources?: ResourceRequirements;
  allocatedResourcesStatus?: { name: string; resources?: { resourceID: string; health?: string }[] }[];
  user?: { linux?: { uid: number; gid: number; supplementalGroups?: number[] } };
  stopSignal?: string;
}

export interface PodCondition extends core.PodCondition {
  observedGeneration?: number;
}

export interface PodStatus
  extends Part<
    core.PodStatus,
    'conditions' | 'containerStatuses' | 'initContainerStatuses' | 'ephemeralContainerStatuses'
  > {
  conditions?: PodCondition[];
  containerStatuses?: ContainerStatus[];
  initContainerStatuses?: ContainerStatus[];
  ephemeralContainerStatuses?: ContainerStatus[];
  observedGeneration?: number;
  /** What the node has set aside for the pod, and what is in force: for in-place resizing at the level of pods. */
  allocatedResources?: ResourceList;
  resources?: ResourceRequirements;
  extendedResourceClaimStatus?: {
    resourceClaimName: string;
    requestMappings: { containerName: string; resourceName: string; requestName: string }[];
  };
}

export interface Pod extends Kind<core.Pod, 'spec' | 'status'> {
  spec: PodSpec;
  status?: PodStatus;
}

export interface PodTemplateSpec {
  metadata?: ObjectMeta;
  spec: PodSpec;
}

export interface PodTemplate extends Kind<core.PodTemplate, 'template'> {
  template?: PodTemplateSpec;
}

export interface NodeSpec extends Part<core.NodeSpec> {}

export interface NodeStatus extends Part<core.NodeStatus> {
  features?: { supplementalGroupsPolicy?: boolean };
  declaredFeatures?: string[];
}

export interface Node extends Kind<core.Node, 'spec' | 'status'> {
  spec?: NodeSpec;
  status?: NodeStatus;
}

export interface Namespace extends Kind<core.Namespace> {}

export interface ServiceSpec extends Part<core.ServiceSpec> {
  trafficDistribution?: string;
}

export interface Service extends Kind<core.Service, 'spec'> {
  spec: ServiceSpec;
}

export interface Endpoints extends Kind<core.Endpoints> {}
export interface ConfigMap extends Kind<core.ConfigMap> {}
export interface Secret extends Kind<core.Secret> {}
export interface ServiceAccount extends Kind<core.ServiceAccount> {}
export interface LimitRange extends Kind<core.LimitRange> {}
export interface ResourceQuota extends Kind<core.ResourceQuota> {}

export interface PersistentVolume extends Kind<core.PersistentVolume, 'spec'> {
  spec: Part<core.PersistentVolumeSpec>;
}

export interface PersistentVolumeClaim extends Kind<core.PersistentVolumeClaim, 'spec'> {
  spec: core.PersistentVolumeClaimSpec;
}

export interface ReplicationController extends Kind<core.ReplicationController, 'spec'> {
  spec: Part<core.ReplicationControllerSpec, 'template'> & { template?: PodTemplateSpec };
}

/** core/v1 Event: what `kubectl describe` shows. Times may be null. */
export interface Event extends Kind<core.Event, 'eventTime' | 'firstTimestamp' | 'lastTimestamp'> {
  eventTime?: string | null;
  firstTimestamp?: string | null;
  lastTimestamp?: string | null;
}

export interface Binding extends Kind<core.Binding> {}

/** autoscaling/v1 Scale: the view of a workload that `kubectl scale` and autoscalers change. */
export interface Scale extends KubeObject {
  spec?: { replicas?: number };
  status?: { replicas: number; selector?: string };
}

/** policy/v1 Eviction: asks for a pod to go, within its budgets. */
export interface Eviction extends KubeObject {
  deleteOptions?: {
    gracePeriodSeconds?: number;
    propagationPolicy?: string;
    preconditions?: { uid?: string; resourceVersion?: string };
    dryRun?: string[];
  };
}
