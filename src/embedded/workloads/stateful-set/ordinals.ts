// SPDX-License-Identifier: Apache-2.0
// The order of a StatefulSet: which pod comes next, which goes next. Pure.
import { kinds, type Pod, type PodTemplateSpec, type StatefulSet } from '../../../kube/kinds.ts';
import { podFromTemplate } from '../pod-factory.ts';
import { isPodAvailable } from '../pods.ts';
import { revisionLabel } from '../revision-history.ts';

export type Action =
  | { readonly kind: 'create'; readonly ordinal: number; readonly revision: string }
  | { readonly kind: 'delete'; readonly pod: Pod };

export interface Situation {
  readonly set: StatefulSet;
  readonly pods: readonly Pod[];
  /** The names of the revision that is rolled out, and of the one on its way. */
  readonly current: string;
  readonly update: string;
  readonly now: number;
}

/** The number in a pod's name, when the name is one of the set's. */
export function ordinalOf(set: StatefulSet, pod: Pod): number | undefined {
  const prefix = `${set.metadata.name}-`;
  const name = pod.metadata.name ?? '';
  const number = name.slice(prefix.length);
  return name.startsWith(prefix) && /^\d+$/.test(number) ? Number(number) : undefined;
}

export function claimName(set: StatefulSet, template: string, ordinal: number): string {
  return `${template}-${set.metadata.name}-${ordinal}`;
}

/** A pod of the set: its name, host name and claims follow from its ordinal. */
export function statefulPod(set: StatefulSet, template: PodTemplateSpec, ordinal: number, revision: string): Pod {
  const pod = podFromTemplate(template, set, kinds.StatefulSet);
  const name = `${set.metadata.name}-${ordinal}`;
  delete pod.metadata.generateName;
  pod.metadata.name = name;
  pod.metadata.labels = {
    ...pod.metadata.labels,
    'statefulset.kubernetes.io/pod-name': name,
    'apps.kubernetes.io/pod-index': String(ordinal),
    [revisionLabel]: revision,
  };
  pod.spec.hostname = name;
  if (set.spec.serviceName) pod.spec.subdomain = set.spec.serviceName;
  const claims = set.spec.volumeClaimTemplates ?? [];
  const names = new Set(claims.map((claim) => claim.metadata.name));
  const own = claims.map((claim) => ({
    name: claim.metadata.name!,
    persistentVolumeClaim: { claimName: claimName(set, claim.metadata.name!, ordinal) },
  }));
  const volumes = [...own, ...(pod.spec.volumes ?? []).filter((volume) => !names.has(volume.name))];
  if (volumes.length > 0) pod.spec.volumes = volumes;
  return pod;
}

/**
 * What to do next. OrderedReady takes one step and waits until all before are available; Parallel creates and removes
 * at once. Updates go from the highest ordinal down to the partition, one at a time.
 */
export function nextAction(situation: Situation): Action[] {
  const { set, pods } = situation;
  const start = set.spec.ordinals?.start ?? 0;
  const end = start + (set.spec.replicas ?? 1);
  const byOrdinal = new Map(pods.map((pod) => [ordinalOf(set, pod)!, pod]));
  const parallel = set.spec.podManagementPolicy === 'Parallel';
  const actions: Action[] = [];
  for (let ordinal = start; ordinal < end; ordinal++) {
    const step = stepFor(situation, ordinal, byOrdinal.get(ordinal));
    if (step === 'wait') {
      if (!parallel) return actions;
    } else if (step) {
      actions.push(step);
      if (!parallel) return actions;
    }
  }
  const surplus = pods
    .filter((pod) => ordinalOf(set, pod)! < start || ordinalOf(set, pod)! >= end)
    .sort((a, b) => ordinalOf(set, b)! - ordinalOf(set, a)!);
  for (const pod of surplus) {
    if (!pod.metadata.deletionTimestamp) actions.push({ kind: 'delete', pod });
    // In order: the next goes when this one is gone.
    if (!parallel) return actions;
  }
  if (actions.length > 0) return actions;
  return updates(situation, byOrdinal, start, end);
}

/** What one ordinal needs before the next may be looked at; undefined when it is well. */
function stepFor(situation: Situation, ordinal: number, pod: Pod | undefined): Action | 'wait' | undefined {
  const { set, now } = situation;
  if (!pod) return { kind: 'create', ordinal, revision: revisionFor(situation, ordinal) };
  const ended = pod.status?.phase === 'Failed' || pod.status?.phase === 'Succeeded';
  if (ended && !pod.metadata.deletionTimestamp) return { kind: 'delete', pod };
  if (pod.metadata.deletionTimestamp) return 'wait';
  return isPodAvailable(pod, set.spec.minReadySeconds ?? 0, now) ? undefined : unavailable(situation, pod, ordinal);
}

/** A pod that does not work is replaced when it is also of an old revision: waiting for it would wait for ever. */
function unavailable(situation: Situation, pod: Pod, ordinal: number): Action | 'wait' {
  const outdated = pod.metadata.labels?.[revisionLabel] !== revisionFor(situation, ordinal);
  const automatic = situation.set.spec.updateStrategy?.type !== 'OnDelete';
  return outdated && automatic && pod.status?.phase === 'Pending' ? { kind: 'delete', pod } : 'wait';
}

/** New pods above the partition get the new revision, those below the one that is rolled out. */
function revisionFor({ set, current, update }: Situation, ordinal: number): string {
  if (set.spec.updateStrategy?.type === 'OnDelete') return update;
  const partition = set.spec.updateStrategy?.rollingUpdate?.partition ?? 0;
  return ordinal >= (set.spec.ordinals?.start ?? 0) + partition ? update : current;
}

function updates(situation: Situation, byOrdinal: ReadonlyMap<number, Pod>, start: number, end: number): Action[] {
  const { set, update, now } = situation;
  if (set.spec.updateStrategy?.type === 'OnDelete') return [];
  const partition = start + (set.spec.updateStrategy?.rollingUpdate?.partition ?? 0);
  for (let ordinal = end - 1; ordinal >= partition; ordinal--) {
    const pod = byOrdinal.get(ordinal);
    if (!pod) return [];
    if (pod.metadata.labels?.[revisionLabel] !== update) return [{ kind: 'delete', pod }];
    if (!isPodAvailable(pod, set.spec.minReadySeconds ?? 0, now)) return [];
  }
  return [];
}
