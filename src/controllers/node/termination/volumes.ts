// SPDX-License-Identifier: Apache-2.0
// Which volumes must be detached before a machine may go: those of pods that move on. Pure.
import type { PersistentVolumeClaim, Pod, VolumeAttachment } from '../../../kube/kinds.ts';
import { isDrainable } from '../../../state/pod-predicates.ts';

/**
 * The attachments to wait for. Volumes of pods that stay on the node until its end are never detached, and an
 * attachment that names no PersistentVolume belongs to nobody: these do not count.
 */
export function blockingAttachments(
  attachments: readonly VolumeAttachment[],
  pods: Iterable<Pod>,
  claim: (key: string) => PersistentVolumeClaim | undefined,
  now: number,
): VolumeAttachment[] {
  if (attachments.length === 0) return [];
  const staying = new Set<string>();
  for (const pod of pods) {
    if (isDrainable(pod, now)) continue;
    for (const name of claimNames(pod)) {
      const volume = claim(`${pod.metadata.namespace}/${name}`)?.spec?.volumeName;
      if (volume) staying.add(volume);
    }
  }
  return attachments.filter(({ spec }) => {
    const volume = spec.source.persistentVolumeName;
    return volume !== undefined && !staying.has(volume);
  });
}

/** The names of the claims a pod uses; a generic ephemeral volume has one of its own. */
function claimNames(pod: Pod): string[] {
  const names: string[] = [];
  for (const volume of pod.spec.volumes ?? []) {
    if (volume.persistentVolumeClaim) names.push(volume.persistentVolumeClaim.claimName);
    else if (volume.ephemeral) names.push(`${pod.metadata.name}-${volume.name}`);
  }
  return names;
}
