// SPDX-License-Identifier: Apache-2.0
// Who is asking: profile, keys, account; and the tags of everything.
import type { Account } from './account.ts';
import { type Call, found, idOf, page } from './exchange.ts';
import { Fields } from './fields.ts';
import type { Machines } from './machines.ts';
import type { SshKey } from './records.ts';
import { badRequest, notFound } from './refusal.ts';
import type { Route } from './router.ts';
import { clusterView, firewallView, instanceView, reservedView, sshKeyView } from './views.ts';

/** The one user of the account. */
export const username = 'karpenter';
const email = 'karpenter@example.com';

/** Recordings have this where a secret was; replayed, it passes for one. */
export const scrubbed = '<scrubbed>';
const keyPattern = /^(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-nistp\d+|sk-[\w@.-]+) [A-Za-z0-9+/=]{20,}/;

export function isSshKey(text: string): boolean {
  return text === scrubbed || keyPattern.test(text.trim());
}

const keyProblem =
  'SSH Key key-type must be one of ssh-dss, ssh-rsa, ecdsa-sha2-nistp, ssh-ed25519, or sk-ecdsa-sha2-nistp256.';

export function profileRoutes(account: Account): Route[] {
  const profile = {
    username,
    email,
    timezone: 'GMT',
    email_notifications: true,
    referrals: { code: '', url: '', total: 0, completed: 0, pending: 0, credit: 0 },
    ip_whitelist_enabled: false,
    lish_auth_method: 'password_keys',
    authorized_keys: null,
    two_factor_auth: false,
    restricted: false,
    authentication_type: 'password',
    uid: 1,
    user_type: 'default',
    verified_phone_number: null,
  };
  const settings = {
    managed: false,
    network_helper: false,
    longview_subscription: null,
    backups_enabled: false,
    object_storage: 'disabled',
    interfaces_for_new_linodes: 'legacy_config_default_but_linode_allowed',
    maintenance_policy: 'linode/migrate',
  };
  return [
    { method: 'GET', path: '/profile', handle: () => profile },
    { method: 'GET', path: '/profile/grants', handle: () => ({}) },
    { method: 'GET', path: '/account', handle: () => accountView(account) },
    { method: 'GET', path: '/account/settings', handle: () => settings },
    {
      method: 'GET',
      path: '/account/users',
      handle: (call) => page(call, [userView(account)]),
    },
    {
      method: 'GET',
      path: '/account/users/:user',
      handle: ({ params }) => found(params['user'] === username ? userView(account) : undefined),
    },
    { method: 'GET', path: '/account/events', handle: (call) => page(call, account.events) },
    ...sshKeyRoutes(account),
  ];
}

function userView(account: Account): object {
  return {
    username,
    email,
    restricted: false,
    ssh_keys: [...account.sshKeys.values()].map(({ label }) => label),
    tfa_enabled: false,
    verified_phone_number: null,
    password_created: null,
    last_login: null,
    user_type: 'default',
  };
}

function accountView(account: Account): object {
  return {
    company: '',
    email,
    first_name: '',
    last_name: '',
    address_1: '',
    address_2: '',
    city: '',
    state: '',
    zip: '',
    country: '',
    phone: '',
    tax_id: '',
    balance: 0,
    balance_uninvoiced: 0,
    billing_source: 'linode',
    credit_card: { last_four: null, expiry: null },
    active_since: account.now(),
    active_promotions: [],
    capabilities: [
      'Linodes',
      'NodeBalancers',
      'Block Storage',
      'Kubernetes',
      'Cloud Firewall',
      'Kubernetes Enterprise',
    ],
    euuid: 'E1AF5EEC-526F-487D-B317EBEB34C87D71',
  };
}

function sshKeyRoutes(account: Account): Route[] {
  const keyOf = (call: Call): SshKey => found(account.sshKeys.get(idOf(call, 'key')));
  const readLabel = (fields: Fields): string | undefined => {
    const label = fields.text('label', { required: true });
    if (label !== undefined && (label.length < 1 || label.length > 64))
      fields.wrong('label', 'Length must be 1-64 characters');
    return label;
  };
  return [
    {
      method: 'GET',
      path: '/profile/sshkeys',
      handle: (call) => page(call, [...account.sshKeys.values()].map(sshKeyView)),
    },
    {
      method: 'POST',
      path: '/profile/sshkeys',
      handle: (call) => {
        const fields = new Fields(call.body);
        const label = readLabel(fields);
        const key = fields.text('ssh_key', { required: true });
        if (key !== undefined && !isSshKey(key)) fields.wrong('ssh_key', keyProblem);
        fields.done();
        const added: SshKey = { id: account.nextId('sshKey'), label: label!, key: key!, created: account.clock.now() };
        account.sshKeys.set(added.id, added);
        return sshKeyView(added);
      },
    },
    { method: 'GET', path: '/profile/sshkeys/:key', handle: (call) => sshKeyView(keyOf(call)) },
    {
      method: 'PUT',
      path: '/profile/sshkeys/:key',
      handle: (call) => {
        const key = keyOf(call);
        const fields = new Fields(call.body);
        const label = readLabel(fields);
        fields.done();
        key.label = label!;
        return sshKeyView(key);
      },
    },
    {
      method: 'DELETE',
      path: '/profile/sshkeys/:key',
      handle: (call) => {
        account.sshKeys.delete(keyOf(call).id);
        return {};
      },
    },
  ];
}

/** What can bear tags, with the type that `GET /tags/TAG` gives it. */
function* tagged(
  account: Account,
  beta: boolean,
): Generator<{ type: string; holder: { tags: string[] }; view: () => object }> {
  for (const holder of account.instances.values()) {
    yield { type: 'linode', holder, view: () => instanceView(account, holder) };
  }
  for (const holder of account.clusters.values()) {
    yield { type: 'kubernetes_cluster', holder, view: () => clusterView(holder, beta) };
  }
  for (const holder of account.firewalls.values()) {
    yield { type: 'firewall', holder, view: () => firewallView(account, holder) };
  }
  for (const holder of account.reserved.values()) {
    yield { type: 'reserved_ipv4_address', holder, view: () => reservedView(account, holder) };
  }
}

export function tagRoutes(account: Account, machines: Machines): Route[] {
  const labels = (): string[] => {
    const all = new Set(account.tags);
    for (const { holder } of tagged(account, true)) for (const tag of holder.tags) all.add(tag);
    return [...all].toSorted();
  };
  const bearers = (call: Call): object[] => {
    const tag = call.params['tag']!;
    if (!labels().includes(tag)) throw notFound();
    return [...tagged(account, call.beta)]
      .filter(({ holder }) => holder.tags.includes(tag))
      .map(({ type, view }) => ({ type, data: view() }));
  };

  const create = (call: Call): object => {
    const fields = new Fields(call.body);
    const label = fields.text('label', { required: true });
    if (label !== undefined && (label.length < 3 || label.length > 50)) {
      fields.wrong('label', 'Length must be 3-50 characters');
    }
    const ids = (fields.list('linodes') ?? []).filter((id) => typeof id === 'number');
    fields.done();
    const instances = ids.map((id) => {
      const instance = account.instances.get(id);
      if (!instance) throw badRequest('Invalid Linode', 'linodes');
      return instance;
    });
    account.tags.add(label!);
    for (const instance of instances) {
      if (instance.tags.includes(label!)) continue;
      instance.tags = [...instance.tags, label!];
      machines.touch(instance);
    }
    return { label };
  };

  const remove = (call: Call): object => {
    const tag = call.params['tag']!;
    if (!labels().includes(tag)) throw notFound();
    account.tags.delete(tag);
    for (const { holder } of tagged(account, true)) holder.tags = holder.tags.filter((each) => each !== tag);
    for (const instance of account.instances.values()) machines.touch(instance);
    return {};
  };

  return [
    {
      method: 'GET',
      path: '/tags',
      handle: (call) =>
        page(
          call,
          labels().map((label) => ({ label })),
        ),
    },
    { method: 'POST', path: '/tags', handle: create },
    { method: 'GET', path: '/tags/:tag', handle: (call) => page(call, bearers(call)) },
    { method: 'DELETE', path: '/tags/:tag', handle: remove },
  ];
}
