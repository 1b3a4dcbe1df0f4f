// SPDX-License-Identifier: Apache-2.0
// resource.k8s.io/v1, dynamic resource allocation: written by hand, the generated types are older than its v1.
import type { NodeSelector } from 'kubernetes-types/core/v1.d.ts';
import type { KubeObject, ObjectMeta } from '../object.ts';

export interface DeviceSelector {
  cel?: { expression: string };
}

/** Settings for a driver; what they mean is the driver's affair. */
export interface DeviceConfiguration {
  opaque?: { driver: string; parameters: unknown };
}

export interface DeviceClass extends KubeObject {
  spec: { selectors?: DeviceSelector[]; config?: DeviceConfiguration[]; extendedResourceName?: string };
}

export interface DeviceToleration {
  key?: string;
  operator?: string;
  value?: string;
  effect?: string;
  tolerationSeconds?: number;
}

interface RequestedDevices {
  selectors?: DeviceSelector[];
  /** `ExactCount` (default) or `All`. */
  allocationMode?: string;
  count?: number;
  tolerations?: DeviceToleration[];
  capacity?: { requests?: Record<string, string> };
}

export interface ExactDeviceRequest extends RequestedDevices {
  deviceClassName: string;
  adminAccess?: boolean;
}

export interface DeviceSubRequest extends RequestedDevices {
  name: string;
  deviceClassName: string;
}

/** One of `exactly` and `firstAvailable`. */
export interface DeviceRequest {
  name: string;
  exactly?: ExactDeviceRequest;
  firstAvailable?: DeviceSubRequest[];
}

export interface DeviceConstraint {
  requests?: string[];
  matchAttribute?: string;
  distinctAttribute?: string;
}

export interface ResourceClaimSpec {
  devices?: {
    requests?: DeviceRequest[];
    constraints?: DeviceConstraint[];
    config?: (DeviceConfiguration & { requests?: string[] })[];
  };
}

export interface DeviceRequestAllocationResult {
  /** `request` or `request/subrequest`. */
  request: string;
  driver: string;
  pool: string;
  device: string;
  adminAccess?: boolean;
  tolerations?: DeviceToleration[];
  bindingConditions?: string[];
  bindingFailureConditions?: string[];
  shareID?: string;
  consumedCapacity?: Record<string, string>;
}

export interface AllocationResult {
  devices?: {
    results?: DeviceRequestAllocationResult[];
    config?: (DeviceConfiguration & { source: string; requests?: string[] })[];
  };
  nodeSelector?: NodeSelector;
  allocationTimestamp?: string;
}

export interface ResourceClaimStatus {
  allocation?: AllocationResult;
  reservedFor?: { apiGroup?: string; resource: string; name: string; uid: string }[];
  devices?: {
    driver: string;
    pool: string;
    device: string;
    shareID?: string;
    conditions?: { type: string; status: string; reason: string; message: string; lastTransitionTime: string }[];
    data?: unknown;
    networkData?: { interfaceName?: string; ips?: string[]; hardwareAddress?: string };
  }[];
}

export interface ResourceClaim extends KubeObject {
  spec: ResourceClaimSpec;
  status?: ResourceClaimStatus;
}

export interface ResourceClaimTemplate extends KubeObject {
  spec: { metadata?: ObjectMeta; spec: ResourceClaimSpec };
}

/** Exactly one of the four is set. */
export interface DeviceAttribute {
  int?: number;
  bool?: boolean;
  string?: string;
  version?: string;
}

export interface DeviceCapacity {
  value: string;
  requestPolicy?: {
    default?: string;
    validValues?: string[];
    validRange?: { min: string; max?: string; step?: string };
  };
}

export interface DeviceTaint {
  key: string;
  value?: string;
  effect: string;
  timeAdded?: string;
}

export interface Device {
  name: string;
  attributes?: Record<string, DeviceAttribute>;
  capacity?: Record<string, DeviceCapacity>;
  consumesCounters?: { counterSet: string; counters: Record<string, { value: string }> }[];
  nodeName?: string;
  nodeSelector?: NodeSelector;
  allNodes?: boolean;
  taints?: DeviceTaint[];
  bindsToNode?: boolean;
  bindingConditions?: string[];
  bindingFailureConditions?: string[];
  allowMultipleAllocations?: boolean;
}

export interface ResourceSliceSpec {
  driver: string;
  pool: { name: string; generation: number; resourceSliceCount: number };
  nodeName?: string;
  nodeSelector?: NodeSelector;
  allNodes?: boolean;
  perDeviceNodeSelection?: boolean;
  devices?: Device[];
  sharedCounters?: { name: string; counters: Record<string, { value: string }> }[];
}

export interface ResourceSlice extends KubeObject {
  spec: ResourceSliceSpec;
}
