// SPDX-License-Identifier: Apache-2.0
// Where the affinities of a pod, those of its neighbours and its volumes let it be. Only what is required.
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from '../../kube/kinds.ts';
import { collections } from '../collections.ts';
import type { Facts } from '../contract.ts';
import { hasEnded, nameOf, podsOn } from './reading.ts';

type PodTerm = NonNullable<
  NonNullable<NonNullable<Pod['spec']['affinity']>['podAffinity']>['requiredDuringSchedulingIgnoredDuringExecution']
>[number];
type NodeTerm = NonNullable<
  NonNullable<NonNullable<Pod['spec']['affinity']>['nodeAffinity']>['requiredDuringSchedulingIgnoredDuringExecution']
>['nodeSelectorTerms'][number];
type Expression = NonNullable<NodeTerm['matchExpressions']>[number];

const hostname = 'kubernetes.io/hostname';

/** What is wrong with a pod being on a node, each as the rest of a sentence about it. */
export function affinityBroken(facts: Facts, pod: Pod, node: Node): string[] {
  return [...nodeBroken(facts, pod, node), ...apartBroken(facts, pod, node), ...togetherBroken(facts, pod, node)];
}

function nodeBroken(facts: Facts, pod: Pod, node: Node): string[] {
  const broken: string[] = [];
  const terms = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms;
  if (terms && !terms.some((term) => nodeMatches(node, term)))
    broken.push(`requires another node than ${nameOf(node)} (${JSON.stringify(terms)})`);
  for (const volume of volumesOf(facts, pod)) {
    const required = volume.spec?.nodeAffinity?.required?.nodeSelectorTerms;
    if (required && !required.some((term) => nodeMatches(node, term as NodeTerm)))
      broken.push(`is on ${nameOf(node)}, and its volume ${nameOf(volume)} cannot be there`);
  }
  return broken;
}

function awayFrom({ spec }: Pod): readonly PodTerm[] {
  return spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [];
}

function apartBroken(facts: Facts, pod: Pod, node: Node): string[] {
  const broken: string[] = [];
  for (const term of awayFrom(pod)) {
    const other = neighbours(facts, pod, node, term.topologyKey).find((one) => podMatches(one, pod, term));
    if (other) broken.push(`will not be with ${nameOf(other)}, and both are in one ${term.topologyKey}`);
  }
  for (const other of neighbours(facts, pod, node, hostname)) {
    const minds = awayFrom(other).some((term) => term.topologyKey === hostname && podMatches(pod, other, term));
    if (minds) broken.push(`is on ${nameOf(node)} with ${nameOf(other)}, which will not be with it`);
  }
  return broken;
}

function togetherBroken(facts: Facts, pod: Pod, node: Node): string[] {
  const broken: string[] = [];
  for (const term of pod.spec.affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []) {
    if (neighbours(facts, pod, node, term.topologyKey).some((one) => podMatches(one, pod, term))) continue;
    // The first of those that want to be together may be anywhere.
    const isAnother = (one: Pod): boolean => isOther(one, pod) && podMatches(one, pod, term);
    if (podMatches(pod, pod, term) && !placedPods(facts).some(isAnother)) continue;
    broken.push(`will be with others in one ${term.topologyKey}, and is alone on ${nameOf(node)}`);
  }
  return broken;
}

/** Other pods in the same place. */
function neighbours(facts: Facts, pod: Pod, node: Node, key: string): Pod[] {
  const nodes =
    key === hostname
      ? [node]
      : facts.list<Node>(collections.nodes).filter((one) => valueOf(one, key) === valueOf(node, key));
  return nodes.flatMap((one) => podsOn(facts, one)).filter((one) => isOther(one, pod) && !hasEnded(one));
}

/** kube-scheduler knows nothing of pods whose Node is gone: they will be collected. */
function placedPods(facts: Facts): Pod[] {
  const nodes = new Set(facts.list<Node>(collections.nodes).map(nameOf));
  return facts.list<Pod>(collections.pods).filter((pod) => nodes.has(pod.spec.nodeName ?? '') && !hasEnded(pod));
}

function isOther({ metadata }: Pod, pod: Pod): boolean {
  return metadata.uid !== pod.metadata.uid;
}

function podMatches({ metadata }: Pod, owner: Pod, { labelSelector, namespaces }: PodTerm): boolean {
  const { namespace = '' } = metadata;
  if (!(namespaces ?? [owner.metadata.namespace]).includes(namespace)) return false;
  const wanted = Object.entries(labelSelector?.matchLabels ?? {});
  return labelSelector !== undefined && wanted.every(([key, value]) => metadata.labels?.[key] === value);
}

function nodeMatches(node: Node, { matchExpressions = [] }: NodeTerm): boolean {
  return matchExpressions.every((expression) => holds(valueOf(node, expression.key), expression));
}

function holds(value: string | undefined, { operator, values = [] }: Expression): boolean {
  if (operator === 'In') return value !== undefined && values.includes(value);
  if (operator === 'NotIn') return value === undefined || !values.includes(value);
  if (operator === 'Exists') return value !== undefined;
  if (operator === 'DoesNotExist') return value === undefined;
  throw new RangeError(`nobody in these worlds asks for ${operator}`);
}

function valueOf({ metadata }: Node, key: string): string | undefined {
  return metadata.labels?.[key];
}

/** The volumes of a pod that exist already. */
function volumesOf(facts: Facts, { metadata, spec }: Pod): PersistentVolume[] {
  return (spec.volumes ?? []).flatMap(({ persistentVolumeClaim }) => {
    if (!persistentVolumeClaim) return [];
    const { claimName } = persistentVolumeClaim;
    const claim = facts.get<PersistentVolumeClaim>(collections.volumeClaims, metadata.namespace ?? '', claimName);
    const volume = facts.get<PersistentVolume>(collections.volumes, '', claim?.spec?.volumeName ?? '');
    return volume ? [volume] : [];
  });
}
