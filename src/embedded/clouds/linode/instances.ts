// SPDX-License-Identifier: Apache-2.0
// `linode/instances`: making, changing, booting and deleting Linodes.
import type { Account } from './account.ts';
import { type Call, found, idOf, page } from './exchange.ts';
import { Fields, labelProblem } from './fields.ts';
import { imageNamed } from './images.ts';
import { instancePartRoutes, newConfig, newDisks } from './instance-parts.ts';
import { readConfigInterfaces, readLinodeInterfaces } from './interfaces.ts';
import type { LaunchSpec, Machines } from './machines.ts';
import { groupProblem } from './placement.ts';
import { type Plan, planNamed } from './plans.ts';
import { isSshKey, scrubbed, username } from './profile.ts';
import type { Instance } from './records.ts';
import { badRequest } from './refusal.ts';
import { offers, type Region, regionNamed } from './regions.ts';
import type { Route } from './router.ts';
import { instanceView } from './views.ts';

/** Decoded, as the metadata service hands it out. */
const largestUserData = 65_535;

export function readRegion(fields: Fields): Region | undefined {
  const name = fields.text('region', { required: true });
  if (name === undefined) return undefined;
  const region = regionNamed(name);
  if (!region) fields.wrong('region', 'Region is not valid');
  return region;
}

export function readPlan(fields: Fields): Plan | undefined {
  const name = fields.text('type', { required: true });
  if (name === undefined) return undefined;
  const plan = planNamed(name);
  if (!plan) fields.wrong('type', 'A valid plan type by that ID was not found');
  return plan;
}

function readLabel(account: Account, fields: Fields, self?: Instance): string | undefined {
  const label = fields.text('label');
  if (label === undefined) return undefined;
  const problem = labelProblem(label);
  const taken = [...account.instances.values()].some(
    (other) => other !== self && other.status !== 'deleting' && other.label === label,
  );
  if (problem) fields.wrong('label', problem);
  else if (taken) fields.wrong('label', 'Label must be unique among your linodes');
  return label;
}

/** The image and how to get into it. */
function readImage(account: Account, fields: Fields): string | undefined {
  const name = fields.text('image');
  const password = fields.text('root_pass');
  const keys = fields.texts('authorized_keys') ?? [];
  const users = fields.texts('authorized_users') ?? [];
  keys.forEach((key, index) => {
    if (!isSshKey(key)) fields.wrong(`authorized_keys[${index}]`, 'SSH Key is not valid');
  });
  users.forEach((user) => {
    if (user !== username) fields.wrong('authorized_users', `Username ${user} is not valid`);
  });
  if (users.length > 0 && account.sshKeys.size === 0) {
    fields.wrong('authorized_users', `User ${username} has no SSH keys`);
  }
  if (password !== undefined && password !== scrubbed && !isStrong(password)) {
    fields.wrong('root_pass', 'Password does not meet strength requirement.');
  }
  if (name === undefined) return undefined;
  const image = imageNamed(name);
  if (!image) fields.wrong('image', 'image is not valid');
  if (password === undefined && keys.length + users.length === 0) {
    fields.wrong('root_pass', 'root_pass is required');
  }
  return name;
}

function isStrong(password: string): boolean {
  const kinds = [/[a-z]/, /[A-Z]/, /\d/, /[^a-zA-Z0-9]/].filter((kind) => kind.test(password)).length;
  return password.length >= 11 && password.length <= 128 && kinds >= 2;
}

/** Decoded user data. */
function readUserData(fields: Fields, region: Region | undefined): string | undefined {
  const encoded = fields.object('metadata')?.['user_data'];
  if (encoded === undefined || encoded === null) return undefined;
  const field = 'metadata.user_data';
  if (typeof encoded !== 'string' || !/^[A-Za-z0-9+/]*={0,2}$/.test(encoded) || encoded.length % 4 !== 0) {
    fields.wrong(field, 'Must be a base64-encoded string');
    return undefined;
  }
  if (region && !offers(region, 'Metadata')) fields.wrong(field, 'Metadata is not available in this region');
  const bytes = Buffer.from(encoded, 'base64');
  if (bytes.length > largestUserData) fields.wrong(field, `Must be no larger than ${largestUserData} bytes`);
  return bytes.toString('latin1');
}

function readFirewall(account: Account, fields: Fields): number[] {
  const id = fields.whole('firewall_id', { min: -1 });
  if (id === undefined || id === -1) return [];
  if (!account.firewalls.has(id)) fields.wrong('firewall_id', 'Invalid Firewall');
  return [id];
}

function readGroup(account: Account, fields: Fields, region: Region | undefined): number | undefined {
  const wanted = fields.object('placement_group');
  if (!wanted) return undefined;
  const group = typeof wanted['id'] === 'number' ? account.groups.get(wanted['id']) : undefined;
  const problem = group && region ? groupProblem(account, group, region) : undefined;
  if (!group) fields.wrong('placement_group.id', 'Invalid placement group');
  else if (problem) fields.wrong('placement_group.id', problem);
  return group?.id;
}

function readLaunch(account: Account, call: Call): LaunchSpec {
  const fields = new Fields(call.body);
  const region = readRegion(fields);
  const plan = readPlan(fields);
  const label = readLabel(account, fields);
  const image = readImage(account, fields);
  const tags = fields.tags() ?? [];
  const userData = readUserData(fields, region);
  const groupId = readGroup(account, fields, region);
  const backups = fields.flag('backups_enabled');
  const booted = fields.flag('booted') ?? image !== undefined;
  const swapSize = fields.whole('swap_size', { min: 0, max: plan?.disk ?? 0 });
  const diskEncryption = fields.oneOf('disk_encryption', ['enabled', 'disabled']);
  const generation = fields.oneOf('interface_generation', ['legacy_config', 'linode']) ?? 'legacy_config';
  const maintenancePolicy = fields.text('maintenance_policy');
  const kernel = fields.text('kernel');
  const interfaces = region ? readInterfaces(account, fields, region, generation) : [];
  const firewalls = [...readFirewall(account, fields), ...interfaces.flatMap(({ firewallId }) => firewallId ?? [])];
  const address = fields.texts('ipv4')?.[0];
  if (address !== undefined && !account.reserved.has(address)) fields.wrong('ipv4', 'Invalid IPv4 address');
  fields.done();
  return {
    label: label ?? `linode${account.hex(8)}`,
    region: region!,
    plan: plan!,
    image: image ?? null,
    tags,
    boot: booted,
    backups: backups ?? false,
    interfaceGeneration: generation,
    interfaces,
    firewalls,
    privateAddress: fields.flag('private_ip') ?? false,
    ...defined({ userData, groupId, swapSize, diskEncryption, maintenancePolicy, kernel, address }),
  };
}

/** Without what is undefined. */
function defined<T extends object>(values: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as never;
}

function readInterfaces(account: Account, fields: Fields, region: Region, generation: string) {
  return generation === 'linode'
    ? readLinodeInterfaces(account, fields, region)
    : readConfigInterfaces(account, fields, region);
}

export function instanceRoutes(account: Account, machines: Machines): Route[] {
  const instanceOf = (call: Call): Instance => found(account.instances.get(idOf(call, 'linode')));
  const view = (instance: Instance): object => instanceView(account, instance);
  const list = (): readonly object[] => account.history.instances.list(() => [...account.instances.values()].map(view));

  const create = (call: Call): object => {
    const spec = readLaunch(account, call);
    if (account.instances.size >= account.maxInstances) {
      throw badRequest('Account Limit reached. Please open a support ticket.');
    }
    account.capacity.take(spec.plan, spec.region, 1, 'type');
    const instance = machines.launch(spec);
    if (spec.image !== null) {
      const disks = newDisks(account, instance, spec.swapSize ?? 512);
      instance.disks.push(...disks);
      instance.configs.push(newConfig(account, instance, disks, spec));
    }
    return view(instance);
  };

  const update = (call: Call): object => {
    const instance = instanceOf(call);
    const fields = new Fields(call.body);
    const label = readLabel(account, fields, instance);
    const tags = fields.tags();
    const watchdog = fields.flag('watchdog_enabled');
    const alerts = fields.object('alerts');
    const policy = fields.text('maintenance_policy');
    fields.done();
    if (label !== undefined) instance.label = label;
    if (tags !== undefined) instance.tags = tags;
    if (watchdog !== undefined) instance.watchdog = watchdog;
    if (alerts !== undefined) instance.alerts = { ...instance.alerts, ...alerts };
    if (policy !== undefined) instance.maintenancePolicy = policy;
    machines.touch(instance);
    return view(instance);
  };

  /** Orders to a Linode that is being deleted, or that is busy, are refused. */
  const order =
    (act: (instance: Instance, call: Call) => object | void) =>
    (call: Call): object => {
      const instance = instanceOf(call);
      if (!['running', 'offline', 'provisioning'].includes(instance.status)) throw badRequest('Linode busy.');
      return act(instance, call) ?? {};
    };

  const rebuild = order((instance, call) => {
    const fields = new Fields(call.body);
    const image = readImage(account, fields);
    if (!fields.has('image')) fields.wrong('image', 'image is required');
    const userData = readUserData(fields, instance.region);
    const boot = fields.flag('booted') ?? true;
    fields.done();
    instance.image = image!;
    if (userData === undefined) delete instance.userData;
    else instance.userData = userData;
    machines.restart(instance, 'rebuilding', boot);
    return view(instance);
  });

  const resize = order((instance, call) => {
    const fields = new Fields(call.body);
    const plan = readPlan(fields);
    fields.done();
    account.capacity.take(plan!, instance.region, 1, 'type');
    account.capacity.giveBack(instance.plan.id, instance.region.id);
    instance.plan = plan!;
    machines.restart(instance, 'resizing');
  });

  const remove = (call: Call): object => {
    machines.delete(instanceOf(call));
    return {};
  };

  return [
    { method: 'GET', path: '/linode/instances', handle: (call) => page(call, list()) },
    { method: 'POST', path: '/linode/instances', kind: 'createLinode', handle: create },
    { method: 'GET', path: '/linode/instances/:linode', handle: (call) => view(instanceOf(call)) },
    { method: 'PUT', path: '/linode/instances/:linode', handle: update },
    { method: 'DELETE', path: '/linode/instances/:linode', handle: remove },
    { method: 'POST', path: '/linode/instances/:linode/boot', handle: order((instance) => machines.boot(instance)) },
    {
      method: 'POST',
      path: '/linode/instances/:linode/reboot',
      handle: order((instance) => machines.restart(instance, 'rebooting')),
    },
    {
      method: 'POST',
      path: '/linode/instances/:linode/shutdown',
      handle: order((instance) => machines.shutDown(instance)),
    },
    { method: 'POST', path: '/linode/instances/:linode/rebuild', handle: rebuild },
    { method: 'POST', path: '/linode/instances/:linode/resize', handle: resize },
    ...instancePartRoutes(account, machines, instanceOf),
  ];
}
