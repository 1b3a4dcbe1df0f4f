// SPDX-License-Identifier: Apache-2.0
// The parts of the Linode API v4 that this provider reads and writes, as they are on the wire.

export interface LinodePrice {
  readonly hourly: number | null;
  readonly monthly?: number | null;
}

export interface LinodeType {
  readonly id: string;
  readonly label?: string;
  readonly class: string;
  /** MB. */
  readonly disk: number;
  /** MB. */
  readonly memory: number;
  readonly vcpus: number;
  readonly gpus?: number;
  readonly accelerated_devices?: number;
  /** GB a month. */
  readonly transfer?: number;
  /** Mbit/s. */
  readonly network_out?: number;
  readonly price?: LinodePrice | null;
  readonly region_prices?: readonly (LinodePrice & { readonly id: string })[] | null;
  readonly successor?: string | null;
}

export interface RegionAvailability {
  readonly region: string;
  readonly plan: string;
  readonly available: boolean;
}

export interface Region {
  readonly id: string;
  readonly label?: string;
  readonly capabilities: readonly string[];
  readonly status: string;
}

export type LinodeStatus =
  | 'booting'
  | 'running'
  | 'offline'
  | 'shutting_down'
  | 'rebooting'
  | 'provisioning'
  | 'deleting'
  | 'migrating'
  | 'rebuilding'
  | 'cloning'
  | 'restoring'
  | 'resizing'
  | (string & {});

export interface LinodeInstance {
  readonly id: number;
  readonly label: string;
  readonly type: string | null;
  readonly region: string;
  readonly image: string | null;
  readonly status: LinodeStatus;
  readonly tags: readonly string[];
  /** `2018-01-02T03:04:05`, in UTC, without saying so. */
  readonly created: string;
  readonly lke_cluster_id?: number | null;
  readonly placement_group?: { readonly id: number } | null;
  readonly disk_encryption?: string;
  readonly has_user_data?: boolean;
  readonly specs?: {
    /** MB of storage. */
    readonly disk: number;
  };
}

export interface LkeCluster {
  readonly id: number;
  readonly label: string;
  readonly region: string;
  readonly k8s_version: string;
  /** Only v4beta says it. */
  readonly tier?: string;
  readonly status?: string;
}

export interface LkeTaint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
}

export interface LkePoolNode {
  readonly id: string;
  readonly instance_id: number | null;
  readonly status: string;
}

export interface LkePool {
  readonly id: number;
  readonly type: string;
  readonly count: number;
  readonly nodes: readonly LkePoolNode[];
  readonly tags: readonly string[];
  readonly labels?: Readonly<Record<string, string>> | null;
  readonly taints?: readonly LkeTaint[] | null;
  readonly label?: string;
  readonly firewall_id?: number | null;
  readonly disk_encryption?: string;
  readonly k8s_version?: string | null;
  readonly update_strategy?: string | null;
}

export interface Page<T> {
  readonly data: readonly T[];
  readonly page: number;
  readonly pages: number;
  readonly results: number;
}
