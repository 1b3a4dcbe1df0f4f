// SPDX-License-Identifier: Apache-2.0
// What belongs to a Linode: configuration profiles, disks, interfaces, addresses, firewalls.
import type { Account } from './account.ts';
import { type Call, found, idOf, page } from './exchange.ts';
import { Fields } from './fields.ts';
import { kernels } from './images.ts';
import { readConfigInterfaces } from './interfaces.ts';
import type { LaunchSpec, Machines } from './machines.ts';
import type { Config, Disk, Instance, Interface } from './records.ts';
import { badRequest } from './refusal.ts';
import type { Route } from './router.ts';
import { addressView, configInterfaceView, configView, diskView, firewallView, linodeInterfaceView } from './views.ts';

const helpers = {
  updatedb_disabled: true,
  distro: true,
  modules_dep: true,
  network: false,
  devtmpfs_automount: true,
};

/** A system disk and, unless it is of no size, one to swap to. */
export function newDisks(account: Account, instance: Instance, swapSize: number): Disk[] {
  const now = account.clock.now();
  const disk = (label: string, size: number, filesystem: string): Disk => ({
    id: account.nextId('disk'),
    label,
    size,
    filesystem,
    created: now,
    updated: now,
  });
  return [
    disk(`${instance.image ?? 'empty'} Disk`, instance.plan.disk - swapSize, 'ext4'),
    ...(swapSize > 0 ? [disk(`${swapSize} MB Swap Image`, swapSize, 'swap')] : []),
  ];
}

/** The profile that a Linode with an image boots. */
export function newConfig(account: Account, instance: Instance, disks: readonly Disk[], spec: LaunchSpec): Config {
  const devices = Object.fromEntries(
    disks.map(({ id }, index) => [`sd${'abcdefgh'[index]}`, { disk_id: id, volume_id: null }]),
  );
  return {
    ...emptyConfig(account),
    label: `My ${instance.image} Disk Profile`,
    kernel: spec.kernel ?? 'linode/grub2',
    devices,
    interfaces: spec.interfaceGeneration === 'linode' ? [] : [...(spec.interfaces ?? [])],
  };
}

function emptyConfig(account: Account): Config {
  const now = account.clock.now();
  return {
    id: account.nextId('config'),
    label: '',
    comments: '',
    kernel: 'linode/latest-64bit',
    memoryLimit: 0,
    rootDevice: '/dev/sda',
    runLevel: 'default',
    virtMode: 'paravirt',
    helpers,
    devices: {},
    interfaces: [],
    created: now,
    updated: now,
  };
}

function readConfig(account: Account, call: Call, instance: Instance, config: Config, isNew: boolean): void {
  const fields = new Fields(call.body);
  const label = fields.text('label', { required: isNew });
  const kernel = fields.text('kernel');
  if (kernel !== undefined && !kernels.some(({ id }) => id === kernel)) fields.wrong('kernel', 'kernel is not valid');
  const devices = fields.object('devices') as Config['devices'] | undefined;
  if (isNew && !devices) fields.wrong('devices', 'devices is required');
  const interfaces = fields.has('interfaces') ? readConfigInterfaces(account, fields, instance.region) : undefined;
  const comments = fields.text('comments');
  const memoryLimit = fields.whole('memory_limit');
  const rootDevice = fields.text('root_device');
  const runLevel = fields.oneOf('run_level', ['default', 'single', 'binbash']);
  const virtMode = fields.oneOf('virt_mode', ['paravirt', 'fullvirt']);
  const given = fields.object('helpers') as Config['helpers'] | undefined;
  fields.done();
  if (label !== undefined) config.label = label;
  if (kernel !== undefined) config.kernel = kernel;
  if (devices !== undefined) config.devices = devices;
  if (interfaces !== undefined) config.interfaces = interfaces;
  if (comments !== undefined) config.comments = comments;
  if (memoryLimit !== undefined) config.memoryLimit = memoryLimit;
  if (rootDevice !== undefined) config.rootDevice = rootDevice;
  if (runLevel !== undefined) config.runLevel = runLevel;
  if (virtMode !== undefined) config.virtMode = virtMode;
  if (given !== undefined) config.helpers = { ...config.helpers, ...given };
  config.updated = account.clock.now();
}

export function instancePartRoutes(
  account: Account,
  machines: Machines,
  instanceOf: (call: Call) => Instance,
): Route[] {
  const configOf = (call: Call): Config =>
    found(instanceOf(call).configs.find(({ id }) => id === idOf(call, 'config')));
  const diskOf = (call: Call): Disk => found(instanceOf(call).disks.find(({ id }) => id === idOf(call, 'disk')));
  const active = (call: Call): boolean => instanceOf(call).status === 'running';
  const base = '/linode/instances/:linode';

  const addConfig = (call: Call): object => {
    const instance = instanceOf(call);
    const config = emptyConfig(account);
    readConfig(account, call, instance, config, true);
    instance.configs.push(config);
    machines.touch(instance);
    return configView(config, active(call));
  };
  const updateConfig = (call: Call): object => {
    const config = configOf(call);
    readConfig(account, call, instanceOf(call), config, false);
    return configView(config, active(call));
  };
  const removeConfig = (call: Call): object => {
    const { configs } = instanceOf(call);
    configs.splice(configs.indexOf(configOf(call)), 1);
    return {};
  };

  const addDisk = (call: Call): object => {
    const instance = instanceOf(call);
    const fields = new Fields(call.body);
    const size = fields.whole('size', { required: true, min: 1 }) ?? 0;
    const used = instance.disks.reduce((sum, disk) => sum + disk.size, 0);
    if (used + size > instance.plan.disk) fields.wrong('size', 'Insufficient space for disk');
    const filesystem = fields.oneOf('filesystem', ['raw', 'swap', 'ext3', 'ext4', 'initrd']) ?? 'ext4';
    const label = fields.text('label') ?? 'Disk';
    fields.done();
    const now = account.clock.now();
    const disk: Disk = { id: account.nextId('disk'), label, size, filesystem, created: now, updated: now };
    instance.disks.push(disk);
    machines.touch(instance);
    return diskView(disk, instance.diskEncryption);
  };
  const resizeDisk = (call: Call): object => {
    const [instance, disk] = [instanceOf(call), diskOf(call)];
    const fields = new Fields(call.body);
    const size = fields.whole('size', { required: true, min: 1 }) ?? 0;
    const others = instance.disks.reduce((sum, each) => sum + (each === disk ? 0 : each.size), 0);
    if (others + size > instance.plan.disk) fields.wrong('size', 'Insufficient space for disk');
    fields.done();
    if (instance.status === 'running') throw badRequest('Linode must be powered off to resize a disk');
    disk.size = size;
    disk.updated = account.clock.now();
    return {};
  };
  const removeDisk = (call: Call): object => {
    const { disks } = instanceOf(call);
    disks.splice(disks.indexOf(diskOf(call)), 1);
    return {};
  };

  const firewalls = (call: Call): object[] =>
    [...instanceOf(call).firewalls].flatMap((id) => {
      const firewall = account.firewalls.get(id);
      return firewall ? [firewallView(account, firewall)] : [];
    });

  return [
    {
      method: 'GET',
      path: `${base}/configs`,
      handle: (call) =>
        page(
          call,
          instanceOf(call).configs.map((config) => configView(config, active(call))),
        ),
    },
    { method: 'POST', path: `${base}/configs`, handle: addConfig },
    { method: 'GET', path: `${base}/configs/:config`, handle: (call) => configView(configOf(call), active(call)) },
    { method: 'PUT', path: `${base}/configs/:config`, handle: updateConfig },
    { method: 'DELETE', path: `${base}/configs/:config`, handle: removeConfig },
    {
      method: 'GET',
      path: `${base}/configs/:config/interfaces`,
      handle: (call) => configOf(call).interfaces.map((entry) => configInterfaceView(entry, active(call))),
    },
    {
      method: 'GET',
      path: `${base}/disks`,
      handle: (call) => {
        const { disks, diskEncryption } = instanceOf(call);
        return page(
          call,
          disks.map((disk) => diskView(disk, diskEncryption)),
        );
      },
    },
    { method: 'POST', path: `${base}/disks`, handle: addDisk },
    {
      method: 'GET',
      path: `${base}/disks/:disk`,
      handle: (call) => diskView(diskOf(call), instanceOf(call).diskEncryption),
    },
    { method: 'POST', path: `${base}/disks/:disk/resize`, handle: resizeDisk },
    { method: 'DELETE', path: `${base}/disks/:disk`, handle: removeDisk },
    {
      method: 'GET',
      path: `${base}/interfaces`,
      handle: (call) => {
        const instance = instanceOf(call);
        return { interfaces: instance.interfaces.map((entry) => linodeInterfaceView(instance, entry)) };
      },
    },
    { method: 'GET', path: `${base}/ips`, handle: (call) => addressesView(instanceOf(call)) },
    { method: 'GET', path: `${base}/firewalls`, handle: (call) => page(call, firewalls(call)) },
    { method: 'GET', path: `${base}/volumes`, handle: (call) => page(call, instanceOf(call) ? [] : []) },
    { method: 'GET', path: `${base}/nodebalancers`, handle: (call) => page(call, instanceOf(call) ? [] : []) },
  ];
}

function addressesView(instance: Instance): object {
  const interfaces: [Interface, number | null][] = [
    ...instance.interfaces.map((entry): [Interface, null] => [entry, null]),
    ...instance.configs.flatMap((config) => config.interfaces.map((entry): [Interface, number] => [entry, config.id])),
  ];
  const vpc = interfaces.filter(([{ purpose }]) => purpose === 'vpc');
  const nat = vpc.find(([entry]) => entry.nat !== undefined)?.[0];
  const region = instance.region.id;
  const isPrivate = (address: string): boolean => address.startsWith('192.168.');
  const publicAddresses = instance.ipv4.filter((address) => !isPrivate(address));
  const own = (address: string): object => ({
    ...addressView(address, region, instance),
    vpc_nat_1_1: nat ? { vpc_id: nat.vpcId, subnet_id: nat.subnetId, address: nat.address } : null,
  });
  const six = (address: string, isPublic: boolean): object => ({
    address,
    gateway: 'fe80::1',
    subnet_mask: 'ffff:ffff:ffff:ffff::',
    prefix: 64,
    type: 'ipv6',
    rdns: null,
    linode_id: instance.id,
    region,
    public: isPublic,
  });
  return {
    ipv4: {
      public: publicAddresses.map(own),
      private: instance.ipv4.filter(isPrivate).map((address) => ({ ...own(address), public: false })),
      shared: [],
      reserved: [],
      vpc: vpc.map(([entry, config]) => ({
        address: entry.address,
        address_range: null,
        vpc_id: entry.vpcId,
        subnet_id: entry.subnetId,
        region,
        linode_id: instance.id,
        config_id: config,
        interface_id: entry.id,
        nodebalancer_id: null,
        database_id: null,
        active: instance.status === 'running',
        nat_1_1: entry.nat ?? null,
        gateway: entry.address?.replace(/\d+$/, '1'),
        prefix: 24,
        subnet_mask: '255.255.255.0',
      })),
    },
    ipv6: {
      slaac: six(instance.ipv6.replace('/128', ''), true),
      link_local: six(`fe80::${instance.id.toString(16).slice(-4)}`, false),
      global: [],
      vpc: [],
    },
  };
}
