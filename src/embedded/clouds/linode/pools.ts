// SPDX-License-Identifier: Apache-2.0
// Node pools of LKE clusters: what they are asked to be, and the nodes that make it so.
import type { Account } from './account.ts';
import { isVersion } from './catalogue.ts';
import { asObject, asText, type Call, found, idOf, type Json, page } from './exchange.ts';
import { Fields } from './fields.ts';
import { readPlan } from './instances.ts';
import type { Machines } from './machines.ts';
import type { Plan } from './plans.ts';
import type { Cluster, Instance, Pool, PoolNode, Taint } from './records.ts';
import { badRequest, notFound } from './refusal.ts';
import type { Route } from './router.ts';
import { nodeView, poolView } from './views.ts';

const mostNodes = { standard: 100, enterprise: 500 };
const reserved = /(?:^|\.)(?:kubernetes\.io|linode\.com)$/;
const keyName = /^[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?$/;
const labelValue = /^(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?$/;
const effects = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

/** What is wrong with the key of a label or a taint; undefined when nothing is. */
function keyProblem(key: string): string | undefined {
  const [name = '', prefix] = key.split('/').toReversed();
  if (key.split('/').length > 2 || key.length > 253 || !keyName.test(name)) return `Invalid key: ${key}`;
  if (prefix !== undefined && !/^[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?$/.test(prefix)) return `Invalid key: ${key}`;
  if (prefix !== undefined && reserved.test(prefix)) return `The domain of ${key} is reserved for LKE`;
  return undefined;
}

function readLabels(fields: Fields): Record<string, string> | undefined {
  const labels = fields.object('labels');
  if (!labels) return undefined;
  for (const [key, value] of Object.entries(labels)) {
    const problem = keyProblem(key);
    if (problem) fields.wrong('labels', problem);
    else if (typeof value !== 'string' || !labelValue.test(value)) fields.wrong('labels', `Invalid value for ${key}`);
  }
  return { ...(labels as Record<string, string>) };
}

function readTaints(fields: Fields): Taint[] | undefined {
  return fields.list('taints')?.map((entry, index) => {
    const { key, value, effect } = asObject(entry);
    const problem = typeof key === 'string' ? keyProblem(key) : 'key is required';
    if (problem) fields.wrong(`taints[${index}].key`, problem);
    if (!effects.includes(asText(effect)))
      fields.wrong(`taints[${index}].effect`, `Must be one of ${effects.join(', ')}`);
    return {
      key: asText(key),
      ...(typeof value === 'string' ? { value } : {}),
      effect: asText(effect),
    };
  });
}

function readAutoscaler(fields: Fields, count: number, most: number): Pool['autoscaler'] | undefined {
  const wanted = fields.object('autoscaler');
  if (!wanted) return undefined;
  const inner = new Fields(wanted);
  const enabled = inner.flag('enabled') ?? false;
  const [min, max] = [inner.whole('min') ?? count, inner.whole('max') ?? count];
  if (min < 1 || min > most) fields.wrong('autoscaler.min', `Must be 1-${most}`);
  if (max < min || max > most) fields.wrong('autoscaler.max', `Must be ${min}-${most}`);
  return { enabled, min, max };
}

/** What a body says of a pool, new or not. */
function readShared(account: Account, fields: Fields, cluster: Cluster) {
  const enterprise = cluster.tier === 'enterprise';
  const version = fields.text('k8s_version');
  if (version !== undefined) {
    if (!enterprise) fields.wrong('k8s_version', 'k8s_version is only available for enterprise clusters');
    else if (!isVersion('enterprise', version)) fields.wrong('k8s_version', 'k8s_version is not valid');
    else if (version > cluster.version) fields.wrong('k8s_version', 'k8s_version is newer than the control plane');
  }
  const updateStrategy = fields.oneOf('update_strategy', ['rolling_update', 'on_recycle']);
  if (updateStrategy !== undefined && !enterprise) {
    fields.wrong('update_strategy', 'update_strategy is only available for enterprise clusters');
  }
  const firewallId = fields.whole('firewall_id');
  if (firewallId !== undefined && firewallId !== 0 && !account.firewalls.has(firewallId)) {
    fields.wrong('firewall_id', 'Invalid Firewall');
  }
  return {
    label: fields.text('label'),
    tags: fields.tags(),
    labels: readLabels(fields),
    taints: readTaints(fields),
    version,
    updateStrategy,
    firewallId,
    isolation: fields.object('isolation'),
  };
}

/** Checks an order for a pool without placing it. */
export function checkPool(
  account: Account,
  cluster: Pick<Cluster, 'tier' | 'version' | 'region'>,
  body: Json,
  at = '',
): void {
  const fields = new Fields(body);
  readNew(account, fields, cluster as Cluster);
  try {
    fields.done();
  } catch (error) {
    throw at === '' ? error : prefixed(error, at);
  }
}

function prefixed(error: unknown, at: string): unknown {
  const { problems } = error as { problems?: readonly { reason: string; field?: string }[] };
  const [first] = problems ?? [];
  return first ? badRequest(first.reason, `${at}.${first.field}`) : error;
}

function readNew(account: Account, fields: Fields, cluster: Cluster) {
  const most = mostNodes[cluster.tier];
  const plan = readPlan(fields);
  if (plan?.class === 'nanode') fields.wrong('type', `${plan.id} is not supported by LKE`);
  const count = fields.whole('count', { required: true, min: 1, max: most }) ?? 0;
  const shared = readShared(account, fields, cluster);
  const autoscaler = readAutoscaler(fields, count, most) ?? { enabled: false, min: count, max: count };
  const diskEncryption = fields.oneOf('disk_encryption', ['enabled', 'disabled']);
  const disks = (fields.list('disks') ?? []) as readonly object[];
  return { plan, count, autoscaler, diskEncryption, disks, ...shared };
}

/** The pools of all clusters. */
export class Pools {
  readonly #account: Account;
  readonly #machines: Machines;

  constructor(account: Account, machines: Machines) {
    this.#account = account;
    this.#machines = machines;
    machines.onRunning = (instance) => this.#running(instance);
    machines.onGone = (instance) => this.#gone(instance);
  }

  of(cluster: Cluster): Pool[] {
    return [...this.#account.pools.values()].filter(({ clusterId }) => clusterId === cluster.id);
  }

  /** Makes the pool that a body asks for. Throws a Refusal. */
  create(cluster: Cluster, body: Json): Pool {
    const account = this.#account;
    const fields = new Fields(body);
    const wanted = readNew(account, fields, cluster);
    fields.done();
    if (this.of(cluster).length >= account.maxPoolsPerCluster) {
      throw badRequest(`Cluster has reached its limit of ${account.maxPoolsPerCluster} node pools`);
    }
    const enterprise = cluster.tier === 'enterprise';
    this.#order(wanted.plan!, cluster, wanted.count, 'type');
    const pool: Pool = {
      id: account.nextId('pool'),
      clusterId: cluster.id,
      plan: wanted.plan!,
      label: wanted.label ?? '',
      count: wanted.count,
      nodes: [],
      disks: wanted.disks,
      autoscaler: wanted.autoscaler,
      labels: wanted.labels ?? {},
      taints: wanted.taints ?? [],
      tags: wanted.tags ?? [],
      diskEncryption: wanted.diskEncryption ?? (enterprise ? 'disabled' : 'enabled'),
      firewallId: wanted.firewallId ? wanted.firewallId : null,
      ...(enterprise
        ? { version: wanted.version ?? cluster.version, updateStrategy: wanted.updateStrategy ?? 'on_recycle' }
        : {}),
      ...(enterprise && wanted.isolation ? { isolation: wanted.isolation } : {}),
    };
    account.pools.set(pool.id, pool);
    this.#grow(pool, cluster);
    this.#touch(pool, cluster, 'created');
    return pool;
  }

  update(cluster: Cluster, pool: Pool, body: Json): void {
    const account = this.#account;
    const fields = new Fields(body);
    const most = mostNodes[cluster.tier];
    const count = fields.whole('count', { min: 1, max: most });
    const wanted = readShared(account, fields, cluster);
    const autoscaler = readAutoscaler(fields, count ?? pool.count, most);
    fields.done();
    if (count !== undefined && count > pool.count) this.#order(pool.plan, cluster, count - pool.count);
    if (count !== undefined) {
      pool.count = count;
      if (!pool.autoscaler.enabled) pool.autoscaler = { enabled: false, min: count, max: count };
    }
    if (autoscaler) pool.autoscaler = autoscaler;
    if (wanted.label !== undefined) pool.label = wanted.label;
    if (wanted.tags) pool.tags = wanted.tags;
    if (wanted.labels) pool.labels = wanted.labels;
    if (wanted.taints) pool.taints = wanted.taints;
    if (wanted.version !== undefined) pool.version = wanted.version;
    if (wanted.updateStrategy !== undefined) pool.updateStrategy = wanted.updateStrategy;
    if (wanted.firewallId !== undefined) pool.firewallId = wanted.firewallId === 0 ? null : wanted.firewallId;
    while (pool.nodes.length > pool.count) this.#drop(pool, pool.nodes.at(-1)!);
    this.#grow(pool, cluster);
    this.#touch(pool, cluster);
  }

  delete(pool: Pool): void {
    const account = this.#account;
    // Out of the account first: nobody replaces its nodes.
    account.pools.delete(pool.id);
    for (const node of pool.nodes.slice()) this.#drop(pool, node);
    account.history.pools.note(pool.id, undefined);
    account.changed({ kind: 'deleted', what: 'pool', id: pool.id });
  }

  /** The pool gets smaller by this node. */
  deleteNode(cluster: Cluster, pool: Pool, node: PoolNode): void {
    if (pool.count <= 1) throw badRequest('Cannot delete the only node of a pool; delete the pool');
    pool.count--;
    if (!pool.autoscaler.enabled) pool.autoscaler = { enabled: false, min: pool.count, max: pool.count };
    this.#drop(pool, node);
    this.#touch(pool, cluster);
  }

  /** A new Linode takes the place of each node. */
  recycle(cluster: Cluster, pool: Pool, nodes: readonly PoolNode[]): void {
    for (const node of nodes.slice()) {
      this.#drop(pool, node);
      this.#takeAnother(pool, cluster);
    }
    this.#touch(pool, cluster);
  }

  /** Capacity, and room in the account. */
  #order(plan: Plan, cluster: Cluster, count: number, field?: string): void {
    const account = this.#account;
    if (account.instances.size + count > account.maxInstances) {
      throw badRequest('Account Limit reached. Please open a support ticket.');
    }
    account.capacity.take(plan, cluster.region, count, field);
  }

  #grow(pool: Pool, cluster: Cluster): void {
    while (pool.nodes.length < pool.count) this.#add(pool, cluster);
  }

  /** Replacements are bought as anything else, and wait where there is nothing to buy. */
  #takeAnother(pool: Pool, cluster: Cluster): void {
    try {
      this.#order(pool.plan, cluster, 1);
    } catch {
      this.#account.later(this.#account.delays.replaceMs, () => this.#replace(pool));
      return;
    }
    this.#add(pool, cluster);
  }

  #add(pool: Pool, cluster: Cluster): void {
    const account = this.#account;
    const node: PoolNode = {
      id: `${pool.id}-${account.hex(8)}0000`,
      instanceId: null,
      status: 'not_ready',
      listed: cluster.tier === 'standard',
    };
    pool.nodes.push(node);
    account.later(account.delays.assignMs, () => this.#assign(pool, cluster, node));
    if (!node.listed) {
      account.later(account.delays.listMs, () => {
        node.listed = true;
        this.#touch(pool, cluster);
      });
    }
  }

  #assign(pool: Pool, cluster: Cluster, node: PoolNode): void {
    const account = this.#account;
    if (!pool.nodes.includes(node)) return;
    if (account.capacity.stalls(pool.plan.id, cluster.region.id)) {
      account.later(account.delays.replaceMs, () => this.#assign(pool, cluster, node));
      return;
    }
    // Only the enterprise tier hands the pool's tags down.
    const tags =
      cluster.tier === 'enterprise' ? [...new Set([...pool.tags, `nodepool=${pool.id}`, `lke${cluster.id}`])] : [];
    const instance = this.#machines.launch({
      label: `lke${cluster.id}-${node.id}`,
      region: cluster.region,
      plan: pool.plan,
      image: null,
      tags,
      boot: true,
      diskEncryption: pool.diskEncryption,
      lke: { clusterId: cluster.id, poolId: pool.id, nodeId: node.id },
      privateAddress: true,
      maintenancePolicy: 'linode/power_off_on',
      ...(pool.firewallId === null ? {} : { firewalls: [pool.firewallId] }),
    });
    node.instanceId = instance.id;
    this.#touch(pool, cluster);
  }

  #drop(pool: Pool, node: PoolNode): void {
    const account = this.#account;
    pool.nodes.splice(pool.nodes.indexOf(node), 1);
    const instance = node.instanceId === null ? undefined : account.instances.get(node.instanceId);
    if (instance) this.#machines.delete(instance);
    else if (account.clusters.has(pool.clusterId)) {
      account.capacity.giveBack(pool.plan.id, account.clusters.get(pool.clusterId)!.region.id);
    }
  }

  #running({ id, lke }: Instance): void {
    const account = this.#account;
    const pool = lke && account.pools.get(lke.poolId);
    const cluster = lke && account.clusters.get(lke.clusterId);
    const node = pool?.nodes.find(({ instanceId }) => instanceId === id);
    if (!pool || !cluster || !node) return;
    account.later(account.delays.readyMs, () => {
      node.status = 'ready';
      this.#touch(pool, cluster);
    });
  }

  /** Somebody deleted a Linode of a pool: LKE makes another one. */
  #gone({ id, lke }: Instance): void {
    const account = this.#account;
    const pool = lke && account.pools.get(lke.poolId);
    const node = pool?.nodes.find(({ instanceId }) => instanceId === id);
    if (!pool || !node) return;
    pool.nodes.splice(pool.nodes.indexOf(node), 1);
    account.later(account.delays.replaceMs, () => this.#replace(pool));
  }

  #replace(pool: Pool): void {
    const cluster = this.#account.clusters.get(pool.clusterId);
    if (!cluster || !this.#account.pools.has(pool.id) || pool.nodes.length >= pool.count) return;
    this.#takeAnother(pool, cluster);
    this.#touch(pool, cluster);
  }

  #touch(pool: Pool, cluster: Cluster, kind: 'created' | 'updated' = 'updated'): void {
    if (!this.#account.pools.has(pool.id)) return;
    this.#account.history.pools.note(pool.id, listed(pool, cluster));
    this.#account.changed({ kind, what: 'pool', id: pool.id });
  }
}

/** A pool as lists remember it. */
interface Listed {
  readonly clusterId: number;
  readonly view: object;
}

const listed = (pool: Pool, cluster: Cluster): Listed => ({
  clusterId: cluster.id,
  view: poolView(pool, cluster.tier),
});

export function poolRoutes(account: Account, pools: Pools, clusterOf: (call: Call) => Cluster): Route[] {
  const base = '/lke/clusters/:cluster';
  const poolOf = (call: Call): Pool => {
    const pool = account.pools.get(idOf(call, 'pool'));
    return found(pool?.clusterId === clusterOf(call).id ? pool : undefined);
  };
  const nodeOf = (call: Call): { pool: Pool; node: PoolNode } => {
    for (const pool of pools.of(clusterOf(call))) {
      const node = pool.nodes.find(({ id, listed }) => listed && id === call.params['node']);
      if (node) return { pool, node };
    }
    throw notFound();
  };
  const list = (call: Call): object[] => {
    const cluster = clusterOf(call);
    const current = (): Listed[] => pools.of(cluster).map((pool) => listed(pool, cluster));
    return (account.history.pools.list(current) as Listed[])
      .filter(({ clusterId }) => clusterId === cluster.id)
      .map(({ view }) => view);
  };
  return [
    { method: 'GET', path: `${base}/pools`, handle: (call) => page(call, list(call)) },
    {
      method: 'POST',
      path: `${base}/pools`,
      handle: (call) => poolView(pools.create(clusterOf(call), call.body), clusterOf(call).tier),
    },
    { method: 'GET', path: `${base}/pools/:pool`, handle: (call) => poolView(poolOf(call), clusterOf(call).tier) },
    {
      method: 'PUT',
      path: `${base}/pools/:pool`,
      handle: (call) => {
        const [cluster, pool] = [clusterOf(call), poolOf(call)];
        pools.update(cluster, pool, call.body);
        return poolView(pool, cluster.tier);
      },
    },
    {
      method: 'DELETE',
      path: `${base}/pools/:pool`,
      handle: (call) => {
        pools.delete(poolOf(call));
        return {};
      },
    },
    {
      method: 'POST',
      path: `${base}/pools/:pool/recycle`,
      handle: (call) => {
        const pool = poolOf(call);
        pools.recycle(clusterOf(call), pool, pool.nodes);
        return {};
      },
    },
    { method: 'GET', path: `${base}/nodes/:node`, handle: (call) => nodeView(nodeOf(call).node) },
    {
      method: 'DELETE',
      path: `${base}/nodes/:node`,
      handle: (call) => {
        const { pool, node } = nodeOf(call);
        pools.deleteNode(clusterOf(call), pool, node);
        return {};
      },
    },
    {
      method: 'POST',
      path: `${base}/nodes/:node/recycle`,
      handle: (call) => {
        const { pool, node } = nodeOf(call);
        pools.recycle(clusterOf(call), pool, [node]);
        return {};
      },
    },
  ];
}
