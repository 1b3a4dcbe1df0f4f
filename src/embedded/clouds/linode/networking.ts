// SPDX-License-Identifier: Apache-2.0
// Firewalls and reserved addresses.
import type { Account } from './account.ts';
import { asObject, asText, type Call, found, idOf, type Json, page, timestamp } from './exchange.ts';
import { Fields, labelProblem } from './fields.ts';
import type { Machines } from './machines.ts';
import type { Firewall } from './records.ts';
import { badRequest, notFound } from './refusal.ts';
import { regionNamed } from './regions.ts';
import type { Route } from './router.ts';
import { entityView, fingerprintOf, firewallView, reservedView } from './views.ts';

const policies = ['ACCEPT', 'DROP'] as const;
const protocols = ['TCP', 'UDP', 'ICMP', 'IPENCAP'];

/** The rules as they are kept: a rule's fields in the API's order. */
function readRules(fields: Fields, rules: Json | undefined): Json {
  if (!rules) return {};
  for (const name of ['inbound_policy', 'outbound_policy']) {
    const policy = rules[name];
    if (policy === undefined) fields.wrong(`rules.${name}`, `${name} is required`);
    else if (!(policies as readonly unknown[]).includes(policy)) {
      fields.wrong(`rules.${name}`, `Must be one of ${policies.join(', ')}`);
    }
  }
  const readList = (name: 'inbound' | 'outbound'): unknown => {
    const list = rules[name];
    if (!Array.isArray(list)) return list ?? null;
    return list.map((entry: unknown, index) => {
      const rule = asObject(entry);
      if (!protocols.includes(asText(rule['protocol']))) {
        fields.wrong(`rules.${name}[${index}].protocol`, `Must be one of ${protocols.join(', ')}`);
      }
      const { protocol, addresses, action, label, ports, description } = rule;
      return {
        protocol,
        addresses,
        action,
        label,
        ...(ports === undefined ? {} : { ports }),
        ...(description === undefined ? {} : { description }),
      };
    });
  };
  return {
    inbound: readList('inbound'),
    inbound_policy: rules['inbound_policy'],
    outbound: readList('outbound'),
    outbound_policy: rules['outbound_policy'],
  };
}

export function networkingRoutes(account: Account, machines: Machines): Route[] {
  const firewallOf = (call: Call): Firewall => found(account.firewalls.get(idOf(call, 'firewall')));
  const view = (firewall: Firewall): object => firewallView(account, firewall);
  const all = (): object[] => [...account.firewalls.values()].map(view);
  const devicesOf = (firewall: Firewall): object[] =>
    [...account.instances.values()]
      .filter(({ firewalls }) => firewalls.has(firewall.id))
      .map((instance) => ({
        id: instance.id,
        entity: { ...entityView(instance), parent_entity: null },
        created: timestamp(instance.created),
        updated: timestamp(instance.updated),
      }));

  const create = (call: Call): object => {
    const fields = new Fields(call.body);
    const label = fields.text('label', { required: true }) ?? '';
    const problem = labelProblem(label, { min: 3, max: 32 });
    if (label !== '' && problem) fields.wrong('label', problem);
    if (!fields.has('rules')) fields.wrong('rules', 'rules is required');
    const rules = readRules(fields, fields.object('rules'));
    const tags = fields.tags() ?? [];
    fields.done();
    const now = account.clock.now();
    const firewall: Firewall = {
      id: account.nextId('firewall'),
      label,
      status: 'enabled',
      rules,
      version: 1,
      tags,
      created: now,
      updated: now,
    };
    account.firewalls.set(firewall.id, firewall);
    return view(firewall);
  };

  const update = (call: Call): object => {
    const firewall = firewallOf(call);
    const fields = new Fields(call.body);
    const label = fields.text('label');
    const status = fields.oneOf('status', ['enabled', 'disabled', 'deleted']);
    const tags = fields.tags();
    fields.done();
    if (label !== undefined) firewall.label = label;
    if (status !== undefined) firewall.status = status;
    if (tags !== undefined) firewall.tags = tags;
    firewall.updated = account.clock.now();
    return view(firewall);
  };

  const remove = (call: Call): object => {
    const { id } = firewallOf(call);
    for (const { firewalls } of account.instances.values()) firewalls.delete(id);
    account.firewalls.delete(id);
    return {};
  };

  const updateRules = (call: Call): object => {
    const firewall = firewallOf(call);
    const fields = new Fields(call.body);
    const rules = readRules(fields, call.body);
    fields.done();
    firewall.rules = rules;
    firewall.version++;
    firewall.updated = account.clock.now();
    return rulesOf(firewall);
  };
  const rulesOf = (firewall: Firewall): object => ({
    ...firewall.rules,
    version: firewall.version,
    fingerprint: fingerprintOf(firewall.rules),
  });

  const attach = (call: Call): object => {
    const firewall = firewallOf(call);
    const fields = new Fields(call.body);
    const id = fields.whole('id', { required: true });
    const type = fields.oneOf('type', ['linode']);
    if (type === undefined) fields.wrong('type', 'Must be one of linode');
    fields.done();
    const instance = account.instances.get(id!);
    if (!instance) throw badRequest('Invalid Linode', 'id');
    instance.firewalls.add(firewall.id);
    machines.touch(instance);
    return devicesOf(firewall).find((device) => (device as { id: number }).id === id)!;
  };

  const detach = (call: Call): object => {
    const instance = account.instances.get(idOf(call, 'device'));
    if (!instance?.firewalls.delete(firewallOf(call).id)) throw notFound();
    machines.touch(instance);
    return {};
  };

  return [
    { method: 'GET', path: '/networking/firewalls', handle: (call) => page(call, all()) },
    { method: 'POST', path: '/networking/firewalls', handle: create },
    { method: 'GET', path: '/networking/firewalls/:firewall', handle: (call) => view(firewallOf(call)) },
    { method: 'PUT', path: '/networking/firewalls/:firewall', handle: update },
    { method: 'DELETE', path: '/networking/firewalls/:firewall', handle: remove },
    { method: 'GET', path: '/networking/firewalls/:firewall/rules', handle: (call) => rulesOf(firewallOf(call)) },
    { method: 'PUT', path: '/networking/firewalls/:firewall/rules', handle: updateRules },
    {
      method: 'GET',
      path: '/networking/firewalls/:firewall/devices',
      handle: (call) => page(call, devicesOf(firewallOf(call))),
    },
    { method: 'POST', path: '/networking/firewalls/:firewall/devices', handle: attach },
    { method: 'DELETE', path: '/networking/firewalls/:firewall/devices/:device', handle: detach },
    ...reservedRoutes(account),
  ];
}

function reservedRoutes(account: Account): Route[] {
  const addressOf = (call: Call) => found(account.reserved.get(call.params['address']!));
  return [
    {
      method: 'GET',
      path: '/networking/reserved/ips',
      handle: (call) =>
        page(
          call,
          [...account.reserved.values()].map((each) => reservedView(account, each)),
        ),
    },
    {
      method: 'POST',
      path: '/networking/reserved/ips',
      handle: (call) => {
        const fields = new Fields(call.body);
        const name = fields.text('region', { required: true });
        const tags = fields.tags() ?? [];
        const region = name === undefined ? undefined : regionNamed(name);
        if (name !== undefined && !region) fields.wrong('region', 'Region is not valid');
        fields.done();
        const address = { address: account.address().ipv4, region: region!, tags };
        account.reserved.set(address.address, address);
        return reservedView(account, address);
      },
    },
    {
      method: 'GET',
      path: '/networking/reserved/ips/:address',
      handle: (call) => reservedView(account, addressOf(call)),
    },
    {
      method: 'DELETE',
      path: '/networking/reserved/ips/:address',
      handle: (call) => {
        account.reserved.delete(addressOf(call).address);
        return {};
      },
    },
  ];
}
