// SPDX-License-Identifier: Apache-2.0
// Whether machines can be made of a LinodeNodeClass: everything it names is looked up in the account, and whether the
// region can do what it asks. All that is wrong is said at once.

import type { LinodeNodeClass, LinodeNodeClassSpec, LinodeNodeClassStatus } from '../../api/linode-node-class.ts';
import { messageOf } from '../../base/errors.ts';
import { percentEncoded } from '../../base/percent.ts';
import type { Account, Place } from './account.ts';
import { isDenied, isGone } from './api-errors.ts';
import type { Region } from './api-types.ts';
import { ClusterInfoError, type ClusterInfoReader } from './bootstrap/cluster-info.ts';
import { renderUserData, UserDataError } from './bootstrap/user-data.ts';
import type { LinodeClient } from './client.ts';
import { usualImage } from './instances.ts';
import { linodeGroup, tagKeys } from './names.ts';
import { sharedPoolTagKeys } from './shared-pool.ts';

/** One thing that is wrong: a word for programs, a sentence for people. */
export interface Problem {
  readonly reason: string;
  readonly message: string;
}

export interface Verdict {
  readonly problems: readonly Problem[];
  readonly images: NonNullable<LinodeNodeClassStatus['linodeImages']>;
}

export interface ValidatorOptions {
  readonly client: LinodeClient;
  readonly account: Account;
  readonly mode: 'lke' | 'instance';
  /** Whether the account is asked about what a class names. */
  readonly lookUp: boolean;
  /** In Instance mode. */
  readonly clusterInfo?: ClusterInfoReader;
}

/** Tags that mean something to us: a user's tag with one of these keys would be mistaken for ours. */
const ownTagKeys: readonly string[] = [...Object.values(tagKeys), `${linodeGroup}/hash`, ...sharedPoolTagKeys];
const ownTagPrefix = 'kubernetes.io/cluster/';
/** By these LKE Enterprise says which pool and cluster a Linode belongs to. */
const lkeTag = /^(?:nodepool(?:=|$)|lke\d+$)/;

export class Validator {
  readonly #options: ValidatorOptions;

  constructor(options: ValidatorOptions) {
    this.#options = options;
  }

  /** Throws what the API threw when it could not be asked: then nothing is known. */
  async check({ spec = {} }: LinodeNodeClass, signal: AbortSignal): Promise<Verdict> {
    const { account, mode, lookUp } = this.#options;
    const place = await account.place();
    const problems = [...tagProblems(spec), ...(mode === 'lke' ? versionProblems(spec, place) : ownProblems(spec))];
    let images: Verdict['images'] = [];
    if (lookUp) {
      const { region } = place;
      problems.push(...(await this.#firewall(spec, signal)));
      if (mode === 'instance') {
        const image = await this.#image(spec, signal);
        images = image.images;
        problems.push(
          ...image.problems,
          ...regionProblems(spec, region),
          ...(await this.#vpc(spec, region, signal)),
          ...(await this.#placementGroup(spec, region, signal)),
          ...(await this.#kernel(spec, signal)),
          ...(await this.#users(spec, signal)),
        );
      }
    }
    if (mode === 'instance') problems.push(...(await this.#bootstrap(spec, signal)));
    return { problems, images };
  }

  async #firewall({ firewallID }: LinodeNodeClassSpec, signal: AbortSignal): Promise<Problem[]> {
    if (firewallID === undefined) return [];
    const firewall = await this.#find<{ status?: string }>(`networking/firewalls/${firewallID}`, signal);
    if (firewall === 'gone') return [problem('FirewallNotFound', `the account has no firewall ${firewallID}`)];
    if (firewall === 'unknown' || firewall.status !== 'deleted') return [];
    return [problem('FirewallNotFound', `firewall ${firewallID} is deleted`)];
  }

  async #image(spec: LinodeNodeClassSpec, signal: AbortSignal): Promise<Verdict> {
    const id = spec.image ?? usualImage;
    const image = await this.#find<{ label?: string; status?: string; deprecated?: boolean; capabilities?: string[] }>(
      `images/${percentEncoded(id)}`,
      signal,
    );
    if (image === 'gone') return wrong('ImageNotFound', `the account has no image ${id}`);
    if (image === 'unknown') return { problems: [], images: [{ id }] };
    if (image.status !== undefined && image.status !== 'available') {
      return wrong('ImageNotReady', `image ${id} is ${image.status}`);
    }
    if (!(image.capabilities ?? []).includes('cloud-init')) {
      return wrong('ImageWithoutCloudInit', `image ${id} does not run cloud-init, so no machine of it could join`);
    }
    return { problems: [], images: [{ id, label: image.label ?? '', deprecated: image.deprecated ?? false }] };
  }

  async #vpc({ vpcID, subnetID }: LinodeNodeClassSpec, region: Region, signal: AbortSignal): Promise<Problem[]> {
    if (vpcID === undefined) return [];
    const vpc = await this.#find<{ region: string; subnets: { id: number }[] }>(`vpcs/${vpcID}`, signal);
    if (vpc === 'gone') return [problem('VPCNotFound', `the account has no VPC ${vpcID}`)];
    if (vpc === 'unknown') return [];
    if (vpc.region !== region.id) {
      return [problem('VPCInOtherRegion', `VPC ${vpcID} is in ${vpc.region}, machines are made in ${region.id}`)];
    }
    if (subnetID !== undefined && !vpc.subnets.some(({ id }) => id === subnetID)) {
      return [problem('SubnetNotFound', `VPC ${vpcID} has no subnet ${subnetID}`)];
    }
    if (subnetID === undefined && vpc.subnets.length !== 1) {
      const count = vpc.subnets.length;
      return [problem('SubnetAmbiguous', `VPC ${vpcID} has ${count} subnets: subnetID must name one`)];
    }
    return [];
  }

  async #placementGroup(
    { placementGroup }: LinodeNodeClassSpec,
    region: Region,
    signal: AbortSignal,
  ): Promise<Problem[]> {
    if (!placementGroup) return [];
    const { id } = placementGroup;
    const group = await this.#find<{ region: string }>(`placement/groups/${id}`, signal);
    if (group === 'gone') return [problem('PlacementGroupNotFound', `the account has no placement group ${id}`)];
    if (group === 'unknown' || group.region === region.id) return [];
    const message = `placement group ${id} is in ${group.region}, machines are made in ${region.id}`;
    return [problem('PlacementGroupInOtherRegion', message)];
  }

  async #kernel({ configuration }: LinodeNodeClassSpec, signal: AbortSignal): Promise<Problem[]> {
    const kernel = configuration?.kernel;
    if (!kernel) return [];
    const found = await this.#find(`linode/kernels/${percentEncoded(kernel)}`, signal);
    return found === 'gone' ? [problem('KernelNotFound', `Linode has no kernel ${kernel}`)] : [];
  }

  async #users({ authorizedUsers = [] }: LinodeNodeClassSpec, signal: AbortSignal): Promise<Problem[]> {
    const problems: Problem[] = [];
    for (const user of authorizedUsers) {
      const found = await this.#find(`account/users/${percentEncoded(user)}`, signal);
      if (found === 'gone') problems.push(problem('UserNotFound', `the account has no user ${user}`));
    }
    return problems;
  }

  /** A machine that cannot join is bought for nothing: what it would be told is rendered once for the eye. */
  async #bootstrap(spec: LinodeNodeClassSpec, signal: AbortSignal): Promise<Problem[]> {
    const { clusterInfo, account } = this.#options;
    try {
      const cluster = await clusterInfo?.read(signal);
      if (!cluster) return [];
      renderUserData({
        cluster,
        clusterName: 'check',
        region: (await account.place()).region.id,
        instanceType: 'check',
        token: 'abcdef.0123456789abcdef',
        nodeName: 'check',
        labels: {},
        taints: [],
        spec,
        kubeReserved: {},
        maxPods: 110,
      });
      return [];
    } catch (error) {
      if (error instanceof ClusterInfoError) return [problem('ClusterUnknown', messageOf(error))];
      if (error instanceof UserDataError) return [problem('UserDataInvalid', messageOf(error))];
      throw error;
    }
  }

  /** What is there; a token that may not look is not a reason against it. */
  async #find<T>(path: string, signal: AbortSignal): Promise<T | 'gone' | 'unknown'> {
    try {
      return await this.#options.client.get<T>(path, signal);
    } catch (error) {
      if (isGone(error)) return 'gone';
      if (isDenied(error)) return 'unknown';
      throw error;
    }
  }
}

const problem = (reason: string, message: string): Problem => ({ reason, message });
const wrong = (reason: string, message: string): Verdict => ({ problems: [problem(reason, message)], images: [] });

function tagProblems({ tags = [] }: LinodeNodeClassSpec): Problem[] {
  const isOwn = (tag: string): boolean =>
    tag.startsWith(ownTagPrefix) || ownTagKeys.some((key) => tag === key || tag.startsWith(`${key}=`));
  return tags.flatMap((tag) => {
    const owner = isOwn(tag) ? "Karpenter's" : lkeTag.test(tag) ? "LKE's" : undefined;
    return owner === undefined ? [] : [problem('TagValidationFailed', `the tag ${tag} is ${owner} own`)];
  });
}

function versionProblems({ lkeK8sVersion }: LinodeNodeClassSpec, { lke }: Place): Problem[] {
  if (lkeK8sVersion === undefined || !lke) return [];
  if (lke.tier === 'standard') {
    return [
      problem('LKEK8sVersionUnsupported', 'lkeK8sVersion is for LKE Enterprise; this cluster is of the standard tier'),
    ];
  }
  if (lkeK8sVersion === lke.version) return [];
  const message = `lkeK8sVersion is ${lkeK8sVersion}, and the control plane has ${lke.version}`;
  return [problem('LKEK8sVersionControlPlaneMismatch', message)];
}

/** What the class says about itself, whatever the account has. */
function ownProblems({ osDisk, dataDisks, authorizedKeys = [] }: LinodeNodeClassSpec): Problem[] {
  const disks = [osDisk, ...Object.values(dataDisks ?? {})];
  return [
    ...(disks.some((disk) => (disk?.diskID ?? 0) > 0)
      ? [problem('DiskIDUnsupported', 'diskID cannot be given: disks are made with their machine')]
      : []),
    ...(authorizedKeys.every((key) => /^(?:ssh-|ecdsa-|sk-)\S+ \S+/.test(key.trim()))
      ? []
      : [problem('AuthorizedKeyInvalid', 'authorizedKeys must be public SSH keys, such as "ssh-ed25519 AAAA…"')]),
  ];
}

function regionProblems(spec: LinodeNodeClassSpec, { id, capabilities }: Region): Problem[] {
  const needs: readonly (readonly [boolean, string, ...string[]])[] = [
    [true, 'user data', 'Metadata'],
    [spec.vpcID !== undefined, 'VPCs', 'VPCs'],
    [spec.vpcID !== undefined, 'interfaces of VPCs', 'Linode Interfaces'],
    [spec.placementGroup !== undefined, 'placement groups', 'Placement Group'],
    [spec.diskEncryption === 'enabled', 'encrypted disks', 'Disk Encryption', 'LA Disk Encryption'],
    [spec.backupsEnabled === true, 'backups', 'Backups'],
    [spec.firewallID !== undefined, 'firewalls', 'Cloud Firewall'],
  ];
  return needs
    .filter(([wanted, , ...any]) => wanted && !any.some((capability) => capabilities.includes(capability)))
    .map(([, what]) => problem('RegionUnsupported', `region ${id} has no ${what}`));
}
