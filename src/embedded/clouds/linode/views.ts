// SPDX-License-Identifier: Apache-2.0
// How the API shows what an account holds: names, order and kinds of fields as real answers have them.
import type { Account } from './account.ts';
import { timestamp } from './exchange.ts';
import type {
  Cluster,
  Config,
  Disk,
  Firewall,
  Group,
  Instance,
  Interface,
  Pool,
  PoolNode,
  ReservedAddress,
  SshKey,
  Subnet,
  Vpc,
} from './records.ts';

const dates = ({ created, updated }: { created: number; updated: number }) => ({
  created: timestamp(created),
  updated: timestamp(updated),
});

export function instanceView(account: Account, instance: Instance): object {
  const { plan } = instance;
  const group = instance.groupId === undefined ? undefined : account.groups.get(instance.groupId);
  return {
    id: instance.id,
    label: instance.label,
    group: '',
    status: instance.status,
    ...dates(instance),
    type: plan.id,
    ipv4: [...instance.ipv4],
    ipv6: instance.ipv6,
    image: instance.image,
    region: instance.region.id,
    site_type: instance.region.site_type,
    specs: {
      disk: plan.disk,
      memory: plan.memory,
      vcpus: plan.vcpus,
      gpus: plan.gpus,
      transfer: plan.transfer,
      accelerated_devices: plan.accelerated_devices,
    },
    alerts: {
      cpu: 90 * plan.vcpus,
      network_in: 10,
      network_out: 10,
      transfer_quota: 80,
      io: 10_000,
      system_alerts: [],
      user_alerts: [],
      ...instance.alerts,
    },
    backups: {
      enabled: instance.backups,
      available: false,
      schedule: { day: null, window: null },
      last_successful: null,
    },
    hypervisor: 'kvm',
    watchdog_enabled: instance.watchdog,
    tags: [...instance.tags],
    host_uuid: instance.hostUuid,
    has_user_data: instance.userData !== undefined,
    placement_group: group
      ? {
          id: group.id,
          label: group.label,
          placement_group_type: group.type,
          placement_group_policy: group.policy,
          migrating_to: null,
        }
      : null,
    disk_encryption: instance.diskEncryption,
    lke_cluster_id: instance.lke?.clusterId ?? null,
    capabilities: ['Block Storage Encryption', 'SMTP Enabled', 'Maintenance Policy'],
    interface_generation: instance.interfaceGeneration,
    maintenance_policy: instance.maintenancePolicy,
    locks: [],
  };
}

const noDevices = { sda: null, sdb: null, sdc: null, sdd: null, sde: null, sdf: null, sdg: null, sdh: null };

export function configView(config: Config, active: boolean): object {
  return {
    id: config.id,
    label: config.label,
    helpers: config.helpers,
    kernel: config.kernel,
    comments: config.comments,
    memory_limit: config.memoryLimit,
    ...dates(config),
    root_device: config.rootDevice,
    devices: { ...noDevices, ...config.devices },
    initrd: null,
    run_level: config.runLevel,
    virt_mode: config.virtMode,
    interfaces: config.interfaces.map((entry) => configInterfaceView(entry, active)),
  };
}

export function configInterfaceView(entry: Interface, active: boolean): object {
  const vpc = entry.purpose === 'vpc';
  return {
    id: entry.id,
    purpose: entry.purpose,
    primary: entry.primary,
    active,
    ipam_address: entry.purpose === 'vlan' ? (entry.ipam ?? '') : null,
    label: entry.label,
    vpc_id: entry.vpcId ?? null,
    subnet_id: entry.subnetId ?? null,
    ipv4: vpc ? { vpc: entry.address ?? null, nat_1_1: entry.nat ?? null } : null,
    ip_ranges: vpc ? [] : null,
    ipv6: null,
  };
}

/** An interface of the newer generation. */
export function linodeInterfaceView(instance: Instance, entry: Interface): object {
  const common = { id: entry.id, mac_address: `22:00:${macOf(entry.id)}`, ...dates(instance), version: 1 };
  const isPublic = entry.purpose === 'public';
  const route = { ipv4: entry.primary, ...(isPublic ? { ipv6: entry.primary } : {}) };
  return {
    ...common,
    default_route: entry.purpose === 'vlan' ? {} : route,
    public: isPublic
      ? {
          ipv4: { addresses: [{ address: instance.ipv4[0], primary: true }], shared: [] },
          ipv6: { slaac: [{ address: instance.ipv6.replace('/128', ''), prefix: 64 }], shared: [], ranges: [] },
        }
      : null,
    vlan: entry.purpose === 'vlan' ? { vlan_label: entry.label, ipam_address: entry.ipam } : null,
    vpc:
      entry.purpose === 'vpc'
        ? {
            vpc_id: entry.vpcId,
            subnet_id: entry.subnetId,
            ipv4: {
              addresses: [{ address: entry.address, primary: true, nat_1_1_address: entry.nat ?? null }],
              ranges: [],
            },
            ipv6: { slaac: [], ranges: [], is_public: false },
          }
        : null,
  };
}

const macOf = (id: number): string => id.toString(16).padStart(8, '0').match(/../g)!.join(':');

export function diskView(disk: Disk, encryption: string): object {
  return {
    id: disk.id,
    status: 'ready',
    label: disk.label,
    filesystem: disk.filesystem,
    size: disk.size,
    ...dates(disk),
    disk_encryption: encryption,
  };
}

/** Some fields are told only in the beta, and some only of enterprise clusters. */
export function clusterView(cluster: Cluster, beta: boolean): object {
  const enterprise = cluster.tier === 'enterprise';
  return {
    id: cluster.id,
    status: 'ready',
    ...dates(cluster),
    label: cluster.label,
    region: cluster.region.id,
    k8s_version: cluster.version,
    ...(beta ? { tier: cluster.tier } : {}),
    control_plane: {
      high_availability: cluster.highAvailability,
      ...(enterprise ? { audit_logs_enabled: cluster.auditLogs } : {}),
    },
    ...(beta ? { apl_enabled: cluster.aplEnabled } : {}),
    ...(enterprise ? { vpc_id: cluster.vpcId, subnet_id: cluster.subnetId } : {}),
    tags: [...cluster.tags],
    ...(enterprise ? { stack_type: cluster.stackType } : {}),
    locks: [],
  };
}

export function poolView(pool: Pool, tier: Cluster['tier']): object {
  return {
    id: pool.id,
    type: pool.plan.id,
    label: pool.label,
    count: pool.count,
    nodes: pool.nodes.filter(({ listed }) => listed).map(nodeView),
    disks: [...pool.disks],
    autoscaler: { ...pool.autoscaler },
    labels: { ...pool.labels },
    taints: pool.taints.map((taint) => ({ ...taint })),
    tags: [...pool.tags],
    disk_encryption: pool.diskEncryption,
    ...(tier === 'enterprise'
      ? {
          k8s_version: pool.version,
          update_strategy: pool.updateStrategy,
          firewall_id: pool.firewallId,
          ...(pool.isolation ? { isolation: pool.isolation } : {}),
        }
      : {}),
    locks: [],
  };
}

export function nodeView({ id, instanceId, status }: PoolNode): object {
  return { id, instance_id: instanceId, status };
}

export function firewallView(account: Account, firewall: Firewall): object {
  const held = [...account.instances.values()].filter(({ firewalls }) => firewalls.has(firewall.id));
  return {
    id: firewall.id,
    label: firewall.label,
    ...dates(firewall),
    status: firewall.status,
    rules: { ...firewall.rules, version: firewall.version, fingerprint: fingerprintOf(firewall.rules) },
    tags: [...firewall.tags],
    entities: held.map((instance) => ({ ...entityView(instance), parent_entity: null })),
  };
}

export function entityView({ id, label }: { id: number; label: string }): object {
  return { id, type: 'linode', label, url: `/v4/linode/instances/${id}` };
}

/** Eight hexadecimal digits that change with the rules (FNV-1a). */
export function fingerprintOf(rules: object): string {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(JSON.stringify(rules))) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, '0');
}

export function vpcView(account: Account, vpc: Vpc): object {
  return {
    id: vpc.id,
    label: vpc.label,
    description: vpc.description,
    region: vpc.region.id,
    ipv4: [{ range: '10.0.0.0/8' }, { range: '172.16.0.0/12' }, { range: '192.168.0.0/17' }],
    ipv6: vpc.ipv6,
    subnets: vpc.subnets.map((subnet) => subnetView(account, subnet)),
    vpc_type: 'regular',
    ...dates(vpc),
  };
}

export function subnetView(account: Account, subnet: Subnet): object {
  return {
    id: subnet.id,
    label: subnet.label,
    ipv4: subnet.ipv4,
    ipv6: subnet.ipv6,
    linodes: [...account.instances.values()].flatMap((instance) => membersOf(instance, subnet.id)),
    databases: [],
    nodebalancers: [],
    vpc_type: 'regular',
    ...dates(subnet),
  };
}

/** The interfaces that a Linode has in a subnet. */
function membersOf(instance: Instance, subnetId: number): object[] {
  const running = instance.status === 'running';
  const own = instance.interfaces
    .filter((entry) => entry.subnetId === subnetId)
    .map((entry) => ({ id: entry.id, config_id: null, active: running }));
  const configured = instance.configs.flatMap((config) =>
    config.interfaces
      .filter((entry) => entry.subnetId === subnetId)
      .map((entry) => ({ id: entry.id, config_id: config.id, active: running })),
  );
  const interfaces = [...own, ...configured];
  return interfaces.length > 0 ? [{ id: instance.id, interfaces }] : [];
}

export function groupView(account: Account, group: Group): object {
  const members = [...account.instances.values()].filter(({ groupId }) => groupId === group.id);
  return {
    id: group.id,
    label: group.label,
    region: group.region.id,
    placement_group_type: group.type,
    placement_group_policy: group.policy,
    is_compliant: true,
    members: members.map(({ id }) => ({ linode_id: id, is_compliant: true })),
    migrations: null,
  };
}

export function sshKeyView({ id, label, key, created }: SshKey): object {
  return { id, label, ssh_key: key, created: timestamp(created) };
}

export function reservedView(account: Account, { address, region, tags }: ReservedAddress): object {
  const holder = [...account.instances.values()].find(
    ({ ipv4, status }) => status !== 'deleting' && ipv4.includes(address),
  );
  return {
    ...addressView(address, region.id, holder),
    reserved: true,
    assigned_entity: holder ? entityView(holder) : null,
    tags,
  };
}

export function addressView(address: string, region: string, holder?: Instance): object {
  return {
    address,
    gateway: address.replace(/\d+$/, '1'),
    subnet_mask: '255.255.255.0',
    prefix: 24,
    type: 'ipv4',
    public: true,
    rdns: holder ? `${address.replaceAll('.', '-')}.ip.linodeusercontent.com` : null,
    linode_id: holder?.id ?? null,
    interface_id: null,
    region,
    vpc_nat_1_1: null,
    reserved: false,
    assigned_entity: holder ? entityView(holder) : null,
  };
}
