// SPDX-License-Identifier: Apache-2.0
// The Kubernetes objects as the scheduler reads them: plain JSON, every field it looks at and no more. The full kinds of
// src/kube are assignable to these, and so is what a problem file holds. Not picked from those kinds: they come from a package that
// only we install, and these are part of `karpenter-ts/cloud`, where a type that cannot be found is `any`.
import type { LabelSelector } from '../kube/labels.ts';

/** Quantities by resource name, as on the wire: `"500m"`, `"1Gi"`, or a bare number. */
export type ResourceList = Readonly<Record<string, string | number>>;

export interface Metadata {
  readonly name?: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly creationTimestamp?: string | null;
  readonly deletionTimestamp?: string | null;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly {
    readonly apiVersion?: string;
    readonly kind: string;
    readonly name?: string;
    readonly uid?: string;
    readonly controller?: boolean;
  }[];
}

export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
}

export interface Toleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
  readonly tolerationSeconds?: number;
}

/** One expression of a node selector term, a NodePool, an instance type or an offering. */
export interface RequirementSpec {
  readonly key: string;
  /** In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte. */
  readonly operator: string;
  readonly values?: readonly string[];
  readonly minValues?: number;
}

export interface NodeSelectorTerm {
  readonly matchExpressions?: readonly RequirementSpec[];
  readonly matchFields?: readonly RequirementSpec[];
}

export interface PodAffinityTerm {
  readonly topologyKey: string;
  readonly labelSelector?: LabelSelector | null;
  readonly namespaces?: readonly string[];
  readonly namespaceSelector?: LabelSelector | null;
  readonly matchLabelKeys?: readonly string[];
  readonly mismatchLabelKeys?: readonly string[];
}

export interface WeightedPodAffinityTerm {
  readonly weight: number;
  readonly podAffinityTerm: PodAffinityTerm;
}

export interface PodAffinityRules {
  readonly requiredDuringSchedulingIgnoredDuringExecution?: readonly PodAffinityTerm[];
  readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly WeightedPodAffinityTerm[];
}

export interface Affinity {
  readonly nodeAffinity?: {
    readonly requiredDuringSchedulingIgnoredDuringExecution?: {
      readonly nodeSelectorTerms?: readonly NodeSelectorTerm[];
    };
    readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly {
      readonly weight: number;
      readonly preference: NodeSelectorTerm;
    }[];
  };
  readonly podAffinity?: PodAffinityRules;
  readonly podAntiAffinity?: PodAffinityRules;
}

export interface TopologySpreadConstraint {
  readonly maxSkew: number;
  readonly topologyKey: string;
  readonly whenUnsatisfiable: string;
  readonly labelSelector?: LabelSelector | null;
  readonly minDomains?: number;
  readonly nodeAffinityPolicy?: string;
  readonly nodeTaintsPolicy?: string;
  readonly matchLabelKeys?: readonly string[];
}

export interface ResourceRequirements {
  readonly requests?: ResourceList;
  readonly limits?: ResourceList;
  readonly claims?: readonly unknown[];
}

export interface Container {
  readonly name?: string;
  readonly restartPolicy?: string;
  readonly resources?: ResourceRequirements;
  readonly ports?: readonly {
    readonly hostPort?: number;
    readonly hostIP?: string;
    readonly protocol?: string;
    readonly containerPort?: number;
  }[];
}

export interface Volume {
  readonly name: string;
  readonly persistentVolumeClaim?: { readonly claimName: string };
  readonly ephemeral?: { readonly volumeClaimTemplate?: unknown };
}

export interface PodSpec {
  readonly nodeName?: string;
  readonly containers?: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly overhead?: ResourceList;
  readonly resources?: ResourceRequirements;
  readonly nodeSelector?: Readonly<Record<string, string>>;
  readonly affinity?: Affinity;
  readonly tolerations?: readonly Toleration[];
  readonly topologySpreadConstraints?: readonly TopologySpreadConstraint[];
  readonly volumes?: readonly Volume[];
  readonly resourceClaims?: readonly unknown[];
  readonly schedulingGates?: readonly unknown[];
}

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  /** RFC 3339. Nothing in scheduling depends on it; plans of disruption do. */
  readonly lastTransitionTime?: string;
}

export interface ContainerStatus {
  readonly name?: string;
  readonly resources?: ResourceRequirements;
  readonly allocatedResources?: ResourceList;
}

export interface Pod {
  readonly metadata: Metadata;
  readonly spec: PodSpec;
  readonly status?: {
    readonly phase?: string;
    readonly conditions?: readonly Condition[];
    readonly nominatedNodeName?: string;
    readonly startTime?: string;
    readonly containerStatuses?: readonly ContainerStatus[];
    readonly initContainerStatuses?: readonly ContainerStatus[];
  };
}

export interface Node {
  readonly metadata: Metadata;
  readonly spec?: {
    readonly providerID?: string;
    readonly taints?: readonly Taint[];
    readonly unschedulable?: boolean;
  };
  readonly status?: {
    readonly capacity?: ResourceList;
    readonly allocatable?: ResourceList;
    readonly conditions?: readonly Condition[];
  };
}

export interface NodeClaim {
  readonly metadata: Metadata;
  readonly spec?: {
    readonly taints?: readonly Taint[];
    readonly startupTaints?: readonly Taint[];
    readonly requirements?: readonly RequirementSpec[];
    readonly terminationGracePeriod?: string;
    readonly expireAfter?: string;
  };
  readonly status?: {
    readonly nodeName?: string;
    readonly providerID?: string;
    readonly capacity?: ResourceList;
    readonly allocatable?: ResourceList;
    readonly conditions?: readonly Condition[];
  };
}

export interface NodePool {
  readonly metadata: Metadata;
  readonly spec: {
    readonly weight?: number;
    readonly replicas?: number;
    readonly limits?: ResourceList;
    readonly template: {
      readonly metadata?: { readonly labels?: Readonly<Record<string, string>> };
      readonly spec?: {
        readonly taints?: readonly Taint[];
        readonly startupTaints?: readonly Taint[];
        readonly requirements?: readonly RequirementSpec[];
        readonly nodeClassRef?: { readonly group?: string; readonly kind?: string; readonly name?: string };
      };
    };
  };
  readonly status?: { readonly conditions?: readonly Condition[] };
}

export interface DaemonSet {
  readonly metadata: Metadata;
  readonly spec: { readonly template: { readonly metadata?: Partial<Metadata>; readonly spec: PodSpec } };
}

export interface Namespace {
  readonly metadata: Metadata;
}

export interface PersistentVolumeClaim {
  readonly metadata: Metadata;
  readonly spec?: { readonly volumeName?: string; readonly storageClassName?: string | null };
  readonly status?: { readonly phase?: string };
}

export interface PersistentVolume {
  readonly metadata: Metadata;
  readonly spec?: {
    readonly csi?: { readonly driver: string };
    readonly awsElasticBlockStore?: unknown;
    readonly gcePersistentDisk?: unknown;
    readonly azureDisk?: unknown;
    readonly local?: unknown;
    readonly hostPath?: unknown;
    readonly nodeAffinity?: { readonly required?: { readonly nodeSelectorTerms?: readonly NodeSelectorTerm[] } };
  };
}

export interface StorageClass {
  readonly metadata: Metadata;
  readonly provisioner?: string;
  readonly volumeBindingMode?: string;
  readonly allowedTopologies?: readonly {
    readonly matchLabelExpressions?: readonly { readonly key: string; readonly values?: readonly string[] }[];
  }[];
}

export interface CSINode {
  readonly metadata: Metadata;
  readonly spec?: {
    readonly drivers?: readonly { readonly name: string; readonly allocatable?: { readonly count?: number } }[];
  };
}

export interface PodDisruptionBudget {
  readonly metadata: Metadata;
  readonly spec?: {
    readonly selector?: LabelSelector | null;
    readonly minAvailable?: number | string;
    readonly maxUnavailable?: number | string;
    readonly unhealthyPodEvictionPolicy?: string;
  };
  readonly status?: { readonly disruptionsAllowed?: number };
}
