// SPDX-License-Identifier: Apache-2.0
// What an account holds, as it is kept; `views.ts` says how the API shows it.
import type { Plan } from './plans.ts';
import type { Region } from './regions.ts';

export type InstanceStatus =
  | 'provisioning'
  | 'booting'
  | 'running'
  | 'rebooting'
  | 'shutting_down'
  | 'offline'
  | 'rebuilding'
  | 'resizing'
  | 'deleting';

export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
}

/** An interface of a configuration profile, or of the newer generation. */
export interface Interface {
  readonly id: number;
  readonly purpose: 'public' | 'vlan' | 'vpc';
  readonly label: string | null;
  readonly ipam: string | null;
  readonly primary: boolean;
  readonly subnetId?: number;
  readonly vpcId?: number;
  /** Its address in the VPC. */
  readonly address?: string;
  readonly nat?: string;
  readonly firewallId?: number;
}

export interface Config {
  readonly id: number;
  label: string;
  comments: string;
  kernel: string;
  memoryLimit: number;
  rootDevice: string;
  runLevel: string;
  virtMode: string;
  helpers: Readonly<Record<string, boolean>>;
  devices: Readonly<Record<string, { disk_id: number | null; volume_id: number | null } | null>>;
  interfaces: readonly Interface[];
  readonly created: number;
  updated: number;
}

export interface Disk {
  readonly id: number;
  label: string;
  size: number;
  readonly filesystem: string;
  readonly created: number;
  updated: number;
}

export interface Instance {
  readonly id: number;
  label: string;
  status: InstanceStatus;
  readonly created: number;
  updated: number;
  plan: Plan;
  image: string | null;
  readonly region: Region;
  tags: string[];
  ipv4: string[];
  readonly ipv6: string;
  backups: boolean;
  readonly diskEncryption: string;
  /** Decoded. */
  userData?: string;
  groupId?: number;
  readonly firewalls: Set<number>;
  readonly lke?: { readonly clusterId: number; readonly poolId: number; readonly nodeId: string };
  readonly interfaceGeneration: 'legacy_config' | 'linode';
  maintenancePolicy: string;
  readonly hostUuid: string;
  watchdog: boolean;
  alerts: Readonly<Record<string, unknown>>;
  readonly configs: Config[];
  readonly disks: Disk[];
  readonly interfaces: Interface[];
  /** Changes with every order it gets: what an earlier one had scheduled no longer happens. */
  epoch: number;
}

export interface PoolNode {
  readonly id: string;
  instanceId: number | null;
  status: 'ready' | 'not_ready';
  /** Enterprise lists it later. */
  listed: boolean;
}

export interface Pool {
  readonly id: number;
  readonly clusterId: number;
  readonly plan: Plan;
  label: string;
  count: number;
  readonly nodes: PoolNode[];
  readonly disks: readonly object[];
  autoscaler: { enabled: boolean; min: number; max: number };
  labels: Readonly<Record<string, string>>;
  taints: readonly Taint[];
  tags: string[];
  readonly diskEncryption: string;
  version?: string;
  updateStrategy?: string;
  firewallId: number | null;
  isolation?: object;
}

export interface Cluster {
  readonly id: number;
  label: string;
  readonly region: Region;
  version: string;
  readonly tier: 'standard' | 'enterprise';
  tags: string[];
  highAvailability: boolean;
  auditLogs: boolean;
  readonly aplEnabled: boolean;
  readonly vpcId: number | null;
  readonly subnetId: number | null;
  readonly stackType: string;
  acl: { enabled: boolean; revision?: string; ipv4: readonly string[]; ipv6: readonly string[] };
  readonly created: number;
  updated: number;
  /** When it hands out its kubeconfig. */
  readonly readyAt: number;
  readonly endpoint: string;
}

export interface Firewall {
  readonly id: number;
  label: string;
  status: string;
  rules: Readonly<Record<string, unknown>>;
  version: number;
  tags: string[];
  readonly created: number;
  updated: number;
}

export interface Subnet {
  readonly id: number;
  label: string;
  readonly ipv4: string;
  readonly ipv6: readonly object[] | null;
  readonly created: number;
  updated: number;
}

export interface Vpc {
  readonly id: number;
  label: string;
  description: string;
  readonly region: Region;
  readonly ipv6: readonly object[] | null;
  readonly subnets: Subnet[];
  readonly created: number;
  updated: number;
}

export interface Group {
  readonly id: number;
  label: string;
  readonly region: Region;
  readonly type: string;
  readonly policy: string;
}

export interface SshKey {
  readonly id: number;
  label: string;
  readonly key: string;
  readonly created: number;
}

export interface ReservedAddress {
  readonly address: string;
  readonly region: Region;
  tags: string[];
}
