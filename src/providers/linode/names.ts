// SPDX-License-Identifier: Apache-2.0
// Names that Linode and this provider share: labels of nodes, tags of machines and node pools, annotations of NodeClaims.
import { createHash } from 'node:crypto';
import { commonLabelSet, extendLabelSet, type LabelSet } from '../../api/labels.ts';

export const linodeGroup = 'karpenter.k8s.linode';
export const providerScheme = 'linode://';

/** Labels that machines of this cloud have. */
export const linodeLabels = {
  cpu: `${linodeGroup}/instance-cpu`,
  memory: `${linodeGroup}/instance-memory`,
  transfer: `${linodeGroup}/instance-transfer`,
  networkOut: `${linodeGroup}/instance-network-out`,
  class: `${linodeGroup}/instance-class`,
  generation: `${linodeGroup}/instance-generation`,
  disk: `${linodeGroup}/instance-disk`,
  gpuCount: `${linodeGroup}/instance-gpu-count`,
  gpuName: `${linodeGroup}/instance-gpu-name`,
  acceleratedDevices: `${linodeGroup}/instance-accelerated-devices-count`,
} as const;

export const linodeLabelSet: LabelSet = extendLabelSet(commonLabelSet, {
  wellKnown: Object.values(linodeLabels),
  restrictedDomains: [linodeGroup],
});

export const linodeAnnotations = {
  hash: `${linodeGroup}/linodenodeclass-hash`,
  hashVersion: `${linodeGroup}/linodenodeclass-hash-version`,
  /** On NodeClaims: "true" once the machine carries everything that is put on it after its launch. */
  tagged: `${linodeGroup}/tagged`,
  /** On NodeClaims: the tags of the NodeClass that were put on the machine last, as a JSON list. */
  appliedTags: `${linodeGroup}/last-applied-user-tags`,
} as const;

/** The finalizer of a LinodeNodeClass, as upstream has it. */
export const nodeClassFinalizer = `${linodeGroup}/termination`;

/** Keys of tags. What is not listed here belongs to others. */
export const tagKeys = {
  /** The UID of the NodeClaim, without dashes: 49 characters, so it fits whole. */
  uid: 'karpenter.sh/uid',
  nodeClaim: 'karpenter.sh/nodeclaim',
  nodePool: 'karpenter.sh/nodepool',
  nodeClass: `${linodeGroup}/linodenodeclass`,
  managed: `${linodeGroup}/lke-managed`,
  clusterName: 'lke-cluster-name',
  /** The UID of the cluster itself, without dashes: names of clusters may repeat, this does not. Exactly 50 characters. */
  cluster: 'karpenter-cluster',
  /** The name of the Node. */
  name: 'Name',
} as const;

/** What Linode allows. */
export const longestTag = 50;

/** `key=value`, shortened to what Linode allows: the start of the value and a hash of all of it. */
export function tagOf(key: string, value: string): string {
  const whole = `${key}=${value}`;
  if (whole.length <= longestTag) return whole;
  const room = longestTag - key.length - 1;
  const hash = fnv1a(value);
  return room > hash.length
    ? `${key}=${value.slice(0, room - hash.length - 1)}-${hash}`
    : `${key}=${hash.slice(0, room)}`;
}

/** The tag by which other tools know whose machine it is. The name of the cluster is in the key: it is what is shortened. */
export function ownedTag(clusterName: string): string {
  const [before, after] = ['kubernetes.io/cluster/', '=owned'];
  const room = longestTag - before.length - after.length;
  const name = clusterName.length <= room ? clusterName : `${clusterName.slice(0, room - 9)}-${fnv1a(clusterName)}`;
  return `${before}${name}${after}`;
}

/** The value of the first tag with this key. */
export function tagValue(tags: readonly string[], key: string): string | undefined {
  const found = tags.find((tag) => tag.length > key.length + 1 && tag.startsWith(`${key}=`));
  return found?.slice(key.length + 1);
}

/** As `tagValue`, but nothing where the value may have been shortened by `tagOf`. */
export function wholeTagValue(tags: readonly string[], key: string): string | undefined {
  const value = tagValue(tags, key);
  const isCut = key.length + 1 + (value?.length ?? 0) === longestTag && /(?:^|-)[0-9a-f]{8}$/.test(value ?? '');
  return isCut ? undefined : value;
}

/** `6ba7b8109dad11d180b400c04fd430c8` of a UID. */
export function bareUid(uid: string): string {
  return uid.replaceAll('-', '').toLowerCase();
}

/** The UID of what `bareUid` gave; undefined for anything else. */
export function fullUid(bare: string | undefined): string | undefined {
  const parts = /^([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/.exec(bare ?? '');
  return parts ? parts.slice(1).join('-') : undefined;
}

/** The id of the Linode that a provider id names; undefined when it names none of this cloud. */
export function linodeIdOf(providerID: string): number | undefined {
  if (!providerID.startsWith(providerScheme)) return undefined;
  const text = providerID.slice(providerScheme.length);
  const id = /^[1-9]\d*$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(id) ? id : undefined;
}

export function providerIdOf(linodeId: number): string {
  return `${providerScheme}${linodeId}`;
}

/** How a node pool that has no machine yet is called among instances. */
const holdPrefix = `${providerScheme}pool/`;

/** `which` tells those apart that wait in one pool. */
export function holdIdOf(poolId: number, which?: string): string {
  return `${holdPrefix}${poolId}${which === undefined ? '' : `/${which}`}`;
}

export function poolIdOfHold(providerID: string): number | undefined {
  const text = providerID.startsWith(holdPrefix) ? providerID.slice(holdPrefix.length) : '';
  const [, id] = /^([1-9]\d*)(?:\/[0-9a-f]+)?$/.exec(text) ?? [];
  return id === undefined ? undefined : Number(id);
}

/** FNV-1a with 32 bits, as 8 hexadecimal digits. */
export function fnv1a(text: string): string {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, '0');
}

export function sha256(text: string | Uint8Array): string {
  return createHash('sha256').update(text).digest('hex');
}

/**
 * The label of the Linode of a NodeClaim, which is also the name of its Node: the same for every launch. Linode takes a
 * label once per account, so a second launch is refused by Linode itself.
 */
export function machineLabel(claim: { readonly name?: string; readonly uid?: string }): string {
  // 48 bits of the UID: two NodeClaims of one name share a label once in 2^48 times. At most 63 characters: a node name.
  const name = (claim.name ?? '')
    .toLowerCase()
    .replace(/[^a-z0-9-]+/g, '-')
    .replace(/-{2,}/g, '-')
    .replace(/^-+/, '')
    .slice(0, 50)
    .replace(/-+$/, '');
  return `${name === '' ? 'karpenter' : name}-${bareUid(claim.uid ?? '').slice(-12)}`;
}
