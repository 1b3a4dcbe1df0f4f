// SPDX-License-Identifier: Apache-2.0
// Instance mode: plain Linodes that join a cluster of your own. A Linode's label follows from its NodeClaim and Linode takes
// a label once, so no retry and no race can make a second one.
import { labels as wellKnown } from '../../api/labels.ts';
import type { LinodeNodeClass, LinodeNodeClassSpec } from '../../api/linode-node-class.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import { unregisteredTaint } from '../../api/taints.ts';
import type { Clock } from '../../base/clock.ts';
import { planted } from '../../base/defects.ts';
import { findCause, messageOf } from '../../base/errors.ts';
import type { Random } from '../../base/random.ts';
import { CreateError, InsufficientCapacityError, NodeClaimNotFoundError } from '../../cloud/errors.ts';
import type { InstanceType } from '../../cloud/provider.ts';
import type { KubeClient } from '../../kube/client.ts';
import { kinds } from '../../kube/kinds.ts';
import type { Logger } from '../../runtime/logging.ts';
import type { Account } from './account.ts';
import { isGone, isLabelTaken, isTemporary, LinodeApiError, shortageOf } from './api-errors.ts';
import type { LinodeInstance } from './api-types.ts';
import { ClusterInfoError, type ClusterInfoReader } from './bootstrap/cluster-info.ts';
import type { BootstrapTokens } from './bootstrap/tokens.ts';
import { renderUserData, UserDataError } from './bootstrap/user-data.ts';
import type { LinodeClient } from './client.ts';
import { driftReasons, linodeDrift } from './drift.ts';
import { Firewalls } from './firewalls.ts';
import { furnish, needsFurnishing } from './furnish.ts';
import { nodeLabels } from './lke.ts';
import { changedTags, type Launch, type Machine, type Machines, type Planner, type TagChange } from './machines.ts';
import {
  bareUid,
  fullUid,
  linodeGroup,
  linodeIdOf,
  machineLabel,
  ownedTag,
  providerIdOf,
  tagKeys,
  tagOf,
  tagValue,
  wholeTagValue,
} from './names.ts';
import { nodeClassHash } from './node-class.ts';
import type { LinodeConfiguration } from './settings.ts';
import { KeyedLock, sharedAfter, waitFor } from './shared-call.ts';
import type { UnavailablePlans } from './unavailable.ts';

export interface InstanceMachinesOptions {
  readonly client: LinodeClient;
  readonly account: Account;
  readonly unavailable: UnavailablePlans;
  readonly configuration: Pick<LinodeConfiguration, 'clusterName'>;
  /** Where machines join. */
  readonly workload: KubeClient;
  readonly clusterInfo: ClusterInfoReader;
  readonly tokens: BootstrapTokens;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** The image of machines, unless told. */
export const usualImage = 'linode/ubuntu22.04';
const hashTag = `${linodeGroup}/hash`;
/** How long the API's lists may lag behind what it has answered to us. */
const lagMs = 60_000;

export class InstanceMachines implements Machines {
  readonly #options: InstanceMachinesOptions;
  readonly #lock = new KeyedLock();
  readonly #list: () => Promise<readonly LinodeInstance[]>;
  readonly #signal = new AbortController().signal;
  /** What we made and when, until lists have it. */
  readonly #made = new Map<number, { readonly linode: LinodeInstance; readonly at: number }>();
  readonly #firewalls: Firewalls;
  #clusterTag: string | undefined;

  constructor(options: InstanceMachinesOptions) {
    this.#options = options;
    this.#firewalls = new Firewalls(options.client, options.clock);
    this.#list = sharedAfter(() => this.#read());
  }

  create(claim: NodeClaim, planner: Planner, signal: AbortSignal): Promise<Machine> {
    return this.#lock.hold(claim.metadata.uid ?? '', async () => {
      signal.throwIfAborted();
      const uid = claim.metadata.uid ?? '';
      const before = (await waitFor(this.#list(), signal)).find(({ tags }) => uidOf(tags) === uid);
      const linode = before ?? (await this.#launch(claim, await planner.plan(), signal));
      const spec = planner.nodeClass?.spec ?? {};
      if (needsFurnishing(spec)) {
        await furnish(this.#options.client, linode, spec, signal).catch((error: unknown) => {
          throw asCreateError(error);
        });
      }
      return machineOf(linode);
    });
  }

  async #launch(claim: NodeClaim, { nodeClass, choices }: Launch, signal: AbortSignal): Promise<LinodeInstance> {
    const { unavailable, log } = this.#options;
    const refused: string[] = [];
    for (const type of choices) {
      signal.throwIfAborted();
      try {
        return await this.#post(claim, nodeClass, type, signal);
      } catch (error) {
        const shortage = shortageOf(error);
        if (shortage === 'limit') {
          unavailable.markAll();
          throw new InsufficientCapacityError(`Linode allows no more: ${messageOf(error)}`, { cause: error });
        }
        if (shortage === undefined) throw asCreateError(error);
        unavailable.mark(type.name);
        log.info('a plan is sold out', { 'instance-type': type.name, error: messageOf(error) });
        refused.push(type.name);
      }
    }
    throw new InsufficientCapacityError(`sold out: ${refused.join(', ')}`);
  }

  async #post(
    claim: NodeClaim,
    nodeClass: LinodeNodeClass,
    type: InstanceType,
    signal: AbortSignal,
  ): Promise<LinodeInstance> {
    const { client, clock } = this.#options;
    const body = await this.#request(claim, nodeClass, type, signal);
    let linode: LinodeInstance;
    try {
      linode = await client.post<LinodeInstance>('linode/instances', body, signal);
    } catch (error) {
      if (!isLabelTaken(error)) throw error;
      linode = await this.#withLabel(claim, error, signal);
    }
    this.#made.set(linode.id, { linode, at: clock.monotonic() });
    return linode;
  }

  /** The Linode that has the label already: the one of an earlier try, or somebody else's. */
  async #withLabel(claim: NodeClaim, refusal: unknown, signal: AbortSignal): Promise<LinodeInstance> {
    const label = machineLabel(claim.metadata);
    const found = await this.#options.client.list<LinodeInstance>('linode/instances', { filter: { label }, signal });
    const linode = found.find((one) => one.label === label);
    // Lists lag: it will turn up.
    if (!linode) throw refusal;
    if (uidOf(linode.tags) === claim.metadata.uid) return linode;
    const message = `Linode ${linode.id} has the label ${label} and was not made for NodeClaim ${claim.metadata.name}`;
    throw new CreateError(message, { reason: 'LabelTaken', message });
  }

  async #request(
    claim: NodeClaim,
    nodeClass: LinodeNodeClass,
    type: InstanceType,
    signal: AbortSignal,
  ): Promise<object> {
    const spec = nodeClass.spec ?? {};
    const { region } = await this.#options.account.place();
    const { firewallID, placementGroup, diskEncryption, configuration } = spec;
    const swapSize = spec.swapSize ?? spec.swap_size;
    const later = needsFurnishing(spec);
    return {
      label: machineLabel(claim.metadata),
      region: region.id,
      type: type.name,
      image: spec.image ?? usualImage,
      // Nobody is told: keys are how people get in.
      root_pass: `${this.#options.random.uuid()}-Aa1!`,
      tags: await this.#tags(claim, nodeClass, signal),
      metadata: { user_data: Buffer.from(await this.#userData(claim, spec, type, signal)).toString('base64') },
      booted: !later,
      ...(spec.authorizedKeys?.length ? { authorized_keys: spec.authorizedKeys.map((key) => key.trim()) } : {}),
      ...(spec.authorizedUsers?.length ? { authorized_users: spec.authorizedUsers } : {}),
      ...(spec.backupsEnabled === undefined ? {} : { backups_enabled: spec.backupsEnabled }),
      ...(diskEncryption ? { disk_encryption: diskEncryption } : {}),
      ...(swapSize === undefined ? {} : { swap_size: swapSize }),
      ...(configuration?.kernel ? { kernel: configuration.kernel } : {}),
      ...(placementGroup
        ? { placement_group: { id: placementGroup.id, compliant_only: placementGroup.compliant_only ?? false } }
        : {}),
      ...(await this.#network(spec, firewallID, signal)),
    };
  }

  /** In a VPC the address there comes first; without one a machine has a public address and nothing else. */
  async #network(
    spec: LinodeNodeClassSpec,
    firewallID: number | undefined,
    signal: AbortSignal,
  ): Promise<Record<string, unknown>> {
    const firewall = firewallID ? { firewall_id: firewallID } : {};
    if (spec.vpcID === undefined) return firewall;
    const { enableSLAAC, enableRanges, isPublicIPv6 } = spec.ipv6Options ?? {};
    const six = {
      ...(enableSLAAC ? { slaac: [{ range: 'auto' }] } : {}),
      ...(enableRanges ? { ranges: [{ range: 'auto' }] } : {}),
      ...(isPublicIPv6 ? { is_public: true } : {}),
    };
    const address = { address: 'auto', primary: true, ...(spec.publicNetworking ? {} : { nat_1_1_address: 'auto' }) };
    const vpc = {
      ...firewall,
      vpc: {
        subnet_id: await this.#subnet(spec, signal),
        ipv4: { addresses: [address] },
        ...(Object.keys(six).length > 0 ? { ipv6: six } : {}),
      },
    };
    const open = {
      ...firewall,
      default_route: { ipv4: true, ipv6: true },
      public: { ipv4: { addresses: [{ address: 'auto', primary: true }] }, ipv6: {} },
    };
    return { interface_generation: 'linode', interfaces: spec.publicNetworking ? [open, vpc] : [vpc] };
  }

  async #subnet({ vpcID, subnetID }: LinodeNodeClassSpec, signal: AbortSignal): Promise<number> {
    if (subnetID !== undefined) return subnetID;
    const { subnets } = await this.#options.client.get<{ subnets: { id: number }[] }>(`vpcs/${vpcID}`, signal);
    if (subnets.length === 1) return subnets[0]!.id;
    const message = `VPC ${vpcID} has ${subnets.length} subnets: the LinodeNodeClass must name one (subnetID)`;
    throw new CreateError(message, { reason: 'SubnetAmbiguous', message });
  }

  async #userData(
    claim: NodeClaim,
    spec: LinodeNodeClassSpec,
    type: InstanceType,
    signal: AbortSignal,
  ): Promise<string> {
    const { clusterInfo, tokens, account, configuration } = this.#options;
    const cluster = await clusterInfo.read(signal);
    const { region } = await account.place();
    const token = await tokens.mint(claim, spec.bootstrap?.join ?? cluster.distribution, signal);
    const reserved = type.overhead?.kubeReserved ?? {};
    return renderUserData({
      cluster,
      clusterName: configuration.clusterName,
      region: region.id,
      instanceType: type.name,
      token,
      nodeName: machineLabel(claim.metadata),
      labels: nodeLabels(claim),
      taints: [...(claim.spec.taints ?? []), ...(claim.spec.startupTaints ?? []), unregisteredTaint],
      spec,
      kubeReserved: Object.fromEntries(Object.entries(reserved).map(([name, amount]) => [name, String(amount)])),
      maxPods: Number(type.capacity['pods'] ?? 110),
    });
  }

  async #tags(claim: NodeClaim, nodeClass: LinodeNodeClass, signal: AbortSignal): Promise<string[]> {
    const own = [...(await this.#identity(claim, signal)), tagOf(hashTag, nodeClassHash(nodeClass))];
    return [...new Set([...own, ...(nodeClass.spec?.tags ?? [])])].sort();
  }

  /** The tags that say whose machine it is. */
  async #identity(claim: NodeClaim, signal: AbortSignal): Promise<string[]> {
    const { clusterName } = this.#options.configuration;
    const pool = claim.metadata.labels?.[wellKnown.nodePool];
    return [
      await this.#ownTag(signal),
      `${tagKeys.uid}=${bareUid(claim.metadata.uid ?? '')}`,
      tagOf(tagKeys.nodeClaim, claim.metadata.name ?? ''),
      ...(pool === undefined ? [] : [tagOf(tagKeys.nodePool, pool)]),
      tagOf(tagKeys.nodeClass, claim.spec.nodeClassRef.name),
      tagOf(tagKeys.clusterName, clusterName),
      ownedTag(clusterName),
    ];
  }

  /** The tag that only Linodes of this cluster have: clusters of the same name in one account keep apart. */
  async #ownTag(signal: AbortSignal): Promise<string> {
    if (this.#clusterTag === undefined) {
      const { metadata } = await this.#options.workload.resource(kinds.Namespace).get('kube-system', { signal });
      this.#clusterTag = `${tagKeys.cluster}=${bareUid(metadata.uid ?? '')}`;
    }
    return this.#clusterTag;
  }

  async delete(claim: NodeClaim, signal: AbortSignal): Promise<void> {
    const { client, tokens } = this.#options;
    const linode = await this.#find(claim, signal);
    await tokens.revoke(claim, signal);
    if (!linode) throw new NodeClaimNotFoundError(`the Linode of NodeClaim ${claim.metadata.name} is gone`);
    if (linode.status === 'deleting') return;
    try {
      await client.delete(`linode/instances/${linode.id}`, signal);
    } catch (error) {
      if (!isGone(error)) throw error;
    }
  }

  /** The Linode of a NodeClaim: by its id, or by the UID where the id was never written down. */
  async #find(claim: NodeClaim, signal: AbortSignal): Promise<LinodeInstance | undefined> {
    const { uid = '', name } = claim.metadata;
    const providerID = claim.status?.providerID;
    if (providerID) {
      const linode = await this.#own(providerID, signal);
      const of = linode && uidOf(linode.tags);
      return linode && (of === undefined || of === uid) ? linode : undefined;
    }
    const listed = (await waitFor(this.#list(), signal)).find(({ tags }) => uidOf(tags) === uid);
    if (listed) return this.#own(providerIdOf(listed.id), signal);
    this.#options.log.debug('no Linode was made for a nodeclaim', { NodeClaim: { name } });
    return undefined;
  }

  #isOwn({ tags }: LinodeInstance, own: string): boolean {
    return tags.includes(own) || planted('linode-claims-the-account');
  }

  /** The Linode with this id, if it is one of this cluster: by its tag, or by a label that only we give. */
  async #own(providerID: string, signal: AbortSignal, label?: string): Promise<LinodeInstance | undefined> {
    const id = linodeIdOf(providerID);
    if (id === undefined) return undefined;
    try {
      const linode = await this.#options.client.get<LinodeInstance>(`linode/instances/${id}`, signal);
      return linode.label === label || this.#isOwn(linode, await this.#ownTag(signal)) ? linode : undefined;
    } catch (error) {
      if (isGone(error)) return undefined;
      throw error;
    }
  }

  async get(providerID: string, signal: AbortSignal): Promise<Machine> {
    const linode = await this.#own(providerID, signal);
    if (!linode) throw new NodeClaimNotFoundError(`there is no Linode ${providerID} of this cluster`);
    return machineOf(linode);
  }

  async list(signal: AbortSignal): Promise<readonly Machine[]> {
    return (await waitFor(this.#list(), signal)).map(machineOf);
  }

  async #read(): Promise<readonly LinodeInstance[]> {
    const { client, clock } = this.#options;
    const own = await this.#ownTag(this.#signal);
    const filter = planted('linode-claims-the-account') ? {} : { '+and': [{ tags: own }] };
    const startedAt = clock.monotonic();
    const listed = await client.list<LinodeInstance>('linode/instances', { filter, signal: this.#signal });
    // Checked here as well: a filter that is not understood lets everything through.
    const linodes = new Map(listed.filter((linode) => this.#isOwn(linode, own)).map((linode) => [linode.id, linode]));
    for (const [id, { linode, at }] of this.#made) {
      if (linodes.has(id) || startedAt - at > lagMs) this.#made.delete(id);
      else {
        const found = await this.#own(providerIdOf(id), this.#signal);
        if (found) linodes.set(id, { ...linode, ...found });
        else this.#made.delete(id);
      }
    }
    return [...linodes.values()].sort((a, b) => a.id - b.id);
  }

  async drift(claim: NodeClaim, nodeClass: LinodeNodeClass, signal: AbortSignal): Promise<string> {
    const linode = await this.#own(claim.status?.providerID ?? '', signal);
    if (!linode || linode.status === 'deleting') return '';
    const spec = nodeClass.spec ?? {};
    const reason = linodeDrift(linode, claim, { ...spec, image: spec.image ?? usualImage });
    if (reason !== '' || spec.firewallID === undefined) return reason;
    return (await this.#firewalls.of(linode.id, signal)).includes(spec.firewallID) ? '' : driftReasons.firewall;
  }

  async tag(claim: NodeClaim, change: TagChange, signal: AbortSignal): Promise<void> {
    const linode = await this.#own(claim.status?.providerID ?? '', signal, machineLabel(claim.metadata));
    if (!linode) throw new NodeClaimNotFoundError(`there is no machine ${claim.status?.providerID}`);
    // Its own as well: without them nobody would know it for ours.
    const add = [...(await this.#identity(claim, signal)), ...change.add];
    const tags = changedTags(linode.tags, { ...change, add });
    if (tags) await this.#options.client.put(`linode/instances/${linode.id}`, { tags }, signal);
  }

  /** The token has done its work. */
  settle(claim: NodeClaim, signal: AbortSignal): Promise<void> {
    return this.#options.tokens.revoke(claim, signal);
  }
}

function uidOf(tags: readonly string[]): string | undefined {
  return fullUid(tagValue(tags, tagKeys.uid));
}

function machineOf(linode: LinodeInstance): Machine {
  const uid = uidOf(linode.tags);
  const { type, region, image, tags, created, status } = linode;
  const pool = wholeTagValue(tags, tagKeys.nodePool);
  const nodeClass = wholeTagValue(tags, tagKeys.nodeClass);
  return {
    providerID: providerIdOf(linode.id),
    type: type ?? '',
    region,
    ...(image ? { imageID: image } : {}),
    labels: {
      ...(pool === undefined ? {} : { [wellKnown.nodePool]: pool }),
      ...(nodeClass === undefined ? {} : { [`${linodeGroup}/linodenodeclass`]: nodeClass }),
    },
    nodeClassHash: tagValue(tags, hashTag),
    ...(uid === undefined ? {} : { nodeClaim: { name: tagValue(tags, tagKeys.nodeClaim) ?? '', uid } }),
    createdAt: created.endsWith('Z') ? created : `${created}Z`,
    ...(status === 'deleting' ? { deleting: true } : {}),
  };
}

/** A refusal that is the request's or the cluster's own fault is shown on the NodeClaim; the rest is only tried again. */
function asCreateError(error: unknown): unknown {
  const message = messageOf(error);
  if (findCause(error, ClusterInfoError) || findCause(error, UserDataError)) {
    return new CreateError(message, { reason: 'BootstrapFailed', message }, { cause: error });
  }
  if (!(error instanceof LinodeApiError) || isTemporary(error) || error.status === 401) return error;
  return new CreateError(message, { reason: 'InstanceCreationFailed', message }, { cause: error });
}
