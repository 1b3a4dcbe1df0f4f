// SPDX-License-Identifier: Apache-2.0
// Every label, annotation and finalizer we read or write, and which labels a user may ask for.
// What is known and what is restricted belongs to a provider: it is a value that a provider extends, never a global.
import { compareStrings } from '../base/order.ts';

/** The API group of NodePools, NodeClaims and NodeOverlays, and the domain of our labels. */
export const karpenterGroup = 'karpenter.sh';

/** Labels we put on nodes and NodeClaims, and the standard ones we schedule by. */
export const labels = {
  nodePool: 'karpenter.sh/nodepool',
  capacityType: 'karpenter.sh/capacity-type',
  registered: 'karpenter.sh/registered',
  initialized: 'karpenter.sh/initialized',
  /** "true" on a Node: registration leaves its taints alone. */
  doNotSyncTaints: 'karpenter.sh/do-not-sync-taints',
  excludeFromLoadBalancers: 'node.kubernetes.io/exclude-from-external-load-balancers',
  zone: 'topology.kubernetes.io/zone',
  region: 'topology.kubernetes.io/region',
  instanceType: 'node.kubernetes.io/instance-type',
  arch: 'kubernetes.io/arch',
  os: 'kubernetes.io/os',
  hostname: 'kubernetes.io/hostname',
  windowsBuild: 'node.kubernetes.io/windows-build',
} as const;

/** Annotations we write or obey. */
export const annotations = {
  doNotDisrupt: 'karpenter.sh/do-not-disrupt',
  nodePoolHash: 'karpenter.sh/nodepool-hash',
  nodePoolHashVersion: 'karpenter.sh/nodepool-hash-version',
  terminationTimestamp: 'karpenter.sh/nodeclaim-termination-timestamp',
  minValuesRelaxed: 'karpenter.sh/nodeclaim-min-values-relaxed',
  requestedDraDrivers: 'karpenter.sh/requested-dra-drivers',
  priceOverlayApplied: 'karpenter.sh/price-overlay-applied',
  capacityOverlayApplied: 'karpenter.sh/capacity-overlay-applied',
  providerCompatibility: 'compatibility.karpenter.sh/provider',
  capacityBufferFakePod: 'karpenter.sh/capacity-buffer-fake-pod',
  capacityBufferName: 'karpenter.sh/capacity-buffer-name',
  capacityBufferNamespace: 'karpenter.sh/capacity-buffer-namespace',
  podDeletionCost: 'controller.kubernetes.io/pod-deletion-cost',
  volumeBindCompleted: 'pv.kubernetes.io/bind-completed',
} as const;

/** Keeps a NodeClaim and its Node until the machine is gone. */
export const terminationFinalizer = 'karpenter.sh/termination';

/** How a machine is paid for: the values of the capacity-type label. */
export const capacityTypes = { onDemand: 'on-demand', spot: 'spot', reserved: 'reserved' } as const;
export type CapacityType = (typeof capacityTypes)[keyof typeof capacityTypes];

/** The label that names the NodeClass of a node: `<group>/<kind in lower case>`. */
export function nodeClassLabel(nodeClass: { readonly group: string; readonly kind: string }): string {
  return `${nodeClass.group}/${nodeClass.kind.toLowerCase()}`;
}

/** The part of a label key before the slash; '' when there is none. */
export function labelDomain(key: string): string {
  const slash = key.indexOf('/');
  return slash < 0 ? '' : key.slice(0, slash);
}

/** What one provider knows about labels. Immutable: `extendLabelSet` makes a larger one. */
export interface LabelSet {
  /** Labels that instance types define: a pod may ask for them although no NodePool names them. */
  readonly wellKnown: ReadonlySet<string>;
  /** The well-known labels by which the offerings of one instance type differ. */
  readonly offering: ReadonlySet<string>;
  /** Domains (with their sub-domains) whose labels a user may not set, unless well known. */
  readonly restrictedDomains: ReadonlySet<string>;
  /** Single labels that a user may not set. */
  readonly restricted: ReadonlySet<string>;
  /** Deprecated key → the key that replaced it. */
  readonly normalized: ReadonlyMap<string, string>;
  /** Per replacing key: value as written → value as instance types write it. */
  readonly normalizedValues: ReadonlyMap<string, ReadonlyMap<string, string>>;
  /** The values that make sense for a label, where they are a closed set. */
  readonly knownValues: ReadonlyMap<string, ReadonlySet<string>>;
}

/** What holds on every cloud. */
export const commonLabelSet: LabelSet = {
  wellKnown: new Set<string>([
    labels.nodePool,
    labels.zone,
    labels.region,
    labels.instanceType,
    labels.arch,
    labels.os,
    labels.capacityType,
    labels.windowsBuild,
  ]),
  offering: new Set<string>([labels.zone, labels.capacityType]),
  restrictedDomains: new Set([karpenterGroup]),
  restricted: new Set<string>([labels.hostname]),
  normalized: new Map<string, string>([
    ['failure-domain.beta.kubernetes.io/zone', labels.zone],
    ['failure-domain.beta.kubernetes.io/region', labels.region],
    ['beta.kubernetes.io/arch', labels.arch],
    ['beta.kubernetes.io/os', labels.os],
    ['beta.kubernetes.io/instance-type', labels.instanceType],
  ]),
  normalizedValues: new Map(),
  knownValues: new Map([[labels.capacityType, new Set<string>(Object.values(capacityTypes))]]),
};

/** What a provider adds to a label set. */
export interface LabelSetExtension {
  readonly wellKnown?: Iterable<string>;
  readonly offering?: Iterable<string>;
  readonly restrictedDomains?: Iterable<string>;
  readonly restricted?: Iterable<string>;
  readonly normalized?: Iterable<readonly [string, string]>;
  readonly normalizedValues?: Iterable<readonly [string, ReadonlyMap<string, string>]>;
  readonly knownValues?: Iterable<readonly [string, ReadonlySet<string>]>;
}

/** A new set with the provider's labels added; `base` stays as it is. Entries for the same key replace those of `base`. */
export function extendLabelSet(base: LabelSet, extension: LabelSetExtension): LabelSet {
  return {
    wellKnown: new Set([...base.wellKnown, ...(extension.wellKnown ?? [])]),
    offering: new Set([...base.offering, ...(extension.offering ?? [])]),
    restrictedDomains: new Set([...base.restrictedDomains, ...(extension.restrictedDomains ?? [])]),
    restricted: new Set([...base.restricted, ...(extension.restricted ?? [])]),
    normalized: new Map([...base.normalized, ...(extension.normalized ?? [])]),
    normalizedValues: new Map([...base.normalizedValues, ...(extension.normalizedValues ?? [])]),
    knownValues: new Map([...base.knownValues, ...(extension.knownValues ?? [])]),
  };
}

/** The key that instance types use for what `key` means. */
export function normalizeLabelKey(set: LabelSet, key: string): string {
  return set.normalized.get(key) ?? key;
}

/** The value that instance types use, given a key that is already normalised. */
export function normalizeLabelValue(set: LabelSet, normalizedKey: string, value: string): string {
  return set.normalizedValues.get(normalizedKey)?.get(value) ?? value;
}

/** Why a user may not set a label, as a sentence; undefined when it is allowed. */
export function restrictedLabelProblem(set: LabelSet, key: string): string | undefined {
  if (set.wellKnown.has(key)) return undefined;
  const domain = labelDomain(key);
  const restricted =
    set.restricted.has(key) ||
    [...set.restrictedDomains].some((known) => domain === known || domain.endsWith(`.${known}`));
  if (!restricted) return undefined;
  const wellKnown = [...set.wellKnown].sort(compareStrings).join(', ');
  const domains = [...set.restrictedDomains].sort(compareStrings).join(', ');
  return `label ${key} is reserved for the autoscaler; use a well-known label (${wellKnown}) or one outside the domains ${domains}`;
}
