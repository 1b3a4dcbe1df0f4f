// SPDX-License-Identifier: Apache-2.0
// The network interfaces that a request asks for, of either generation.
import type { Account } from './account.ts';
import { asObject, asText } from './exchange.ts';
import type { Fields } from './fields.ts';
import type { Interface } from './records.ts';
import type { Region } from './regions.ts';
import { freeAddress } from './vpcs.ts';

/** Reads `interfaces` as configuration profiles have them: `{purpose, subnet_id, ipv4: {vpc, nat_1_1}}`. */
export function readConfigInterfaces(account: Account, fields: Fields, region: Region): Interface[] {
  return (fields.list('interfaces') ?? []).flatMap((entry, index): Interface[] => {
    const body = asObject(entry);
    const at = `interfaces[${index}]`;
    const purpose = body['purpose'];
    const common = { id: account.nextId('interface'), label: null, ipam: null, primary: body['primary'] === true };
    if (purpose === 'public') return [{ ...common, purpose }];
    if (purpose === 'vlan') {
      if (typeof body['label'] !== 'string') fields.wrong(`${at}.label`, 'label is required');
      return [{ ...common, purpose, label: asText(body['label']), ipam: asText(body['ipam_address']) }];
    }
    if (purpose === 'vpc') {
      const addresses = asObject(body['ipv4']);
      const nat = addresses['nat_1_1'];
      const found = inSubnet(account, fields, region, { at, subnet: body['subnet_id'], address: addresses['vpc'] });
      return found ? [{ ...common, ...found, purpose, ...natOf(account, nat) }] : [];
    }
    fields.wrong(`${at}.purpose`, 'Must be one of public, vlan, vpc');
    return [];
  });
}

/** Reads `interfaces` of the newer generation: `{firewall_id, public | vpc | vlan}`. */
export function readLinodeInterfaces(account: Account, fields: Fields, region: Region): Interface[] {
  return (fields.list('interfaces') ?? []).flatMap((entry, index): Interface[] => {
    const body = asObject(entry);
    const at = `interfaces[${index}]`;
    const route = body['default_route'] === undefined ? undefined : asObject(body['default_route']);
    const firewallId = firewallOf(account, fields, at, body['firewall_id']);
    const common = {
      id: account.nextId('interface'),
      label: null,
      ipam: null,
      primary: route ? route['ipv4'] === true : index === 0,
      ...(firewallId === undefined ? {} : { firewallId }),
    };
    if (body['vlan']) {
      const vlan = asObject(body['vlan']);
      return [
        {
          ...common,
          purpose: 'vlan' as const,
          label: asText(vlan['vlan_label']),
          ipam: asText(vlan['ipam_address']),
        },
      ];
    }
    if (body['vpc']) {
      const vpc = asObject(body['vpc']);
      const { addresses } = asObject(vpc['ipv4']) as { addresses?: unknown };
      const first = asObject(Array.isArray(addresses) ? addresses[0] : undefined);
      const found = inSubnet(account, fields, region, {
        at: `${at}.vpc`,
        subnet: vpc['subnet_id'],
        address: first['address'],
      });
      return found
        ? [{ ...common, ...found, purpose: 'vpc' as const, ...natOf(account, first['nat_1_1_address']) }]
        : [];
    }
    if (body['public']) return [{ ...common, purpose: 'public' as const }];
    fields.wrong(at, 'Must have one of public, vlan, vpc');
    return [];
  });
}

/** Linode takes -1 for `none`. */
function firewallOf(account: Account, fields: Fields, at: string, id: unknown): number | undefined {
  if (id === undefined || id === null || id === -1) return undefined;
  if (typeof id === 'number' && account.firewalls.has(id)) return id;
  fields.wrong(`${at}.firewall_id`, 'Invalid Firewall');
  return undefined;
}

function inSubnet(
  account: Account,
  fields: Fields,
  region: Region,
  wanted: { at: string; subnet: unknown; address: unknown },
): { subnetId: number; vpcId: number; address: string } | undefined {
  const place = typeof wanted.subnet === 'number' ? account.subnet(wanted.subnet) : undefined;
  if (!place) {
    fields.wrong(`${wanted.at}.subnet_id`, 'Subnet is not valid');
    return undefined;
  }
  if (place.vpc.region.id !== region.id) {
    fields.wrong(`${wanted.at}.subnet_id`, 'Subnet is in another region');
    return undefined;
  }
  const given = typeof wanted.address === 'string' && wanted.address !== 'auto' ? wanted.address : undefined;
  const address = given ?? freeAddress(account, place.subnet);
  if (address === undefined) {
    fields.wrong(`${wanted.at}.subnet_id`, 'Subnet has no free addresses');
    return undefined;
  }
  return { subnetId: place.subnet.id, vpcId: place.vpc.id, address };
}

function natOf(account: Account, wanted: unknown): { nat?: string } {
  if (wanted === undefined || wanted === null || wanted === '') return {};
  return { nat: wanted === 'any' || wanted === 'auto' ? account.address().ipv4 : asText(wanted) };
}
