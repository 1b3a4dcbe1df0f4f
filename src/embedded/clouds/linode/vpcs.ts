// SPDX-License-Identifier: Apache-2.0
// VPCs and their subnets, and the addresses in them.
import type { Account } from './account.ts';
import { asObject, asText, type Call, found, idOf, type Json, page } from './exchange.ts';
import { Fields } from './fields.ts';
import type { Instance, Subnet, Vpc } from './records.ts';
import { badRequest } from './refusal.ts';
import { offers, regionNamed } from './regions.ts';
import type { Route } from './router.ts';
import { subnetView, vpcView } from './views.ts';

/** The API says `underscores`, and means dashes as well. */
const badLabel = 'Must only use ASCII letters, numbers, and underscores';
const labelPattern = /^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62}[A-Za-z0-9])?$/;

function readLabel(fields: Fields, required: boolean): string | undefined {
  const label = fields.text('label', { required });
  if (label !== undefined && !labelPattern.test(label)) fields.wrong('label', badLabel);
  return label;
}

/** Which address ranges are allowed is not the customer's choice. */
function refuseRanges(fields: Fields): void {
  const ranges = fields.list('ipv4');
  if (!ranges) return;
  fields.wrong('ipv4', 'Customer defined IPv4 ranges are not supported in this region');
  ranges.forEach((_, index) =>
    fields.wrong(`ipv4[${index}].range`, 'You must not use any custom IPv4 range for VPCs.'),
  );
}

/** Prefix lengths become ranges of ours. */
function readIpv6(account: Account, fields: Fields): readonly object[] | null {
  const ranges = fields.list('ipv6');
  if (!ranges) return null;
  return ranges.map((entry) => {
    const range = asText(asObject(entry)['range']) || '/52';
    return { range: range.startsWith('/') ? `2600:3c03:${account.hex(4)}::${range}` : range };
  });
}

function readSubnet(account: Account, body: Json, siblings: readonly Subnet[]): Subnet {
  const fields = new Fields(body);
  const label = readLabel(fields, true) ?? '';
  const ipv4 = fields.text('ipv4', { required: !fields.has('ipv6') }) ?? '';
  if (ipv4 !== '' && !rangeOf(ipv4)) fields.wrong('ipv4', 'Must be an IPv4 range');
  if (siblings.some((other) => other.label === label)) fields.wrong('label', 'Label must be unique among the subnets');
  if (siblings.some((other) => overlap(other.ipv4, ipv4))) fields.wrong('ipv4', 'Overlaps another subnet of the VPC');
  const ipv6 = readIpv6(account, fields);
  fields.done();
  const now = account.clock.now();
  return { id: account.nextId('subnet'), label, ipv4, ipv6, created: now, updated: now };
}

export function vpcRoutes(account: Account): Route[] {
  const vpcOf = (call: Call): Vpc => found(account.vpcs.get(idOf(call, 'vpc')));
  const subnetOf = (call: Call): Subnet => found(vpcOf(call).subnets.find(({ id }) => id === idOf(call, 'subnet')));

  const create = (call: Call): object => {
    const fields = new Fields(call.body);
    const label = readLabel(fields, true);
    const name = fields.text('region', { required: true });
    const region = name === undefined ? undefined : regionNamed(name);
    if (name !== undefined && !region) fields.wrong('region', 'Region is not valid');
    else if (region && !offers(region, 'VPCs')) fields.wrong('region', 'VPCs are not available in this region');
    refuseRanges(fields);
    const wanted = fields.list('subnets') ?? [];
    const ipv6 = readIpv6(account, fields);
    fields.done();
    const subnets: Subnet[] = [];
    for (const body of wanted) subnets.push(readSubnet(account, asObject(body), subnets));
    const now = account.clock.now();
    const vpc: Vpc = {
      id: account.nextId('vpc'),
      label: label!,
      description: fields.text('description') ?? '',
      region: region!,
      ipv6,
      subnets,
      created: now,
      updated: now,
    };
    account.vpcs.set(vpc.id, vpc);
    return vpcView(account, vpc);
  };

  const update = (call: Call): object => {
    const vpc = vpcOf(call);
    const fields = new Fields(call.body);
    refuseRanges(fields);
    const label = readLabel(fields, false);
    const description = fields.text('description');
    fields.done();
    if (label !== undefined) vpc.label = label;
    if (description !== undefined) vpc.description = description;
    vpc.updated = account.clock.now();
    return vpcView(account, vpc);
  };

  const remove = (call: Call): object => {
    const vpc = vpcOf(call);
    if (vpc.subnets.some((subnet) => isUsed(account, subnet.id))) {
      throw badRequest('Cannot delete a VPC that has subnets with active interfaces');
    }
    account.vpcs.delete(vpc.id);
    return {};
  };

  const addSubnet = (call: Call): object => {
    const vpc = vpcOf(call);
    const subnet = readSubnet(account, call.body, vpc.subnets);
    vpc.subnets.push(subnet);
    return subnetView(account, subnet);
  };

  const updateSubnet = (call: Call): object => {
    const subnet = subnetOf(call);
    const fields = new Fields(call.body);
    const label = readLabel(fields, true);
    fields.done();
    subnet.label = label!;
    subnet.updated = account.clock.now();
    return subnetView(account, subnet);
  };

  const removeSubnet = (call: Call): object => {
    const subnet = subnetOf(call);
    if (isUsed(account, subnet.id)) throw badRequest('Cannot delete a subnet that has active interfaces');
    const { subnets } = vpcOf(call);
    subnets.splice(subnets.indexOf(subnet), 1);
    return {};
  };

  const all = (): object[] => [...account.vpcs.values()].map((vpc) => vpcView(account, vpc));
  return [
    { method: 'GET', path: '/vpcs', handle: (call) => page(call, all()) },
    { method: 'POST', path: '/vpcs', handle: create },
    { method: 'GET', path: '/vpcs/:vpc', handle: (call) => vpcView(account, vpcOf(call)) },
    { method: 'PUT', path: '/vpcs/:vpc', handle: update },
    { method: 'DELETE', path: '/vpcs/:vpc', handle: remove },
    {
      method: 'GET',
      path: '/vpcs/:vpc/subnets',
      handle: (call) =>
        page(
          call,
          vpcOf(call).subnets.map((subnet) => subnetView(account, subnet)),
        ),
    },
    { method: 'POST', path: '/vpcs/:vpc/subnets', handle: addSubnet },
    { method: 'GET', path: '/vpcs/:vpc/subnets/:subnet', handle: (call) => subnetView(account, subnetOf(call)) },
    { method: 'PUT', path: '/vpcs/:vpc/subnets/:subnet', handle: updateSubnet },
    { method: 'DELETE', path: '/vpcs/:vpc/subnets/:subnet', handle: removeSubnet },
  ];
}

function addressesIn(instance: Instance, subnetId: number): string[] {
  return [...instance.interfaces, ...instance.configs.flatMap((config) => config.interfaces)]
    .filter((entry) => entry.subnetId === subnetId)
    .map((entry) => entry.address ?? '');
}

function isUsed(account: Account, subnetId: number): boolean {
  return [...account.instances.values()].some((instance) => addressesIn(instance, subnetId).length > 0);
}

/** The first free address; the first two of a subnet are its own. Undefined: it is full. */
export function freeAddress(account: Account, subnet: Subnet): string | undefined {
  const range = rangeOf(subnet.ipv4);
  if (!range) return undefined;
  const taken = new Set([...account.instances.values()].flatMap((instance) => addressesIn(instance, subnet.id)));
  for (let n = 2; n < range.size - 1; n++) {
    const address = textOf(range.first + n);
    if (!taken.has(address)) return address;
  }
  return undefined;
}

function rangeOf(cidr: string): { first: number; size: number } | undefined {
  const match = /^(\d+)\.(\d+)\.(\d+)\.(\d+)\/(\d+)$/.exec(cidr);
  if (!match) return undefined;
  const [a, b, c, d, prefix] = match.slice(1).map(Number) as [number, number, number, number, number];
  if ([a, b, c, d].some((part) => part > 255) || prefix < 1 || prefix > 29) return undefined;
  const size = 2 ** (32 - prefix);
  const address = ((a * 256 + b) * 256 + c) * 256 + d;
  return { first: address - (address % size), size };
}

function overlap(one: string, other: string): boolean {
  const [a, b] = [rangeOf(one), rangeOf(other)];
  return a !== undefined && b !== undefined && a.first < b.first + b.size && b.first < a.first + a.size;
}

function textOf(address: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.');
}
