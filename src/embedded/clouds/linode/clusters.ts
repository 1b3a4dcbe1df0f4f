// SPDX-License-Identifier: Apache-2.0
// `lke/clusters`: clusters of both tiers, and what belongs to their control planes.
import type { Account } from './account.ts';
import { isVersion } from './catalogue.ts';
import { asObject, type Call, found, idOf, type Json, page } from './exchange.ts';
import { Fields, labelProblem } from './fields.ts';
import { readRegion } from './instances.ts';
import { checkPool, type Pools, poolRoutes } from './pools.ts';
import type { Cluster } from './records.ts';
import { Refusal } from './refusal.ts';
import { offers } from './regions.ts';
import type { Route } from './router.ts';
import { clusterView } from './views.ts';

export interface ClusterOptions {
  /** The kubeconfig of a cluster, as text; one that leads nowhere unless told. */
  readonly kubeconfig?: (cluster: { readonly id: number; readonly label: string }) => string;
}

function readLabel(fields: Fields, required: boolean): string | undefined {
  const label = fields.text('label', { required });
  const problem = label === undefined ? undefined : labelProblem(label, { min: 1, max: 63 });
  if (problem) fields.wrong('label', problem);
  return label;
}

interface Acl {
  readonly enabled?: boolean;
  readonly 'revision-id'?: string;
  readonly addresses?: { readonly ipv4?: readonly string[] | null; readonly ipv6?: readonly string[] | null } | null;
}

/** Single addresses become ranges of one. */
function aclOf(account: Account, wanted: Acl | undefined): Cluster['acl'] {
  if (!wanted?.enabled) return { enabled: false, ipv4: [], ipv6: [] };
  const range = (length: number) => (address: string) => (address.includes('/') ? address : `${address}/${length}`);
  return {
    enabled: true,
    revision: wanted['revision-id'] ?? account.hex(32),
    ipv4: (wanted.addresses?.ipv4 ?? []).map(range(32)),
    ipv6: (wanted.addresses?.ipv6 ?? []).map(range(128)),
  };
}

const aclView = ({ enabled, revision, ipv4, ipv6 }: Cluster['acl']): object => ({
  acl: { enabled, ...(revision === undefined ? {} : { 'revision-id': revision }), addresses: { ipv4, ipv6 } },
});

function notYet(what: string): Refusal {
  return new Refusal(503, [{ reason: `Cluster ${what} not yet available. Please try again later.` }]);
}

function readCluster(account: Account, body: Json): { cluster: Cluster; pools: readonly Json[] } {
  const fields = new Fields(body);
  const label = readLabel(fields, true);
  const region = readRegion(fields);
  const tier = fields.oneOf('tier', ['standard', 'enterprise']) ?? 'standard';
  const version = fields.text('k8s_version', { required: true });
  if (version !== undefined && !isVersion(tier, version)) fields.wrong('k8s_version', 'k8s_version is not valid');
  const capability = tier === 'enterprise' ? 'Kubernetes Enterprise' : 'Kubernetes';
  if (region && !offers(region, capability)) fields.wrong('region', `${capability} is not available in this region`);
  const pools = (fields.list('node_pools') ?? []).map(asObject);
  if (pools.length === 0 && tier === 'standard') fields.wrong('node_pools', 'node_pools is required');
  const control = fields.object('control_plane') ?? {};
  const tags = fields.tags() ?? [];
  const vpcId = fields.whole('vpc_id');
  const subnetId = fields.whole('subnet_id');
  const stackType = fields.oneOf('stack_type', ['ipv4', 'ipv4-ipv6']) ?? 'ipv4';
  const aplEnabled = fields.flag('apl_enabled') ?? false;
  fields.done();
  const now = account.clock.now();
  const cluster: Cluster = {
    id: account.nextId('cluster'),
    label: label!,
    region: region!,
    version: version!,
    tier,
    tags,
    highAvailability: tier === 'enterprise' || control['high_availability'] === true,
    auditLogs: control['audit_logs_enabled'] === true,
    aplEnabled,
    vpcId: vpcId ?? null,
    subnetId: subnetId ?? null,
    stackType,
    acl: aclOf(account, control['acl'] as Acl | undefined),
    created: now,
    updated: now,
    readyAt: now + account.delays.kubeconfigMs,
    endpoint: `https://${account.random.uuid()}.${region!.id}-1-gw.linodelke.net`,
  };
  pools.forEach((pool, index) => checkPool(account, cluster, pool, `node_pools[${index}]`));
  return { cluster, pools };
}

export function clusterRoutes(account: Account, pools: Pools, options: ClusterOptions): Route[] {
  const clusterOf = (call: Call): Cluster => found(account.clusters.get(idOf(call, 'cluster')));
  const view = (call: Call, cluster: Cluster): object => clusterView(cluster, call.beta);
  const ready = (call: Call, what: string): Cluster => {
    const cluster = clusterOf(call);
    if (account.clock.now() < cluster.readyAt) throw notYet(what);
    return cluster;
  };

  const create = (call: Call): object => {
    const { cluster, pools: wanted } = readCluster(account, call.body);
    account.clusters.set(cluster.id, cluster);
    const made: number[] = [];
    try {
      for (const body of wanted) made.push(pools.create(cluster, body).id);
    } catch (error) {
      for (const id of made) pools.delete(account.pools.get(id)!);
      account.clusters.delete(cluster.id);
      throw error;
    }
    account.changed({ kind: 'created', what: 'cluster', id: cluster.id });
    return view(call, cluster);
  };

  const update = (call: Call): object => {
    const cluster = clusterOf(call);
    const fields = new Fields(call.body);
    const label = readLabel(fields, false);
    const version = fields.text('k8s_version');
    if (version !== undefined && !isVersion(cluster.tier, version))
      fields.wrong('k8s_version', 'k8s_version is not valid');
    else if (version !== undefined && older(version, cluster.version)) {
      fields.wrong('k8s_version', 'Cannot downgrade k8s_version');
    }
    const tags = fields.tags();
    const control = fields.object('control_plane');
    fields.done();
    if (label !== undefined) cluster.label = label;
    if (version !== undefined) cluster.version = version;
    if (tags !== undefined) cluster.tags = tags;
    if (control?.['high_availability'] === true) cluster.highAvailability = true;
    if (typeof control?.['audit_logs_enabled'] === 'boolean') cluster.auditLogs = control['audit_logs_enabled'];
    if (control?.['acl']) cluster.acl = aclOf(account, control['acl'] as Acl);
    cluster.updated = account.clock.now();
    account.changed({ kind: 'updated', what: 'cluster', id: cluster.id });
    return view(call, cluster);
  };

  const remove = (call: Call): object => {
    const cluster = clusterOf(call);
    for (const pool of pools.of(cluster)) pools.delete(pool);
    account.clusters.delete(cluster.id);
    account.changed({ kind: 'deleted', what: 'cluster', id: cluster.id });
    return {};
  };

  const recycle = (call: Call): object => {
    const cluster = clusterOf(call);
    for (const pool of pools.of(cluster)) pools.recycle(cluster, pool, pool.nodes);
    return {};
  };

  const base = '/lke/clusters/:cluster';
  return [
    {
      method: 'GET',
      path: '/lke/clusters',
      handle: (call) =>
        page(
          call,
          [...account.clusters.values()].map((cluster) => view(call, cluster)),
        ),
    },
    { method: 'POST', path: '/lke/clusters', handle: create },
    { method: 'GET', path: base, handle: (call) => view(call, clusterOf(call)) },
    { method: 'PUT', path: base, handle: update },
    { method: 'DELETE', path: base, handle: remove },
    { method: 'POST', path: `${base}/recycle`, handle: recycle },
    { method: 'POST', path: `${base}/regenerate`, handle: (call) => view(call, clusterOf(call)) },
    {
      method: 'GET',
      path: `${base}/kubeconfig`,
      handle: (call) => {
        const cluster = ready(call, 'kubeconfig is');
        const text = (options.kubeconfig ?? emptyKubeconfig)(cluster);
        return { kubeconfig: Buffer.from(text).toString('base64') };
      },
    },
    { method: 'DELETE', path: `${base}/kubeconfig`, handle: (call) => (clusterOf(call), {}) },
    { method: 'DELETE', path: `${base}/servicetoken`, handle: (call) => (clusterOf(call), {}) },
    {
      method: 'GET',
      path: `${base}/api-endpoints`,
      handle: (call) => {
        const { endpoint } = ready(call, 'API Endpoints are');
        return page(call, [{ endpoint: `${endpoint}:443` }, { endpoint: `${endpoint}:6443` }]);
      },
    },
    {
      method: 'GET',
      path: `${base}/dashboard`,
      handle: (call) => ({ url: ready(call, 'dashboard is').endpoint.replace('https://', 'https://dashboard.') }),
    },
    { method: 'GET', path: `${base}/control_plane_acl`, handle: (call) => aclView(clusterOf(call).acl) },
    {
      method: 'PUT',
      path: `${base}/control_plane_acl`,
      handle: (call) => {
        const cluster = clusterOf(call);
        cluster.acl = aclOf(account, call.body['acl'] as Acl | undefined);
        return aclView(cluster.acl);
      },
    },
    {
      method: 'DELETE',
      path: `${base}/control_plane_acl`,
      handle: (call) => {
        clusterOf(call).acl = aclOf(account, undefined);
        return {};
      },
    },
    ...poolRoutes(account, pools, clusterOf),
  ];
}

/** `1.9` is older than `1.10`. */
function older(one: string, other: string): boolean {
  const numbers = (text: string): number[] => (text.match(/\d+/g) ?? []).map(Number);
  const [a, b] = [numbers(one), numbers(other)];
  const at = a.findIndex((part, index) => part !== b[index]);
  return at >= 0 && a[at]! < (b[at] ?? 0);
}

function emptyKubeconfig({ label }: { readonly label: string }): string {
  const config = { apiVersion: 'v1', kind: 'Config', clusters: [], users: [], contexts: [], 'current-context': label };
  return `${JSON.stringify(config)}\n`;
}
