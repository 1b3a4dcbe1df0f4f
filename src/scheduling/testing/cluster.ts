// SPDX-License-Identifier: Apache-2.0
// The validator's model of the cluster as it stands: nodes and machines on their way, what runs on them, what is left.
import type { Node, NodeClaim, Pod, Taint } from '../objects.ts';
import type { Problem } from '../problem.ts';
import { type Amounts, add, amounts, subtract } from './amounts.ts';
import { type Daemon, roomFor } from './catalogue.ts';
import {
  type HostPort,
  hostnameLabel,
  hostPorts,
  lookup,
  nodeTerms,
  podRequests,
  surelyMatches,
  tolerates,
} from './pod-rules.ts';
import { exactly, type LabelState } from './values.ts';

/** A node that exists, or a machine that was bought and has not joined yet. */
export interface ExistingNode {
  readonly name: string;
  readonly initialized: boolean;
  readonly leaving: boolean;
  readonly pool: string | undefined;
  readonly labels: ReadonlyMap<string, LabelState>;
  readonly taints: readonly Taint[];
  readonly capacity: Amounts;
  /** Room for new pods: allocatable, minus what runs, minus daemonsets still to come. */
  readonly room: Amounts;
  readonly ports: readonly HostPort[];
  readonly bound: readonly Pod[];
}

export function isDaemonPod(pod: Pod): boolean {
  return (pod.metadata.ownerReferences ?? []).some((o) => o.kind === 'DaemonSet');
}

export function isGone(pod: Pod): boolean {
  return pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded';
}

const ephemeral = [
  ['node.kubernetes.io/not-ready', 'NoSchedule'],
  ['node.kubernetes.io/not-ready', 'NoExecute'],
  ['node.kubernetes.io/unreachable', 'NoSchedule'],
  ['node.cloudprovider.kubernetes.io/uninitialized', 'NoSchedule'],
  ['karpenter.sh/unregistered', 'NoExecute'],
];

function isEphemeral(taint: Taint): boolean {
  return taint.key.startsWith('readiness.k8s.io/') || ephemeral.some(([k, e]) => taint.key === k && taint.effect === e);
}

/** Status of a young node: what the kubelet reports as zero or not at all is taken from the claim. */
function filled(node: Amounts, claim: Amounts): Amounts {
  const result = new Map(node);
  for (const [name, value] of claim) if ((result.get(name) ?? 0n) === 0n) result.set(name, value);
  return result;
}

export function existingNodes(problem: Problem, daemons: readonly Daemon[]): ExistingNode[] {
  const marked = new Set(problem.state?.markedForDeletion);
  const claims = new Map((problem.nodeClaims ?? []).map((c) => [c.status?.providerID ?? c.metadata.name, c]));
  const podsOn = new Map<string, Pod[]>();
  for (const pod of problem.pods) {
    if (!pod.spec.nodeName || isGone(pod)) continue;
    const list = podsOn.get(pod.spec.nodeName);
    if (list) list.push(pod);
    else podsOn.set(pod.spec.nodeName, [pod]);
  }
  const found: ExistingNode[] = [];
  const taken = new Set<NodeClaim>();
  for (const node of problem.nodes ?? []) {
    const claim = node.spec?.providerID ? claims.get(node.spec.providerID) : undefined;
    if (claim) taken.add(claim);
    found.push(describe(node, claim, podsOn.get(node.metadata.name ?? '') ?? [], daemons, marked));
  }
  for (const claim of problem.nodeClaims ?? [])
    if (!taken.has(claim)) found.push(describe(undefined, claim, [], daemons, marked));
  return found;
}

function describe(
  node: Node | undefined,
  claim: NodeClaim | undefined,
  bound: readonly Pod[],
  daemons: readonly Daemon[],
  marked: ReadonlySet<string>,
): ExistingNode {
  const registered = !claim || node?.metadata.labels?.['karpenter.sh/registered'] === 'true';
  const initialized = !claim || node?.metadata.labels?.['karpenter.sh/initialized'] === 'true';
  const useClaim = claim && (!node || !registered);
  const name = (useClaim ? claim.metadata.name : node?.metadata.name) ?? '';
  const plain = (useClaim ? claim.metadata.labels : node?.metadata.labels) ?? {};
  const labels = new Map(Object.entries(plain).map(([k, v]) => [k, exactly(v)]));
  if (!labels.has(hostnameLabel)) labels.set(hostnameLabel, exactly(name));
  let taints = (useClaim ? claim.spec?.taints : node?.spec?.taints) ?? [];
  if (claim && !initialized) {
    const startup = claim.spec?.startupTaints ?? [];
    taints = taints.filter((t) => !isEphemeral(t) && !startup.some((s) => s.key === t.key && s.effect === t.effect));
  }
  const of = (field: 'capacity' | 'allocatable'): Amounts => {
    const fromNode = amounts(node?.status?.[field]);
    return claim && !initialized ? filled(fromNode, amounts(claim.status?.[field])) : fromNode;
  };
  const capacity = new Map(of('capacity'));
  capacity.set('nodes', 1_000_000_000n);
  const used = add(...bound.map((p) => podRequests(p.spec)));
  const present = add(...bound.filter(isDaemonPod).map((p) => podRequests(p.spec)));
  const expected = daemons.filter(
    (d) =>
      // A soft taint keeps no daemonset away. Upstream knows that of machines it buys, and forgets it of those it has.
      taints.every((t) => t.effect === 'PreferNoSchedule' || tolerates(d.spec.tolerations, t)) &&
      // Upstream looks at the first of several OR terms only; a daemonset that matches another one comes all the same.
      surelyMatches(nodeTerms(d.spec), lookup(labels)),
  );
  const terminating = (claim?.status?.conditions ?? []).some(
    (c) => c.type === 'InstanceTerminating' && c.status === 'True',
  );
  const deleting = claim ? claim.metadata.deletionTimestamp || terminating : node?.metadata.deletionTimestamp;
  return {
    name,
    initialized,
    leaving:
      Boolean(deleting) ||
      marked.has(name) ||
      marked.has(node?.metadata.name ?? '') ||
      marked.has(claim?.metadata.name ?? ''),
    pool: plain['karpenter.sh/nodepool'],
    labels,
    taints,
    capacity,
    room: roomFor(subtract(of('allocatable'), used), expected, present),
    ports: bound.flatMap((p) => hostPorts(p.spec)),
    bound,
  };
}

/** Volume constraints of a pod: per volume, the OR terms of where it can be used. */
export interface VolumeNeeds {
  /** Each entry is one volume; each volume lists alternatives; each alternative is a conjunction. */
  readonly topology: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[];
  }[][][];
  /** CSI driver → ids of the claims it would have to attach. */
  readonly attachments: ReadonlyMap<string, ReadonlySet<string>>;
}

const inTree: Readonly<Record<string, string>> = {
  'kubernetes.io/aws-ebs': 'ebs.csi.aws.com',
  'kubernetes.io/gce-pd': 'pd.csi.storage.gke.io',
  'kubernetes.io/azure-disk': 'disk.csi.azure.com',
};

/** Finds the volumes of pods. */
export class Volumes {
  readonly #claims: ReadonlyMap<string, NonNullable<Problem['persistentVolumeClaims']>[number]>;
  readonly #volumes: ReadonlyMap<string, NonNullable<Problem['persistentVolumes']>[number]>;
  readonly #classes: ReadonlyMap<string, NonNullable<Problem['storageClasses']>[number]>;
  readonly #limits = new Map<string, Map<string, number>>();

  constructor(problem: Problem) {
    this.#claims = new Map(
      (problem.persistentVolumeClaims ?? []).map((c) => [`${c.metadata.namespace ?? 'default'}/${c.metadata.name}`, c]),
    );
    this.#volumes = new Map((problem.persistentVolumes ?? []).map((v) => [v.metadata.name ?? '', v]));
    this.#classes = new Map((problem.storageClasses ?? []).map((s) => [s.metadata.name ?? '', s]));
    for (const node of problem.csiNodes ?? []) {
      const limits = new Map<string, number>();
      for (const d of node.spec?.drivers ?? [])
        if (d.allocatable?.count !== undefined) limits.set(d.name, d.allocatable.count);
      this.#limits.set(node.metadata.name ?? '', limits);
    }
  }

  limitsOf(node: string): ReadonlyMap<string, number> {
    return this.#limits.get(node) ?? new Map();
  }

  /** Whether a claim of the pod is missing, lost, or can never be bound where the pod runs. */
  isBroken(pod: Pod): boolean {
    return (pod.spec.volumes ?? []).some((volume) => {
      const name =
        volume.persistentVolumeClaim?.claimName ??
        (volume.ephemeral ? `${pod.metadata.name}-${volume.name}` : undefined);
      if (name === undefined) return false;
      const claim = this.#claims.get(`${pod.metadata.namespace ?? 'default'}/${name}`);
      if (!claim || claim.metadata.deletionTimestamp || claim.status?.phase === 'Lost') return true;
      if (claim.spec?.volumeName) {
        const bound = this.#volumes.get(claim.spec.volumeName);
        return (
          !bound ||
          Boolean(bound.metadata.deletionTimestamp) ||
          claim.metadata.annotations?.['pv.kubernetes.io/bind-completed'] === undefined
        );
      }
      const storage = claim.spec?.storageClassName ? this.#classes.get(claim.spec.storageClassName) : undefined;
      // Kubernetes' default is to bind at once.
      return !storage || storage.volumeBindingMode !== 'WaitForFirstConsumer';
    });
  }

  needsOf(pod: Pod): VolumeNeeds {
    const topology: VolumeNeeds['topology'][number][] = [];
    const attachments = new Map<string, Set<string>>();
    const namespace = pod.metadata.namespace ?? 'default';
    for (const volume of pod.spec.volumes ?? []) {
      const name =
        volume.persistentVolumeClaim?.claimName ??
        (volume.ephemeral ? `${pod.metadata.name}-${volume.name}` : undefined);
      const claim = name === undefined ? undefined : this.#claims.get(`${namespace}/${name}`);
      if (!claim) continue;
      const bound = claim.spec?.volumeName ? this.#volumes.get(claim.spec.volumeName) : undefined;
      const storage = claim.spec?.storageClassName ? this.#classes.get(claim.spec.storageClassName) : undefined;
      if (bound) {
        const local = bound.spec?.local !== undefined || bound.spec?.hostPath !== undefined;
        const terms = (bound.spec?.nodeAffinity?.required?.nodeSelectorTerms ?? []).map((t) =>
          (t.matchExpressions ?? []).filter((e) => !(local && e.key === hostnameLabel)),
        );
        if (terms.length > 0) topology.push(terms);
      } else if (!claim.spec?.volumeName && (storage?.allowedTopologies?.length ?? 0) > 0) {
        topology.push(
          storage!.allowedTopologies!.map((t) =>
            (t.matchLabelExpressions ?? []).map((e) => ({ key: e.key, operator: 'In', values: e.values ?? [] })),
          ),
        );
      }
      const driver =
        bound?.spec?.csi?.driver ??
        (bound?.spec?.awsElasticBlockStore !== undefined
          ? 'ebs.csi.aws.com'
          : bound || !storage?.provisioner
            ? undefined
            : (inTree[storage.provisioner] ?? storage.provisioner));
      if (driver) {
        const ids = attachments.get(driver) ?? new Set();
        attachments.set(driver, ids.add(`${namespace}/${name}`));
      }
    }
    return { topology, attachments };
  }
}
