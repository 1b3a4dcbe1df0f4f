// SPDX-License-Identifier: Apache-2.0
// Revisions of a Deployment: which ReplicaSet is the new one, how a new one looks, what its annotations say.
import { deepClone, deepEqual } from '../../../base/freeze.ts';
import { type Deployment, kinds, type PodTemplateSpec, type ReplicaSet } from '../../../kube/kinds.ts';
import { controllerReference } from '../ownership.ts';
import { templateHash } from '../template-hash.ts';
import {
  byAge,
  desiredReplicasAnnotation,
  maxReplicasAnnotation,
  maxSurge,
  newSetReplicas,
  replicasOf,
} from './arithmetic.ts';

export const revisionAnnotation = 'deployment.kubernetes.io/revision';
const historyAnnotation = 'deployment.kubernetes.io/revision-history';
const hashLabel = 'pod-template-hash';

/** Annotations of the Deployment that say nothing about its ReplicaSets. */
const notCopied = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  revisionAnnotation,
  historyAnnotation,
  desiredReplicasAnnotation,
  maxReplicasAnnotation,
  'deprecated.deployment.rollback.to',
]);

export function revisionOf(object: { metadata: { annotations?: Record<string, string> } }): number {
  return Number(object.metadata.annotations?.[revisionAnnotation] ?? 0) || 0;
}

function withoutHash(template: PodTemplateSpec): unknown {
  const { [hashLabel]: _, ...labels } = template.metadata?.labels ?? {};
  return { ...template, metadata: { ...template.metadata, labels } };
}

/** What was found of frozen templates: a status that is written leaves them as they are. */
const comparedBefore = new WeakMap<PodTemplateSpec, WeakMap<PodTemplateSpec, boolean>>();

/** Whether a set has the Deployment's template, its hash aside. */
export function hasTemplateOf({ spec: { template } }: ReplicaSet, { spec: { template: wanted } }: Deployment): boolean {
  if (!Object.isFrozen(template) || !Object.isFrozen(wanted)) return isSameTemplate(template, wanted);
  let found = comparedBefore.get(template);
  if (!found) {
    found = new WeakMap();
    comparedBefore.set(template, found);
  }
  let isSame = found.get(wanted);
  if (isSame === undefined) {
    isSame = isSameTemplate(template, wanted);
    found.set(wanted, isSame);
  }
  return isSame;
}

function isSameTemplate(a: PodTemplateSpec, b: PodTemplateSpec): boolean {
  return deepEqual(withoutHash(a), withoutHash(b));
}

/** The set of the Deployment's current template (the oldest if there are several) and all others. */
export function splitSets(
  deployment: Deployment,
  sets: readonly ReplicaSet[],
): { fresh: ReplicaSet | undefined; old: ReplicaSet[] } {
  const sorted = [...sets].sort(byAge);
  const fresh = sorted.find((set) => hasTemplateOf(set, deployment));
  return { fresh, old: sorted.filter((set) => set !== fresh) };
}

/** The ReplicaSet for the Deployment's current template, as it is to be created. */
export function newReplicaSet(deployment: Deployment, old: readonly ReplicaSet[]): ReplicaSet {
  const hash = templateHash(deployment.spec.template, deployment.status?.collisionCount);
  const template = deepClone(deployment.spec.template);
  const labels = { ...template.metadata?.labels, [hashLabel]: hash };
  const revision = Math.max(0, ...old.map(revisionOf)) + 1;
  const { selector } = deployment.spec;
  return {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: {
      name: `${deployment.metadata.name}-${hash}`,
      namespace: deployment.metadata.namespace!,
      labels,
      annotations: { ...copiedAnnotations(deployment), ...sizes(deployment), [revisionAnnotation]: String(revision) },
      ownerReferences: [controllerReference(deployment, kinds.Deployment)],
    },
    spec: {
      replicas: newSetReplicas(deployment, old, 0),
      minReadySeconds: deployment.spec.minReadySeconds ?? 0,
      selector: { ...deepClone(selector), matchLabels: { ...selector.matchLabels, [hashLabel]: hash } },
      template: { ...template, metadata: { ...template.metadata, labels } },
    },
  };
}

/** The annotations the new set should carry now: the highest revision, and what it was before in its history. */
export function freshAnnotations(
  deployment: Deployment,
  fresh: ReplicaSet,
  old: readonly ReplicaSet[],
): Record<string, string> {
  const annotations = { ...fresh.metadata.annotations, ...copiedAnnotations(deployment), ...sizes(deployment) };
  const revision = Math.max(0, ...old.map(revisionOf)) + 1;
  const current = revisionOf(fresh);
  if (current < revision) {
    if (current > 0) {
      const history = fresh.metadata.annotations?.[historyAnnotation];
      annotations[historyAnnotation] = history ? `${history},${current}` : String(current);
    }
    annotations[revisionAnnotation] = String(revision);
  }
  return annotations;
}

/** What scaling writes beside the number: against what the next proportional change is measured. */
export function sizes(deployment: Deployment): Record<string, string> {
  return {
    [desiredReplicasAnnotation]: String(replicasOf(deployment)),
    [maxReplicasAnnotation]: String(replicasOf(deployment) + maxSurge(deployment)),
  };
}

function copiedAnnotations(deployment: Deployment): Record<string, string> {
  return Object.fromEntries(
    Object.entries(deployment.metadata.annotations ?? {}).filter(([key]) => !notCopied.has(key)),
  );
}
